"""The clock of the database and what it makes due: PUT /_holdfast/clock, POST /_holdfast/upkeep.

Each class has a server of its own: a moved clock is moved for everybody. The server does its upkeep
about once a second by itself, so how much a single upkeep finds is not certain; what is gone
after it is.
"""
import time
import unittest
import urllib.error

from support import ENDPOINT, Case, N, S, Server, admin, client, index, schema

HOUR = 3600


@unittest.skipIf(ENDPOINT, "starts servers of its own")
class Own(Case):
    options = ("--in-memory", "--admin")

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options)
        cls.own = client(cls.server.url)
        cls.own_streams = client(cls.server.url, service="dynamodbstreams")

    @classmethod
    def tearDownClass(cls):
        wrong = cls.server.stop()
        if wrong:
            raise AssertionError(wrong)

    @property
    def db(self):
        return self.own

    @property
    def streams(self):
        return self.own_streams

    def admin(self, method, path, body=None):
        return admin(method, path, body, self.server.url)

    def setUp(self):
        self.admin("PUT", "/clock", {"reset": True})
        self.admin("DELETE", "/faults")


class Clock(Own):
    def test_told(self):
        told = self.admin("GET", "/clock")
        self.assertEqual(told["offset_s"], 0)
        self.assertLess(abs(told["now"] - time.time()), 60)

    def test_advance_adds_up(self):
        self.admin("PUT", "/clock", {"advance_s": HOUR})
        told = self.admin("PUT", "/clock", {"advance_s": HOUR})
        self.assertEqual(told["offset_s"], 2 * HOUR)
        self.assertLess(abs(told["now"] - time.time() - 2 * HOUR), 60)

    def test_set(self):
        told = self.admin("PUT", "/clock", {"now_s": 2000000000})
        self.assertLess(abs(told["now"] - 2000000000), 60)

    def test_shows_in_tables(self):
        self.admin("PUT", "/clock", {"now_s": 1900000000})
        made = self.db.create_table(**schema("clocked"))["TableDescription"]
        self.addCleanup(self.drop, "clocked")
        self.assertLess(abs(made["CreationDateTime"].timestamp() - 1900000000), 60)

    def test_refuses_two_at_once(self):
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.admin("PUT", "/clock", {"advance_s": 1, "now_s": 5})
        self.assertEqual(caught.exception.code, 400)
        self.assertIn(b"one of", caught.exception.read())

    def test_refuses_no_json(self):
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.admin("PUT", "/clock", "advance")
        self.assertEqual(caught.exception.code, 400)

    def test_overview(self):
        told = self.admin("GET", "/")
        self.assertIn("PUT /_holdfast/clock", told["paths"])
        self.assertEqual(told["faults"], [])


