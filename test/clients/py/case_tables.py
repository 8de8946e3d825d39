"""Tables: making, describing, changing, listing, tagging, expiry settings, limits, waiters."""
import datetime
import re

from botocore.exceptions import ParamValidationError, WaiterError

from support import (INVALID, Case, N, S, Shared, attributes, client, fresh_name, index, keys,
                     needs_server, refusals, schema, shared)

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/"


class Creating(Case):
    def create(self, **more):
        answer = self.db.create_table(**more)["TableDescription"]
        self.addCleanup(self.drop, more["TableName"])
        return answer

    def test_description(self):
        name = fresh_name()
        told = self.create(**schema(name, "S", "N"))
        self.assertEqual(told["TableName"], name)
        self.assertEqual(told["KeySchema"], keys("pk", "sk"))
        self.assertEqual(told["AttributeDefinitions"], attributes(pk="S", sk="N"))
        self.assertIn(told["TableStatus"], ("CREATING", "ACTIVE"))
        self.assertEqual(told["TableArn"], ARN + name)
        self.assertEqual(told["ItemCount"], 0)
        self.assertEqual(told["TableSizeBytes"], 0)
        self.assertRegex(told["TableId"], r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")

    def test_creation_time_is_now(self):
        told = self.create(**schema(fresh_name()))
        age = datetime.datetime.now(datetime.timezone.utc) - told["CreationDateTime"]
        self.assertLess(abs(age.total_seconds()), 60)

    def test_on_demand_summary(self):
        name = fresh_name()
        self.create(**schema(name))
        told = self.db.describe_table(TableName=name)["Table"]
        self.assertEqual(told["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST")
        self.assertEqual(told["ProvisionedThroughput"]["ReadCapacityUnits"], 0)

    def test_provisioned(self):
        name = fresh_name()
        told = self.create(TableName=name, KeySchema=keys("pk"),
                           AttributeDefinitions=attributes(pk="B"),
                           ProvisionedThroughput={"ReadCapacityUnits": 3, "WriteCapacityUnits": 4})
        self.assertEqual(told["ProvisionedThroughput"],
                         {"NumberOfDecreasesToday": 0, "ReadCapacityUnits": 3,
                          "WriteCapacityUnits": 4})
        self.assertNotIn("BillingModeSummary", told)

    def test_twice(self):
        name = self.table()
        self.fails("ResourceInUseException", f"Table already exists: {name}",
                   self.db.create_table, **schema(name))

    def test_in_use_has_a_class(self):
        name = self.table()
        with self.assertRaises(self.db.exceptions.ResourceInUseException):
            self.db.create_table(**schema(name))

    def test_deletion_protection(self):
        name = self.table(DeletionProtectionEnabled=True)
        self.addCleanup(self.db.update_table, TableName=name, DeletionProtectionEnabled=False)
        self.invalid(re.compile("deletion protection"), self.db.delete_table, TableName=name)
        self.assertTrue(self.db.describe_table(TableName=name)["Table"]
                        ["DeletionProtectionEnabled"])

    def test_client_refuses_short_name_by_itself(self):
        with self.assertRaises(ParamValidationError):
            self.db.create_table(TableName="ab")

    def test_both_kinds_of_index(self):
        name = self.table("S", "S", types={"a": "N", "b": "B"},
                          LocalSecondaryIndexes=[index("local", "pk", "a",
                                                       projection="KEYS_ONLY")],
                          GlobalSecondaryIndexes=[index("global", "a", "b",
                                                        projection="INCLUDE", include=["c"])])
        told = self.db.describe_table(TableName=name)["Table"]
        local, = told["LocalSecondaryIndexes"]
        world, = told["GlobalSecondaryIndexes"]
        self.assertEqual((local["IndexName"], local["IndexArn"]),
                         ("local", f"{ARN}{name}/index/local"))
        self.assertEqual(local["Projection"], {"ProjectionType": "KEYS_ONLY"})
        self.assertNotIn("IndexStatus", local)
        self.assertEqual(world["IndexStatus"], "ACTIVE")
        self.assertEqual(world["Projection"],
                         {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["c"]})
        self.assertEqual(world["KeySchema"], keys("a", "b"))

    def test_tags_at_creation(self):
        name = self.table(Tags=[{"Key": "team", "Value": "blue"}])
        told = self.db.list_tags_of_resource(ResourceArn=ARN + name)
        self.assertEqual(told["Tags"], [{"Key": "team", "Value": "blue"}])

    def test_names_with_dots_and_dashes(self):
        name = "." + fresh_name() + "_-."
        self.table(name=name)
        self.assertEqual(self.db.describe_table(TableName=name)["Table"]["TableName"], name)

    def test_name_of_255(self):
        name = fresh_name().ljust(255, "x")
        self.table(name=name)
        self.assertIn(name, self.db.list_tables(ExclusiveStartTableName=name[:-1])["TableNames"])


PROVISIONED = {"KeySchema": keys("pk"), "AttributeDefinitions": attributes(pk="S")}
ONE = {"TableName": "refused", "BillingMode": "PAY_PER_REQUEST", **PROVISIONED}


def one(**more):
    return {**ONE, **more}


@refusals(
    short_name=("create_table", one(TableName="ab"), INVALID,
                re.compile("Member must have length greater than or equal to 3")),
    no_name=("create_table", one(TableName=None), INVALID,
             "The parameter 'TableName' is required but was not present in the request"),
    bad_name=("create_table", one(TableName="a b c"), INVALID,
              re.compile(re.escape("regular expression pattern: [a-zA-Z0-9_.-]+"))),
    no_throughput=("create_table", one(BillingMode=None), INVALID,
                   re.compile("ReadCapacityUnits and WriteCapacityUnits must both be specified "
                              "when BillingMode is PROVISIONED")),
    throughput_on_demand=("create_table",
                          one(ProvisionedThroughput={"ReadCapacityUnits": 1,
                                                     "WriteCapacityUnits": 1}), INVALID,
                          re.compile("Neither ReadCapacityUnits nor WriteCapacityUnits can be "
                                     "specified when BillingMode is PAY_PER_REQUEST")),
    unused_attribute=("create_table", one(AttributeDefinitions=attributes(pk="S", a="S")), INVALID,
                      re.compile("Number of attributes in KeySchema does not exactly match number "
                                 "of attributes defined in AttributeDefinitions")),
    undefined_key=("create_table", one(AttributeDefinitions=attributes(a="S")), INVALID,
                   re.compile("Some index key attributes are not defined in "
                              "AttributeDefinitions")),
    range_first=("create_table",
                 one(KeySchema=[{"AttributeName": "pk", "KeyType": "RANGE"}]), INVALID,
                 re.compile("Invalid KeySchema: The first KeySchemaElement is not a HASH key "
                            "type")),
    key_type=("create_table", one(AttributeDefinitions=attributes(pk="BOOL")), INVALID,
              re.compile(re.escape("Member must satisfy enum value set: [B, N, S]"))),
    billing_mode=("create_table", one(BillingMode="FREE"), INVALID,
                  re.compile(re.escape("Member must satisfy enum value set: "
                                       "[PROVISIONED, PAY_PER_REQUEST]"))),
    same_index_twice=("create_table",
                      one(AttributeDefinitions=attributes(pk="S", a="S"),
                          GlobalSecondaryIndexes=[index("iii", "a"), index("iii", "a")]), INVALID,
                      re.compile("Duplicate index name: iii")),
    no_indexes=("create_table", one(GlobalSecondaryIndexes=[]), INVALID,
                re.compile("List of GlobalSecondaryIndexes is empty")),
    local_without_range=("create_table",
                         one(AttributeDefinitions=attributes(pk="S", a="S"),
                             LocalSecondaryIndexes=[index("iii", "pk", "a")]), INVALID,
                         re.compile("Table KeySchema does not have a range key")),
    all_with_names=("create_table",
                    one(AttributeDefinitions=attributes(pk="S", a="S"),
                        GlobalSecondaryIndexes=[index("iii", "a", include=["z"])]), INVALID,
                    re.compile("ProjectionType is ALL, but NonKeyAttributes is specified")),
    delete_missing=("delete_table", {"TableName": "missing"}, "ResourceNotFoundException",
                    "Requested resource not found: Table: missing not found"),
    describe_missing=("describe_table", {"TableName": "missing"}, "ResourceNotFoundException",
                      "Requested resource not found: Table: missing not found"),
    update_missing=("update_table", {"TableName": "missing", "BillingMode": "PAY_PER_REQUEST"},
                    "ResourceNotFoundException",
                    "Requested resource not found: Table: missing not found"),
    list_limit_0=("list_tables", {"Limit": 0}, INVALID,
                  re.compile("Member must have value greater than or equal to 1")),
    list_limit_101=("list_tables", {"Limit": 101}, INVALID,
                    re.compile("Member must have value less than or equal to 100")),
    ttl_of_missing=("update_time_to_live",
                    {"TableName": "missing",
                     "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "t"}},
                    "ResourceNotFoundException",
                    "Requested resource not found: Table: missing not found"),
    describe_ttl_of_missing=("describe_time_to_live", {"TableName": "missing"},
                             "ResourceNotFoundException",
                             "Requested resource not found: Table: missing not found"),
)
class Refusing(Case):
    pass


class Changing(Case):
    def test_throughput(self):
        name = fresh_name()
        self.db.create_table(TableName=name, **PROVISIONED, ProvisionedThroughput={
            "ReadCapacityUnits": 1, "WriteCapacityUnits": 1})
        self.addCleanup(self.drop, name)
        self.db.update_table(TableName=name, ProvisionedThroughput={
            "ReadCapacityUnits": 5, "WriteCapacityUnits": 6})
        told = self.db.describe_table(TableName=name)["Table"]["ProvisionedThroughput"]
        self.assertEqual((told["ReadCapacityUnits"], told["WriteCapacityUnits"]), (5, 6))

    def test_same_throughput(self):
        name = fresh_name()
        self.db.create_table(TableName=name, **PROVISIONED, ProvisionedThroughput={
            "ReadCapacityUnits": 1, "WriteCapacityUnits": 1})
        self.addCleanup(self.drop, name)
        self.invalid(re.compile("^The provisioned throughput for the table will not change"),
                     self.db.update_table, TableName=name,
                     ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1})

    def test_to_provisioned_and_back(self):
        name = self.table()
        self.db.update_table(TableName=name, BillingMode="PROVISIONED", ProvisionedThroughput={
            "ReadCapacityUnits": 2, "WriteCapacityUnits": 2})
        told = self.db.describe_table(TableName=name)["Table"]
        self.assertEqual(told["BillingModeSummary"]["BillingMode"], "PROVISIONED")
        self.db.update_table(TableName=name, BillingMode="PAY_PER_REQUEST")
        told = self.db.describe_table(TableName=name)["Table"]
        self.assertEqual(told["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST")

    def test_nothing(self):
        self.invalid(re.compile("^At least one of ProvisionedThroughput, BillingMode"),
                     self.db.update_table, TableName=self.table())

    def test_index_added_later_finds_old_items(self):
        name = self.table(items=[{"pk": S(str(i)), "a": S("x" if i < 3 else "y")}
                                 for i in range(5)])
        self.db.update_table(TableName=name, AttributeDefinitions=attributes(pk="S", a="S"),
                             GlobalSecondaryIndexUpdates=[{"Create": index("late", "a")}])
        self.wait_for_index(name)
        found = self.db.query(TableName=name, IndexName="late", KeyConditionExpression="a = :a",
                              ExpressionAttributeValues={":a": S("x")})
        self.assertEqual(sorted(item["pk"]["S"] for item in found["Items"]), ["0", "1", "2"])

    def wait_for_index(self, name):
        while True:
            told = self.db.describe_table(TableName=name)["Table"]
            if all(i["IndexStatus"] == "ACTIVE" for i in told.get("GlobalSecondaryIndexes", [])):
                return told

    def test_index_removed(self):
        name = self.table(types={"a": "S"}, GlobalSecondaryIndexes=[index("gone", "a")])
        self.db.update_table(TableName=name,
                             GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "gone"}}])
        while "GlobalSecondaryIndexes" in self.db.describe_table(TableName=name)["Table"]:
            pass
        self.invalid("The table does not have the specified index: gone", self.db.scan,
                     TableName=name, IndexName="gone")

    def test_unknown_index_removed(self):
        self.fails("ResourceNotFoundException", re.compile("^Requested resource not found"),
                   self.db.update_table, TableName=self.table(),
                   GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "none"}}])

    def test_two_indexes_at_once(self):
        self.fails("LimitExceededException",
                   "Subscriber limit exceeded: Only 1 online index can be created or deleted "
                   "simultaneously per table",
                   self.db.update_table, TableName=self.table(),
                   AttributeDefinitions=attributes(pk="S", a="S"),
                   GlobalSecondaryIndexUpdates=[{"Create": index("iii", "a")},
                                                {"Create": index("jjj", "a")}])

    def test_stream_on_and_off(self):
        name = self.table()
        on = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        told = self.db.update_table(TableName=name, StreamSpecification=on)["TableDescription"]
        self.assertEqual(told["StreamSpecification"], on)
        self.assertRegex(told["LatestStreamArn"],
                         "^" + re.escape(ARN + name + "/stream/" + told["LatestStreamLabel"]))
        self.db.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
        told = self.db.describe_table(TableName=name)["Table"]
        self.assertNotIn("StreamSpecification", told)

    def test_counts(self):
        name = self.table(items=[{"pk": S("ab"), "n": N(12)}])  # 2 + 2, 1 + 2 bytes
        told = self.db.describe_table(TableName=name)["Table"]
        self.assertEqual((told["ItemCount"], told["TableSizeBytes"]), (1, 7))


