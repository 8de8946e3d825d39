"""What a server on files keeps when it is killed or stopped: everything it answered for."""
import os
import threading
import unittest

from botocore.exceptions import BotoCoreError, ClientError

from support import ENDPOINT, Case, N, S, Server, client, index, schema


@unittest.skipIf(ENDPOINT, "starts servers of its own")
class Restarts(Case):
    def setUp(self):
        self.where = os.path.join(self.directory(), "db")
        self.server = None
        self.start()
        self.addCleanup(self.stop)

    def start(self):
        self.server = Server("--db-path", self.where, "--admin")
        self._db = client(self.server.url)
        self._streams = client(self.server.url, service="dynamodbstreams")

    def stop(self):
        if self.server:
            wrong = self.server.stop()
            self.server = None
            self._db.close()
            self._streams.close()
            self.assertIsNone(wrong)

    def restart(self, kindly=False):
        if kindly:
            self.stop()
        else:
            self.server.kill()
            self._db.close()
            self._streams.close()
        self.start()

    @property
    def db(self):
        return self._db

    @property
    def streams(self):
        return self._streams

    def drop(self, name):
        pass  # the directory goes

    def test_items_after_kill(self):
        name = self.table()
        for round_ in range(4):
            for i in range(25):
                self.db.put_item(TableName=name, Item={"pk": S(f"{round_}-{i}"), "v": N(i)})
            self.restart()
            self.assertEqual(self.db.scan(TableName=name)["Count"], 25 * (round_ + 1))

    def test_items_after_stop(self):
        name = self.table(items=[{"pk": S("a"), "v": S("x" * 100000)}])
        self.restart(kindly=True)
        self.assertEqual(self.get(name, pk=S("a"))["v"], S("x" * 100000))

    def test_updates_and_deletes(self):
        name = self.table(items=[{"pk": S("a"), "v": N(1)}, {"pk": S("b")}])
        self.db.update_item(TableName=name, Key={"pk": S("a")}, UpdateExpression="ADD v :one",
                            ExpressionAttributeValues={":one": N(1)})
        self.db.delete_item(TableName=name, Key={"pk": S("b")})
        self.restart()
        self.assertEqual(self.db.scan(TableName=name)["Items"], [{"pk": S("a"), "v": N(2)}])

    def test_tables(self):
        name = self.table("N", "B", types={"g": "S"}, Tags=[{"Key": "a", "Value": "b"}],
                          GlobalSecondaryIndexes=[index("by-g", "g")])
        before = self.db.describe_table(TableName=name)["Table"]
        self.restart()
        self.assertEqual(self.db.describe_table(TableName=name)["Table"], before)
        self.assertEqual(self.db.list_tags_of_resource(ResourceArn=before["TableArn"])["Tags"],
                         [{"Key": "a", "Value": "b"}])

    def test_deleted_tables_stay_deleted(self):
        name = self.table(items=[{"pk": S("a")}])
        self.db.delete_table(TableName=name)
        self.restart()
        self.assertEqual(self.db.list_tables()["TableNames"], [])
        self.table(name=name)
        self.assertEqual(self.db.scan(TableName=name)["Count"], 0)

    def test_indexes(self):
        name = self.table(types={"g": "S"}, GlobalSecondaryIndexes=[index("by-g", "g")],
                          items=[{"pk": S(str(i)), "g": S("ab"[i % 2])} for i in range(10)])
        self.restart()
        found = self.db.query(TableName=name, IndexName="by-g", KeyConditionExpression="g = :g",
                              ExpressionAttributeValues={":g": S("b")})
        self.assertEqual(sorted(item["pk"]["S"] for item in found["Items"]),
                         ["1", "3", "5", "7", "9"])

    def test_counts(self):
        name = self.table(items=[{"pk": S(str(i))} for i in range(20)])
        before = self.db.describe_table(TableName=name)["Table"]
        self.restart()
        told = self.db.describe_table(TableName=name)["Table"]
        self.assertEqual((told["ItemCount"], told["TableSizeBytes"]),
                         (20, before["TableSizeBytes"]))

    def test_expiry_settings(self):
        name = self.table()
        self.db.update_time_to_live(TableName=name, TimeToLiveSpecification={
            "Enabled": True, "AttributeName": "due"})
        self.restart()
        self.assertEqual(self.db.describe_time_to_live(TableName=name)["TimeToLiveDescription"],
                         {"TimeToLiveStatus": "ENABLED", "AttributeName": "due"})

    def test_transaction_token(self):
        name = self.table()
        action = {"ClientRequestToken": "a token", "TransactItems": [{"Update": {
            "TableName": name, "Key": {"pk": S("a")}, "UpdateExpression": "ADD v :one",
            "ExpressionAttributeValues": {":one": N(1)}}}]}
        self.db.transact_write_items(**action)
        self.restart()
        self.db.transact_write_items(**action)
        self.assertEqual(self.get(name, pk=S("a"))["v"], N(1))

    def records(self, arn, iterators):
        """New records of all shards, by iterators that are kept from call to call."""
        told = self.streams.describe_stream(StreamArn=arn)["StreamDescription"]
        for shard in told["Shards"]:
            if shard["ShardId"] not in iterators:
                iterators[shard["ShardId"]] = self.streams.get_shard_iterator(
                    StreamArn=arn, ShardId=shard["ShardId"],
                    ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        found = []
        for shard, at in list(iterators.items()):
            told = self.streams.get_records(ShardIterator=at)
            iterators[shard] = told["NextShardIterator"]
            found += told["Records"]
        return found

    def test_stream_goes_on(self):
        name = self.table(StreamSpecification={"StreamEnabled": True,
                                               "StreamViewType": "NEW_IMAGE"})
        arn = self.db.describe_table(TableName=name)["Table"]["LatestStreamArn"]
        iterators, seen = {}, []
        for round_ in range(3):
            for i in range(10):
                self.db.put_item(TableName=name, Item={"pk": S(f"{round_}-{i}")})
            if round_ != 1:  # sometimes the reader is behind
                seen += self.records(arn, iterators)
            self.restart(kindly=round_ == 2)
            self.assertEqual(self.db.describe_table(TableName=name)["Table"]["LatestStreamArn"],
                             arn)
        seen += self.records(arn, iterators)
        self.assertEqual(sorted(record["dynamodb"]["Keys"]["pk"]["S"] for record in seen),
                         [f"{round_}-{i}" for round_ in range(3) for i in range(10)])

    def test_sequence_numbers_grow(self):
        name = self.table(StreamSpecification={"StreamEnabled": True,
                                               "StreamViewType": "KEYS_ONLY"})
        arn = self.db.describe_table(TableName=name)["Table"]["LatestStreamArn"]
        for i in range(3):
            self.db.update_item(TableName=name, Key={"pk": S("a")}, UpdateExpression="SET v = :v",
                                ExpressionAttributeValues={":v": N(i)})
            self.restart()
        numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in self.records(arn, {})]
        self.assertEqual(len(numbers), 3)
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_killed_under_load(self):
        """Eight writers until the server dies: what they were told is there, at most one more."""
        name = self.table()
        acked = [0] * 8

        def write(who, db):
            try:
                while True:
                    db.update_item(TableName=name, Key={"pk": S(str(who))},
                                   UpdateExpression="SET v = :v",
                                   ExpressionAttributeValues={":v": N(acked[who] + 1)})
                    acked[who] += 1
            except (BotoCoreError, ClientError):
                pass

        for _ in range(2):
            threads = [threading.Thread(target=write, args=(who, self.db)) for who in range(8)]
            for thread in threads:
                thread.start()
            while sum(acked) < 400:
                threads[0].join(0.01)
            self.server.kill()
            for thread in threads:
                thread.join()
            self.start()
            for who in range(8):
                item = self.get(name, pk=S(str(who)))
                value = int(item["v"]["N"]) if item else 0
                self.assertIn(value, (acked[who], acked[who] + 1))
                acked[who] = 0
            name = self.table()

    def test_the_client_finds_the_new_server(self):
        """On the same port, an old client goes on after a retry; its pool held dead connections."""
        port = str(self.server.port)
        db = client(self.server.url, retries=3)
        self.addCleanup(db.close)
        db.create_table(**schema("abc"))
        self.server.kill()
        self.server = Server("--db-path", self.where, port=port)
        db.put_item(TableName="abc", Item={"pk": S("a")})
        self.assertEqual(db.scan(TableName="abc")["Count"], 1)
