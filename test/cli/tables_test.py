#!/usr/bin/env python3
"""Tables from the command line: tables_test.py COMMAND SOURCE [unittest arguments]. Updates, truncation, figures,
copies of definitions, and definitions of CloudFormation and Terraform; on a server in memory and on a directory.
"""
import json
import os
import pty
import signal
import subprocess
import unittest

from process import (COMMAND, CONDITION, NOT_FOUND, OK, USAGE, WAIT_S, Commands, main, setUpModule,  # noqa: F401
                     tearDownModule)


class Tables(Commands):
    def json(self, *args, **more):
        return json.loads(self.ok(*args, "--json", **more))

    def put(self, table, *items, db=None):
        for item in items:
            self.ok("item", "put", table, json.dumps(item), *(["--db", db] if db else []))

    def changes(self, *args):
        return {row["setting"] + " " + row["value"]: row["changed"]
                for row in self.json("table", "update", "orders", *args)["changes"]}

    def orders(self, *args):
        self.ok("table", "create", "orders", "--key", "customer:S,day:N", "-q", *args)


class Update(Tables):
    def test_every_setting_and_again(self):
        self.orders()
        self.put("orders", {"customer": "ann", "day": 1, "status": "paid"})
        args = ["--index", "by_status=status:S,day:N/keys", "--index", "by_day=day:N", "--stream", "new-and-old",
                "--ttl", "expires", "--protect", "--class", "infrequent-access"]
        self.assertEqual(set(self.changes(*args).values()), {True})
        self.assertEqual(set(self.changes(*args).values()), {False})
        table = self.json("table", "show", "orders")
        self.assertEqual({i["IndexName"]: i["IndexStatus"] for i in table["GlobalSecondaryIndexes"]},
                         {"by_status": "ACTIVE", "by_day": "ACTIVE"})
        self.assertEqual(table["StreamSpecification"]["StreamViewType"], "NEW_AND_OLD_IMAGES")
        self.assertTrue(table["DeletionProtectionEnabled"])
        self.assertEqual(json.loads(self.ok("query", "orders", "paid", "-i", "by_status")),
                         {"customer": "ann", "day": 1, "status": "paid"})
        self.assertEqual(self.changes("--stream", "keys", "--ttl", "until", "--no-protect", "--remove-index", "by_day",
                                      "--remove-index", "none", "--class", "standard"),
                         {"stream keys": True, "ttl until": True, "protection off": True, "remove index by_day": True,
                          "remove index none": False, "class standard": True})
        table = self.json("table", "show", "orders")
        self.assertEqual([i["IndexName"] for i in table["GlobalSecondaryIndexes"]], ["by_status"])
        self.assertEqual(table["StreamSpecification"]["StreamViewType"], "KEYS_ONLY")
        self.assertEqual(self.changes("--stream", "none", "--no-ttl"), {"stream none": True, "ttl none": True})
        self.assertEqual(self.changes("--stream", "none", "--no-ttl"), {"stream none": False, "ttl none": False})
        self.assertEqual(self.ok("table", "update", "orders", "--no-ttl"), "ttl\tnone\tas it was\n")

    def test_billing(self):
        self.orders("--index", "by_day=day:N")
        self.assertEqual(self.changes("--billing", "provisioned", "--read-units", "5", "--write-units", "6"),
                         {"billing provisioned, 5 reads, 6 writes": True})
        table = self.json("table", "show", "orders")
        self.assertEqual(table["ProvisionedThroughput"]["WriteCapacityUnits"], 6)
        self.assertEqual(table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]["ReadCapacityUnits"], 5)
        self.assertEqual(list(self.changes("--read-units", "5", "--write-units", "6").values()), [False])
        self.assertEqual(list(self.changes("--read-units", "7", "--write-units", "6").values()), [True])
        self.assertEqual(self.changes("--index", "by_status=status"), {"index by_status": True})
        self.assertEqual(list(self.changes("--billing", "on-demand").values()), [True])
        self.assertEqual(list(self.changes("--billing", "on-demand").values()), [False])
        self.ok("table", "create", "plain", "--key", "id", "-q")  # without indexes
        self.ok("table", "update", "plain", "--billing", "provisioned", "--read-units", "5", "--write-units", "5")
        self.assertEqual(self.json("table", "show", "plain")["ProvisionedThroughput"]["ReadCapacityUnits"], 5)

    def test_an_index_is_replaced_only_when_asked(self):
        self.orders("--index", "by_day=day:N", "--local-index", "by_total=total:N")
        self.fails(CONDITION, "add --remove-index by_day to replace it", "table", "update", "orders", "--ttl", "x",
                   "--index", "by_day=day:N/keys")
        self.fails(CONDITION, "key of the table with another type", "table", "update", "orders", "--index", "x=day:S")
        self.fails(CONDITION, "local index", "table", "update", "orders", "--index", "by_total=total:N")
        self.assertEqual(self.changes("--no-ttl"), {"ttl none": False})  # nothing was changed before the error
        self.assertEqual(self.changes("--remove-index", "by_day", "--index", "by_day=day:N/keys"),
                         {"remove index by_day": True, "index by_day": True})
        self.assertEqual(self.changes("--remove-index", "by_day", "--index", "by_day=day:N/keys"),
                         {"index by_day": False})

    def test_an_index_that_cannot_be_replaced_stays(self):
        self.orders("--index", "by_day=day:N", "--index", "by_total=total:N", "--local-index", "by_size=size:N")
        before = self.json("table", "show", "orders")
        for error, index in [("key of the table with another type", "by_day=day:S"),
                             ("key of the table with another type", "by_day=total:S"),
                             ("key of the table with another type", "by_day=size:S"),
                             ("hash key and its range key are the same", "by_day=x:N,x:N"),
                             ("more than 20 attributes", "by_day=day:N/" + ",".join("a%d" % i for i in range(21)))]:
            with self.subTest(index):
                code, out, err = self.run_("table", "update", "orders", "--remove-index", "by_day", "--index", index)
                self.assertNotEqual(code, OK)
                self.assertIn(error, err)
                self.assertEqual(out, "")
        self.fails(USAGE, "--remove-index by_day is given twice", "table", "update", "orders", "--remove-index", "by_day",
                   "--remove-index", "by_day")
        self.fails(USAGE, "--index by_x is given twice", "table", "update", "orders", "--index", "by_x=x",
                   "--index", "by_x=x")
        self.assertEqual(self.json("table", "show", "orders"), before)
        # 20 are allowed, and a type may change when no other key has the attribute
        self.changes("--remove-index", "by_total", "--index", "by_total=total:S/" + ",".join("a%d" % i for i in range(20)))
        self.assertIn({"AttributeName": "total", "AttributeType": "S"},
                      self.json("table", "show", "orders")["AttributeDefinitions"])
        # what the database alone refuses: it is said that the index is gone
        code, _, err = self.run_("table", "update", "orders", "--remove-index", "by_day", "--index", "by_day=day:N/a,a")
        self.assertNotEqual(code, OK)
        self.assertIn("index 'by_day' was removed, and the one in its place was not added", err)

    def test_what_cannot_be(self):
        for error, args in [("give what to change", []), ("contradict", ["--ttl", "x", "--no-ttl"]),
                            ("give both", ["--read-units", "5"]),
                            ("provisioned needs", ["--billing", "provisioned"]),
                            ("on-demand has no", ["--billing", "on-demand", "--read-units", "1", "--write-units", "1"]),
                            ("NAME=KEY", ["--index", "x"]), ("out of range", ["--read-units", "0"]),
                            ("did you mean --remove-index?", ["--remove-indx", "x"])]:
            with self.subTest(args):
                self.fails(USAGE, error, "table", "update", "orders", *args)
        self.fails(NOT_FOUND, "orders", "table", "update", "orders", "--no-ttl")
        self.fails(NOT_FOUND, "There is no store", "table", "update", "orders", "--no-ttl", "--db",
                   "embedded:" + self.path("none"))
        self.assertFalse(os.path.exists(self.path("none")))

    def test_terminal(self):
        self.orders()
        lines = self.on_terminal("table", "update", "orders", "--ttl", "expires", "--no-protect", columns=80)
        self.assertEqual(lines, ["setting     value    result", "ttl         expires  changed",
                                 "protection  off      as it was"])


