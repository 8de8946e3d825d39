"""Items as plain values, conditions, transactions, tables."""
import pickle
import tempfile
import unittest
from decimal import Decimal

import holdfast
from holdfast import HoldfastError, attr, between, exists, expr, ge, gt, missing, one_of


class Items(unittest.TestCase):
    def setUp(self):
        self.db = holdfast.open("memory:")
        self.addCleanup(self.db.close)
        self.db.create_table("orders", {"customer": "string", "day": "number"})

    def fails(self, code, work, *args, **options):
        with self.assertRaises(HoldfastError) as caught:
            work(*args, **options)
        self.assertEqual(caught.exception.code, code, str(caught.exception))
        return caught.exception

    def test_values_come_back_as_they_were(self):
        values = {
            "text": "a\0\u00fc\U0001f600", "empty": "", "whole": 7, "negative": -3, "big": 2 ** 63 + 1,
            "digits": Decimal("1234567890123456789012345678901234567.8"), "tiny": Decimal("1E-120"), "huge": 10 ** 120,
            "fraction": 0.1, "third": 1 / 3, "true": True, "false": False, "nothing": None, "bytes": b"\x00\xff",
            "list": [1, "a", [True, None], {}], "map": {"a": {"b": [b"x"]}},
            "texts": {"a", "b"}, "numbers": {1, Decimal("2.5")}, "blobs": {b"a", b"\xff"}, "__class__": "a name",
        }
        self.db.put("orders", {"customer": "ann", "day": 1, **values})
        got = self.db.get("orders", {"customer": "ann", "day": 1}, consistent=True)
        for name, value in values.items():
            wanted = Decimal(repr(value)) if isinstance(value, float) else value
            self.assertEqual(got[name], wanted, name)
            self.assertIs(type(got[name]), type(wanted), name)
        self.assertEqual(float(got["third"]), 1 / 3)
        self.assertIsNone(self.db.get("orders", {"customer": "nobody", "day": 1}))

    def test_what_cannot_be_stored_is_refused_by_name(self):
        import datetime
        circle = []
        circle.append(circle)
        for value, hint in ((set(), "empty"), ({1, "a"}, "one kind"), (float("nan"), "nan"), (Decimal("Infinity"), "Inf"),
                            (datetime.date(2020, 1, 1), "isoformat"), (object(), "object"), (circle, "circle"),
                            ({1: 2}, "names"), ("\ud800", "surrogate")):
            error = self.fails("HF_INVALID", self.db.put, "orders", {"customer": "ann", "day": 1, "it": value})
            self.assertIn(hint, str(error))
        self.assertEqual(self.db.scan("orders").all(), [])
        self.fails("HF_INVALID", self.db.put, "orders", [1])
        with self.assertRaises(TypeError):  # a slip in a name is no write without a condition
            self.db.put("orders", {"customer": "ann", "day": 1}, conditon={"customer": missing()})

    def test_conditions_updates_and_returns(self):
        key = {"customer": "ann", "day": 1}
        self.db.put("orders", {**key, "total": 10, "tags": {"new"}, "a.b": 1}, condition={"customer": missing()})
        error = self.fails("HF_CONDITION", self.db.put, "orders", key, condition={"customer": missing()},
                           item_on_failure=True)
        self.assertEqual(error.item["total"], 10)
        self.assertFalse(error.retryable or error.may_have_happened)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((again.code, again.item, str(again)), (error.code, error.item, str(error)))
        new = self.db.update("orders", key, set={"paid": True},
                             add={"total": 5}, delete={"tags": {"new"}}, condition={"total": gt(5)}, returns="new")
        self.assertEqual(new, {**key, "total": 15, "paid": True, "a.b": 1})
        self.db.update("orders", key, remove=["paid"], condition=expr("{} = {} AND {} = {}", attr("paid"), True,
                                                                      attr(["a.b"]), 1))
        self.db.update("orders", key, "SET #t = :t", names={"t": "total"}, values={"t": 1})
        self.db.update("orders", key, set={"total": expr("{} + {}", attr("total"), 1)})
        self.assertEqual(self.db.delete("orders", key, condition={"total": one_of(1, 2)}, returns="old")["total"], 2)
        self.fails("HF_INVALID", self.db.update, "orders", key)
        self.fails("HF_INVALID", self.db.put, "orders", key, returns="newest")

    def test_queries_and_pages(self):
        self.db.write_many("orders", put=[{"customer": "ann", "day": day, "total": day * 10} for day in range(60)])
        found = self.db.query("orders", {"customer": "ann", "day": between(1, 3)}, filter={"total": ge(20)},
                              reverse=True, attributes=["day", "total"]).all()
        self.assertEqual(found, [{"day": 3, "total": 30}, {"day": 2, "total": 20}])
        pages = list(self.db.query("orders", {"customer": "ann"}, page_size=25).pages())
        self.assertEqual([len(page.items) for page in pages], [25, 25, 10])
        self.assertEqual(len(self.db.scan("orders", limit=7).all()), 7)
        self.assertEqual(len(self.db.scan("orders", limit=7, page_size=5, filter={"total": exists()}).all()), 7)
        self.assertEqual(self.db.query("orders", {"customer": "ann"}).first()["day"], 0)
        self.assertEqual(self.db.count("orders", {"customer": "ann", "day": gt(9)}), 50)
        self.assertEqual(len(self.db.execute("SELECT * FROM orders WHERE customer = ?", ["ann"]).all()), 60)
        keys = [{"day": day, "customer": "ann"} for day in (5, Decimal("5.0"), 99)]
        self.assertEqual([item and item["day"] for item in self.db.get_many("orders", keys)], [5, 5, None])
        self.db.write_many("orders", delete=[{"customer": "ann", "day": day} for day in range(60)])
        self.assertIsNone(self.db.scan("orders").first())

    def test_transactions_are_all_or_nothing(self):
        self.db.create_table("accounts", {"name": "string"})
        self.db.put("accounts", {"name": "ann", "money": 100})

        def pay(money):
            with self.db.transaction() as tx:
                tx.update("accounts", {"name": "ann"}, add={"money": -money}, condition={"money": ge(money)},
                          item_on_failure=True)
                tx.update("accounts", {"name": "ben"}, add={"money": money})
        pay(30)
        error = self.fails("HF_TX_CANCELED", pay, 90)
        self.assertEqual(error.reasons[0]["code"], "ConditionalCheckFailed")
        self.assertEqual(error.reasons[0]["item"]["money"], 70)
        with self.assertRaises(ZeroDivisionError):
            with self.db.transaction() as tx:
                tx.delete("accounts", {"name": "ann"})
                1 / 0
        self.fails("HF_INVALID", tx.put, "accounts", {"name": "late"})
        got = self.db.get_together(("accounts", {"name": "ann"}), ("accounts", {"name": "x"}))
        self.assertEqual(got, [{"name": "ann", "money": 70}, None])

    def test_tables(self):
        self.db.create_table("things", {"id": "string"}, stream="both", expires="until",
                             indexes={"by_owner": {"key": {"owner": "string", "id": "string"}, "attributes": "keys"}})
        self.db.create_table("things", {"id": "string"}, if_missing=True, expires="until")
        self.db.put("things", {"id": "1", "owner": "ann", "more": 1})
        self.assertEqual(self.db.query("things", {"owner": "ann"}, index="by_owner").all(), [{"id": "1", "owner": "ann"}])
        self.assertEqual(sorted(self.db.tables()), ["orders", "things"])
        self.db.delete_table("things")
        self.db.delete_table("things", if_exists=True)
        self.fails("HF_NOT_FOUND", self.db.delete_table, "things")
        self.fails("HF_INVALID", self.db.create_table, "others", {"id": "text"})

    def test_opening(self):
        self.fails("HF_INVALID", holdfast.open, "mysql://x")
        with tempfile.TemporaryDirectory() as folder:
            url = f"embedded:{folder}/shop.db"
            self.fails("HF_NOT_FOUND", holdfast.open, url, no_create=True)
            with holdfast.open(url) as db:
                db.create_table("things", {"id": "string"})
                db.put("things", {"id": "1"})
            self.fails("HF_STOPPED", db.get, "things", {"id": "1"})
            db.close()
            with holdfast.open(url, read_only=True) as db:
                self.assertEqual(db.get("things", {"id": "1"}), {"id": "1"})
                self.fails("HF_DENIED", db.put, "things", {"id": "2"})
