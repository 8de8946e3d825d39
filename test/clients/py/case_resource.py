"""boto3's resource: Table objects, Python's own types, condition objects, batch_writer."""
import threading
from decimal import Decimal

from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary, TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError, ParamValidationError

from support import Case, Shared, admin, fresh_name, index, needs_server, schema, shared


class Tables(Case):
    def test_create_wait_load_delete(self):
        name = fresh_name()
        table = self.resource.create_table(**schema(name, "S", "N"))
        self.addCleanup(self.drop, name)
        table.wait_until_exists()
        self.assertEqual((table.table_name, table.name), (name, name))
        self.assertEqual(table.table_status, "ACTIVE")
        self.assertEqual([key["AttributeName"] for key in table.key_schema], ["pk", "sk"])
        self.assertEqual((table.item_count, table.table_size_bytes), (0, 0))
        table.delete()
        table.wait_until_not_exists()
        with self.assertRaises(self.resource.meta.client.exceptions.ResourceNotFoundException):
            table.load()

    def test_reload_sees_changes(self):
        table = self.resource.Table(self.table())
        self.assertEqual(table.item_count, 0)
        shared("client").put_item(TableName=table.name, Item={"pk": {"S": "a"}})
        self.assertEqual(table.item_count, 0)
        table.reload()
        self.assertEqual(table.item_count, 1)

    def test_all(self):
        name = self.table()
        self.assertIn(name, [table.name for table in self.resource.tables.all()])

    def test_limit(self):
        self.table()
        self.table()
        self.assertEqual(len(list(self.resource.tables.limit(2))), 2)

    def test_update(self):
        table = self.resource.Table(self.table())
        table = table.update(BillingMode="PROVISIONED", ProvisionedThroughput={
            "ReadCapacityUnits": 7, "WriteCapacityUnits": 8})
        table.reload()
        self.assertEqual(table.provisioned_throughput["ReadCapacityUnits"], 7)

    def test_indexes_and_streams_are_attributes(self):
        table = self.resource.Table(self.table(
            types={"g": "S"}, GlobalSecondaryIndexes=[index("by-g", "g")],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}))
        self.assertEqual(table.global_secondary_indexes[0]["IndexName"], "by-g")
        self.assertTrue(table.latest_stream_arn.startswith(table.table_arn + "/stream/"))
        self.assertIsNone(table.local_secondary_indexes)

    def test_meta_client(self):
        self.assertEqual(self.resource.meta.service_name, "dynamodb")
        name = self.table()
        found = self.resource.meta.client.put_item(TableName=name, Item={"pk": "a"},
                                                   ReturnValues="ALL_OLD")
        self.assertNotIn("Attributes", found)


class Types(Shared):
    @classmethod
    def make(cls):
        cls.table_object = shared("resource").Table(cls.create())

    def there_and_back(self, value):
        self.table_object.put_item(Item={"pk": self.id(), "v": value})
        return self.table_object.get_item(Key={"pk": self.id()})["Item"]["v"]

    def test_text(self):
        self.assertEqual(self.there_and_back("grün"), "grün")

    def test_int(self):
        back = self.there_and_back(42)
        self.assertEqual(back, 42)
        self.assertIsInstance(back, Decimal)

    def test_decimal_keeps_38_digits(self):
        value = Decimal("3.1415926535897932384626433832795028841")
        self.assertEqual(self.there_and_back(value), value)

    def test_negative_and_tiny(self):
        self.assertEqual(self.there_and_back([Decimal("-0.5"), Decimal("1E-100")]),
                         [Decimal("-0.5"), Decimal("1E-100")])

    def test_float_is_refused_by_the_client(self):
        with self.assertRaises(TypeError):
            self.there_and_back(1.5)

    def test_none_and_bools(self):
        self.assertEqual(self.there_and_back([None, True, False]), [None, True, False])

    def test_bytes_become_binary(self):
        back = self.there_and_back(b"\x00\x01\xff")
        self.assertEqual(back, Binary(b"\x00\x01\xff"))
        self.assertEqual(bytes(back), b"\x00\x01\xff")

    def test_bytearray(self):
        self.assertEqual(self.there_and_back(bytearray(b"abc")), Binary(b"abc"))

    def test_sets(self):
        value = {"s": {"a", "b"}, "n": {1, Decimal("2.5")}, "b": {b"x", b"y"}}
        self.assertEqual(self.there_and_back(value),
                         {"s": {"a", "b"}, "n": {Decimal(1), Decimal("2.5")},
                          "b": {Binary(b"x"), Binary(b"y")}})

    def test_nested(self):
        value = {"list": [1, "two", {"three": [None, {"four": b"4"}]}], "empty": {}, "none": []}
        self.assertEqual(self.there_and_back(value),
                         {"list": [1, "two", {"three": [None, {"four": Binary(b"4")}]}],
                          "empty": {}, "none": []})

    def test_serializer_agrees_with_the_server(self):
        value = {"a": [1, {"b": {"x", "y"}}]}
        raw = self.db.put_item(TableName=self.table_object.name, Item={
            "pk": {"S": "raw"}, "v": TypeSerializer().serialize(value)}, ReturnValues="ALL_OLD")
        self.assertNotIn("Attributes", raw)
        item = self.get(self.table_object.name, pk={"S": "raw"})
        self.assertEqual(TypeDeserializer().deserialize(item["v"]), value)

    def test_condition_failure_has_the_item(self):
        self.table_object.put_item(Item={"pk": "cond", "v": 1})
        with self.assertRaises(ClientError) as caught:
            self.table_object.put_item(Item={"pk": "cond"},
                                       ConditionExpression=Attr("v").gt(5),
                                       ReturnValuesOnConditionCheckFailure="ALL_OLD")
        self.assertEqual(caught.exception.response["Error"]["Code"],
                         "ConditionalCheckFailedException")
        self.assertIn("Item", caught.exception.response)


