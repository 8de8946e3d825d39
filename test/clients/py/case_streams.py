"""Streams, through boto3's dynamodbstreams client."""
import datetime
import re

from support import INVALID, Case, N, S, put_many, shared


class Reader(Case):
    def streaming(self, view="NEW_AND_OLD_IMAGES", **more):
        """A table with a stream; returns the table's name and the stream's ARN."""
        name = self.table(StreamSpecification={"StreamEnabled": True, "StreamViewType": view},
                          **more)
        return name, self.db.describe_table(TableName=name)["Table"]["LatestStreamArn"]

    def shards(self, arn):
        found, start = [], {}
        while True:
            told = self.streams.describe_stream(StreamArn=arn, **start)["StreamDescription"]
            found += told["Shards"]
            if "LastEvaluatedShardId" not in told:
                return found
            start = {"ExclusiveStartShardId": told["LastEvaluatedShardId"]}

    def iterator(self, arn, shard, kind="TRIM_HORIZON", **more):
        return self.streams.get_shard_iterator(StreamArn=arn, ShardId=shard,
                                               ShardIteratorType=kind, **more)["ShardIterator"]

    def records(self, arn, limit=None):
        """All there are now, shard after shard."""
        found = []
        for shard in self.shards(arn):
            at = self.iterator(arn, shard["ShardId"])
            while at:
                told = self.streams.get_records(ShardIterator=at,
                                                **({"Limit": limit} if limit else {}))
                found += told["Records"]
                at = told.get("NextShardIterator") if told["Records"] else None
        return found


class Records(Reader):
    def test_insert(self):
        name, arn = self.streaming()
        self.db.put_item(TableName=name, Item={"pk": S("a"), "v": N(1)})
        record, = self.records(arn)
        self.assertEqual(record["eventName"], "INSERT")
        self.assertEqual((record["eventVersion"], record["eventSource"], record["awsRegion"]),
                         ("1.1", "aws:dynamodb", "us-east-1"))
        self.assertTrue(record["eventID"])
        told = record["dynamodb"]
        self.assertEqual(told["Keys"], {"pk": S("a")})
        self.assertEqual(told["NewImage"], {"pk": S("a"), "v": N(1)})
        self.assertNotIn("OldImage", told)
        self.assertEqual(told["StreamViewType"], "NEW_AND_OLD_IMAGES")
        self.assertRegex(told["SequenceNumber"], r"^\d+$")
        self.assertGreater(told["SizeBytes"], 0)
        age = datetime.datetime.now(datetime.timezone.utc) - told["ApproximateCreationDateTime"]
        self.assertLess(abs(age.total_seconds()), 60)
        self.assertNotIn("userIdentity", record)

    def test_modify(self):
        name, arn = self.streaming()
        for value in (1, 2):
            self.db.put_item(TableName=name, Item={"pk": S("a"), "v": N(value)})
        record = self.records(arn)[1]
        self.assertEqual(record["eventName"], "MODIFY")
        self.assertEqual(record["dynamodb"]["OldImage"]["v"], N(1))
        self.assertEqual(record["dynamodb"]["NewImage"]["v"], N(2))

    def test_remove(self):
        name, arn = self.streaming()
        self.db.put_item(TableName=name, Item={"pk": S("a")})
        self.db.delete_item(TableName=name, Key={"pk": S("a")})
        record = self.records(arn)[1]
        self.assertEqual(record["eventName"], "REMOVE")
        self.assertEqual(record["dynamodb"]["OldImage"], {"pk": S("a")})
        self.assertNotIn("NewImage", record["dynamodb"])

    def images(self, view):
        name, arn = self.streaming(view)
        for value in (1, 2):
            self.db.put_item(TableName=name, Item={"pk": S("a"), "v": N(value)})
        self.db.delete_item(TableName=name, Key={"pk": S("a")})
        return [{"OldImage", "NewImage"} & set(record["dynamodb"]) for record in self.records(arn)]

    def test_keys_only(self):
        self.assertEqual(self.images("KEYS_ONLY"), [set(), set(), set()])

    def test_new_image(self):
        self.assertEqual(self.images("NEW_IMAGE"), [{"NewImage"}, {"NewImage"}, set()])

    def test_old_image(self):
        self.assertEqual(self.images("OLD_IMAGE"), [set(), {"OldImage"}, {"OldImage"}])

    def test_nothing_for_what_changes_nothing(self):
        name, arn = self.streaming()
        self.db.put_item(TableName=name, Item={"pk": S("a"), "s": {"SS": ["x", "y"]}})
        self.db.put_item(TableName=name, Item={"pk": S("a"), "s": {"SS": ["y", "x"]}})
        self.db.update_item(TableName=name, Key={"pk": S("a")}, UpdateExpression="REMOVE zzz")
        self.db.delete_item(TableName=name, Key={"pk": S("b")})
        self.assertEqual(len(self.records(arn)), 1)

    def test_order_per_item(self):
        name, arn = self.streaming()
        for i in range(30):
            self.db.update_item(TableName=name, Key={"pk": S("a")}, UpdateExpression="SET v = :v",
                                ExpressionAttributeValues={":v": N(i)})
        found = self.records(arn, limit=7)
        self.assertEqual([record["dynamodb"]["NewImage"]["v"]["N"] for record in found],
                         [str(i) for i in range(30)])
        numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in found]
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_batches_and_transactions(self):
        name, arn = self.streaming()
        put_many(name, [{"pk": S(f"b{i}")} for i in range(25)])
        self.db.transact_write_items(TransactItems=[
            {"Put": {"TableName": name, "Item": {"pk": S(f"t{i}")}}} for i in range(10)])
        keys = [record["dynamodb"]["Keys"]["pk"]["S"] for record in self.records(arn)]
        self.assertEqual(sorted(keys), sorted([f"b{i}" for i in range(25)] +
                                              [f"t{i}" for i in range(10)]))

    def test_event_ids_differ(self):
        name, arn = self.streaming()
        put_many(name, [{"pk": S(str(i))} for i in range(50)])
        self.assertEqual(len({record["eventID"] for record in self.records(arn)}), 50)

    def test_failed_writes_leave_none(self):
        name, arn = self.streaming()
        with self.assertRaises(self.db.exceptions.ConditionalCheckFailedException):
            self.db.put_item(TableName=name, Item={"pk": S("a")},
                             ConditionExpression="attribute_exists(pk)")
        self.assertEqual(self.records(arn), [])

    def test_binary_and_nested_images(self):
        name, arn = self.streaming()
        item = {"pk": S("a"), "b": {"B": b"\x00\xff"}, "m": {"M": {"l": {"L": [{"BS": [b"1"]}]}}}}
        self.db.put_item(TableName=name, Item=item)
        self.assertEqual(self.records(arn)[0]["dynamodb"]["NewImage"], item)


