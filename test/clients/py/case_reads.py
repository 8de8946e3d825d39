"""Query and Scan: ranges, order, pages, filters, projections, segments, counts, capacity."""
import re

from support import INVALID, Case, N, S, Shared, put_many, refusals


def numbers(found, name="sk"):
    return [int(item[name]["N"]) for item in found["Items"]]


class Querying(Shared):
    """Partition "a" has sk 0 to 19 with even/odd in "kind"; partition "b" has sk 100."""

    @classmethod
    def make(cls):
        cls.name = cls.create("S", "N")
        put_many(cls.name, [{"pk": S("a"), "sk": N(i), "kind": S("odd" if i % 2 else "even"),
                             "name": S(f"item {i}")} for i in range(20)])
        put_many(cls.name, [{"pk": S("b"), "sk": N(100)}])

    def query(self, condition="pk = :p", pk="a", **more):
        values = {":p": S(pk), **more.pop("values", {})}
        return self.db.query(TableName=self.name, KeyConditionExpression=condition,
                             ExpressionAttributeValues=values, **more)

    def test_all(self):
        found = self.query()
        self.assertEqual(numbers(found), list(range(20)))
        self.assertEqual((found["Count"], found["ScannedCount"]), (20, 20))
        self.assertNotIn("LastEvaluatedKey", found)

    def test_backwards(self):
        self.assertEqual(numbers(self.query(ScanIndexForward=False)), list(range(19, -1, -1)))

    def test_equal(self):
        self.assertEqual(numbers(self.query("pk = :p AND sk = :s", values={":s": N("7.0")})), [7])

    def test_less(self):
        self.assertEqual(numbers(self.query("pk = :p AND sk < :s", values={":s": N(3)})),
                         [0, 1, 2])

    def test_less_or_equal(self):
        self.assertEqual(numbers(self.query("sk <= :s AND pk = :p", values={":s": N(3)})),
                         [0, 1, 2, 3])

    def test_greater(self):
        self.assertEqual(numbers(self.query("pk = :p AND sk > :s", values={":s": N(17)})),
                         [18, 19])

    def test_value_first(self):
        self.assertEqual(numbers(self.query(":p = pk AND :s <= sk", values={":s": N(18)})),
                         [18, 19])

    def test_between(self):
        self.assertEqual(numbers(self.query("pk = :p AND sk BETWEEN :s AND :t",
                                            values={":s": N("4.5"), ":t": N(7)})), [5, 6, 7])

    def test_parentheses(self):
        self.assertEqual(numbers(self.query("(pk = :p) AND (sk = :s)", values={":s": N(1)})), [1])

    def test_nothing(self):
        found = self.query(pk="none")
        self.assertEqual((found["Items"], found["Count"], found["ScannedCount"]), ([], 0, 0))

    def test_limit_gives_a_key(self):
        found = self.query(Limit=3)
        self.assertEqual(numbers(found), [0, 1, 2])
        self.assertEqual(found["LastEvaluatedKey"], {"pk": S("a"), "sk": N(2)})

    def test_pages(self):
        seen, start = [], {}
        while True:
            found = self.query(Limit=7, **start)
            seen.append(numbers(found))
            if "LastEvaluatedKey" not in found:
                break
            start = {"ExclusiveStartKey": found["LastEvaluatedKey"]}
        self.assertEqual(seen, [list(range(7)), list(range(7, 14)), list(range(14, 20))])

    def test_last_page_that_is_just_full(self):
        found = self.query(Limit=20)
        self.assertEqual(found["LastEvaluatedKey"], {"pk": S("a"), "sk": N(19)})
        rest = self.query(Limit=20, ExclusiveStartKey=found["LastEvaluatedKey"])
        self.assertEqual(rest["Items"], [])
        self.assertNotIn("LastEvaluatedKey", rest)

    def test_pages_backwards(self):
        found = self.query(ScanIndexForward=False, Limit=2,
                           ExclusiveStartKey={"pk": S("a"), "sk": N(10)})
        self.assertEqual(numbers(found), [9, 8])

    def test_start_key_need_not_exist(self):
        found = self.query(Limit=1, ExclusiveStartKey={"pk": S("a"), "sk": N("3.5")})
        self.assertEqual(numbers(found), [4])

    def test_paginator(self):
        pager = self.db.get_paginator("query").paginate(
            TableName=self.name, KeyConditionExpression="pk = :p",
            ExpressionAttributeValues={":p": S("a")}, PaginationConfig={"PageSize": 6})
        self.assertEqual([numbers(page) for page in pager],
                         [list(range(0, 6)), list(range(6, 12)), list(range(12, 18)), [18, 19]])

    def test_paginator_sums(self):
        pager = self.db.get_paginator("query").paginate(
            TableName=self.name, KeyConditionExpression="pk = :p",
            ExpressionAttributeValues={":p": S("a")}, PaginationConfig={"PageSize": 6})
        self.assertEqual(pager.build_full_result()["Count"], 20)

    def test_paginator_search(self):
        pager = self.db.get_paginator("query").paginate(
            TableName=self.name, KeyConditionExpression="pk = :p",
            ExpressionAttributeValues={":p": S("a")}, PaginationConfig={"PageSize": 6})
        self.assertEqual(list(pager.search("Items[?kind.S=='odd'].sk.N"))[:2], ["1", "3"])

    def test_filter(self):
        found = self.query(FilterExpression="kind = :k", values={":k": S("odd")})
        self.assertEqual(numbers(found), list(range(1, 20, 2)))
        self.assertEqual((found["Count"], found["ScannedCount"]), (10, 20))

    def test_limit_counts_before_the_filter(self):
        found = self.query(FilterExpression="kind = :k", values={":k": S("odd")}, Limit=4)
        self.assertEqual(numbers(found), [1, 3])
        self.assertEqual((found["ScannedCount"], found["LastEvaluatedKey"]["sk"]), (4, N(3)))

    def test_count(self):
        found = self.query(Select="COUNT")
        self.assertNotIn("Items", found)
        self.assertEqual(found["Count"], 20)

    def test_projection(self):
        found = self.query("pk = :p AND sk = :s", values={":s": N(1)},
                           ProjectionExpression="#n, sk", ExpressionAttributeNames={"#n": "name"})
        self.assertEqual(found["Items"], [{"name": S("item 1"), "sk": N(1)}])

    def test_filter_sees_what_the_projection_drops(self):
        found = self.query(FilterExpression="kind = :k", values={":k": S("odd")}, Limit=2,
                           ProjectionExpression="sk")
        self.assertEqual(found["Items"], [{"sk": N(1)}])

    def test_capacity(self):
        found = self.query(ReturnConsumedCapacity="INDEXES", ConsistentRead=True)
        self.assertEqual(found["ConsumedCapacity"],
                         {"TableName": self.name, "CapacityUnits": 1.0,
                          "Table": {"CapacityUnits": 1.0}})

    def test_legacy_conditions(self):
        found = self.db.query(TableName=self.name, KeyConditions={
            "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [S("a")]},
            "sk": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [N(3), N(5)]}},
            QueryFilter={"kind": {"ComparisonOperator": "EQ", "AttributeValueList": [S("odd")]}})
        self.assertEqual(numbers(found), [3, 5])