class Deleting(Case):
    def test_description(self):
        name = self.table()
        told = self.db.delete_table(TableName=name)["TableDescription"]
        self.assertEqual((told["TableName"], told["TableStatus"]), (name, "DELETING"))
        self.assertNotIn("KeySchema", told)

    def test_gone(self):
        name = self.table(items=[{"pk": S("a")}])
        self.db.delete_table(TableName=name)
        self.db.get_waiter("table_not_exists").wait(TableName=name)
        self.fails("ResourceNotFoundException", "Requested resource not found",
                   self.db.get_item, TableName=name, Key={"pk": S("a")})

    def test_made_again_is_empty_and_another(self):
        name = self.table(items=[{"pk": S("a")}])
        before = self.db.describe_table(TableName=name)["Table"]["TableId"]
        self.db.delete_table(TableName=name)
        self.db.get_waiter("table_not_exists").wait(TableName=name)
        self.table(name=name)
        self.assertEqual(self.db.scan(TableName=name)["Count"], 0)
        self.assertNotEqual(self.db.describe_table(TableName=name)["Table"]["TableId"], before)


class Listing(Shared):
    """Other tables may be there, so names start with what nobody else has."""

    @classmethod
    def make(cls):
        prefix = fresh_name() + "-list-"
        cls.names = [f"{prefix}{i}" for i in range(7)]
        for name in cls.names:
            shared("client").create_table(**schema(name))
            cls.addClassCleanup(shared("client").delete_table, TableName=name)
        cls.prefix = prefix

    def ours(self, names):
        return [name for name in names if name.startswith(self.prefix)]

    def test_all_sorted(self):
        names = self.db.list_tables()["TableNames"]
        self.assertEqual(self.ours(names), self.names)
        self.assertEqual(names, sorted(names))

    def test_page(self):
        told = self.db.list_tables(Limit=2, ExclusiveStartTableName=self.prefix)
        self.assertEqual(told["TableNames"], self.names[:2])
        self.assertEqual(told["LastEvaluatedTableName"], self.names[1])

    def test_start_need_not_exist(self):
        told = self.db.list_tables(Limit=1, ExclusiveStartTableName=self.names[2] + "-x")
        self.assertEqual(told["TableNames"], [self.names[3]])

    def test_paginator(self):
        pages = list(self.db.get_paginator("list_tables").paginate(
            PaginationConfig={"PageSize": 3}))
        self.assertTrue(all(len(page["TableNames"]) <= 3 for page in pages))
        self.assertEqual(self.ours([n for page in pages for n in page["TableNames"]]), self.names)

    def test_paginator_stops_at_max_items(self):
        found = self.db.get_paginator("list_tables").paginate(
            ExclusiveStartTableName=self.prefix,
            PaginationConfig={"PageSize": 2, "MaxItems": 5}).build_full_result()
        self.assertEqual(found["TableNames"], self.names[:5])
        self.assertIn("NextToken", found)

    def test_paginator_goes_on_from_a_token(self):
        pager = self.db.get_paginator("list_tables")
        first = pager.paginate(ExclusiveStartTableName=self.prefix,
                               PaginationConfig={"PageSize": 2, "MaxItems": 3}).build_full_result()
        second = pager.paginate(ExclusiveStartTableName=self.prefix, PaginationConfig={
            "PageSize": 2, "MaxItems": 3, "StartingToken": first["NextToken"]}).build_full_result()
        self.assertEqual(second["TableNames"], self.names[3:6])