class Iterators(Reader):
    def setUp(self):
        self.name, self.arn = self.streaming()
        for i in range(6):
            self.db.update_item(TableName=self.name, Key={"pk": S("a")},
                                UpdateExpression="SET v = :v",
                                ExpressionAttributeValues={":v": N(i)})
        found = []
        for shard in self.shards(self.arn):
            told = self.streams.get_records(
                ShardIterator=self.iterator(self.arn, shard["ShardId"]))["Records"]
            if told:
                self.shard = shard["ShardId"]
                found = told
        self.numbers = [record["dynamodb"]["SequenceNumber"] for record in found]
        self.assertEqual(len(self.numbers), 6)

    def values(self, kind, **more):
        told = self.streams.get_records(
            ShardIterator=self.iterator(self.arn, self.shard, kind, **more))
        return [int(record["dynamodb"]["NewImage"]["v"]["N"]) for record in told["Records"]]

    def test_trim_horizon(self):
        self.assertEqual(self.values("TRIM_HORIZON"), [0, 1, 2, 3, 4, 5])

    def test_at(self):
        self.assertEqual(self.values("AT_SEQUENCE_NUMBER", SequenceNumber=self.numbers[3]),
                         [3, 4, 5])

    def test_after(self):
        self.assertEqual(self.values("AFTER_SEQUENCE_NUMBER", SequenceNumber=self.numbers[3]),
                         [4, 5])

    def test_latest(self):
        at = self.iterator(self.arn, self.shard, "LATEST")
        self.assertEqual(self.streams.get_records(ShardIterator=at)["Records"], [])
        self.db.put_item(TableName=self.name, Item={"pk": S("a"), "v": N(99)})
        told = self.streams.get_records(ShardIterator=at)
        self.assertEqual([r["dynamodb"]["NewImage"]["v"] for r in told["Records"]], [N(99)])

    def test_limit_and_next(self):
        at = self.iterator(self.arn, self.shard)
        told = self.streams.get_records(ShardIterator=at, Limit=4)
        self.assertEqual(len(told["Records"]), 4)
        told = self.streams.get_records(ShardIterator=told["NextShardIterator"], Limit=4)
        self.assertEqual(len(told["Records"]), 2)
        told = self.streams.get_records(ShardIterator=told["NextShardIterator"])
        self.assertEqual(told["Records"], [])
        self.assertIn("NextShardIterator", told)

    def test_limit_1001(self):
        self.invalid(re.compile("Member must have value less than or equal to 1000"),
                     shared("streams unchecked").get_records,
                     ShardIterator=self.iterator(self.arn, self.shard), Limit=1001)

    def test_number_needed(self):
        with self.assertRaises(self.streams.exceptions.ClientError) as caught:
            self.iterator(self.arn, self.shard, "AT_SEQUENCE_NUMBER")
        self.assertEqual(caught.exception.response["Error"]["Code"], INVALID)

    def test_no_iterator(self):
        with self.assertRaises(self.streams.exceptions.ClientError) as caught:
            self.streams.get_records(ShardIterator="not an iterator")
        self.assertEqual(caught.exception.response["Error"]["Code"], INVALID)

    def test_unknown_shard(self):
        with self.assertRaises(self.streams.exceptions.ResourceNotFoundException):
            self.iterator(self.arn, "shardId-00000000000000000000-00000000")