class Expiring(Own):
    def expiring(self, *dues, **more):
        """A table whose items "0", "1", ... are due then, in seconds from now."""
        name = self.table(**more)
        self.db.update_time_to_live(TableName=name, TimeToLiveSpecification={
            "Enabled": True, "AttributeName": "due"})
        for i, due in enumerate(dues):
            self.db.put_item(TableName=name, Item={
                "pk": S(str(i)), "g": S("g"), "due": due if isinstance(due, dict) else
                N(int(time.time()) + due)})
        return name

    def left(self, name, **more):
        return sorted(item["pk"]["S"] for item in self.db.scan(TableName=name, **more)["Items"])

    def advance(self, seconds):
        self.admin("PUT", "/clock", {"advance_s": seconds})
        return self.admin("POST", "/upkeep")

    def test_due_items_go(self):
        name = self.expiring(HOUR, 2 * HOUR, 3 * HOUR)
        self.admin("POST", "/upkeep")
        self.assertEqual(self.left(name), ["0", "1", "2"])
        self.advance(HOUR + 60)
        self.assertEqual(self.left(name), ["1", "2"])
        self.advance(HOUR)
        self.assertEqual(self.left(name), ["2"])

    def test_other_types_stay(self):
        name = self.expiring(S("1"), {"NS": ["1"]}, {"NULL": True}, HOUR)
        self.advance(2 * HOUR)
        self.assertEqual(self.left(name), ["0", "1", "2"])

    def test_older_than_five_years_stay(self):
        name = self.expiring(N(1), HOUR)
        self.advance(2 * HOUR)
        self.assertEqual(self.left(name), ["0"])

    def test_a_later_due_time_rescues(self):
        name = self.expiring(HOUR)
        self.db.update_item(TableName=name, Key={"pk": S("0")}, UpdateExpression="ADD due :more",
                            ExpressionAttributeValues={":more": N(10 * HOUR)})
        self.advance(2 * HOUR)
        self.assertEqual(self.left(name), ["0"])

    def test_removing_the_attribute_rescues(self):
        name = self.expiring(HOUR)
        self.db.update_item(TableName=name, Key={"pk": S("0")}, UpdateExpression="REMOVE due")
        self.advance(2 * HOUR)
        self.assertEqual(self.left(name), ["0"])

    def test_indexes_follow(self):
        name = self.expiring(HOUR, 5 * HOUR, types={"g": "S"},
                             GlobalSecondaryIndexes=[index("by-g", "g")])
        self.assertEqual(self.left(name, IndexName="by-g"), ["0", "1"])
        self.advance(2 * HOUR)
        self.assertEqual(self.left(name, IndexName="by-g"), ["1"])

    def test_items_from_before_count(self):
        name = self.table(items=[{"pk": S("0"), "due": N(int(time.time()) + HOUR)}])
        self.db.update_time_to_live(TableName=name, TimeToLiveSpecification={
            "Enabled": True, "AttributeName": "due"})
        self.admin("POST", "/upkeep")
        self.advance(2 * HOUR)
        self.admin("POST", "/upkeep")
        self.assertEqual(self.left(name), [])

    def test_stream_tells_who(self):
        name = self.expiring(HOUR, StreamSpecification={"StreamEnabled": True,
                                                        "StreamViewType": "OLD_IMAGE"})
        arn = self.db.describe_table(TableName=name)["Table"]["LatestStreamArn"]
        self.advance(2 * HOUR)
        found = []
        for shard in self.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            at = self.streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"],
                                                 ShardIteratorType="TRIM_HORIZON")
            found += self.streams.get_records(ShardIterator=at["ShardIterator"])["Records"]
        record = found[-1]
        self.assertEqual(record["eventName"], "REMOVE")
        self.assertEqual(record["userIdentity"],
                         {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"})

    def test_by_itself_without_upkeep(self):
        name = self.expiring(1)
        until = time.monotonic() + 60
        while self.left(name) and time.monotonic() < until:
            time.sleep(0.2)
        self.assertEqual(self.left(name), [])


class Trimming(Own):
    def test_streams_keep_a_day(self):
        name = self.table(StreamSpecification={"StreamEnabled": True,
                                               "StreamViewType": "KEYS_ONLY"})
        arn = self.db.describe_table(TableName=name)["Table"]["LatestStreamArn"]

        def keys():
            found = []
            told = self.streams.describe_stream(StreamArn=arn)["StreamDescription"]
            for shard in told["Shards"]:
                at = self.streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"],
                                                     ShardIteratorType="TRIM_HORIZON")
                found += self.streams.get_records(ShardIterator=at["ShardIterator"])["Records"]
            return [record["dynamodb"]["Keys"]["pk"]["S"] for record in found]

        self.db.put_item(TableName=name, Item={"pk": S("old")})
        self.admin("PUT", "/clock", {"advance_s": 23 * HOUR})
        self.db.put_item(TableName=name, Item={"pk": S("new")})
        self.admin("POST", "/upkeep")
        self.assertEqual(sorted(keys()), ["new", "old"])
        self.admin("PUT", "/clock", {"advance_s": 2 * HOUR})
        self.admin("POST", "/upkeep")
        self.assertEqual(keys(), ["new"])

    def test_tokens_last_ten_minutes(self):
        name = self.table(items=[{"pk": S("a"), "v": N(0)}])
        action = {"TransactItems": [{"Update": {
            "TableName": name, "Key": {"pk": S("a")}, "UpdateExpression": "ADD v :one",
            "ExpressionAttributeValues": {":one": N(1)}}}], "ClientRequestToken": "a token"}
        self.db.transact_write_items(**action)
        self.admin("PUT", "/clock", {"advance_s": 540})
        self.db.transact_write_items(**action)
        self.assertEqual(self.get(name, pk=S("a"))["v"], N(1))
        self.admin("PUT", "/clock", {"advance_s": 120})
        self.db.transact_write_items(**action)
        self.assertEqual(self.get(name, pk=S("a"))["v"], N(2))