class Waiting(Case):
    def test_exists(self):
        self.assertIsNone(self.db.get_waiter("table_exists").wait(TableName=self.table()))

    def test_exists_gives_up(self):
        with self.assertRaises(WaiterError) as caught:
            self.db.get_waiter("table_exists").wait(
                TableName="missing", WaiterConfig={"Delay": 0, "MaxAttempts": 2})
        self.assertIn("Max attempts exceeded", str(caught.exception))

    def test_not_exists(self):
        self.assertIsNone(self.db.get_waiter("table_not_exists").wait(TableName="missing"))

    def test_names(self):
        self.assertEqual(self.db.waiter_names, ["table_exists", "table_not_exists"])


class Tagging(Case):
    def tags(self, arn):
        told = self.db.list_tags_of_resource(ResourceArn=arn)["Tags"]
        return {tag["Key"]: tag["Value"] for tag in told}

    def test_add_replace_remove(self):
        arn = ARN + self.table()
        self.assertEqual(self.tags(arn), {})
        self.db.tag_resource(ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"},
                                                    {"Key": "b", "Value": ""}])
        self.assertEqual(self.tags(arn), {"a": "1", "b": ""})
        self.db.tag_resource(ResourceArn=arn, Tags=[{"Key": "a", "Value": "2"}])
        self.db.untag_resource(ResourceArn=arn, TagKeys=["b", "never"])
        self.assertEqual(self.tags(arn), {"a": "2"})

    def test_unicode(self):
        arn = ARN + self.table()
        self.db.tag_resource(ResourceArn=arn, Tags=[{"Key": "größe", "Value": "小 さい"}])
        self.assertEqual(self.tags(arn), {"größe": "小 さい"})

    def test_fifty_one(self):
        arn = ARN + self.table()
        self.db.tag_resource(ResourceArn=arn, Tags=[{"Key": str(i), "Value": "v"}
                                                    for i in range(50)])
        self.assertEqual(len(self.tags(arn)), 50)
        with self.assertRaises(self.db.exceptions.ClientError):
            self.db.tag_resource(ResourceArn=arn, Tags=[{"Key": "50", "Value": "v"}])
        self.assertEqual(len(self.tags(arn)), 50)

    def test_unknown_table(self):
        arn = ARN + "missing"
        self.fails("ResourceNotFoundException",
                   f"Requested resource not found: ResourceArn: {arn} not found",
                   self.db.list_tags_of_resource, ResourceArn=arn)

    def test_no_arn(self):
        self.invalid("One or more parameter values were invalid: ARNs must start with 'arn:': table",
                     self.db.tag_resource, ResourceArn="table", Tags=[{"Key": "a", "Value": "b"}])

    def test_other_account(self):
        arn = ARN.replace("123456789012", "210987654321") + "t"
        with self.assertRaises(self.db.exceptions.ClientError) as caught:
            self.db.tag_resource(ResourceArn=arn, Tags=[{"Key": "a", "Value": "b"}])
        self.assertEqual(caught.exception.response["Error"]["Code"], "AccessDeniedException")

    def test_none(self):
        self.invalid("Atleast one Tag needs to be provided as Input.", self.db.tag_resource,
                     ResourceArn=ARN + self.table(), Tags=[])

    def test_paginator(self):
        arn = ARN + self.table(Tags=[{"Key": str(i), "Value": "v"} for i in range(20)])
        pages = self.db.get_paginator("list_tags_of_resource").paginate(ResourceArn=arn)
        self.assertEqual(len(pages.build_full_result()["Tags"]), 20)


