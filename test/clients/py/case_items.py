"""PutItem, GetItem and DeleteItem: what they answer, count, and refuse."""
import re

from botocore.exceptions import ParamValidationError

from support import INVALID, Case, N, S, Shared, refusals

NOT_FOUND = "ResourceNotFoundException"


class Putting(Case):
    def test_answers_nothing(self):
        told = self.db.put_item(TableName=self.table(), Item={"pk": S("a")})
        self.assertEqual(set(told), {"ResponseMetadata"})

    def test_all_old_of_a_new_item(self):
        told = self.db.put_item(TableName=self.table(), Item={"pk": S("a")},
                                ReturnValues="ALL_OLD")
        self.assertNotIn("Attributes", told)

    def test_all_old(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}])
        told = self.db.put_item(TableName=name, Item={"pk": S("a"), "w": N(2)},
                                ReturnValues="ALL_OLD")
        self.assertEqual(told["Attributes"], {"pk": S("a"), "v": N(1)})

    def test_replaces_all(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}])
        self.db.put_item(TableName=name, Item={"pk": S("a"), "w": N(2)})
        self.assertEqual(self.get(name, pk=S("a")), {"pk": S("a"), "w": N(2)})

    def test_capacity(self):
        told = self.db.put_item(TableName=self.table(), Item={"pk": S("a"), "v": S("x" * 3000)},
                                ReturnConsumedCapacity="TOTAL")
        self.assertEqual(told["ConsumedCapacity"]["CapacityUnits"], 3.0)

    def test_capacity_counts_the_larger(self):
        name = self.table(items=[{"pk": S("a"), "v": S("x" * 3000)}])
        told = self.db.put_item(TableName=name, Item={"pk": S("a")},
                                ReturnConsumedCapacity="INDEXES")
        self.assertEqual(told["ConsumedCapacity"],
                         {"TableName": name, "CapacityUnits": 3.0, "Table": {"CapacityUnits": 3.0}})

    def test_collection_metrics_need_a_local_index(self):
        told = self.db.put_item(TableName=self.table(), Item={"pk": S("a")},
                                ReturnItemCollectionMetrics="SIZE")
        self.assertNotIn("ItemCollectionMetrics", told)

    def test_condition_fails(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}])
        error = self.fails("ConditionalCheckFailedException", "The conditional request failed",
                           self.db.put_item, TableName=name, Item={"pk": S("a")},
                           ConditionExpression="attribute_not_exists(pk)")
        self.assertNotIn("Item", error.response)
        self.assertEqual(self.get(name, pk=S("a")), {"pk": S("a"), "v": N(1)})

    def test_condition_fails_with_the_item(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}])
        error = self.fails("ConditionalCheckFailedException", "The conditional request failed",
                           self.db.put_item, TableName=name, Item={"pk": S("a")},
                           ConditionExpression="attribute_not_exists(pk)",
                           ReturnValuesOnConditionCheckFailure="ALL_OLD")
        self.assertEqual(error.response["Item"], {"pk": S("a"), "v": N(1)})

    def test_condition_fails_on_a_missing_item(self):
        error = self.fails("ConditionalCheckFailedException", "The conditional request failed",
                           self.db.put_item, TableName=self.table(), Item={"pk": S("a")},
                           ConditionExpression="attribute_exists(pk)",
                           ReturnValuesOnConditionCheckFailure="ALL_OLD")
        self.assertNotIn("Item", error.response)

    def test_condition_has_a_class(self):
        with self.assertRaises(self.db.exceptions.ConditionalCheckFailedException) as caught:
            self.db.put_item(TableName=self.table(), Item={"pk": S("a")},
                             ConditionExpression="attribute_exists(pk)")
        self.assertEqual(caught.exception.operation_name, "PutItem")
        self.assertEqual(caught.exception.response["ResponseMetadata"]["HTTPStatusCode"], 400)

    def test_condition_holds(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}])
        self.db.put_item(TableName=name, Item={"pk": S("a"), "v": N(2)},
                         ConditionExpression="#v = :one", ExpressionAttributeNames={"#v": "v"},
                         ExpressionAttributeValues={":one": N("1.0")})
        self.assertEqual(self.get(name, pk=S("a"))["v"], N(2))

    def test_legacy_expected(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}])
        self.db.put_item(TableName=name, Item={"pk": S("a"), "v": N(2)},
                         Expected={"v": {"Value": N(1)}})
        self.fails("ConditionalCheckFailedException", "The conditional request failed",
                   self.db.put_item, TableName=name, Item={"pk": S("a")},
                   Expected={"v": {"ComparisonOperator": "LT", "AttributeValueList": [N(2)]}})

    def test_client_refuses_wrong_types(self):
        with self.assertRaises(ParamValidationError):
            self.db.put_item(TableName="t", Item={"pk": {"S": 1}})


