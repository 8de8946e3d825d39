"""Unchanged boto3 in this process, and the same over a server."""
import unittest
from decimal import Decimal

import holdfast

try:
    import boto3
    from boto3.dynamodb.conditions import Attr, Key
except ImportError:
    boto3 = None


@unittest.skipUnless(boto3, "boto3 is not installed")
class Boto3(unittest.TestCase):
    def program(self, resource):
        """What any program does with boto3; the results of it."""
        seen = []
        table = resource.create_table(
            TableName="music", BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "artist", "KeyType": "HASH"}, {"AttributeName": "song", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": "artist", "AttributeType": "S"},
                                  {"AttributeName": "song", "AttributeType": "S"}])
        table.wait_until_exists()
        with table.batch_writer() as batch:
            for i in range(30):
                batch.put_item(Item={"artist": "a", "song": f"{i:02}", "n": Decimal(i), "raw": b"\x00\xff"})
        seen.append(table.get_item(Key={"artist": "a", "song": "07"})["Item"]["n"])
        seen.append([item["song"] for item in table.query(
            KeyConditionExpression=Key("artist").eq("a") & Key("song").between("03", "05"),
            FilterExpression=Attr("n").gt(3))["Items"]])
        seen.append(table.update_item(Key={"artist": "a", "song": "07"}, UpdateExpression="ADD n :one",
                                      ExpressionAttributeValues={":one": 1}, ReturnValues="ALL_NEW")["Attributes"])
        client = resource.meta.client
        for call, arguments in (
                (client.put_item, {"TableName": "music", "Item": {"artist": "a", "song": "07"},
                                   "ConditionExpression": "attribute_not_exists(artist)"}),
                (client.get_item, {"TableName": "none", "Key": {"artist": "a", "song": "07"}}),
                (client.get_item, {"TableName": "music", "Key": {"artist": "a"}}),
                (client.transact_write_items, {"TransactItems": [{"ConditionCheck": {
                    "TableName": "music", "Key": {"artist": "a", "song": "07"},
                    "ConditionExpression": "attribute_not_exists(artist)"}}]})):
            with self.assertRaises(client.exceptions.ClientError) as caught:
                call(**arguments)
            seen.append((type(caught.exception).__name__, caught.exception.response["Error"],
                         caught.exception.response.get("CancellationReasons"),
                         caught.exception.response["ResponseMetadata"]["HTTPStatusCode"]))
        pages = client.get_paginator("scan").paginate(TableName="music", PaginationConfig={"PageSize": 10})
        seen.append([page["Count"] for page in pages])
        return seen

    def test_the_same_in_process_and_over_a_server(self):
        with holdfast.open("memory:") as db:
            inside = self.program(holdfast.boto3_resource(db))
            self.assertEqual(db.get("music", {"artist": "a", "song": "07"})["n"], 8)  # it is the same database
        with holdfast.start_server() as server:
            outside = self.program(boto3.resource("dynamodb", **server.client_config()))
            server.snapshot()
            client = boto3.client("dynamodb", **server.client_config())
            client.delete_table(TableName="music")
            server.restore()
            self.assertEqual(client.list_tables()["TableNames"], ["music"])
            with self.assertRaises(holdfast.HoldfastError):
                server.restore("no such")
        server.stop()
        self.assertEqual(inside, outside)

    def test_requests_that_stay_in_this_process_are_not_signed(self):
        from botocore.config import Config

        seen = []

        def look(request, **_):
            seen.append((request.headers.get("Authorization"), request.headers.get("User-Agent")))

        with holdfast.open("memory:") as db:
            for config in (None, Config(retries={"max_attempts": 2}), Config(user_agent="mine")):
                client = holdfast.boto3_client(db, config=config)
                client.meta.events.register_first("before-send.dynamodb", look)
                self.assertEqual(client.list_tables()["TableNames"], [])
        self.assertEqual([signature for signature, _ in seen], [None] * 3)
        self.assertIn("mine", str(seen[2][1]))

    def test_a_hook_for_clients_of_a_program(self):
        with holdfast.open("memory:") as db, holdfast.open("memory:") as other:
            client = boto3.client("dynamodb", region_name="eu-central-1", aws_access_key_id="k",
                                  aws_secret_access_key="s")
            holdfast.attach(db, client.meta.events)
            client.create_table(TableName="things", BillingMode="PAY_PER_REQUEST",
                                KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
                                AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
                                StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
            self.assertEqual(list(db.tables()), ["things"])
            self.assertEqual(holdfast.boto3_client(other).list_tables()["TableNames"], [])
            client.put_item(TableName="things", Item={"id": {"S": "1"}})
            streams = holdfast.boto3_client(db, "dynamodbstreams")
            [stream] = streams.list_streams()["Streams"]
            arn = stream["StreamArn"]
            records = []
            for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
                at = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"],
                                                ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
                records += streams.get_records(ShardIterator=at)["Records"]
            [record] = records
            self.assertEqual(record["dynamodb"]["NewImage"], {"id": {"S": "1"}})
        with self.assertRaises(holdfast.HoldfastError):  # and not a timeout of the network
            client.list_tables()