class Around(Case):
    def test_limits(self):
        told = self.db.describe_limits()
        self.assertEqual({k: told[k] for k in told if k != "ResponseMetadata"},
                         {"AccountMaxReadCapacityUnits": 80000,
                          "AccountMaxWriteCapacityUnits": 80000,
                          "TableMaxReadCapacityUnits": 40000,
                          "TableMaxWriteCapacityUnits": 40000})

    def test_endpoints(self):
        one, = self.db.describe_endpoints()["Endpoints"]
        self.assertEqual(one["CachePeriodInMinutes"], 1440)
        self.assertTrue(one["Address"])

    @needs_server
    def test_request_id_and_status(self):
        told = self.db.list_tables()["ResponseMetadata"]
        self.assertEqual(told["HTTPStatusCode"], 200)
        self.assertRegex(told["RequestId"], "^[0-9A-Z]{52}$")
        self.assertEqual(told["RetryAttempts"], 0)

    def test_request_ids_differ(self):
        ids = {self.db.list_tables()["ResponseMetadata"]["RequestId"] for _ in range(20)}
        self.assertEqual(len(ids), 20)

    def test_table_by_arn(self):
        name = self.table(items=[{"pk": S("a"), "n": N(1)}])
        told = self.db.describe_table(TableName=name)["Table"]
        found = self.unchecked.get_item(TableName=told["TableArn"], Key={"pk": S("a")})
        self.assertEqual(found["Item"], {"pk": S("a"), "n": N(1)})

    def test_endpoint_discovery_off_and_any_region(self):
        other = client(login=None)
        self.assertEqual(other.meta.region_name, "us-east-1")
        self.assertEqual(other.list_tables()["ResponseMetadata"]["HTTPStatusCode"], 200)


