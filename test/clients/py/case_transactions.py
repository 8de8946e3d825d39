"""TransactWriteItems and TransactGetItems."""
import re

from support import INVALID, B, Case, N, S, refusals

CANCELED = ("Transaction cancelled, please refer cancellation reasons for specific reasons [%s]")
NONE = {"Code": "None"}


def failed(item=None):
    reason = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
    if item:
        reason["Item"] = item
    return reason


class Writing(Case):
    def setUp(self):
        self.name = self.table(items=[{"pk": S("a"), "v": N(1)}, {"pk": S("b"), "v": N(2)}])

    def put(self, key, **more):
        attributes = more.pop("attributes", {})
        return {"Put": {"TableName": self.name, "Item": {"pk": S(key), **attributes}, **more}}

    def update(self, key, expression, **more):
        values = more.pop("values", None)
        if values:
            more["ExpressionAttributeValues"] = values
        return {"Update": {"TableName": self.name, "Key": {"pk": S(key)},
                           "UpdateExpression": expression, **more}}

    def delete(self, key, **more):
        return {"Delete": {"TableName": self.name, "Key": {"pk": S(key)}, **more}}

    def check(self, key, condition, **more):
        return {"ConditionCheck": {"TableName": self.name, "Key": {"pk": S(key)},
                                   "ConditionExpression": condition, **more}}

    def run_all(self, *actions, **more):
        return self.db.transact_write_items(TransactItems=list(actions), **more)

    def canceled(self, codes, *actions, **more):
        error = self.fails("TransactionCanceledException", CANCELED % codes, self.run_all,
                           *actions, **more)
        return error.response["CancellationReasons"]

    def contents(self):
        return {item["pk"]["S"]: item.get("v") for item in
                self.db.scan(TableName=self.name)["Items"]}

    def test_all_four_kinds(self):
        self.run_all(self.put("c", attributes={"v": N(3)}),
                     self.update("a", "SET v = v + :x", values={":x": N(10)}),
                     self.delete("b"), self.check("d", "attribute_not_exists(pk)"))
        self.assertEqual(self.contents(), {"a": N(11), "c": N(3)})

    def test_answers_nothing(self):
        self.assertEqual(set(self.run_all(self.put("c"))), {"ResponseMetadata"})

    def test_canceled_does_nothing(self):
        reasons = self.canceled("None, ConditionalCheckFailed", self.put("c"),
                                self.check("a", "attribute_not_exists(pk)"))
        self.assertEqual(reasons, [NONE, failed()])
        self.assertEqual(self.contents(), {"a": N(1), "b": N(2)})

    def test_canceled_has_a_class(self):
        with self.assertRaises(self.db.exceptions.TransactionCanceledException) as caught:
            self.run_all(self.put("a", ConditionExpression="attribute_not_exists(pk)"))
        self.assertEqual(caught.exception.response["CancellationReasons"], [failed()])

    def test_reason_with_the_item(self):
        reasons = self.canceled(
            "ConditionalCheckFailed, None",
            self.put("a", ConditionExpression="attribute_not_exists(pk)",
                     ReturnValuesOnConditionCheckFailure="ALL_OLD"), self.delete("b"))
        self.assertEqual(reasons, [failed({"pk": S("a"), "v": N(1)}), NONE])

    def test_several_fail(self):
        reasons = self.canceled(
            "ConditionalCheckFailed, None, ConditionalCheckFailed",
            self.check("a", "attribute_not_exists(pk)"), self.put("c"),
            self.delete("b", ConditionExpression="v = :x", ExpressionAttributeValues={":x": N(9)}))
        self.assertEqual(reasons, [failed(), NONE, failed()])

    def test_update_of_a_missing_item_leaves_no_ghost(self):
        self.canceled("ConditionalCheckFailed",
                      self.update("ghost", "SET v = :x", values={":x": N(1)},
                                  ConditionExpression="attribute_exists(pk)"))
        self.assertNotIn("ghost", self.contents())

    def test_validation_is_a_reason(self):
        reasons = self.canceled("ValidationError", self.update("a", "SET v = missing_one"))
        self.assertEqual(reasons, [{
            "Code": "ValidationError",
            "Message": "The provided expression refers to an attribute that does not exist in the "
                       "item"}])

    def test_wrong_key_is_a_reason(self):
        reasons = self.canceled("None, ValidationError", self.put("c"),
                                {"Delete": {"TableName": self.name, "Key": {"pk": N(1)}}})
        self.assertEqual(reasons[1]["Code"], "ValidationError")

    def test_100_actions(self):
        self.run_all(*[self.put(f"x{i}") for i in range(100)])
        self.assertEqual(self.db.scan(TableName=self.name)["Count"], 102)

    def test_101_actions(self):
        self.invalid(re.compile("Member must have length less than or equal to 100"),
                     self.run_all, *[self.put(f"x{i}") for i in range(101)])

    def test_same_item_twice(self):
        self.invalid("Transaction request cannot include multiple operations on one item",
                     self.run_all, self.put("a"), self.delete("a"))

    def test_two_tables(self):
        other = self.table("N")
        self.run_all(self.put("c"), {"Put": {"TableName": other, "Item": {"pk": N(1)}}})
        self.assertEqual(self.db.scan(TableName=other)["Count"], 1)

    def test_missing_table(self):
        self.fails("ResourceNotFoundException", "Requested resource not found", self.run_all,
                   self.put("c"), {"Put": {"TableName": "missing", "Item": {"pk": N(1)}}})

    def test_token_twice_is_done_once(self):
        action = self.update("a", "ADD v :x", values={":x": N(1)})
        self.run_all(action, ClientRequestToken="token-1")
        self.run_all(action, ClientRequestToken="token-1")
        self.assertEqual(self.contents()["a"], N(2))

    def test_token_with_another_request(self):
        self.run_all(self.put("c"), ClientRequestToken="token-2")
        with self.assertRaises(self.db.exceptions.IdempotentParameterMismatchException):
            self.run_all(self.put("d"), ClientRequestToken="token-2")
        self.assertNotIn("d", self.contents())

    def test_client_makes_tokens(self):
        action = self.update("a", "ADD v :x", values={":x": N(1)})
        self.run_all(action)
        self.run_all(action)
        self.assertEqual(self.contents()["a"], N(3))

    def test_capacity(self):
        told = self.run_all(self.put("c"), self.delete("b"), ReturnConsumedCapacity="TOTAL")
        self.assertEqual(told["ConsumedCapacity"],
                         [{"TableName": self.name, "CapacityUnits": 4.0,
                           "WriteCapacityUnits": 4.0}])

    def test_replay_reports_reads(self):
        again = {"ReturnConsumedCapacity": "TOTAL", "ClientRequestToken": "token-3"}
        self.run_all(self.put("c"), **again)
        told = self.run_all(self.put("c"), **again)
        self.assertEqual(told["ConsumedCapacity"],
                         [{"TableName": self.name, "CapacityUnits": 2.0,
                           "ReadCapacityUnits": 2.0}])

    def test_all_value_types(self):
        item = {"pk": S("types"), "b": B(b"\x00\xff"), "s": {"NS": ["1", "2"]},
                "m": {"M": {"l": {"L": [{"NULL": True}]}}}}
        self.run_all({"Put": {"TableName": self.name, "Item": item}})
        self.assertEqual(self.get(self.name, pk=S("types")), item)

    def test_4_mb(self):
        with self.assertRaises(self.db.exceptions.ClientError) as caught:
            self.run_all(*[self.put(f"x{i}", attributes={"v": S("x" * 390000)})
                           for i in range(11)])
        self.assertEqual(caught.exception.response["Error"]["Code"], INVALID)
        self.assertEqual(len(self.contents()), 2)