class Getting(Shared):
    ITEM = {"pk": S("a"), "n": N(1), "l": {"L": [S("x"), S("y"), {"M": {"z": N(3)}}]},
            "m": {"M": {"p": {"M": {"q": N(4)}}, "r": N(5)}}, "a.b": N(6)}

    @classmethod
    def make(cls):
        cls.name = cls.create()
        cls().db.put_item(TableName=cls.name, Item=cls.ITEM)

    def projected(self, expression, names=None):
        more = {"ExpressionAttributeNames": names} if names else {}
        return self.db.get_item(TableName=self.name, Key={"pk": S("a")},
                                ProjectionExpression=expression, **more)["Item"]

    def test_whole(self):
        self.assertEqual(self.get(self.name, pk=S("a")), self.ITEM)

    def test_missing(self):
        told = self.db.get_item(TableName=self.name, Key={"pk": S("none")})
        self.assertEqual(set(told), {"ResponseMetadata"})

    def test_project_top(self):
        self.assertEqual(self.projected("n, pk"), {"pk": S("a"), "n": N(1)})

    def test_project_nested(self):
        self.assertEqual(self.projected("m.p.q, l[2].z"),
                         {"m": {"M": {"p": {"M": {"q": N(4)}}}},
                          "l": {"L": [{"M": {"z": N(3)}}]}})

    def test_project_elements_dense(self):
        self.assertEqual(self.projected("l[2], l[0]"),
                         {"l": {"L": [S("x"), {"M": {"z": N(3)}}]}})

    def test_project_name_with_a_dot(self):
        self.assertEqual(self.projected("#d", {"#d": "a.b"}), {"a.b": N(6)})

    def test_project_nothing(self):
        self.assertEqual(self.projected("nothing"), {})

    def test_legacy_attributes_to_get(self):
        told = self.db.get_item(TableName=self.name, Key={"pk": S("a")},
                                AttributesToGet=["n", "none"])
        self.assertEqual(told["Item"], {"n": N(1)})

    def test_capacity_eventual(self):
        told = self.db.get_item(TableName=self.name, Key={"pk": S("a")},
                                ReturnConsumedCapacity="TOTAL")
        self.assertEqual(told["ConsumedCapacity"],
                         {"TableName": self.name, "CapacityUnits": 0.5})

    def test_capacity_consistent_and_missing(self):
        told = self.db.get_item(TableName=self.name, Key={"pk": S("none")}, ConsistentRead=True,
                                ReturnConsumedCapacity="TOTAL")
        self.assertEqual(told["ConsumedCapacity"]["CapacityUnits"], 1.0)