class TimeToLive(Case):
    def set(self, name, enabled, attribute="expires"):
        return self.db.update_time_to_live(TableName=name, TimeToLiveSpecification={
            "Enabled": enabled, "AttributeName": attribute})

    def told(self, name):
        return self.db.describe_time_to_live(TableName=name)["TimeToLiveDescription"]

    def test_off(self):
        self.assertEqual(self.told(self.table()), {"TimeToLiveStatus": "DISABLED"})

    def test_on(self):
        name = self.table()
        self.assertEqual(self.set(name, True)["TimeToLiveSpecification"],
                         {"Enabled": True, "AttributeName": "expires"})
        self.assertEqual(self.told(name),
                         {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"})

    def test_on_twice(self):
        name = self.table()
        self.set(name, True)
        self.invalid("TimeToLive is already enabled", self.set, name, True)

    def test_other_attribute(self):
        name = self.table()
        self.set(name, True)
        self.invalid("TimeToLive is active on a different AttributeName: current AttributeName is "
                     "expires", self.set, name, True, "other")

    def test_off_twice(self):
        name = self.table()
        self.invalid("TimeToLive is already disabled", self.set, name, False)

    def test_on_and_off(self):
        name = self.table()
        self.set(name, True)
        self.set(name, False)
        self.assertEqual(self.told(name), {"TimeToLiveStatus": "DISABLED"})
