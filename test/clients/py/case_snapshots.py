"""Snapshots of everything, for users' tests: /_holdfast/snapshots."""
import threading
import urllib.error

from case_expiry import Own
from support import N, S, index


class Snapshots(Own):
    def setUp(self):
        super().setUp()
        for table in self.db.list_tables()["TableNames"]:
            self.db.delete_table(TableName=table)

    def take(self, name="base"):
        told = self.admin("PUT", f"/snapshots/{name}")
        self.addCleanup(self.forget, name)
        return told

    def restore(self, name="base"):
        return self.admin("POST", f"/snapshots/{name}/restore")

    def forget(self, name):
        try:
            self.admin("DELETE", f"/snapshots/{name}")
        except urllib.error.HTTPError as error:
            error.close()

    def refused(self, method, path):
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.admin(method, path)
        caught.exception.close()
        return caught.exception.code

    def test_items_come_back(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}, {"pk": S("b")}])
        self.take()
        self.db.put_item(TableName=name, Item={"pk": S("a"), "v": N(2)})
        self.db.delete_item(TableName=name, Key={"pk": S("b")})
        self.db.put_item(TableName=name, Item={"pk": S("c")})
        self.restore()
        found = self.db.scan(TableName=name)["Items"]
        self.assertEqual(sorted(found, key=lambda item: item["pk"]["S"]),
                         [{"pk": S("a"), "v": N(1)}, {"pk": S("b")}])

    def test_again_and_again(self):
        name = self.table(items=[{"pk": S("a"), "v": N(0)}])
        self.take()
        for _ in range(5):
            self.db.update_item(TableName=name, Key={"pk": S("a")}, UpdateExpression="ADD v :one",
                                ExpressionAttributeValues={":one": N(1)})
            self.assertEqual(self.get(name, pk=S("a"))["v"], N(1))
            self.restore()
        self.assertEqual(self.get(name, pk=S("a"))["v"], N(0))

    def test_tables_come_and_go(self):
        old = self.table(items=[{"pk": S("a")}])
        self.take()
        self.db.delete_table(TableName=old)
        new = self.table()
        self.restore()
        self.assertEqual(self.db.list_tables()["TableNames"], [old])
        self.assertEqual(self.db.scan(TableName=old)["Count"], 1)
        self.fails("ResourceNotFoundException", "Requested resource not found", self.db.scan,
                   TableName=new)

    def test_indexes_and_counts(self):
        name = self.table(types={"g": "S"}, GlobalSecondaryIndexes=[index("by-g", "g")],
                          items=[{"pk": S(str(i)), "g": S("x")} for i in range(7)])
        self.take()
        for i in range(5):
            self.db.delete_item(TableName=name, Key={"pk": S(str(i))})
        self.restore()
        self.assertEqual(self.db.scan(TableName=name, IndexName="by-g")["Count"], 7)
        self.assertEqual(self.db.describe_table(TableName=name)["Table"]["ItemCount"], 7)

    def test_settings(self):
        name = self.table()
        self.take()
        self.db.update_time_to_live(TableName=name, TimeToLiveSpecification={
            "Enabled": True, "AttributeName": "due"})
        self.restore()
        self.assertEqual(self.db.describe_time_to_live(TableName=name)["TimeToLiveDescription"],
                         {"TimeToLiveStatus": "DISABLED"})

    def test_two_names(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}])
        self.take("one")
        self.db.put_item(TableName=name, Item={"pk": S("a"), "v": N(2)})
        self.take("two")
        for snapshot, value in (("one", 1), ("two", 2), ("one", 1)):
            self.restore(snapshot)
            self.assertEqual(self.get(name, pk=S("a"))["v"], N(value))

    def test_list_and_delete(self):
        self.take("one")
        self.take("two")
        told = self.admin("GET", "/snapshots")
        self.assertEqual([entry["name"] for entry in told["snapshots"]], ["one", "two"])
        self.admin("DELETE", "/snapshots/one")
        told = self.admin("GET", "/snapshots")
        self.assertEqual([entry["name"] for entry in told["snapshots"]], ["two"])
        self.assertEqual(self.refused("POST", "/snapshots/one/restore"), 404)

    def test_bad_name(self):
        self.assertEqual(self.refused("PUT", "/snapshots/a.b"), 400)

    def test_restored_under_load(self):
        """Writers that go on meanwhile see either state, and no error."""
        name = self.table(items=[{"pk": S("a"), "v": N(0)}])
        self.take()
        failures = []
        stop = threading.Event()

        def write():
            try:
                while not stop.is_set():
                    self.db.update_item(TableName=name, Key={"pk": S("a")},
                                        UpdateExpression="ADD v :one",
                                        ExpressionAttributeValues={":one": N(1)})
            except Exception as error:  # told below, in the thread of the case
                failures.append(error)

        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            self.restore()
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.restore()
        self.assertEqual(self.get(name, pk=S("a"))["v"], N(0))