class Truncate(Tables):
    def fill(self, db, count):
        for i in range(count):
            self.ok("item", "put", "orders", json.dumps({"customer": "c%d" % (i % 7), "day": i}), "--db", db)

    def truncate_on(self, db):
        self.ok("table", "create", "orders", "--key", "customer:S,day:N", "--index", "by_day=day:N", "--ttl", "expires",
                "--stream", "keys", "-q", "--db", db)
        self.fill(db, 12)
        self.fails(USAGE, "this deletes all items of table 'orders': add --yes to confirm", "table", "truncate", "orders",
                   "--db", db)
        before = self.json("table", "show", "orders", "--db", db)
        self.assertEqual(self.json("table", "truncate", "orders", "--yes", "--db", db), {"deleted": 12})
        self.assertEqual(self.ok("table", "truncate", "orders", "-y", "--db", db), "deleted      0\n")
        self.assertEqual(self.ok("scan", "orders", "--db", db), "")
        self.assertEqual(self.ok("scan", "orders", "-i", "by_day", "--db", db), "")
        after = self.json("table", "show", "orders", "--db", db)
        self.assertEqual(after["ItemCount"], 0)
        for table in (before, after):
            for part in [table] + table["GlobalSecondaryIndexes"]:
                for name in ("ItemCount", "TableSizeBytes", "IndexSizeBytes"):
                    part.pop(name, None)
        self.assertEqual(before, after)
        self.assertEqual(self.json("table", "update", "orders", "--ttl", "expires", "--db", db)["changes"][0]["changed"],
                         False)

    def test_directory(self):
        self.truncate_on("embedded:" + self.path("db"))

    def test_server(self):
        self.truncate_on(self.env["HOLDFAST_DB"])

    def test_protected(self):
        self.orders("--protect")
        self.fails(CONDITION, "'holdfast table update orders --no-protect' switches that off", "table", "truncate",
                   "orders", "--yes")
        self.fails(NOT_FOUND, "none", "table", "truncate", "none", "--yes")

    def ask(self, answer, *, signal_number=None):
        """The command with a terminal for questions and answers. Returns its exit code and what was asked."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([COMMAND, "table", "truncate", "orders"], stdin=theirs, stdout=subprocess.PIPE,
                                   stderr=theirs, env=self.env, text=True)
        os.close(theirs)
        asked = b""
        while b"[y/N] " not in asked:
            asked += os.read(ours, 1000)
        if signal_number:
            process.send_signal(signal_number)
        else:
            os.write(ours, answer)
        out = process.communicate(timeout=WAIT_S)[0]
        os.close(ours)
        return process.returncode, asked.decode(), out

    def test_a_person_is_asked(self):
        self.orders()
        self.put("orders", {"customer": "ann", "day": 1})
        code, asked, out = self.ask(b"n\n")
        self.assertEqual((code, out), (CONDITION, ""))
        self.assertIn("Delete all items of table 'orders', about 1? [y/N] ", asked)
        self.assertEqual(self.ask(b"\n")[0], CONDITION)
        self.assertEqual(self.ask(b"", signal_number=signal.SIGINT)[0], 128 + signal.SIGINT)
        self.assertNotEqual(self.ok("scan", "orders"), "")
        code, _, out = self.ask(b"y\n")
        self.assertEqual((code, out), (OK, "deleted      1\n"))


class Stats(Tables):
    def test_figures(self):
        self.orders("--index", "by_status=status/keys")
        self.put("orders", *({"customer": "ann", "day": day, "note": "x" * 100} for day in range(5)),
                 {"customer": "ben", "day": 1, "status": "paid", "note": 7},
                 {"customer": "\x1b[31m", "day": 1, "a\x1bb": {"$set": ["x"]}})
        fast = self.json("table", "stats", "orders")
        self.assertEqual((fast["exact"], fast["items"]), (False, 7))
        self.assertEqual(fast["indexes"][0]["items"], 1)
        exact = self.json("table", "stats", "orders", "--exact", "--top", "2")
        self.assertEqual((exact["items"], exact["bytes"]), (7, fast["bytes"]))
        self.assertEqual(exact["average_item_bytes"], exact["bytes"] // 7)
        self.assertEqual(exact["partitions"], 3)
        self.assertEqual(exact["largest_partition_items"], 5)
        self.assertEqual(len(exact["largest_partitions"]), 2)
        self.assertEqual((exact["largest_partitions"][0]["key"], exact["largest_partitions"][0]["items"]), ("ann", 5))
        self.assertEqual(exact["largest_item_key"]["customer"], "ann")
        self.assertEqual({a["name"]: a["types"] for a in exact["attributes"]},
                         {"customer": {"S": 7}, "day": {"N": 7}, "note": {"S": 5, "N": 1}, "status": {"S": 1},
                          "a\x1bb": {"SS": 1}})
        lines = self.on_terminal("table", "stats", "orders", "--exact", columns=80)
        self.assertIn("partitions        3", lines)
        self.assertIn("attribute    note: S 5, N 1, in 6 items (86 %)", lines)
        self.assertIn("index        by_status: 1 items, %d bytes" % exact["indexes"][0]["bytes"], lines)
        self.assertNotIn("\x1b", "".join(lines))
        self.assertEqual(self.ok("table", "stats", "orders", "-q"), "")

    def test_empty_and_missing(self):
        self.orders()
        self.assertEqual(self.json("table", "stats", "orders", "-x")["largest_item_key"], None)
        self.assertIn("items", self.ok("table", "stats", "orders", "-x"))
        self.fails(NOT_FOUND, "none", "table", "stats", "none")
        self.fails(USAGE, "out of range: use 1 to 100", "table", "stats", "orders", "--top", "101")

    def test_more_names_than_are_counted(self):
        self.ok("table", "create", "wide", "--key", "id", "-q")
        for part in range(2):
            item = {"id": str(part), **{"a%d" % (i + part * 501): 1 for i in range(501)}}
            self.put("wide", item)
        stats = self.json("table", "stats", "wide", "--exact")
        self.assertEqual(len(stats["attributes"]), 1000)
        self.assertEqual(stats["other_attributes"], 3)


class CopySchema(Tables):
    def test_within_a_database_and_to_another(self):
        self.orders("--index", "by_day=day:N/status", "--local-index", "by_total=total:N", "--stream", "old", "--ttl",
                    "expires", "--protect")
        text = self.ok("table", "copy-schema", "orders", "orders-test")
        self.assertIn("expiry       expires\n", text)
        self.assertIn("protected    true\n", text)
        self.fails(CONDITION, "already exists", "table", "copy-schema", "orders", "orders-test")
        db = "embedded:" + self.path("db")
        prefix = self.env.pop("HOLDFAST_PREFIX")
        url = self.env["HOLDFAST_DB"] + "?prefix=" + prefix
        source = self.json("table", "show", "orders", "--db", url)
        for copy in (self.json("table", "copy-schema", "orders", "orders", "--db", db, "--from-db", url),
                     self.json("table", "copy-schema", "orders", "again", "--db", db)):
            name = copy["TableName"]
            for table in (copy, source):
                for member in ("TableName", "TableArn", "CreationDateTime", "LatestStreamArn"):
                    table.pop(member, None)
            self.assertEqual(copy, source)
            changed = self.json("table", "update", name, "--ttl", "expires", "--db", db)["changes"]
            self.assertFalse(changed[0]["changed"])

    def test_dry_run(self):
        self.orders("--index", "by_day=day:N/keys", "--ttl", "expires")
        code, out, err = self.run_("table", "copy-schema", "orders", "copy", "--dry-run")
        self.assertEqual(code, OK)
        self.assertIn("add --ttl expires", err)
        self.assertEqual(json.loads(out), {
            "TableName": "copy", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "customer", "AttributeType": "S"},
                                     {"AttributeName": "day", "AttributeType": "N"}],
            "KeySchema": [{"AttributeName": "customer", "KeyType": "HASH"},
                          {"AttributeName": "day", "KeyType": "RANGE"}],
            "GlobalSecondaryIndexes": [{"IndexName": "by_day",
                                        "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
                                        "Projection": {"ProjectionType": "KEYS_ONLY"}}]})
        self.assertEqual(self.ok("table", "ls"), "orders\n")
        self.ok("table", "create", "-f", "-", "-q", input=out)
        self.assertEqual(self.ok("table", "ls"), "copy\norders\n")

    def test_what_cannot_be(self):
        none = "embedded:" + self.path("none")
        self.fails(USAGE, "are the same table", "table", "copy-schema", "orders", "orders")
        self.fails(NOT_FOUND, "orders", "table", "copy-schema", "orders", "copy")
        self.fails(NOT_FOUND, "orders", "table", "copy-schema", "orders", "copy", "--from-db", self.env["HOLDFAST_DB"],
                   "--db", none)
        self.fails(NOT_FOUND, "There is no store", "table", "copy-schema", "orders", "copy", "--db", none)
        self.fails(NOT_FOUND, "There is no store", "table", "copy-schema", "orders", "copy", "--from-db", none)
        self.assertFalse(os.path.exists(self.path("none")))  # nothing was made in vain


KEYS = {"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}


class IfMissing(Tables):
    def test_what_it_switches_on(self):
        """A stream and expiry, as its help says; nothing else is changed."""
        self.orders()
        self.ok("table", "create", "orders", "--key", "customer:S,day:N", "--if-missing", "--ttl", "expires", "--stream",
                "keys", "-q")
        self.assertEqual(self.json("table", "show", "orders")["StreamSpecification"]["StreamViewType"], "KEYS_ONLY")
        self.assertEqual(self.changes("--ttl", "expires"), {"ttl expires": False})
        self.assertIn("A stream or expiry that the definition has and the table has not is switched on.",
                      " ".join(self.ok("table", "create", "--help").split()))


class Templates(Tables):
    def create(self, template, *args, code=OK):
        got, out, err = self.run_("table", "create", "-f", "-", *args, input=json.dumps(template))
        self.assertEqual(got, code, err)
        return out, err

    def request(self, template, *args):
        return [json.loads(line) for line in self.create(template, "--dry-run", *args)[0].splitlines()]

    def resource(self, properties, kind="Table", **more):
        return {"Resources": {"Orders": {"Type": "AWS::DynamoDB::" + kind, "Properties": properties}}, **more}

    def test_cloudformation(self):
        template = {
            "AWSTemplateFormatVersion": "2010-09-09",
            "Parameters": {"Stage": {"Type": "String", "Default": "dev"}, "Units": {"Type": "Number", "Default": 5}},
            "Conditions": {"IsProd": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]}},
            "Resources": {
                "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::ImportValue": "x"}}},
                "Orders": {"Type": "AWS::DynamoDB::Table", "DeletionPolicy": "Retain", "Properties": {
                    "TableName": {"Fn::Sub": "orders-${Stage}"},
                    "AttributeDefinitions": KEYS["AttributeDefinitions"] + [
                        {"AttributeName": "day", "AttributeType": "N"}],
                    "KeySchema": KEYS["KeySchema"],
                    "GlobalSecondaryIndexes": [{"IndexName": "by_day", "KeySchema": [
                        {"AttributeName": "day", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"},
                        "ContributorInsightsSpecification": {"Enabled": True}}],
                    "BillingMode": "PAY_PER_REQUEST",
                    "StreamSpecification": {"StreamViewType": "NEW_IMAGE"},
                    "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": "true"},
                    "DeletionProtectionEnabled": {"Fn::If": ["IsProd", True, {"Ref": "AWS::NoValue"}]},
                    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
                    "SSESpecification": {"SSEEnabled": False},
                    "KinesisStreamSpecification": {"StreamArn": {"Fn::GetAtt": ["Stream", "Arn"]}},
                    "Tags": [{"Key": "stage", "Value": {"Ref": "Stage"}}]}},
                "Users": {"Type": "AWS::DynamoDB::Table", "Properties": {
                    **KEYS, "ProvisionedThroughput": {"ReadCapacityUnits": {"Ref": "Units"}, "WriteCapacityUnits": "5"}}},
                "Audit": {"Type": "AWS::DynamoDB::Table", "Condition": "IsProd", "Properties": KEYS}}}
        out, err = self.create(template, "--json")
        tables = {table["TableName"]: table for table in json.loads(out)["tables"]}
        self.assertEqual(set(tables), {"orders-dev", "Users"})
        orders = tables["orders-dev"]
        self.assertEqual(orders["StreamSpecification"], {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
        self.assertEqual(orders["GlobalSecondaryIndexes"][0]["IndexName"], "by_day")
        self.assertFalse(orders.get("DeletionProtectionEnabled", False))
        self.assertEqual(tables["Users"]["ProvisionedThroughput"]["ReadCapacityUnits"], 5)
        self.assertEqual(self.json("table", "update", "orders-dev", "--ttl", "expires")["changes"][0]["changed"], False)
        for unused in ("Resources.Orders.Properties.PointInTimeRecoverySpecification",
                       "Resources.Orders.Properties.KinesisStreamSpecification",
                       "GlobalSecondaryIndexes[0].ContributorInsightsSpecification"):
            self.assertIn(unused, err)
        self.assertNotIn("SSESpecification", err)  # it asks for nothing
        self.assertIn("the logical ID is the name: Users", err)
        self.create(template, "--if-missing")
        prod = self.request(template, "--parameter", "Stage=prod")
        self.assertEqual([table["TableName"] for table in prod], ["orders-prod", "Users", "Audit"])
        self.assertTrue(prod[0]["DeletionProtectionEnabled"])
        self.assertEqual(prod[0]["Tags"], [{"Key": "stage", "Value": "prod"}])
        self.assertEqual([t["TableName"] for t in self.request(template, "--only", "Users")], ["Users"])
        self.assertEqual([t["TableName"] for t in self.request(template, "--only", "orders-dev", "shop")], ["shop"])
        self.assertIn("did you mean 'Orders'?", self.create(template, "--only", "Order", code=USAGE)[1])
        self.assertIn("has 2 tables", self.create(template, "shop", code=USAGE)[1])
        self.assertIn("--ttl is for one table", self.create(template, "--ttl", "x", code=USAGE)[1])

    def test_global_table_of_the_cdk(self):
        template = self.resource({**KEYS, "BillingMode": "PROVISIONED", "TableName": "orders",
                                  "WriteProvisionedThroughputSettings": {"WriteCapacityAutoScalingSettings": {
                                      "MinCapacity": 1, "MaxCapacity": 9}},
                                  "Replicas": [{"Region": {"Ref": "AWS::Region"}, "DeletionProtectionEnabled": True,
                                                "TableClass": "STANDARD_INFREQUENT_ACCESS",
                                                "Tags": [{"Key": "a", "Value": "b"}]}, {"Region": "eu-west-1"}]},
                                 "GlobalTable")
        out, err = self.create(template, "--dry-run")
        table = json.loads(out)
        self.assertEqual((table["BillingMode"], table["DeletionProtectionEnabled"], table["TableClass"], table["Tags"]),
                         ("PAY_PER_REQUEST", True, "STANDARD_INFREQUENT_ACCESS", [{"Key": "a", "Value": "b"}]))
        self.assertIn("WriteProvisionedThroughputSettings", err)
        self.assertIn("Replicas[1...]", err)

    def name_of(self, name, *args, **more):
        return self.request(self.resource({**KEYS, "TableName": name}, **more), *args)[0]["TableName"]

    def test_functions(self):
        mappings = {"Names": {"dev": {"orders": "o-dev"}}}
        parameters = {"Parts": {"Type": "CommaDelimitedList", "Default": "a1, b2 ,c3"}, "Stage": {"Type": "String"}}
        for name, expected in [
                ({"Fn::Join": ["-", ["orders", {"Ref": "AWS::Region"}, "x"]]}, "orders-eu-1-x"),
                ({"Fn::Sub": ["${A}-${AWS::Region}-${!B}", {"A": {"Ref": "Stage"}}]}, "dev-eu-1-${B}"),
                ({"Fn::FindInMap": ["Names", {"Ref": "Stage"}, "orders"]}, "o-dev"),
                ({"Fn::Select": [1, {"Ref": "Parts"}]}, "b2"),
                ({"Fn::Select": ["2", {"Fn::Split": [".", "x.y.zed"]}]}, "zed"),
                ({"Fn::Join": ["", {"Ref": "Parts"}]}, "a1b2c3")]:
            with self.subTest(name):
                self.assertEqual(self.name_of(name, "--parameter", "AWS::Region=eu-1", "--parameter", "Stage=dev",
                                              Mappings=mappings, Parameters=parameters), expected)
        conditions = {"A": {"Fn::Not": [{"Condition": "B"}]}, "B": {"Fn::And": [{"Fn::Equals": ["x", "x"]},
                                                                              {"Fn::Or": [{"Fn::Equals": ["1", "2"]},
                                                                                          {"Fn::Equals": [1, "1"]}]}]}}
        self.assertEqual(self.name_of({"Fn::If": ["A", "yes", "not-a"]}, Conditions=conditions), "not-a")

    def test_parameters_that_the_file_does_not_have(self):
        template = self.resource({**KEYS, "TableName": "orders"}, Parameters={"Stage": {"Type": "String"}})
        self.request(template, "--parameter", "Stage=dev", "--parameter", "AWS::Region=eu-1")
        err = self.create(template, "--dry-run", "--parameter", "Stgae=dev", code=USAGE)[1]
        self.assertIn("the file has no parameter 'Stgae'; did you mean 'Stage'?", err)
        config = {"variable": [{"stage": {}}], "resource": {"aws_dynamodb_table": {"o": self.TERRAFORM}}}
        self.request(config, "--parameter", "stage=dev")
        self.assertIn("no parameter 'x'", self.create(config, "--dry-run", "--parameter", "x=dev", code=USAGE)[1])
        self.assertIn("no parameter 'x'", self.create({"TableName": "abc", **KEYS}, "--dry-run", "--parameter", "x=y",
                                                      code=USAGE)[1])

    def test_tables_that_are_made_in_other_ways(self):
        template = self.resource({**KEYS, "TableName": "orders"})
        template["Resources"]["Simple"] = {"Type": "AWS::Serverless::SimpleTable"}
        loop = ["Name", ["a", "b"], {"${Name}": {"Type": "AWS::SQS::Queue"}}]
        template["Resources"]["Fn::ForEach::Queues"] = loop
        self.assertIn("not used: Resources.Simple (AWS::Serverless::SimpleTable)", self.create(template, "--dry-run")[1])
        template["Resources"]["Fn::ForEach::Tables"] = loop[:2] + [{"${Name}": {"Type": "AWS::DynamoDB::Table"}}]
        self.assertIn("Resources.Fn::ForEach::Tables: not supported", self.create(template, "--dry-run", code=USAGE)[1])

    def test_only_what_is_chosen_is_resolved(self):
        table = {"Type": "AWS::DynamoDB::Table", "Properties": {**KEYS, "TableName": "orders"}}
        other = {"Type": "AWS::DynamoDB::Table", "Condition": "C", "Properties": {**KEYS, "TableName": {"Ref": "Stage"}}}
        template = {"Resources": {"Other": other, "Orders": table},
                    "Conditions": {"C": {"Fn::Equals": [{"Ref": "Stage"}, "x"]}}}
        for only in ("Orders", "orders"):
            self.assertEqual([t["TableName"] for t in self.request(template, "--only", only)], ["orders"])
        self.assertIn("'Stage' is not in the template", self.create(template, "--only", "Other", code=USAGE)[1])
        self.assertIn("did you mean 'Other'?", self.create(template, "--only", "Othr", code=USAGE)[1])
        config = {"resource": {"aws_dynamodb_table": {"o": self.TERRAFORM, "p": {**self.TERRAFORM, "name": "${var.x}"}}}}
        for only in ("aws_dynamodb_table.o", "orders"):
            self.assertEqual([t["TableName"] for t in self.request(config, "--only", only)], ["orders"])
        self.assertIn("variable 'x' has no default",
                      self.create(config, "--only", "aws_dynamodb_table.p", code=USAGE)[1])

    def test_instances_of_terraform(self):
        state = {"version": 4, "terraform_version": "1.9.0", "resources": [
            {"mode": "managed", "type": "aws_dynamodb_table", "name": "t", "instances": [
                {"index_key": key, "attributes": {**self.TERRAFORM, "name": "t-%s" % key}} for key in ("a", "b", 0)]}]}
        for label, name in (('aws_dynamodb_table.t["b"]', "t-b"), ("aws_dynamodb_table.t[0]", "t-0")):
            self.assertEqual([t["TableName"] for t in self.request(state, "--only", label)], [name])

    def test_what_cannot_be_resolved(self):
        path = "Resources.Orders.Properties.TableName: "
        loop = {"A": {"Condition": "B"}, "B": {"Condition": "A"}}
        for name, error, more in [
                ({"Ref": "Stage"}, "the value of 'Stage' is not in the template; add --parameter Stage=VALUE", {}),
                ({"Ref": "AWS::StackName"}, "add --parameter AWS::StackName=VALUE", {}),
                ({"Fn::GetAtt": ["X", "Arn"]}, "cannot resolve the function 'Fn::GetAtt'", {}),
                ({"Fn::Sub": "${X.Arn}"}, "cannot resolve an attribute of a resource: 'X.Arn'", {}),
                ({"Fn::Sub": "${X"}, "missing }", {}), ({"Fn::Sub": 1}, "no text for", {}),
                ({"Fn::If": ["A", "b", "c"]}, "no condition 'A'", {}),
                ({"Fn::If": ["A", "b", "c"]}, "nested too deeply", {"Conditions": loop}),
                ({"Fn::Select": [3, ["a"]]}, "Fn::Select: no element '3'", {}),
                ({"Fn::FindInMap": ["a", "b", "c"]}, "Fn::FindInMap: no mapping 'a'", {}),
                ({"Fn::Join": ["-"]}, "invalid arguments of 'Fn::Join'", {}), ({"Ref": ["x"]}, "no name for 'Ref'", {}),
                ({"Ref": "P"}, "add --parameter P=VALUE",
                 {"Parameters": {"P": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/x"}}}),
                (7, "expected a string", {}), ({"x": 1}, "expected a string", {})]:
            with self.subTest(name):
                _, err = self.create(self.resource({**KEYS, "TableName": name}, **more), code=USAGE)
                self.assertIn(path + "", err)
                self.assertIn(error, err)
        for template, error in [
                (self.resource({**KEYS, "TabelName": "x"}), "TabelName: unknown member of a table in CloudFormation"),
                (self.resource({**KEYS, "ImportSourceSpecification": {"InputFormat": "CSV"}}),
                 "ImportSourceSpecification: not supported"),
                ({"Resources": {"Orders": {"Type": "AWS::DynamoDB::Table"}}}, "Resources.Orders: no Properties"),
                ({"Resources": {"A": {"Type": "AWS::SQS::Queue"}}}, "the file defines no table of DynamoDB"),
                ({"Resources": []}, "Resources: expected an object"),
                ({"Resources": {x: {"Type": "AWS::DynamoDB::Table", "Properties": {**KEYS, "TableName": "same"}}
                                for x in "AB"}}, "A and B are both called 'same'")]:
            with self.subTest(error):
                self.assertIn(error, self.create(template, code=USAGE)[1])
        self.assertEqual(self.ok("table", "ls"), "")
        self.fails(USAGE, "convert the template to JSON", "table", "create", "-f", "-", input="Resources:\n  A:\n")
        self.fails(USAGE, "'terraform show -json'", "table", "create", "-f", "-",
                   input='resource "aws_dynamodb_table" "x" {}')
        self.fails(USAGE, "'Stage' is not NAME=VALUE", "table", "create", "-f", "-", "--parameter", "Stage", input="")
        self.fails(USAGE, "--only needs --file", "table", "create", "x", "--key", "a", "--only", "x")

    TERRAFORM = {
        "name": "orders", "hash_key": "id", "range_key": "day", "billing_mode": "PAY_PER_REQUEST",
        "attribute": [{"name": "id", "type": "S"}, {"name": "day", "type": "N"}],
        "global_secondary_index": [{"name": "by_day", "hash_key": "day", "range_key": "", "projection_type": "INCLUDE",
                                    "non_key_attributes": ["x"], "read_capacity": 0, "write_capacity": 0}],
        "local_secondary_index": [{"name": "by_x", "range_key": "day", "projection_type": "KEYS_ONLY",
                                   "non_key_attributes": []}],
        "ttl": [{"attribute_name": "expires", "enabled": True}], "stream_enabled": True,
        "stream_view_type": "OLD_IMAGE", "deletion_protection_enabled": True, "tags": {"a": "b"},
        "tags_all": {"a": "b"}, "table_class": "", "read_capacity": None, "write_capacity": None,
        "point_in_time_recovery": [{"enabled": True}], "replica": [], "server_side_encryption": [], "timeouts": None,
        "restore_source_name": None, "import_table": [], "on_demand_throughput": []}

    def resources(self, values, name="orders", module=""):
        return [{"address": "data.x", "mode": "data", "type": "aws_dynamodb_table", "values": {}},
                {"address": module + "aws_dynamodb_table." + name, "mode": "managed", "type": "aws_dynamodb_table",
                 "name": name, "values": values}]

    def test_terraform_plan_and_state(self):
        users = {"name": "users", "hash_key": "id", "attribute": [{"name": "id", "type": "S"}], "read_capacity": 3,
                 "write_capacity": 4, "billing_mode": "PROVISIONED", "ttl": [{"attribute_name": "", "enabled": False}],
                 "stream_enabled": False, "stream_view_type": "", "range_key": None}
        module = {"resources": self.resources(self.TERRAFORM), "child_modules": [
            {"address": "module.a", "child_modules": [
                {"address": "module.a.module.b", "resources": self.resources(users, "users", "module.a.module.b.")}]}]}
        plan = {"format_version": "1.2", "terraform_version": "1.9.0", "planned_values": {"root_module": module},
                "resource_changes": []}
        state = {"format_version": "1.0", "terraform_version": "1.9.0", "values": {"root_module": module}}
        expected = [
            {"TableName": "orders", "BillingMode": "PAY_PER_REQUEST", "DeletionProtectionEnabled": True,
             "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"},
                                      {"AttributeName": "day", "AttributeType": "N"}],
             "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "day", "KeyType": "RANGE"}],
             "GlobalSecondaryIndexes": [{"IndexName": "by_day", "KeySchema": [
                 {"AttributeName": "day", "KeyType": "HASH"}],
                 "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]}}],
             "LocalSecondaryIndexes": [{"IndexName": "by_x", "KeySchema": [
                 {"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "day", "KeyType": "RANGE"}],
                 "Projection": {"ProjectionType": "KEYS_ONLY"}}],
             "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "OLD_IMAGE"},
             "Tags": [{"Key": "a", "Value": "b"}]},
            {"TableName": "users", "BillingMode": "PROVISIONED",
             "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
             "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
             "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4}}]
        tfstate = {"version": 4, "terraform_version": "1.9.0", "resources": [
            {"mode": "managed", "type": "aws_dynamodb_table", "name": "orders",
             "instances": [{"schema_version": 1, "attributes": {**self.TERRAFORM, "arn": "x", "id": "orders",
                                                                "stream_arn": "x", "stream_label": "y"}}]},
            {"mode": "managed", "type": "aws_sqs_queue", "name": "q", "instances": []},
            {"module": "module.a", "mode": "managed", "type": "aws_dynamodb_table", "name": "users",
             "instances": [{"attributes": users}]}]}
        for file in (plan, state, tfstate):
            self.assertEqual(self.request(file), expected)
            self.assertIn("aws_dynamodb_table.orders.point_in_time_recovery", self.create(file, "--dry-run")[1])
        self.assertEqual(self.request(plan, "--only", "module.a.module.b.aws_dynamodb_table.users"), expected[1:])
        out, _ = self.create(plan, "--json")
        self.assertEqual([t["TableStatus"] for t in json.loads(out)["tables"]], ["ACTIVE", "ACTIVE"])
        self.assertEqual(self.json("table", "update", "orders", "--ttl", "expires")["changes"][0]["changed"], False)

    def test_terraform_configuration(self):
        table = {**self.TERRAFORM, "name": "orders-${var.stage}-${local.suffix}", "hash_key": "${var.key}",
                 "ttl": {"attribute_name": "expires", "enabled": "${var.ttl}"},
                 "global_secondary_index": {"name": "by_day", "key_schema": [
                     {"attribute_name": "day", "key_type": "HASH"}], "projection_type": "ALL"},
                 "lifecycle": [{"prevent_destroy": True}]}
        variables = {"stage": {"default": "dev"}, "key": [{"default": "id"}], "ttl": {"type": "bool", "default": False},
                     "region": {}}
        config = {"variable": variables, "locals": {"suffix": "${var.stage}x"},
                  "resource": [{"aws_sqs_queue": {"q": {}}}, {"aws_dynamodb_table": [{"orders": [table]}]}]}
        made = self.request(config)[0]
        self.assertEqual((made["TableName"], made["KeySchema"][0]["AttributeName"]), ("orders-dev-devx", "id"))
        self.assertEqual(made["GlobalSecondaryIndexes"][0]["KeySchema"],
                         [{"AttributeName": "day", "KeyType": "HASH"}])
        self.assertNotIn("expire", self.create(config, "--dry-run")[1])
        self.assertIn("expire", self.create(config, "--dry-run", "--parameter", "ttl=true")[1])
        self.assertEqual(self.request(config, "--parameter", "stage=x")[0]["TableName"], "orders-x-xx")
        for name, error in [("${var.region}", "aws_dynamodb_table.o.name: variable 'region' has no default"),
                            ("${upper(var.stage)}", "cannot resolve ${upper(var.stage)}; use the output of 'terraform show"),
                            ("${local.none}", "cannot resolve"), ("${x", "missing }"),
                            ("", "aws_dynamodb_table.o.name: missing"),
                            ("${local.loop}", "nested too deeply")]:
            with self.subTest(name):
                file = {**config, "locals": {"loop": "${local.loop}"},
                        "resource": {"aws_dynamodb_table": {"o": {**self.TERRAFORM, "name": name}}}}
                self.assertIn(error, self.create(file, code=USAGE)[1])
        self.assertEqual(self.request({"resource": {"aws_dynamodb_table": {"o": {**self.TERRAFORM, "name": "a$${b}"}}}})
                         [0]["TableName"], "a${b}")
        for member, error in [({"for_each": ["a"]}, "for_each: not supported"),
                              ({"import_table": [{"input_format": "CSV"}]}, "import_table: not supported"),
                              ({"hash_kye": "id"}, "hash_kye: unknown member of aws_dynamodb_table")]:
            with self.subTest(error):
                file = {"resource": {"aws_dynamodb_table": {"o": {**self.TERRAFORM, **member}}}}
                self.assertIn(error, self.create(file, code=USAGE)[1])

    def test_limits(self):
        """A file at the limit of bytes and of tables, and one past each."""
        text = json.dumps({"TableName": "abc", **KEYS})
        limit = 16 * 1024 * 1024
        self.ok("table", "create", "-f", "-", "-q", input=text.ljust(limit))
        self.fails(USAGE, "larger than %d bytes" % limit, "table", "create", "-f", "-", input=text.ljust(limit + 1))
        table = {"Type": "AWS::DynamoDB::Table", "Properties": KEYS}
        self.assertEqual(len(self.request({"Resources": {"T%d" % i: table for i in range(1000)}}, "-q")), 1000)
        _, err = self.create({"Resources": {"T%d" % i: table for i in range(1001)}}, code=USAGE)
        self.assertIn("more than 1000 tables", err)


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    main()