class Conditions(Shared):
    @classmethod
    def make(cls):
        table = shared("resource").Table(cls.create("S", "N", types={"kind": "S"},
                                                    GlobalSecondaryIndexes=[
                                                        index("by-kind", "kind", "sk")]))
        cls.items = table
        with table.batch_writer() as batch:
            for i in range(60):
                batch.put_item(Item={"pk": f"p{i % 2}", "sk": i, "kind": "abc"[i % 3],
                                     "tags": {f"t{i % 5}", "all"}, "text": f"item number {i}",
                                     "deep": {"list": [i, {"x": i * 2}]},
                                     **({"rare": True} if i == 13 else {})})

    def scanned(self, condition):
        return sorted(int(item["sk"]) for item in
                      self.items.scan(FilterExpression=condition)["Items"])

    def queried(self, condition, **more):
        return [int(item["sk"]) for item in
                self.items.query(KeyConditionExpression=condition, **more)["Items"]]

    def test_key_eq(self):
        self.assertEqual(self.queried(Key("pk").eq("p0")), list(range(0, 60, 2)))

    def test_key_between(self):
        self.assertEqual(self.queried(Key("pk").eq("p0") & Key("sk").between(3, 9)), [4, 6, 8])

    def test_key_comparisons(self):
        part = Key("pk").eq("p1")
        self.assertEqual(self.queried(part & Key("sk").lt(5)), [1, 3])
        self.assertEqual(self.queried(part & Key("sk").lte(5)), [1, 3, 5])
        self.assertEqual(self.queried(part & Key("sk").gt(55)), [57, 59])
        self.assertEqual(self.queried(part & Key("sk").gte(55)), [55, 57, 59])

    def test_index(self):
        self.assertEqual(self.queried(Key("kind").eq("b") & Key("sk").gt(50), IndexName="by-kind"),
                         [52, 55, 58])

    def test_index_backwards(self):
        self.assertEqual(self.queried(Key("kind").eq("c"), IndexName="by-kind", Limit=2,
                                      ScanIndexForward=False), [59, 56])

    def test_attr_and_or_not(self):
        self.assertEqual(self.scanned((Attr("sk").lt(6) & Attr("kind").eq("a")) |
                                      (Attr("sk").gt(57) & ~Attr("kind").eq("b"))), [0, 3, 59])

    def test_attr_in(self):
        self.assertEqual(self.scanned(Attr("sk").is_in([5, 7, 99])), [5, 7])

    def test_attr_exists(self):
        self.assertEqual(self.scanned(Attr("rare").exists()), [13])
        self.assertEqual(len(self.scanned(Attr("rare").not_exists())), 59)

    def test_attr_contains_set_member(self):
        self.assertEqual(self.scanned(Attr("tags").contains("t4") & Attr("sk").lt(15)),
                         [4, 9, 14])

    def test_attr_begins_with(self):
        self.assertEqual(self.scanned(Attr("text").begins_with("item number 5")),
                         [5] + list(range(50, 60)))

    def test_attr_size(self):
        self.assertEqual(self.scanned(Attr("text").size().lt(14)), list(range(10)))

    def test_attr_type(self):
        self.assertEqual(len(self.scanned(Attr("tags").attribute_type("SS"))), 60)

    def test_attr_ne(self):
        self.assertEqual(len(self.scanned(Attr("kind").ne("a"))), 40)

    def test_attr_nested(self):
        self.assertEqual(self.scanned(Attr("deep.list[1].x").eq(26)), [13])

    def test_filter_of_query(self):
        self.assertEqual(self.queried(Key("pk").eq("p1"), FilterExpression=Attr("kind").eq("b") &
                                      Attr("rare").exists()), [13])

    def test_pages_by_hand(self):
        seen, start = [], {}
        while True:
            found = self.items.scan(Limit=11, **start)
            seen += [int(item["sk"]) for item in found["Items"]]
            if "LastEvaluatedKey" not in found:
                break
            start = {"ExclusiveStartKey": found["LastEvaluatedKey"]}
        self.assertEqual(sorted(seen), list(range(60)))

    def test_paginator_of_meta_client(self):
        pages = self.resource.meta.client.get_paginator("query").paginate(
            TableName=self.items.name, KeyConditionExpression=Key("pk").eq("p0"),
            PaginationConfig={"PageSize": 8})
        self.assertEqual([len(page["Items"]) for page in pages], [8, 8, 8, 6])

    def test_conditional_put(self):
        with self.assertRaises(self.resource.meta.client.exceptions
                               .ConditionalCheckFailedException):
            self.items.put_item(Item={"pk": "p0", "sk": 0},
                                ConditionExpression=Attr("pk").not_exists())

    def test_conditional_update_and_delete(self):
        self.items.put_item(Item={"pk": "other", "sk": 1, "count": 5})
        told = self.items.update_item(
            Key={"pk": "other", "sk": 1}, UpdateExpression="SET #c = #c - :one",
            ConditionExpression=Attr("count").gte(1), ExpressionAttributeNames={"#c": "count"},
            ExpressionAttributeValues={":one": 1}, ReturnValues="UPDATED_NEW")
        self.assertEqual(told["Attributes"], {"count": 4})
        told = self.items.delete_item(Key={"pk": "other", "sk": 1}, ReturnValues="ALL_OLD",
                                      ConditionExpression=Attr("count").eq(4))
        self.assertEqual(told["Attributes"], {"pk": "other", "sk": 1, "count": 4})


