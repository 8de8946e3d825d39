"""Backups and restores, policies, and what other services would do for a table."""
import time

from support import Case, N, S, fresh_name, index, put_many


class Backups(Case):
    def backup(self, name, backup_name="first"):
        told = self.db.create_backup(TableName=name, BackupName=backup_name)["BackupDetails"]
        self.addCleanup(self.remove, told["BackupArn"])
        until = time.monotonic() + 60
        while True:
            now = self.db.describe_backup(BackupArn=told["BackupArn"])["BackupDescription"]
            if now["BackupDetails"]["BackupStatus"] == "AVAILABLE":
                return now
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)

    def remove(self, arn):
        try:
            self.db.delete_backup(BackupArn=arn)
        except self.db.exceptions.BackupNotFoundException:
            pass

    def restore(self, arn, **more):
        name = fresh_name()
        told = self.db.restore_table_from_backup(TargetTableName=name, BackupArn=arn, **more)
        self.addCleanup(self.drop, name)
        self.assertEqual(told["TableDescription"]["TableStatus"], "CREATING")
        self.db.get_waiter("table_exists").wait(TableName=name, WaiterConfig={
            "Delay": 1, "MaxAttempts": 60})
        return name

    def test_details(self):
        name = self.table("S", "N", items=[{"pk": S("a"), "sk": N(1)}])
        told = self.backup(name)
        details = told["BackupDetails"]
        self.assertEqual((details["BackupName"], details["BackupType"]), ("first", "USER"))
        self.assertGreater(details["BackupSizeBytes"], 0)
        source = told["SourceTableDetails"]
        self.assertEqual((source["TableName"], source["ItemCount"]), (name, 1))
        self.assertEqual([key["AttributeName"] for key in source["KeySchema"]], ["pk", "sk"])

    def test_restored_is_of_that_moment(self):
        name = self.table(items=[{"pk": S(str(i)), "v": N(i)} for i in range(10)])
        arn = self.backup(name)["BackupDetails"]["BackupArn"]
        self.db.put_item(TableName=name, Item={"pk": S("late")})
        self.db.delete_item(TableName=name, Key={"pk": S("0")})
        found = self.db.scan(TableName=self.restore(arn))["Items"]
        self.assertEqual(sorted((item["pk"]["S"], item["v"]["N"]) for item in found),
                         [(str(i), str(i)) for i in range(10)])

    def test_restored_has_indexes(self):
        name = self.table(types={"g": "S"}, GlobalSecondaryIndexes=[index("by-g", "g")])
        put_many(name, [{"pk": S(str(i)), "g": S("ab"[i % 2])} for i in range(30)])
        new = self.restore(self.backup(name)["BackupDetails"]["BackupArn"])
        found = self.db.query(TableName=new, IndexName="by-g", KeyConditionExpression="g = :g",
                              ExpressionAttributeValues={":g": S("a")})
        self.assertEqual(found["Count"], 15)

    def test_table_gone_backup_stays(self):
        name = self.table(items=[{"pk": S("a")}])
        arn = self.backup(name)["BackupDetails"]["BackupArn"]
        self.db.delete_table(TableName=name)
        self.assertEqual(self.db.scan(TableName=self.restore(arn))["Count"], 1)

    def test_list(self):
        name = self.table()
        arns = {self.backup(name, f"number-{i}")["BackupDetails"]["BackupArn"] for i in range(3)}
        told = self.db.list_backups(TableName=name)["BackupSummaries"]
        self.assertEqual({summary["BackupArn"] for summary in told}, arns)
        self.assertEqual({summary["TableName"] for summary in told}, {name})

    def test_list_in_pages(self):
        name = self.table()
        arns = {self.backup(name, f"number-{i}")["BackupDetails"]["BackupArn"] for i in range(5)}
        pages = list(self.db.get_paginator("list_backups").paginate(
            TableName=name, PaginationConfig={"PageSize": 2}))
        self.assertEqual({summary["BackupArn"] for page in pages
                          for summary in page["BackupSummaries"]}, arns)
        self.assertGreaterEqual(len(pages), 3)

    def test_delete(self):
        arn = self.backup(self.table())["BackupDetails"]["BackupArn"]
        told = self.db.delete_backup(BackupArn=arn)["BackupDescription"]
        self.assertEqual(told["BackupDetails"]["BackupStatus"], "DELETED")
        self.fails("BackupNotFoundException", f"Backup not found: {arn}",
                   self.db.describe_backup, BackupArn=arn)

    def test_restore_over_a_table(self):
        name = self.table()
        arn = self.backup(name)["BackupDetails"]["BackupArn"]
        with self.assertRaises(self.db.exceptions.TableAlreadyExistsException):
            self.db.restore_table_from_backup(TargetTableName=name, BackupArn=arn)

    def test_backup_of_a_missing_table(self):
        self.fails("TableNotFoundException", "Table not found: missing", self.db.create_backup,
                   TableName="missing", BackupName="first")

    def test_restore_with_another_billing(self):
        arn = self.backup(self.table(items=[{"pk": S("a")}]))["BackupDetails"]["BackupArn"]
        name = self.restore(arn, BillingModeOverride="PROVISIONED", ProvisionedThroughputOverride={
            "ReadCapacityUnits": 2, "WriteCapacityUnits": 3})
        told = self.db.describe_table(TableName=name)["Table"]["ProvisionedThroughput"]
        self.assertEqual((told["ReadCapacityUnits"], told["WriteCapacityUnits"]), (2, 3))