class Descriptions(Reader):
    def test_description(self):
        name, arn = self.streaming("NEW_IMAGE")
        told = self.streams.describe_stream(StreamArn=arn)["StreamDescription"]
        self.assertEqual((told["StreamArn"], told["TableName"], told["StreamViewType"]),
                         (arn, name, "NEW_IMAGE"))
        self.assertEqual(told["StreamStatus"], "ENABLED")
        self.assertEqual(told["KeySchema"], [{"AttributeName": "pk", "KeyType": "HASH"}])
        self.assertTrue(arn.endswith(told["StreamLabel"]))
        self.assertTrue(all("StartingSequenceNumber" in shard["SequenceNumberRange"]
                            for shard in told["Shards"]))

    def test_shards_in_pages(self):
        _, arn = self.streaming()
        whole = [shard["ShardId"] for shard in self.shards(arn)]
        told = self.streams.describe_stream(StreamArn=arn, Limit=1)["StreamDescription"]
        self.assertEqual([shard["ShardId"] for shard in told["Shards"]], whole[:1])
        rest = self.streams.describe_stream(
            StreamArn=arn, ExclusiveStartShardId=whole[0])["StreamDescription"]
        self.assertEqual([shard["ShardId"] for shard in rest["Shards"]], whole[1:])

    def test_list_of_a_table(self):
        name, arn = self.streaming()
        told = self.streams.list_streams(TableName=name)["Streams"]
        self.assertEqual(told, [{"StreamArn": arn, "TableName": name,
                                 "StreamLabel": arn.rpartition("/")[2]}])

    def test_list_in_pages(self):
        arns = {self.streaming()[1] for _ in range(5)}
        seen, start = [], {}
        while True:
            told = self.streams.list_streams(Limit=2, **start)
            self.assertLessEqual(len(told["Streams"]), 2)
            seen += [stream["StreamArn"] for stream in told["Streams"]]
            if "LastEvaluatedStreamArn" not in told:
                break
            start = {"ExclusiveStartStreamArn": told["LastEvaluatedStreamArn"]}
        self.assertEqual(len(seen), len(set(seen)))
        self.assertLessEqual(arns, set(seen))

    def test_unknown(self):
        arn = "arn:aws:dynamodb:us-east-1:123456789012:table/no/stream/2026-01-01T00:00:00.000"
        with self.assertRaises(self.streams.exceptions.ResourceNotFoundException):
            self.streams.describe_stream(StreamArn=arn)

    def test_disabled_stays_readable(self):
        name, arn = self.streaming()
        self.db.put_item(TableName=name, Item={"pk": S("a")})
        self.db.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
        self.db.put_item(TableName=name, Item={"pk": S("b")})
        told = self.streams.describe_stream(StreamArn=arn)["StreamDescription"]
        self.assertEqual(told["StreamStatus"], "DISABLED")
        self.assertTrue(all("EndingSequenceNumber" in shard["SequenceNumberRange"]
                            for shard in told["Shards"]))
        self.assertEqual([r["dynamodb"]["Keys"]["pk"] for r in self.records(arn)], [S("a")])

    def test_closed_shards_end(self):
        name, arn = self.streaming()
        self.db.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
        told = self.streams.get_records(
            ShardIterator=self.iterator(arn, self.shards(arn)[0]["ShardId"]))
        self.assertNotIn("NextShardIterator", told)

    def test_enabled_again_is_another(self):
        name, arn = self.streaming()
        on = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        self.db.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
        self.db.update_table(TableName=name, StreamSpecification=on)
        new = self.db.describe_table(TableName=name)["Table"]["LatestStreamArn"]
        self.assertNotEqual(new, arn)
        self.assertEqual({stream["StreamArn"] for stream in
                          self.streams.list_streams(TableName=name)["Streams"]}, {arn, new})

    def test_enabled_twice(self):
        name, _ = self.streaming()
        with self.assertRaises(self.db.exceptions.ClientError) as caught:
            self.db.update_table(TableName=name, StreamSpecification={
                "StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
        self.assertEqual(caught.exception.response["Error"]["Code"], INVALID)

    def test_table_gone_stream_stays(self):
        name, arn = self.streaming()
        self.db.put_item(TableName=name, Item={"pk": S("a")})
        self.db.delete_table(TableName=name)
        self.assertEqual([r["eventName"] for r in self.records(arn)][:1], ["INSERT"])

    def test_operation_of_the_other_service(self):
        _, arn = self.streaming()
        self.assertFalse(hasattr(self.db, "get_records"))
        self.assertEqual(self.streams.meta.service_model.service_name, "dynamodbstreams")
        self.assertTrue(self.streams.describe_stream(StreamArn=arn)["StreamDescription"])
