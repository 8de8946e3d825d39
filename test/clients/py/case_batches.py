"""BatchGetItem and BatchWriteItem."""
import re

from support import INVALID, Case, N, S, Shared, index, put_many, refusals


class Writing(Case):
    def write(self, **tables):
        return self.db.batch_write_item(RequestItems=tables)

    def test_put_and_delete_in_two_tables(self):
        one, two = self.table(items=[{"pk": S("old")}]), self.table("N")
        told = self.db.batch_write_item(RequestItems={
            one: [{"PutRequest": {"Item": {"pk": S("new")}}},
                  {"DeleteRequest": {"Key": {"pk": S("old")}}}],
            two: [{"PutRequest": {"Item": {"pk": N(1)}}}]})
        self.assertEqual(told["UnprocessedItems"], {})
        self.assertEqual(self.db.scan(TableName=one)["Items"], [{"pk": S("new")}])
        self.assertEqual(self.db.scan(TableName=two)["Items"], [{"pk": N(1)}])

    def test_25_large_ones(self):
        name = self.table()
        items = [{"pk": S(str(i)), "v": S("x" * 300000)} for i in range(25)]
        put_many(name, items)
        self.assertEqual(self.db.describe_table(TableName=name)["Table"]["ItemCount"], 25)

    def test_capacity_per_table(self):
        one, two = self.table(), self.table()
        told = self.db.batch_write_item(ReturnConsumedCapacity="TOTAL", RequestItems={
            one: [{"PutRequest": {"Item": {"pk": S(str(i))}}} for i in range(3)],
            two: [{"PutRequest": {"Item": {"pk": S("a"), "v": S("x" * 1500)}}}]})
        self.assertEqual({t["TableName"]: t["CapacityUnits"] for t in told["ConsumedCapacity"]},
                         {one: 3.0, two: 2.0})

    def test_one_bad_entry_refuses_all(self):
        name = self.table()
        self.invalid("The provided key element does not match the schema", self.write, **{
            name: [{"PutRequest": {"Item": {"pk": S("good")}}},
                   {"DeleteRequest": {"Key": {"wrong": S("bad")}}}]})
        self.assertEqual(self.db.scan(TableName=name)["Count"], 0)

    def test_bad_index_key_refuses_all(self):
        name = self.table(types={"g": "S"}, GlobalSecondaryIndexes=[index("by-g", "g")])
        with self.assertRaises(self.db.exceptions.ClientError) as caught:
            self.write(**{name: [{"PutRequest": {"Item": {"pk": S("good")}}},
                                 {"PutRequest": {"Item": {"pk": S("bad"), "g": N(1)}}}]})
        self.assertEqual(caught.exception.response["Error"]["Code"], INVALID)
        self.assertEqual(self.db.scan(TableName=name)["Count"], 0)

    def test_same_key_twice(self):
        self.invalid("Provided list of item keys contains duplicates", self.write, **{
            self.table("N"): [{"PutRequest": {"Item": {"pk": N("1")}}},
                              {"DeleteRequest": {"Key": {"pk": N("1.0")}}}]})

    def test_26(self):
        name = self.table()
        with self.assertRaises(self.db.exceptions.ClientError) as caught:
            self.write(**{name: [{"PutRequest": {"Item": {"pk": S(str(i))}}} for i in range(26)]})
        error = caught.exception.response["Error"]
        self.assertEqual(error["Code"], INVALID)
        self.assertIn("Map value must satisfy constraint: [Member must have length less than or "
                      "equal to 25, Member must have length greater than or equal to 1]",
                      error["Message"])

    def test_missing_table(self):
        self.fails("ResourceNotFoundException", "Requested resource not found", self.write,
                   missing=[{"PutRequest": {"Item": {"pk": S("a")}}}])

    def test_metrics(self):
        name = self.table("S", "S", types={"a": "S"},
                          LocalSecondaryIndexes=[index("iii", "pk", "a")])
        told = self.db.batch_write_item(ReturnItemCollectionMetrics="SIZE", RequestItems={
            name: [{"PutRequest": {"Item": {"pk": S("p"), "sk": S("s")}}}]})
        self.assertEqual(told["ItemCollectionMetrics"],
                         {name: [{"ItemCollectionKey": {"pk": S("p")},
                                  "SizeEstimateRangeGB": [0.0, 1.0]}]})


