"""Local and global indexes: what they hold, how they are read, what they refuse and cost."""
import re

from support import INVALID, Case, N, S, Shared, attributes, index, put_many, refusals


class Reading(Shared):
    """Thirty items of three owners; `by-owner` sorts by score, `by-day` is local."""

    @classmethod
    def make(cls):
        cls.name = cls.create(
            "S", "N", types={"owner": "S", "score": "N", "day": "S"},
            GlobalSecondaryIndexes=[
                index("by-owner", "owner", "score"),
                index("keys", "owner", projection="KEYS_ONLY"),
                index("some", "owner", projection="INCLUDE", include=["note"])],
            LocalSecondaryIndexes=[index("by-day", "pk", "day", projection="KEYS_ONLY")])
        put_many(cls.name, [{"pk": S(f"p{i % 5}"), "sk": N(i), "owner": S("abc"[i % 3]),
                             "score": N((i * 7) % 10), "day": S(f"d{29 - i:02}"),
                             "note": S(f"note {i}"), "more": N(i)} for i in range(30)])
        put_many(cls.name, [{"pk": S("p0"), "sk": N(100)}])  # in no index

    def query(self, name, condition, values, **more):
        return self.db.query(TableName=self.name, IndexName=name, KeyConditionExpression=condition,
                             ExpressionAttributeValues=values, **more)

    def test_global(self):
        found = self.query("by-owner", "#o = :o", {":o": S("a")},
                           ExpressionAttributeNames={"#o": "owner"})
        self.assertEqual(found["Count"], 10)
        scores = [int(item["score"]["N"]) for item in found["Items"]]
        self.assertEqual(scores, sorted(scores))
        self.assertEqual(set(found["Items"][0]), {"pk", "sk", "owner", "score", "day", "note",
                                                  "more"})

    def test_global_range(self):
        found = self.query("by-owner", "#o = :o AND score > :s", {":o": S("a"), ":s": N(7)},
                           ExpressionAttributeNames={"#o": "owner"}, ScanIndexForward=False)
        self.assertEqual([item["score"]["N"] for item in found["Items"]], ["9", "8"])

    def test_keys_only(self):
        found = self.query("keys", "#o = :o", {":o": S("b")}, Limit=1,
                           ExpressionAttributeNames={"#o": "owner"})
        self.assertEqual(set(found["Items"][0]), {"pk", "sk", "owner"})

    def test_include(self):
        found = self.query("some", "#o = :o", {":o": S("b")}, Limit=1,
                           ExpressionAttributeNames={"#o": "owner"})
        self.assertEqual(set(found["Items"][0]), {"pk", "sk", "owner", "note"})

    def test_last_key_has_both_keys(self):
        found = self.query("by-owner", "#o = :o", {":o": S("a")}, Limit=4,
                           ExpressionAttributeNames={"#o": "owner"})
        last = found["Items"][-1]
        self.assertEqual(found["LastEvaluatedKey"],
                         {name: last[name] for name in ("pk", "sk", "owner", "score")})

    def test_pages(self):
        pages = self.db.get_paginator("query").paginate(
            TableName=self.name, IndexName="by-owner", KeyConditionExpression="#o = :o",
            ExpressionAttributeNames={"#o": "owner"}, ExpressionAttributeValues={":o": S("c")},
            PaginationConfig={"PageSize": 3})
        found = [item["sk"]["N"] for page in pages for item in page["Items"]]
        self.assertEqual(sorted(map(int, found)), list(range(2, 30, 3)))

    def test_local_order(self):
        found = self.query("by-day", "pk = :p", {":p": S("p0")})
        self.assertEqual([item["sk"]["N"] for item in found["Items"]],
                         ["25", "20", "15", "10", "5", "0"])
        self.assertEqual(set(found["Items"][0]), {"pk", "sk", "day"})

    def test_local_fetches(self):
        found = self.query("by-day", "pk = :p AND #d <= :d", {":p": S("p0"), ":d": S("d04")},
                           ExpressionAttributeNames={"#d": "day"}, Select="ALL_ATTRIBUTES")
        self.assertEqual(found["Items"][0]["note"], S("note 25"))

    def test_local_consistent(self):
        found = self.query("by-day", "pk = :p", {":p": S("p1")}, ConsistentRead=True,
                           ReturnConsumedCapacity="INDEXES")
        self.assertEqual(found["Count"], 6)
        self.assertEqual(found["ConsumedCapacity"]["LocalSecondaryIndexes"],
                         {"by-day": {"CapacityUnits": 1.0}})

    def test_scan(self):
        found = self.db.scan(TableName=self.name, IndexName="keys")
        self.assertEqual(found["Count"], 30)

    def test_scan_in_segments(self):
        seen = sum(self.db.scan(TableName=self.name, IndexName="by-owner", Segment=i,
                                TotalSegments=3)["Count"] for i in range(3))
        self.assertEqual(seen, 30)

    def test_capacity_of_global(self):
        found = self.query("keys", "#o = :o", {":o": S("b")}, ReturnConsumedCapacity="INDEXES",
                           ExpressionAttributeNames={"#o": "owner"})
        told = found["ConsumedCapacity"]
        self.assertEqual(told["GlobalSecondaryIndexes"], {"keys": {"CapacityUnits": 0.5}})
        self.assertEqual(told["CapacityUnits"], 0.5)

    def test_counts_are_told(self):
        told = self.db.describe_table(TableName=self.name)["Table"]
        self.assertEqual({i["IndexName"]: i["ItemCount"] for i in told["GlobalSecondaryIndexes"]},
                         {"by-owner": 30, "keys": 30, "some": 30})