class Around(Case):
    def test_continuous_backups(self):
        told = self.db.describe_continuous_backups(TableName=self.table())
        self.assertEqual(told["ContinuousBackupsDescription"], {
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"}})

    def test_point_in_time_cannot_be_enabled(self):
        with self.assertRaises(self.db.exceptions.ContinuousBackupsUnavailableException):
            self.db.update_continuous_backups(
                TableName=self.table(),
                PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})

    def test_point_in_time_disabled(self):
        told = self.db.update_continuous_backups(
            TableName=self.table(),
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False})
        self.assertEqual(told["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"],
                         {"PointInTimeRecoveryStatus": "DISABLED"})

    def test_continuous_backups_of_a_missing_table(self):
        self.fails("TableNotFoundException", "Table not found: missing",
                   self.db.describe_continuous_backups, TableName="missing")

    def test_global_tables(self):
        self.assertEqual(self.db.list_global_tables()["GlobalTables"], [])
        with self.assertRaises(self.db.exceptions.GlobalTableNotFoundException):
            self.db.describe_global_table(GlobalTableName="missing")

    def test_exports_and_imports(self):
        self.assertEqual(self.db.list_exports()["ExportSummaries"], [])
        self.assertEqual(self.db.list_imports()["ImportSummaryList"], [])

    def test_unknown_export(self):
        arn = "arn:aws:dynamodb:us-east-1:123456789012:table/abc/export/01234567890123-a1b2c3d4"
        with self.assertRaises(self.db.exceptions.ExportNotFoundException):
            self.db.describe_export(ExportArn=arn)

    def test_unknown_import(self):
        arn = "arn:aws:dynamodb:us-east-1:123456789012:table/abc/import/01234567890123-a1b2c3d4"
        with self.assertRaises(self.db.exceptions.ImportNotFoundException):
            self.db.describe_import(ImportArn=arn)

    def test_contributor_insights(self):
        name = self.table()
        told = self.db.describe_contributor_insights(TableName=name)
        self.assertEqual((told["TableName"], told["ContributorInsightsStatus"]),
                         (name, "DISABLED"))
        self.assertEqual(self.db.list_contributor_insights(TableName=name)
                         ["ContributorInsightsSummaries"], [])

    def test_kinesis(self):
        name = self.table()
        told = self.db.describe_kinesis_streaming_destination(TableName=name)
        self.assertEqual((told["TableName"], told["KinesisDataStreamDestinations"]), (name, []))

    def test_replica_scaling(self):
        name = self.table()
        self.fails("ResourceNotFoundException", f"Global table with name: '{name}' does not exist.",
                   self.db.describe_table_replica_auto_scaling, TableName=name)


class Policies(Case):
    def arn(self, name=None):
        told = self.db.describe_table(TableName=name or self.table())
        return told["Table"]["TableArn"]

    def test_put_get_delete(self):
        arn = self.arn()
        policy = '{"Version": "2012-10-17", "Statement": []}'
        made = self.db.put_resource_policy(ResourceArn=arn, Policy=policy)["RevisionId"]
        told = self.db.get_resource_policy(ResourceArn=arn)
        self.assertEqual((told["Policy"], told["RevisionId"]), (policy, made))
        gone = self.db.delete_resource_policy(ResourceArn=arn)
        self.assertEqual(gone["RevisionId"], made)
        with self.assertRaises(self.db.exceptions.PolicyNotFoundException):
            self.db.get_resource_policy(ResourceArn=arn)

    def test_revisions_change(self):
        arn = self.arn()
        first = self.db.put_resource_policy(ResourceArn=arn, Policy='{"a": 1}')["RevisionId"]
        second = self.db.put_resource_policy(ResourceArn=arn, Policy='{"a": 2}',
                                             ExpectedRevisionId=first)["RevisionId"]
        self.assertNotEqual(first, second)
        with self.assertRaises(self.db.exceptions.PolicyNotFoundException):
            self.db.put_resource_policy(ResourceArn=arn, Policy='{"a": 3}',
                                        ExpectedRevisionId=first)
        self.assertEqual(self.db.get_resource_policy(ResourceArn=arn)["Policy"], '{"a": 2}')

    def test_missing_table(self):
        arn = self.arn() + "-not"
        with self.assertRaises(self.db.exceptions.ResourceNotFoundException):
            self.db.put_resource_policy(ResourceArn=arn, Policy="{}")

    def test_no_json(self):
        with self.assertRaises(self.db.exceptions.ClientError) as caught:
            self.db.put_resource_policy(ResourceArn=self.arn(), Policy="policy")
        self.assertEqual(caught.exception.response["Error"]["Code"], "ValidationException")