class Getting(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create("S", "N")
        put_many(cls.name, [{"pk": S("a"), "sk": N(i), "v": S(f"v{i}"), "w": N(i)}
                            for i in range(120)])

    def keys(self, *numbers):
        return [{"pk": S("a"), "sk": N(i)} for i in numbers]

    def fetch(self, **more):
        return self.db.batch_get_item(RequestItems={self.name: more})

    def test_found_and_missing(self):
        found = self.fetch(Keys=self.keys(1, 500, 2))
        self.assertEqual(sorted(item["sk"]["N"] for item in found["Responses"][self.name]),
                         ["1", "2"])
        self.assertEqual(found["UnprocessedKeys"], {})

    def test_all_missing(self):
        self.assertEqual(self.fetch(Keys=self.keys(900))["Responses"], {self.name: []})

    def test_100(self):
        found = self.fetch(Keys=self.keys(*range(100)), ConsistentRead=True)
        self.assertEqual(len(found["Responses"][self.name]), 100)

    def test_projection(self):
        found = self.fetch(Keys=self.keys(7), ProjectionExpression="#v",
                           ExpressionAttributeNames={"#v": "v"})
        self.assertEqual(found["Responses"][self.name], [{"v": S("v7")}])

    def test_legacy_projection(self):
        found = self.fetch(Keys=self.keys(7), AttributesToGet=["w"])
        self.assertEqual(found["Responses"][self.name], [{"w": N(7)}])

    def test_capacity(self):
        found = self.db.batch_get_item(ReturnConsumedCapacity="TOTAL", RequestItems={
            self.name: {"Keys": self.keys(1, 2, 3), "ConsistentRead": True}})
        self.assertEqual(found["ConsumedCapacity"],
                         [{"TableName": self.name, "CapacityUnits": 3.0}])

    def test_duplicates(self):
        self.invalid("Provided list of item keys contains duplicates", self.fetch,
                     Keys=self.keys(1, 1))

    def test_101(self):
        self.invalid(re.compile("less than or equal to 100"), self.fetch,
                     Keys=self.keys(*range(101)))

    def test_answer_of_16_mb(self):
        name = self.table()
        put_many(name, [{"pk": S(f"{i}"), "v": S("x" * 390000)} for i in range(50)])
        wanted = {name: {"Keys": [{"pk": S(f"{i}")} for i in range(50)]}}
        seen, rounds = [], 0
        while wanted:
            found = self.db.batch_get_item(RequestItems=wanted)
            self.assertLessEqual(sum(len(item["v"]["S"]) for item in found["Responses"][name]),
                                 16 << 20)
            seen += [item["pk"]["S"] for item in found["Responses"][name]]
            wanted = found["UnprocessedKeys"]
            rounds += 1
        self.assertEqual(sorted(seen, key=int), [str(i) for i in range(50)])
        self.assertEqual(rounds, 2)


@refusals(
    write_nothing=("batch_write_item", {"RequestItems": {}}, INVALID,
                   "The requestItems parameter is required for BatchWriteItem"),
    write_empty_list=("batch_write_item", {"RequestItems": {"abc": []}}, INVALID,
                      re.compile("Member must have length greater than or equal to 1")),
    write_neither=("batch_write_item", {"RequestItems": {"abc": [{}]}}, INVALID,
                   "Supplied AttributeValue has more than one datatypes set, must contain "
                   "exactly one of the supported datatypes"),
    get_nothing=("batch_get_item", {"RequestItems": {}}, INVALID,
                 "The requestItems parameter is required for BatchGetItem"),
    get_no_keys=("batch_get_item", {"RequestItems": {"abc": {"Keys": []}}}, INVALID,
                 re.compile("Member must have length greater than or equal to 1")),
    get_missing_table=("batch_get_item", {"RequestItems": {"missing": {"Keys": [{"a": N(1)}]}}},
                       "ResourceNotFoundException", "Requested resource not found"),
)
class Refusing(Case):
    pass