def query(name, condition="#o = :o", values=None, **more):
    made = {"IndexName": name, "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values or {":o": S("a")}, **more}
    if "#o" in condition:
        made.setdefault("ExpressionAttributeNames", {"#o": "owner"})
    return made


@refusals(
    consistent=("query", query("global", ConsistentRead=True), INVALID,
                "Consistent reads are not supported on global secondary indexes"),
    consistent_scan=("scan", {"IndexName": "global", "ConsistentRead": True}, INVALID,
                     "Consistent reads are not supported on global secondary indexes"),
    all_attributes=("query", query("global", Select="ALL_ATTRIBUTES"), INVALID,
                    "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not "
                    "supported for global secondary index global because its projection type is "
                    "not ALL"),
    table_key=("query", query("global", "pk = :o"), INVALID,
               re.compile("Query condition missed key schema element: owner")),
    unprojected=("query", query("global", ProjectionExpression="note"), INVALID,
                 "One or more parameter values were invalid: Global secondary index global does "
                 "not project [note]"),
    wrong_type=("put_item", {"Item": {"pk": S("a"), "sk": N(1), "owner": N(1)}}, INVALID,
                "One or more parameter values were invalid: Type mismatch for Index Key owner "
                "Expected: S Actual: N IndexName: global"),
    empty=("put_item", {"Item": {"pk": S("a"), "sk": N(1), "owner": S("")}}, INVALID,
           re.compile("^One or more parameter values are not valid. .* empty string value. "
                      "IndexName: global, IndexKey: owner$")),
    update_type=("update_item", {"Key": {"pk": S("a"), "sk": N(1)},
                                 "UpdateExpression": "SET #o = :o",
                                 "ExpressionAttributeNames": {"#o": "owner"},
                                 "ExpressionAttributeValues": {":o": N(1)}}, INVALID,
                 "One or more parameter values were invalid: Type mismatch for Index Key owner "
                 "Expected: S Actual: N IndexName: global"),
    update_type_read=("update_item", {"Key": {"pk": S("a"), "sk": N(1)},
                                      "UpdateExpression": "SET #o = sk",
                                      "ExpressionAttributeNames": {"#o": "owner"}}, INVALID,
                      "The update expression attempted to update the secondary index key to "
                      "unsupported type"),
    start_key=("query", query("global", ExclusiveStartKey={"pk": S("a"), "sk": N(1)}), INVALID,
               "The provided starting key is invalid"),
)
class Refusing(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create("S", "N", types={"owner": "S"}, GlobalSecondaryIndexes=[
            index("global", "owner", projection="KEYS_ONLY")])


class Following(Case):
    """An index follows every write of its table."""

    def setUp(self):
        self.name = self.table(types={"g": "S"}, GlobalSecondaryIndexes=[
            index("by-g", "g", projection="INCLUDE", include=["x"])])

    def found(self, value):
        told = self.db.query(TableName=self.name, IndexName="by-g", KeyConditionExpression="g = :g",
                             ExpressionAttributeValues={":g": S(value)})
        return told["Items"]

    def test_put_replace_delete(self):
        self.db.put_item(TableName=self.name, Item={"pk": S("1"), "g": S("a"), "x": N(1)})
        self.assertEqual(self.found("a"), [{"pk": S("1"), "g": S("a"), "x": N(1)}])
        self.db.put_item(TableName=self.name, Item={"pk": S("1"), "g": S("b")})
        self.assertEqual((self.found("a"), self.found("b")), ([], [{"pk": S("1"), "g": S("b")}]))
        self.db.delete_item(TableName=self.name, Key={"pk": S("1")})
        self.assertEqual(self.found("b"), [])

    def test_update_in_and_out(self):
        key = {"pk": S("1")}
        self.db.update_item(TableName=self.name, Key=key, UpdateExpression="SET g = :g, x = :x",
                            ExpressionAttributeValues={":g": S("a"), ":x": N(1)})
        self.assertEqual(len(self.found("a")), 1)
        self.db.update_item(TableName=self.name, Key=key, UpdateExpression="REMOVE g")
        self.assertEqual(self.found("a"), [])

    def test_same_key_many_items(self):
        put_many(self.name, [{"pk": S(str(i)), "g": S("same")} for i in range(25)])
        self.assertEqual(len(self.found("same")), 25)

    def test_transaction(self):
        self.db.transact_write_items(TransactItems=[
            {"Put": {"TableName": self.name, "Item": {"pk": S(str(i)), "g": S("t")}}}
            for i in range(3)])
        self.assertEqual(len(self.found("t")), 3)

    def test_failed_transaction_leaves_it(self):
        with self.assertRaises(self.db.exceptions.TransactionCanceledException):
            self.db.transact_write_items(TransactItems=[
                {"Put": {"TableName": self.name, "Item": {"pk": S("1"), "g": S("t")}}},
                {"ConditionCheck": {"TableName": self.name, "Key": {"pk": S("2")},
                                    "ConditionExpression": "attribute_exists(pk)"}}])
        self.assertEqual(self.found("t"), [])

    def test_write_capacity(self):
        def units(**item):
            told = self.db.put_item(TableName=self.name, Item={"pk": S("1"), **item},
                                    ReturnConsumedCapacity="INDEXES")["ConsumedCapacity"]
            return told["CapacityUnits"], told.get("GlobalSecondaryIndexes")

        def by_g(count):
            return {"by-g": {"CapacityUnits": count}}

        self.assertEqual(units(), (1.0, None))
        self.assertEqual(units(g=S("a")), (2.0, by_g(1.0)))
        self.assertEqual(units(g=S("a"), other=N(1)), (1.0, None))
        self.assertEqual(units(g=S("a"), x=N(1)), (2.0, by_g(1.0)))
        self.assertEqual(units(g=S("b"), x=N(1)), (3.0, by_g(2.0)))
        self.assertEqual(units(), (2.0, by_g(1.0)))

    def test_collection_metrics(self):
        name = self.table("S", "S", types={"a": "S"},
                          LocalSecondaryIndexes=[index("iii", "pk", "a")])
        told = self.db.put_item(TableName=name, Item={"pk": S("p"), "sk": S("s")},
                                ReturnItemCollectionMetrics="SIZE")
        self.assertEqual(told["ItemCollectionMetrics"],
                         {"ItemCollectionKey": {"pk": S("p")}, "SizeEstimateRangeGB": [0.0, 1.0]})

    def test_several_key_attributes(self):
        several = {"IndexName": "several", "Projection": {"ProjectionType": "ALL"}, "KeySchema": [
            {"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "HASH"},
            {"AttributeName": "c", "KeyType": "RANGE"}, {"AttributeName": "d", "KeyType": "RANGE"}]}
        name = self.table(types=dict.fromkeys("abcd", "S"), GlobalSecondaryIndexes=[several])
        put_many(name, [{"pk": S(f"{i}"), "a": S("x"), "b": S("y"), "c": S(f"{i // 3}"),
                         "d": S(f"{i % 3}")} for i in range(9)])
        found = self.db.query(TableName=name, IndexName="several", KeyConditionExpression=(
            "a = :x AND b = :y AND c = :c AND d > :d"), ExpressionAttributeValues={
                ":x": S("x"), ":y": S("y"), ":c": S("1"), ":d": S("0")})
        self.assertEqual([item["pk"]["S"] for item in found["Items"]], ["4", "5"])

    def test_late_index_skips_what_does_not_fit(self):
        name = self.table(items=[{"pk": S("1"), "g": S("a")}, {"pk": S("2"), "g": N(1)},
                                 {"pk": S("3")}, {"pk": S("4"), "g": S("")}])
        self.db.update_table(TableName=name, AttributeDefinitions=attributes(pk="S", g="S"),
                             GlobalSecondaryIndexUpdates=[{"Create": index("late", "g")}])
        while self.db.describe_table(TableName=name)["Table"]["GlobalSecondaryIndexes"][0][
                "IndexStatus"] != "ACTIVE":
            pass
        found = self.db.scan(TableName=name, IndexName="late")
        self.assertEqual(found["Items"], [{"pk": S("1"), "g": S("a")}])
        self.assertEqual(self.db.scan(TableName=name)["Count"], 4)