class Deleting(Case):
    def test_removes(self):
        name = self.table(items=[{"pk": S("a")}])
        self.assertEqual(set(self.db.delete_item(TableName=name, Key={"pk": S("a")})),
                         {"ResponseMetadata"})
        self.assertIsNone(self.get(name, pk=S("a")))

    def test_missing_is_fine(self):
        told = self.db.delete_item(TableName=self.table(), Key={"pk": S("a")},
                                   ReturnValues="ALL_OLD")
        self.assertNotIn("Attributes", told)

    def test_all_old(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}])
        told = self.db.delete_item(TableName=name, Key={"pk": S("a")}, ReturnValues="ALL_OLD")
        self.assertEqual(told["Attributes"], {"pk": S("a"), "v": N(1)})

    def test_condition_fails_with_the_item(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}])
        error = self.fails("ConditionalCheckFailedException", "The conditional request failed",
                           self.db.delete_item, TableName=name, Key={"pk": S("a")},
                           ConditionExpression="v > :one",
                           ExpressionAttributeValues={":one": N(1)},
                           ReturnValuesOnConditionCheckFailure="ALL_OLD")
        self.assertEqual(error.response["Item"]["v"], N(1))
        self.assertEqual(self.get(name, pk=S("a"))["v"], N(1))

    def test_condition_on_a_missing_item_holds(self):
        self.db.delete_item(TableName=self.table(), Key={"pk": S("a")},
                            ConditionExpression="attribute_not_exists(v)")

    def test_capacity(self):
        name = self.table(items=[{"pk": S("a"), "v": S("x" * 2000)}])
        told = self.db.delete_item(TableName=name, Key={"pk": S("a")},
                                   ReturnConsumedCapacity="TOTAL")
        self.assertEqual(told["ConsumedCapacity"]["CapacityUnits"], 2.0)
        told = self.db.delete_item(TableName=name, Key={"pk": S("a")},
                                   ReturnConsumedCapacity="TOTAL")
        self.assertEqual(told["ConsumedCapacity"]["CapacityUnits"], 1.0)


KEY = {"Key": {"pk": S("a")}}


@refusals(
    put_missing=("put_item", {"TableName": "missing", "Item": {"pk": S("a")}}, NOT_FOUND,
                 "Requested resource not found"),
    get_missing=("get_item", {"TableName": "missing", **KEY}, NOT_FOUND,
                 "Requested resource not found"),
    delete_missing=("delete_item", {"TableName": "missing", **KEY}, NOT_FOUND,
                    "Requested resource not found"),
    update_missing=("update_item", {"TableName": "missing", **KEY}, NOT_FOUND,
                    "Requested resource not found"),
    put_return=("put_item", {"Item": {"pk": S("a")}, "ReturnValues": "ALL_NEW"}, INVALID,
                "ReturnValues can only be ALL_OLD or NONE"),
    put_return_unknown=("put_item", {"Item": {"pk": S("a")}, "ReturnValues": "SOME"}, INVALID,
                        re.compile(re.escape("Member must satisfy enum value set: [ALL_NEW, "
                                             "UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"))),
    delete_return=("delete_item", {**KEY, "ReturnValues": "UPDATED_OLD"}, INVALID,
                   "ReturnValues can only be ALL_OLD or NONE"),
    both_kinds=("put_item", {"Item": {"pk": S("a")}, "Expected": {"v": {"Exists": False}},
                             "ConditionExpression": "attribute_exists(v)"}, INVALID,
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {Expected} Expression parameters: "
                "{ConditionExpression}"),
    values_alone=("put_item", {"Item": {"pk": S("a")},
                               "ExpressionAttributeValues": {":v": N(1)}}, INVALID,
                  "ExpressionAttributeValues can only be specified when using expressions: "
                  "ConditionExpression is null"),
    names_alone=("get_item", {**KEY, "ExpressionAttributeNames": {"#a": "b"}}, INVALID,
                 "ExpressionAttributeNames can only be specified when using expressions"),
    overlapping=("get_item", {**KEY, "ProjectionExpression": "a.b, a"}, INVALID,
                 "Invalid ProjectionExpression: Two document paths overlap with each other; must "
                 "remove or rewrite one of these paths; path one: [a, b], path two: [a]"),
    syntax=("get_item", {**KEY, "ProjectionExpression": "a,"}, INVALID,
            re.compile('^Invalid ProjectionExpression: Syntax error; token: "<EOF>"')),
    syntax_before_table=("get_item", {"TableName": "missing", **KEY,
                                      "ProjectionExpression": "a b"}, INVALID,
                         re.compile("^Invalid ProjectionExpression: Syntax error")),
    capacity_unknown=("get_item", {**KEY, "ReturnConsumedCapacity": "ALL"}, INVALID,
                      re.compile(re.escape("enum value set: [INDEXES, TOTAL, NONE]"))),
    no_key=("get_item", {}, INVALID,
            re.compile("Value null at 'key' failed to satisfy constraint: Member must not be "
                       "null")),
    no_item=("put_item", {}, INVALID,
             re.compile("Value null at 'item' failed to satisfy constraint: Member must not be "
                        "null")),
)
class Refusing(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create()
