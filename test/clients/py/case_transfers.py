"""Exports of tables to files, and imports of files into new tables."""
import os
import tempfile
import time

from botocore.exceptions import ClientError

from support import WAIT_S, Case, N, S, Server, client, fresh_name, needs_server, schema

TABLE_ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/"


def until_ended(ask, member, status):
    """The description, as soon as it is no longer IN_PROGRESS."""
    until = time.monotonic() + WAIT_S
    while True:
        now = ask()[member]
        if now[status] != "IN_PROGRESS":
            return now
        assert time.monotonic() < until, now
        time.sleep(0.02)


@needs_server
class Transfers(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.mkdir(os.path.join(cls.folder.name, "bucket"))
        cls.server = Server("--db-path", os.path.join(cls.folder.name, "db"), "--sync", "none",
                            "--buckets", "dir:" + cls.folder.name, quiet=False)
        cls.own = client(cls.server.url)

    @classmethod
    def tearDownClass(cls):
        wrong = cls.server.stop()
        cls.folder.cleanup()
        assert not wrong, wrong

    def export(self, name, **more):
        begun = self.own.export_table_to_point_in_time(
            TableArn=TABLE_ARN + name, S3Bucket="bucket", **more)["ExportDescription"]
        self.assertEqual(begun["ExportStatus"], "IN_PROGRESS")
        return until_ended(lambda: self.own.describe_export(ExportArn=begun["ExportArn"]),
                           "ExportDescription", "ExportStatus")

    def imported(self, name, prefix, form="DYNAMODB_JSON", **more):
        parameters = schema(name)
        begun = self.own.import_table(
            S3BucketSource={"S3Bucket": "bucket", "S3KeyPrefix": prefix}, InputFormat=form,
            TableCreationParameters=parameters, **more)["ImportTableDescription"]
        self.assertEqual(begun["ImportStatus"], "IN_PROGRESS")
        return until_ended(lambda: self.own.describe_import(ImportArn=begun["ImportArn"]),
                           "ImportTableDescription", "ImportStatus")

    def items_of(self, name):
        pages = self.own.get_paginator("scan").paginate(TableName=name)
        return {item["pk"]["S"]: item for page in pages for item in page["Items"]}

    def there_and_back(self, form):
        name, new = fresh_name(), fresh_name()
        self.own.create_table(**schema(name))
        for i in range(300):
            self.own.put_item(TableName=name, Item={
                "pk": S(f"k{i}"), "n": N(i * 100), "set": {"SS": ["a", f"b{i}"]},
                "bytes": {"B": bytes([i % 256])}, "list": {"L": [{"NULL": True}, {"BOOL": True}]},
                "map": {"M": {"x y": {"NS": ["1", "2.5"]}}}})
        told = self.export(name, ExportFormat=form, S3Prefix=name)
        self.assertEqual((told["ExportStatus"], told["ItemCount"]), ("COMPLETED", 300))
        data = os.path.dirname(told["ExportManifest"]) + "/data/"
        found = self.imported(new, data, form, InputCompressionType="GZIP")
        self.assertEqual((found["ImportStatus"], found["ImportedItemCount"], found["ErrorCount"]),
                         ("COMPLETED", 300, 0))
        self.assertEqual(self.items_of(name), self.items_of(new))
        self.assertIn(told["ExportArn"], [one["ExportArn"] for one in self.own.list_exports(
            TableArn=TABLE_ARN + name)["ExportSummaries"]])
        self.assertEqual([one["ImportArn"] for one in self.own.list_imports(
            TableArn=TABLE_ARN + new)["ImportSummaryList"]], [found["ImportArn"]])

    def test_json_there_and_back(self):
        self.there_and_back("DYNAMODB_JSON")

    def test_ion_there_and_back(self):
        self.there_and_back("ION")

    def test_csv(self):
        with open(os.path.join(self.folder.name, "bucket", "people.csv"), "w") as out:
            out.write("pk;age\nann;31\nben;\n")
        name = fresh_name()
        self.imported(name, "people.csv", "CSV", InputFormatOptions={"Csv": {"Delimiter": ";"}})
        self.assertEqual(self.items_of(name),
                         {"ann": {"pk": S("ann"), "age": S("31")}, "ben": {"pk": S("ben")}})

    def test_same_token_same_export(self):
        name = fresh_name()
        self.own.create_table(**schema(name))
        first = self.export(name, ClientToken="token-" + name)
        again = self.own.export_table_to_point_in_time(
            TableArn=TABLE_ARN + name, S3Bucket="bucket", ClientToken="token-" + name)
        self.assertEqual(again["ExportDescription"]["ExportArn"], first["ExportArn"])
        with self.assertRaises(self.own.exceptions.ExportConflictException):
            self.own.export_table_to_point_in_time(TableArn=TABLE_ARN + name, S3Bucket="bucket",
                                                   S3Prefix="x", ClientToken="token-" + name)

    def test_no_bucket(self):
        name = fresh_name()
        found = until_ended(
            lambda: self.own.describe_import(ImportArn=self.own.import_table(
                S3BucketSource={"S3Bucket": "nowhere"}, InputFormat="CSV", ClientToken=name,
                TableCreationParameters=schema(name))["ImportTableDescription"]["ImportArn"]),
            "ImportTableDescription", "ImportStatus")
        self.assertEqual((found["ImportStatus"], found["FailureCode"]), ("FAILED", "S3NoSuchBucket"))
        with self.assertRaises(self.own.exceptions.ResourceNotFoundException):
            self.own.describe_table(TableName=name)

    def test_without_buckets(self):
        name = self.table()
        with self.assertRaisesRegex(ClientError, "no buckets"):
            self.db.export_table_to_point_in_time(TableArn=TABLE_ARN + name, S3Bucket="bucket")