class Strings(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create("S", "S")
        put_many(cls.name, [{"pk": S("a"), "sk": S(word)} for word in
                            ("a", "ab", "abc", "abd", "b", "äb", "a\uffff")])

    def query(self, condition, value):
        found = self.db.query(TableName=self.name,
                              KeyConditionExpression="pk = :p AND " + condition,
                              ExpressionAttributeValues={":p": S("a"), ":s": S(value)})
        return [item["sk"]["S"] for item in found["Items"]]

    def test_begins_with(self):
        self.assertEqual(self.query("begins_with(sk, :s)", "ab"), ["ab", "abc", "abd"])

    def test_begins_with_the_last_character(self):
        self.assertEqual(self.query("begins_with(sk, :s)", "a\uffff"), ["a\uffff"])

    def test_greater_or_equal(self):
        self.assertEqual(self.query("sk >= :s", "b"), ["b", "äb"])


class LargePages(Shared):
    """30 items of about 100 KB: a page has 1 MB, and the item that crosses the line is its last."""

    @classmethod
    def make(cls):
        cls.name = cls.create("S", "N")
        for i in range(30):
            cls().db.put_item(TableName=cls.name,
                              Item={"pk": S("a"), "sk": N(i), "v": S("x" * 100000)})

    def test_query(self):
        pages = list(self.db.get_paginator("query").paginate(
            TableName=self.name, KeyConditionExpression="pk = :p",
            ExpressionAttributeValues={":p": S("a")}))
        self.assertEqual([page["Count"] for page in pages], [11, 11, 8])
        self.assertEqual([n for page in pages for n in numbers(page)], list(range(30)))

    def test_scan(self):
        pages = list(self.db.get_paginator("scan").paginate(TableName=self.name))
        self.assertEqual([page["Count"] for page in pages], [11, 11, 8])

    def test_count_has_pages_too(self):
        found = self.db.query(TableName=self.name, KeyConditionExpression="pk = :p", Select="COUNT",
                              ExpressionAttributeValues={":p": S("a")})
        self.assertEqual((found["Count"], found["LastEvaluatedKey"]["sk"]), (11, N(10)))

    def test_filtered_pages_can_be_empty(self):
        found = self.db.scan(TableName=self.name, FilterExpression="attribute_not_exists(v)")
        self.assertEqual((found["Items"], found["ScannedCount"]), ([], 11))
        self.assertIn("LastEvaluatedKey", found)

    def test_capacity_of_a_page(self):
        found = self.db.scan(TableName=self.name, ReturnConsumedCapacity="TOTAL")
        self.assertEqual(found["ConsumedCapacity"]["CapacityUnits"], 134.5)

    def test_batch_get_of_all(self):
        found = self.db.batch_get_item(RequestItems={self.name: {
            "Keys": [{"pk": S("a"), "sk": N(i)} for i in range(30)]}})
        self.assertEqual(len(found["Responses"][self.name]), 30)
        self.assertEqual(found["UnprocessedKeys"], {})


class Scanning(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create("S", "N")
        put_many(cls.name, [{"pk": S(f"p{i % 40}"), "sk": N(i // 40), "v": N(i)}
                            for i in range(200)])

    def all_of(self, **more):
        pages = self.db.get_paginator("scan").paginate(TableName=self.name, **more)
        return [int(item["v"]["N"]) for page in pages for item in page["Items"]]

    def test_all(self):
        self.assertEqual(sorted(self.all_of()), list(range(200)))

    def test_partitions_are_sorted(self):
        order = {}
        for value in self.all_of():
            order.setdefault(value % 40, []).append(value // 40)
        self.assertEqual(set(map(tuple, order.values())), {(0, 1, 2, 3, 4)})

    def test_pages(self):
        self.assertEqual(sorted(self.all_of(PaginationConfig={"PageSize": 7})), list(range(200)))

    def test_segments_cover_all_once(self):
        for total in (1, 2, 5, 64):
            with self.subTest(total):
                seen = [value for i in range(total)
                        for value in self.all_of(Segment=i, TotalSegments=total)]
                self.assertEqual(sorted(seen), list(range(200)))

    def test_segments_with_pages(self):
        seen = [value for i in range(3) for value in self.all_of(
            Segment=i, TotalSegments=3, PaginationConfig={"PageSize": 4})]
        self.assertEqual(sorted(seen), list(range(200)))

    def test_filter(self):
        found = self.db.scan(TableName=self.name, FilterExpression="v >= :v AND pk <> :p",
                             ExpressionAttributeValues={":v": N(195), ":p": S("p35")})
        self.assertEqual(sorted(numbers(found, "v")), [196, 197, 198, 199])
        self.assertEqual(found["ScannedCount"], 200)

    def test_count(self):
        found = self.db.scan(TableName=self.name, Select="COUNT")
        self.assertEqual((found["Count"], found["ScannedCount"]), (200, 200))
        self.assertNotIn("Items", found)

    def test_legacy_filter(self):
        found = self.db.scan(TableName=self.name, ConditionalOperator="OR", ScanFilter={
            "v": {"ComparisonOperator": "LT", "AttributeValueList": [N(2)]},
            "sk": {"ComparisonOperator": "NULL"}})
        self.assertEqual(sorted(numbers(found, "v")), [0, 1])

    def test_consistent_capacity_is_twice(self):
        half = self.db.scan(TableName=self.name, ReturnConsumedCapacity="TOTAL")
        whole = self.db.scan(TableName=self.name, ReturnConsumedCapacity="TOTAL",
                             ConsistentRead=True)
        self.assertEqual(whole["ConsumedCapacity"]["CapacityUnits"],
                         2 * half["ConsumedCapacity"]["CapacityUnits"])

    def test_empty_table(self):
        found = self.db.scan(TableName=self.table())
        self.assertEqual((found["Items"], found["Count"]), ([], 0))


def query(condition, names=None, **more):
    values = more.pop("values", {":p": S("a")})
    made = {"KeyConditionExpression": condition, "ExpressionAttributeValues": values, **more}
    if names:
        made["ExpressionAttributeNames"] = names
    return made


P2 = {":p": S("a"), ":s": N(1)}


@refusals(
    no_hash=("query", query("sk = :p", values={":p": N(1)}), INVALID,
             "Query condition missed key schema element: pk"),
    hash_range=("query", query("pk > :p"), INVALID, "Query key condition not supported"),
    hash_or=("query", query("pk = :p OR sk = :s", values=P2), INVALID,
             "Invalid operator used in KeyConditionExpression: OR"),
    not_equal=("query", query("pk = :p AND sk <> :s", values=P2), INVALID,
               "Invalid operator used in KeyConditionExpression: <>"),
    key_in=("query", query("pk = :p AND sk IN (:s)", values=P2), INVALID,
            "Invalid operator used in KeyConditionExpression: IN"),
    twice=("query", query("pk = :p AND pk = :p"), INVALID,
           "KeyConditionExpressions must only contain one condition per key"),
    key_type=("query", query("pk = :p", values={":p": N(1)}), INVALID,
              "One or more parameter values were invalid: Condition parameter type does not match "
              "schema type"),
    no_condition=("query", {}, INVALID,
                  "Either the KeyConditions or KeyConditionExpression parameter must be specified "
                  "in the request."),
    filter_on_key=("query", query("pk = :p", FilterExpression="sk = :s", values=P2), INVALID,
                   "Filter Expression can only contain non-primary key attributes: Primary key "
                   "attribute: sk"),
    index=("query", query("pk = :p", IndexName="none"), INVALID,
           "The table does not have the specified index: none"),
    limit_0=("query", query("pk = :p", Limit=0), INVALID,
             re.compile("Value at 'Limit' failed to satisfy constraint: Member must have value "
                        "greater than or equal to 1")),
    scan_limit_0=("scan", {"Limit": 0}, INVALID,
                  re.compile("Value '0' at 'limit' failed to satisfy constraint: Member must have "
                             "value greater than or equal to 1")),
    start_key=("query", query("pk = :p", ExclusiveStartKey={"pk": S("a")}), INVALID,
               "The provided starting key is invalid"),
    start_key_type=("query", query("pk = :p", ExclusiveStartKey={"pk": S("a"), "sk": S("1")}),
                    INVALID, "The provided starting key is invalid: The provided key element does "
                    "not match the schema"),
    start_key_elsewhere=("query", query("pk = :p", ExclusiveStartKey={"pk": S("b"), "sk": N(1)}),
                         INVALID, "The provided starting key is outside query boundaries based on "
                         "provided conditions"),
    start_key_outside=("query", query("pk = :p AND sk > :s", values=P2,
                                      ExclusiveStartKey={"pk": S("a"), "sk": N(0)}), INVALID,
                       "The provided starting key does not match the range key predicate"),
    segment_alone=("scan", {"Segment": 0}, INVALID,
                   "The TotalSegments parameter is required but was not present in the request "
                   "when Segment parameter is present"),
    total_alone=("scan", {"TotalSegments": 4}, INVALID,
                 "The Segment parameter is required but was not present in the request when "
                 "parameter TotalSegments is present"),
    segment_large=("scan", {"Segment": 5, "TotalSegments": 5}, INVALID,
                   "The Segment parameter is zero-based and must be less than parameter "
                   "TotalSegments: Segment: 5 is not less than TotalSegments: 5"),
    select_without_projection=("scan", {"Select": "SPECIFIC_ATTRIBUTES"}, INVALID,
                               "Must specify the AttributesToGet or ProjectionExpression when "
                               "choosing to get SPECIFIC_ATTRIBUTES"),
    select_projected=("scan", {"Select": "ALL_PROJECTED_ATTRIBUTES"}, INVALID,
                      "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an "
                      "IndexName"),
    count_with_projection=("scan", {"Select": "COUNT", "ProjectionExpression": "a"}, INVALID,
                           re.compile("Cannot specify the ProjectionExpression when choosing to "
                                      "get only the Count")),
    missing_table=("query", {"TableName": "missing", **query("pk = :p")},
                   "ResourceNotFoundException", "Requested resource not found"),
    scan_missing_table=("scan", {"TableName": "missing"}, "ResourceNotFoundException",
                        "Requested resource not found"),
    begins_with_number=("query", query("pk = :p AND begins_with(sk, :s)", values=P2), INVALID,
                        re.compile("Incorrect operand type for operator or function; operator or "
                                   "function: begins_with, operand type: N")),
)
class Refusing(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create("S", "N")


class HashOnly(Case):
    def test_query(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}])
        found = self.db.query(TableName=name, KeyConditionExpression="pk = :p",
                              ExpressionAttributeValues={":p": S("a")})
        self.assertEqual(found["Items"], [{"pk": S("a"), "v": N(1)}])

    def test_cannot_be_restarted(self):
        self.invalid(re.compile("^The provided exclusive start key is invalid: ExclusiveStartKey: {"),
                     self.db.query, TableName=self.table(), KeyConditionExpression="pk = :p",
                     ExpressionAttributeValues={":p": S("a")}, ExclusiveStartKey={"pk": S("a")})