class Batches(Case):
    def test_batch_writer_writes_all(self):
        table = self.resource.Table(self.table())
        with table.batch_writer() as batch:
            for i in range(110):
                batch.put_item(Item={"pk": f"{i}", "v": i})
            for i in range(10):
                batch.delete_item(Key={"pk": f"{i}"})
        self.assertEqual(table.scan(Select="COUNT")["Count"], 100)

    def test_batch_writer_overwrites_by_keys(self):
        table = self.resource.Table(self.table())
        with table.batch_writer(overwrite_by_pkeys=["pk"]) as batch:
            for i in range(10):
                batch.put_item(Item={"pk": "same", "v": i})
        self.assertEqual(table.scan()["Items"], [{"pk": "same", "v": 9}])

    def test_batch_writer_with_duplicates(self):
        table = self.resource.Table(self.table())
        with self.assertRaises(ClientError) as caught:
            with table.batch_writer() as batch:
                batch.put_item(Item={"pk": "same"})
                batch.put_item(Item={"pk": "same"})
        self.assertEqual(caught.exception.response["Error"]["Message"],
                         "Provided list of item keys contains duplicates")

    @needs_server
    def test_batch_writer_sends_unprocessed_items_again(self):
        name = self.table()
        admin("PUT", "/faults", {"faults": [{"kind": "unprocessed", "operation": "BatchWriteItem",
                                             "table": name, "count": 4}]})
        self.addCleanup(admin, "DELETE", "/faults")
        table = self.resource.Table(name)
        with table.batch_writer() as batch:
            for i in range(60):
                batch.put_item(Item={"pk": f"{i}"})
        self.assertEqual(table.scan(Select="COUNT")["Count"], 60)
        self.assertEqual(admin("GET", "/faults")["faults"][0]["struck"], 4)

    def test_batch_get(self):
        name = self.table()
        table = self.resource.Table(name)
        table.put_item(Item={"pk": "a", "v": Decimal("1.5")})
        found = self.resource.batch_get_item(RequestItems={name: {
            "Keys": [{"pk": "a"}, {"pk": "b"}]}})
        self.assertEqual(found["Responses"], {name: [{"pk": "a", "v": Decimal("1.5")}]})

    def test_transaction_through_meta_client(self):
        name = self.table()
        self.resource.meta.client.transact_write_items(TransactItems=[
            {"Put": {"TableName": name, "Item": {"pk": f"{i}", "v": i}}} for i in range(5)])
        found = self.resource.meta.client.transact_get_items(TransactItems=[
            {"Get": {"TableName": name, "Key": {"pk": "3"}}}])
        self.assertEqual(found["Responses"], [{"Item": {"pk": "3", "v": 3}}])

    def test_a_counter_from_many_threads(self):
        name = self.table()
        client = self.resource.meta.client

        def count():
            for _ in range(20):
                client.update_item(TableName=name, Key={"pk": "n"}, UpdateExpression="ADD n :one",
                                   ExpressionAttributeValues={":one": 1})

        threads = [threading.Thread(target=count) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.resource.Table(name).get_item(Key={"pk": "n"})["Item"]["n"], 160)

    def test_client_refuses_unknown_parameters(self):
        with self.assertRaises(ParamValidationError):
            self.resource.Table("abc").put_item(Thing={})