class Getting(Case):
    def test_in_order(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}, {"pk": S("b"), "v": N(2)}])
        told = self.db.transact_get_items(TransactItems=[
            {"Get": {"TableName": name, "Key": {"pk": S(key)}}} for key in "bxa"])
        self.assertEqual(told["Responses"], [{"Item": {"pk": S("b"), "v": N(2)}}, {},
                                             {"Item": {"pk": S("a"), "v": N(1)}}])

    def test_projection(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1), "w": N(2)}])
        told = self.db.transact_get_items(TransactItems=[{"Get": {
            "TableName": name, "Key": {"pk": S("a")}, "ProjectionExpression": "#w",
            "ExpressionAttributeNames": {"#w": "w"}}}])
        self.assertEqual(told["Responses"], [{"Item": {"w": N(2)}}])

    def test_capacity(self):
        name = self.table(items=[{"pk": S("a")}])
        told = self.db.transact_get_items(ReturnConsumedCapacity="TOTAL", TransactItems=[
            {"Get": {"TableName": name, "Key": {"pk": S(key)}}} for key in "ab"])
        self.assertEqual(told["ConsumedCapacity"],
                         [{"TableName": name, "CapacityUnits": 4.0, "ReadCapacityUnits": 4.0}])

    def test_same_item_twice(self):
        name = self.table()
        self.invalid("Transaction request cannot include multiple operations on one item",
                     self.db.transact_get_items, TransactItems=[
                         {"Get": {"TableName": name, "Key": {"pk": S("a")}}}] * 2)

    def test_missing_table(self):
        self.fails("ResourceNotFoundException", "Requested resource not found",
                   self.db.transact_get_items,
                   TransactItems=[{"Get": {"TableName": "missing", "Key": {"pk": S("a")}}}])


PUT = {"Put": {"TableName": "abc", "Item": {"pk": S("a")}}}


@refusals(
    nothing=("transact_write_items", {"TransactItems": []}, INVALID,
             re.compile("Member must have length greater than or equal to 1")),
    two_kinds=("transact_write_items",
               {"TransactItems": [{**PUT, "Delete": {"TableName": "abc", "Key": {"pk": S("b")}}}]},
               INVALID, re.compile("TransactItems can only contain one of Check, Put, Update or "
                                   "Delete")),
    long_token=("transact_write_items", {"TransactItems": [PUT], "ClientRequestToken": "x" * 37},
                INVALID, re.compile("Member must have length less than or equal to 36")),
    check_without_condition=("transact_write_items", {"TransactItems": [
        {"ConditionCheck": {"TableName": "abc", "Key": {"pk": S("a")}}}]}, INVALID,
        re.compile("conditionExpression' failed to satisfy constraint: Member must not be null")),
    syntax=("transact_write_items", {"TransactItems": [
        {"Put": {**PUT["Put"], "ConditionExpression": "a ="}}]}, INVALID,
        re.compile("^Invalid ConditionExpression: Syntax error")),
    get_nothing=("transact_get_items", {"TransactItems": []}, INVALID,
                 re.compile("Member must have length greater than or equal to 1")),
)
class Refusing(Case):
    pass
