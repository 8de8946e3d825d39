"""What the client makes of bad days: throttling, errors, lost answers, conflicts, slowness."""
import threading
import time
import urllib.error

from botocore.exceptions import ClientError, ReadTimeoutError

from case_expiry import Own
from support import N, S, client

THROTTLED = "ProvisionedThroughputExceededException"
THROTTLED_TEXT = ("The level of configured provisioned throughput for the table was exceeded. "
                  "Consider increasing your provisioning level with the UpdateTable API.")


class Faults(Own):
    def setUp(self):
        super().setUp()
        self.name = self.table(items=[{"pk": S("a"), "v": N(0)}])
        self.addCleanup(self.admin, "DELETE", "/faults")

    def fault(self, *faults):
        return self.admin("PUT", "/faults", {"faults": list(faults)})

    def struck(self):
        return [fault["struck"] for fault in self.admin("GET", "/faults")["faults"]]

    def retrying(self, times=4, **more):
        made = client(self.server.url, retries=times, **more)
        self.addCleanup(made.close)
        return made

    def value(self):
        self.admin("DELETE", "/faults")
        return int(self.get(self.name, pk=S("a"))["v"]["N"])

    def add(self, db, **more):
        return db.update_item(TableName=self.name, Key={"pk": S("a")},
                              UpdateExpression="ADD v :one",
                              ExpressionAttributeValues={":one": N(1)}, **more)

    def test_throttled_without_retries(self):
        self.fault({"kind": "throttle"})
        error = self.fails(THROTTLED, THROTTLED_TEXT, self.db.get_item, TableName=self.name,
                           Key={"pk": S("a")})
        self.assertEqual(error.response["ResponseMetadata"]["HTTPStatusCode"], 400)
        self.assertIsInstance(error, self.db.exceptions.ProvisionedThroughputExceededException)

    def test_throttled_and_retried(self):
        self.fault({"kind": "throttle", "operation": "UpdateItem", "count": 2})
        told = self.add(self.retrying())
        self.assertEqual(told["ResponseMetadata"]["RetryAttempts"], 2)
        self.assertEqual(self.struck(), [2])
        self.assertEqual(self.value(), 1)

    def test_throttled_too_often(self):
        self.fault({"kind": "throttle", "count": 3})
        with self.assertRaises(ClientError) as caught:
            self.add(self.retrying(2))
        self.assertEqual(caught.exception.response["Error"]["Code"], THROTTLED)
        self.assertEqual(caught.exception.response["ResponseMetadata"]["RetryAttempts"], 2)
        self.assertEqual(self.value(), 0)

    def test_legacy_retry_mode(self):
        self.fault({"kind": "throttle", "count": 3})
        told = self.add(self.retrying(10, mode="legacy"))
        self.assertEqual(told["ResponseMetadata"]["RetryAttempts"], 3)

    def test_adaptive_retry_mode(self):
        self.fault({"kind": "throttle", "count": 1})
        told = self.add(self.retrying(3, mode="adaptive"))
        self.assertEqual(told["ResponseMetadata"]["RetryAttempts"], 1)

    def test_internal_error_is_retried(self):
        self.fault({"kind": "error", "count": 1})
        told = self.add(self.retrying())
        self.assertEqual(told["ResponseMetadata"]["RetryAttempts"], 1)
        self.assertEqual(self.value(), 1)

    def test_internal_error_without_retries(self):
        self.fault({"kind": "error", "count": 1})
        with self.assertRaises(self.db.exceptions.InternalServerError) as caught:
            self.add(self.db)
        self.assertEqual(caught.exception.response["ResponseMetadata"]["HTTPStatusCode"], 500)
        self.assertEqual(self.value(), 0)

    def test_lost_answer_happened(self):
        self.fault({"kind": "lost_answer", "operation": "UpdateItem", "count": 1})
        with self.assertRaises(self.db.exceptions.InternalServerError):
            self.add(self.db)
        self.assertEqual(self.value(), 1)

    def test_lost_request_did_not_happen(self):
        self.fault({"kind": "lost_request", "operation": "UpdateItem", "count": 1})
        with self.assertRaises(self.db.exceptions.InternalServerError):
            self.add(self.db)
        self.assertEqual(self.value(), 0)

    def test_lost_answer_retried_counts_twice(self):
        self.fault({"kind": "lost_answer", "operation": "UpdateItem", "count": 1})
        self.add(self.retrying())
        self.assertEqual(self.value(), 2)

    def test_lost_answer_with_a_condition(self):
        """The retry of a conditional write finds its own work: the error is not the truth."""
        self.fault({"kind": "lost_answer", "operation": "PutItem", "count": 1})
        db = self.retrying()
        with self.assertRaises(db.exceptions.ConditionalCheckFailedException):
            db.put_item(TableName=self.name, Item={"pk": S("new")},
                        ConditionExpression="attribute_not_exists(pk)")
        self.admin("DELETE", "/faults")
        self.assertEqual(self.get(self.name, pk=S("new")), {"pk": S("new")})

    def test_lost_answer_of_a_transaction_counts_once(self):
        """The client makes a token, and sends the same with the retry."""
        self.fault({"kind": "lost_answer", "operation": "TransactWriteItems", "count": 1})
        told = self.retrying().transact_write_items(TransactItems=[{"Update": {
            "TableName": self.name, "Key": {"pk": S("a")}, "UpdateExpression": "ADD v :one",
            "ExpressionAttributeValues": {":one": N(1)}}}])
        self.assertEqual(told["ResponseMetadata"]["RetryAttempts"], 1)
        self.assertEqual(self.value(), 1)

    def test_conflict_of_a_write(self):
        self.fault({"kind": "conflict", "operation": "UpdateItem", "count": 1})
        with self.assertRaises(self.db.exceptions.TransactionConflictException):
            self.add(self.db)
        self.assertEqual(self.value(), 0)

    def test_conflict_of_a_transaction(self):
        self.fault({"kind": "conflict", "operation": "TransactWriteItems", "count": 1})
        with self.assertRaises(self.db.exceptions.TransactionCanceledException) as caught:
            self.db.transact_write_items(TransactItems=[{"Put": {
                "TableName": self.name, "Item": {"pk": S("b")}}}])
        codes = [reason["Code"] for reason in caught.exception.response["CancellationReasons"]]
        self.assertEqual(codes, ["TransactionConflict"])

    def test_unprocessed_items(self):
        self.fault({"kind": "unprocessed", "operation": "BatchWriteItem", "count": 1})
        told = self.db.batch_write_item(RequestItems={self.name: [
            {"PutRequest": {"Item": {"pk": S(str(i))}}} for i in range(10)]})
        left = told["UnprocessedItems"][self.name]
        self.assertEqual(len(left), 5)
        self.assertEqual(self.db.scan(TableName=self.name)["Count"], 6)
        told = self.db.batch_write_item(RequestItems=told["UnprocessedItems"])
        self.assertEqual(told["UnprocessedItems"], {})
        self.assertEqual(self.db.scan(TableName=self.name)["Count"], 11)

    def test_unprocessed_keys(self):
        keys = [{"pk": S(str(i))} for i in range(10)]
        for key in keys:
            self.db.put_item(TableName=self.name, Item=key)
        self.fault({"kind": "unprocessed", "operation": "BatchGetItem", "count": 1})
        told = self.db.batch_get_item(RequestItems={self.name: {"Keys": keys}})
        self.assertEqual(len(told["Responses"][self.name]), 5)
        self.assertEqual(len(told["UnprocessedKeys"][self.name]["Keys"]), 5)
        more = self.db.batch_get_item(RequestItems=told["UnprocessedKeys"])
        seen = told["Responses"][self.name] + more["Responses"][self.name]
        self.assertEqual(sorted(item["pk"]["S"] for item in seen), [str(i) for i in range(10)])

    def test_latency(self):
        self.fault({"kind": "latency", "latency_ms": 300, "operation": "GetItem"})
        begin = time.monotonic()
        self.db.get_item(TableName=self.name, Key={"pk": S("a")})
        self.assertGreaterEqual(time.monotonic() - begin, 0.3)

    def test_latency_beyond_the_read_timeout(self):
        self.fault({"kind": "latency", "latency_ms": 3000, "operation": "UpdateItem", "count": 1})
        impatient = self.retrying(0, timeout=0.5)
        with self.assertRaises(ReadTimeoutError):
            self.add(impatient)
        # The server works on regardless; another connection soon sees it.
        until = time.monotonic() + 60
        while self.get(self.name, pk=S("a"))["v"] != N(1) and time.monotonic() < until:
            time.sleep(0.1)
        self.assertEqual(self.value(), 1)

    def test_timeout_is_retried(self):
        self.fault({"kind": "latency", "latency_ms": 3000, "operation": "GetItem", "count": 1})
        told = self.retrying(2, timeout=1).get_item(TableName=self.name, Key={"pk": S("a")})
        self.assertEqual(told["ResponseMetadata"]["RetryAttempts"], 1)
        self.assertEqual(told["Item"]["v"], N(0))

    def test_slow_calls_do_not_hold_up_others(self):
        self.fault({"kind": "latency", "latency_ms": 2500, "operation": "Scan", "count": 1})
        thread = threading.Thread(target=self.db.scan, kwargs={"TableName": self.name})
        thread.start()
        time.sleep(0.2)
        for _ in range(5):
            self.db.get_item(TableName=self.name, Key={"pk": S("a")})
        self.assertTrue(thread.is_alive())
        thread.join()

    def test_skip(self):
        self.fault({"kind": "throttle", "operation": "GetItem", "skip": 2, "count": 1})
        outcomes = []
        for _ in range(4):
            try:
                self.get(self.name, pk=S("a"))
                outcomes.append("fine")
            except self.db.exceptions.ProvisionedThroughputExceededException:
                outcomes.append("throttled")
        self.assertEqual(outcomes, ["fine", "fine", "throttled", "fine"])

    def test_only_that_table(self):
        other = self.table()
        self.fault({"kind": "throttle", "table": self.name})
        self.db.put_item(TableName=other, Item={"pk": S("a")})
        self.fails(THROTTLED, THROTTLED_TEXT, self.db.put_item, TableName=self.name,
                   Item={"pk": S("a")})

    def test_probability(self):
        self.fault({"kind": "throttle", "probability": 0.5, "operation": "GetItem"})
        failures = 0
        for _ in range(200):
            try:
                self.get(self.name, pk=S("a"))
            except self.db.exceptions.ProvisionedThroughputExceededException:
                failures += 1
        self.assertTrue(50 < failures < 150, failures)
        self.assertEqual(self.struck(), [failures])

    def test_paginator_through_throttling(self):
        for i in range(30):
            self.db.put_item(TableName=self.name, Item={"pk": S(f"k{i}")})
        self.fault({"kind": "throttle", "operation": "Scan", "probability": 0.3, "count": 4})
        pages = self.retrying(10).get_paginator("scan").paginate(
            TableName=self.name, PaginationConfig={"PageSize": 5})
        self.assertEqual(sum(page["Count"] for page in pages), 31)

    def test_waiter_through_errors(self):
        self.fault({"kind": "error", "operation": "DescribeTable", "count": 1})
        self.retrying(2).get_waiter("table_exists").wait(TableName=self.name)
        self.assertEqual(self.struck(), [1])

    def test_get_and_delete(self):
        self.fault({"kind": "throttle", "operation": "Query", "count": 7})
        self.assertEqual(self.admin("GET", "/faults")["faults"],
                         [{"kind": "throttle", "operation": "Query", "count": 7, "struck": 0}])
        self.assertEqual(self.admin("DELETE", "/faults"), {"faults": []})

    def test_unknown_kind(self):
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.fault({"kind": "earthquake"})
        self.assertEqual(caught.exception.code, 400)

    def test_unknown_operation(self):
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.fault({"kind": "throttle", "operation": "MakeCoffee"})
        self.assertEqual(caught.exception.code, 400)
