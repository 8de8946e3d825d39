#!/usr/bin/env python3
"""The commands that talk to a database, as processes: commands_test.py COMMAND SOURCE [unittest
arguments]. A server in memory is started once; each test has a prefix of its own.
"""
import base64
import datetime
import hashlib
import http.server
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import process as shared
from process import (COMMAND, CONDITION, CORRUPT, DENIED, FAILED, NOT_FOUND, OK, SOURCE, TIMEOUT, UNAVAILABLE, USAGE,
                     WAIT_S, clean_env, main, setUpModule, tearDownModule)  # noqa: F401


def call(operation, **body):
    """An operation of the server, as any client has it."""
    request = urllib.request.Request(
        shared.SERVER.url, json.dumps(body).encode(),
        {"X-Amz-Target": "DynamoDB_20120810." + operation,
         "Content-Type": "application/x-amz-json-1.0", "X-Amz-Date": "20260101T000000Z",
         "Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/"
                          "aws4_request, SignedHeaders=host, Signature=" + "0" * 64})
    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
        return json.load(answer)


class WithDatabase(shared.Commands):
    def json(self, *args, **more):
        return json.loads(self.ok(*args, "--json", **more))

    def fails(self, code, error, *args, **more):
        err = super().fails(code, error, *args, **more)
        self.assertTrue(err.startswith("holdfast %s %s: " % args[:2]), err)
        return err

    def hanging(self):
        """A program that hangs the first time, for as long as its starter lives, and then not; and
        where it notes each start."""
        starts, program = self.path("starts"), self.path("handler")
        with open(program, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\ncat >/dev/null\necho start >>%s\n"
                       "! mkdir %s.first 2>/dev/null || exec sleep %d\n" % (starts, starts, WAIT_S))
        os.chmod(program, 0o755)
        return program, starts

    def until(self, holds, what):
        time_over = time.monotonic() + WAIT_S
        while not holds():
            self.assertLess(time.monotonic(), time_over, what)
            time.sleep(0.05)


ORDERS = {"TableName": "orders",
          "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"},
                                   {"AttributeName": "at", "AttributeType": "N"},
                                   {"AttributeName": "who", "AttributeType": "S"}],
          "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"},
                        {"AttributeName": "at", "KeyType": "RANGE"}],
          "GlobalSecondaryIndexes": [
              {"IndexName": "by-who", "KeySchema": [{"AttributeName": "who", "KeyType": "HASH"}],
               "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]}}],
          "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}}


class Import(WithDatabase):
    """Tables as @paradoxical-io/common-aws makes and fills them."""

    def make(self, name, *keys):
        table = self.env["HOLDFAST_PREFIX"] + name
        call("CreateTable", **{
            "TableName": table, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in keys],
            "KeySchema": [{"AttributeName": key, "KeyType": kind}
                          for key, kind in zip(keys, ("HASH", "RANGE"))]})
        return table

    def put(self, table, **item):
        call("PutItem", **{"TableName": table, "Item": {
            name: {"N" if isinstance(value, int) else "S": str(value)} for name, value in item.items()}})

    def test_values_and_counters(self):
        table = self.make("keys", "key")
        self.put(table, key="global.motd", data='"Back at noon"')
        self.put(table, key="users.ann.1", data='{"age": 41, "tags": ["a", 2.5, null, true]}')
        self.put(table, key="alone", data="7")
        self.put(table, key="global.odd", data="no JSON")
        self.put(table, key="global.visits", count=42)
        self.put(table, key="users.logins", count=-3)
        for noun, args in ("kv", ("get", "motd")), ("kv", ("set", "a", "b")), ("counter", ("add", "visits")):
            self.fails(USAGE, "holdfast %s import --from keys" % noun, noun, *args)
        self.fails(USAGE, "are the same table", "kv", "import", "--from", "keys")
        self.fails(USAGE, "missing option --from", "kv", "import")
        self.fails(NOT_FOUND, "nowhere", "kv", "import", "--from", "nowhere")
        to = ["--table", "ours"]
        self.assertEqual(self.json("kv", "import", "--from", "keys", *to),
                         {"imported": 4, "kept": 0, "skipped": 0})
        self.assertEqual(self.json("counter", "import", "--from", "keys", *to),
                         {"imported": 2, "kept": 0, "skipped": 0})
        self.assertEqual(self.ok("kv", "get", "motd", *to), "Back at noon\n")
        self.assertEqual(json.loads(self.ok("kv", "get", "ann.1", "-n", "users", *to)),
                         {"age": 41, "tags": ["a", 2.5, None, True]})
        keys = self.json("kv", "ls", "--all-namespaces", *to)["entries"]
        self.assertIn(("global", "alone", 7), [(key["namespace"], key["id"], key["value"]) for key in keys])
        self.assertEqual(self.ok("kv", "get", "alone", *to), "7\n")
        self.assertEqual(self.ok("kv", "get", "odd", *to), "no JSON\n")
        self.assertEqual(self.ok("counter", "get", "visits", *to), "42\n")
        self.assertEqual(self.ok("counter", "get", "logins", "-n", "users", *to), "-3\n")
        # What is there stays.
        self.ok("kv", "set", "motd", "Open", *to)
        self.ok("counter", "add", "visits", *to)
        self.assertEqual(self.json("kv", "import", "--from", "keys", *to),
                         {"imported": 0, "kept": 4, "skipped": 0})
        self.assertEqual(self.json("counter", "import", "--from", "keys", *to),
                         {"imported": 0, "kept": 2, "skipped": 0})
        self.assertEqual(self.ok("kv", "get", "motd", *to), "Open\n")
        self.assertEqual(self.ok("counter", "get", "visits", *to), "43\n")
        self.assertEqual(self.json("kv", "import", "--from", "keys", "--table", "part", "-n", "users"),
                         {"imported": 1, "kept": 0, "skipped": 0})
        self.ok("kv", "import", "--from", "keys", "--table", "all", "--default-namespace", "bare")
        self.assertEqual(self.ok("kv", "get", "alone", "-n", "bare", "--table", "all"), "7\n")

    def test_an_index_of_namespaces(self):
        table = self.make("keys", "key")
        self.put(table, key="users.ann", data="1")
        self.put(table, key="global.motd", data="2")
        self.assertEqual(self.json("kv", "import", "--from", "keys", "--table", "a", "--namespace-index"),
                         {"imported": 2, "kept": 0, "skipped": 0})
        self.ok("kv", "set", "-n", "users", "eve", "x", "--table", "b", "--namespace-index")
        for name in "a", "b":
            described = call("DescribeTable", TableName=self.env["HOLDFAST_PREFIX"] + name)["Table"]
            self.assertEqual([index["IndexName"] for index in described["GlobalSecondaryIndexes"]], ["spaces"])
        self.lists_by_index("a", "ann", "motd")

    def lists_by_index(self, table, first, other):
        users = ["-n", "users", "--table", table]
        self.ok("kv", "set", "zoe", "x", *users)
        self.ok("kv", "set", "bob", "x", *users)
        self.assertEqual(self.ok("kv", "ls", "-k", *users).split(), [first, "bob", "zoe"])
        self.assertEqual(self.ok("kv", "ls", "-k", "-r", *users).split(), ["zoe", "bob", first])
        self.assertEqual(sorted(self.ok("kv", "ls", "-k", "--consistent", *users).split()), [first, "bob", "zoe"])
        self.fails(USAGE, "consistent lists do not use", "kv", "ls", "-r", "--consistent", *users)
        page = self.json("kv", "ls", "--limit", "2", *users)
        self.assertEqual(self.ok("kv", "ls", "-k", "--after", page["next"], *users), "zoe\n")
        self.assertEqual(self.json("kv", "clear", "b", "--yes", "--eventual", *users), {"cleared": 1})
        self.assertEqual(self.json("kv", "clear", "--yes", *users), {"cleared": 2})
        self.assertEqual(self.ok("kv", "ls", "-k", "--all-namespaces", "--table", table), other + "\n")

    def test_an_index_of_namespaces_that_is_added(self):
        self.ok("kv", "set", "ann", "1", "-n", "users")
        self.ok("kv", "set", "motd", "2")
        self.fails(USAGE, "'holdfast kv index'", "kv", "set", "x", "y", "--namespace-index")
        self.fails(USAGE, "backward needs a partition", "kv", "ls", "-r", "-n", "users")
        self.assertEqual(self.json("kv", "index"), {"added": 2})
        self.assertEqual(self.json("kv", "index"), {"added": 0})
        self.lists_by_index("keys", "ann", "motd")
        self.ok("kv", "set", "x", "y", "--namespace-index")
        self.assertEqual(self.json("kv", "index", "--table", "new"), {"added": 0})
        self.ok("kv", "set", "ann", "1", "-n", "users", "--table", "new")
        self.ok("kv", "set", "motd", "1", "--table", "new")
        self.lists_by_index("new", "ann", "motd")
        self.ok("kv", "set", "x", "y", "-p", "p")
        self.fails(USAGE, "hash key", "kv", "index", "--table", "partitioned_keys")

    def test_partitions(self):
        table = self.make("partitioned_keys", "partitionKey", "sortKey")
        self.put(table, partitionKey="ann", sortKey="mail.first", data='"hi"', md5="x")
        self.put(table, partitionKey="ann", sortKey="plain", data="[1]")
        self.put(table, partitionKey="ann", sortKey="login.count", count=5)
        self.fails(USAGE, "holdfast kv import --from partitioned_keys", "kv", "get", "-p", "ann", "x")
        self.fails(USAGE, "holdfast counter import --from partitioned_keys", "counter", "add", "-p", "ann", "x")
        to = ["--table", "ours"]
        self.assertEqual(self.json("kv", "import", "--from", "partitioned_keys", *to),
                         {"imported": 2, "kept": 0, "skipped": 0})
        self.assertEqual(self.json("counter", "import", "--from", "partitioned_keys", *to),
                         {"imported": 1, "kept": 0, "skipped": 0})
        self.assertEqual(self.ok("kv", "get", "first", "-n", "mail", "-p", "ann", *to), "hi\n")
        self.assertEqual(self.ok("kv", "get", "plain", "-p", "ann", *to), "[1]\n")
        self.assertEqual(self.ok("counter", "get", "count", "-n", "login", "-p", "ann", *to), "5\n")

    def test_locks(self):
        table = self.make("locks", "key")
        now = int(time.time())
        self.put(table, key="held", expiresAt=now + 600)
        self.put(table, key="gone", expiresAt=now - 1)
        self.put(table, key="long gone", expiresAt=-9223372036854775)
        self.put(table, key="for long", expiresAt=now + 10 ** 9)
        self.fails(USAGE, "holdfast lock import --from locks", "lock", "ls")
        self.assertEqual(self.json("lock", "import", "--from", "locks", "--table", "ours"),
                         {"imported": 2, "kept": 0, "skipped": 0})
        self.assertEqual(self.json("lock", "import", "--from", "locks", "--table", "ours"),
                         {"imported": 0, "kept": 2, "skipped": 0})
        self.fails(CONDITION, "import of table locks", "lock", "run", "--table", "ours", "--wait", "0s", "held",
                   "--", "true")
        self.ok("lock", "run", "--table", "ours", "--wait", "0s", "gone", "--", "true")

    def test_what_cannot_be_imported(self):
        table = self.make("keys", "key")
        call("PutItem", **{"TableName": table, "Item": {"key": {"S": "a.b"}, "count": {"N": "1.5"}}})
        self.put(table, key="a.c", count=1)
        code, out, err = self.run_("counter", "import", "--from", "keys", "--table", "ours", "--json")
        self.assertEqual((code, json.loads(out)), (FAILED, {"imported": 1, "kept": 0, "skipped": 1}))
        self.assertIn(": its count is not a 64-bit integer", json.loads(err)["notice"]["message"])
        self.put(table, key="a.\x1b]0;evil\x07\nholdfast: lies", count="no")
        _, _, err = self.run_("counter", "import", "--from", "keys", "--table", "other")
        self.assertEqual((err.count("\n"), re.findall(r"[\x00-\x09\x0b-\x1f]", err)), (2, []), err)


class Table(WithDatabase):
    def create(self, spec, *args, text=None):
        return self.run_("table", "create", "-f", "-", *args,
                         input=text if text is not None else json.dumps(spec))

    def test_warm_throughput(self):
        index = dict(ORDERS["GlobalSecondaryIndexes"][0],
                     WarmThroughput={"ReadUnitsPerSecond": 14000, "WriteUnitsPerSecond": 5000})
        with open(self.path("warm.json"), "w", encoding="ascii") as file:
            json.dump(dict(ORDERS, GlobalSecondaryIndexes=[index],
                           WarmThroughput={"ReadUnitsPerSecond": 13000}), file)
        table = self.json("table", "create", "-f", self.path("warm.json"))
        self.assertEqual(table["WarmThroughput"],
                         {"ReadUnitsPerSecond": 13000, "WriteUnitsPerSecond": 4000})
        self.assertEqual(table["GlobalSecondaryIndexes"][0]["WarmThroughput"],
                         index["WarmThroughput"])

    def test_create_show_list_delete(self):
        with open(self.path("orders.json"), "w", encoding="ascii") as file:
            json.dump(ORDERS, file, indent=2)
        table = self.json("table", "create", "-f", self.path("orders.json"), "--ttl", "expires")
        self.assertEqual(table["TableName"], "orders")
        self.assertEqual(table["TableStatus"], "ACTIVE")
        self.assertEqual(table["KeySchema"], ORDERS["KeySchema"])
        self.assertEqual(table["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST")
        self.assertEqual(table["StreamSpecification"], ORDERS["StreamSpecification"])
        index = table["GlobalSecondaryIndexes"][0]
        self.assertEqual((index["IndexName"], index["IndexStatus"]), ("by-who", "ACTIVE"))
        self.assertEqual(index["Projection"], ORDERS["GlobalSecondaryIndexes"][0]["Projection"])
        self.assertEqual(self.json("table", "show", "orders"), table)
        text = self.ok("table", "show", "orders")
        self.assertIn("keys         id S, at N\n", text)
        self.assertIn("index        by-who: who S, ACTIVE\n", text)
        self.assertEqual(self.ok("table", "ls"), "orders\n")
        self.assertEqual(self.json("table", "ls"), {"tables": [{"name": "orders"}]})
        self.assertEqual(self.ok("table", "ls", "--jsonl"), '{"name":"orders"}\n')
        self.fails(USAGE, "add --yes", "table", "delete", "orders")
        self.assertEqual(self.ok("table", "ls", "-q"), "")
        self.assertEqual(self.ok("table", "delete", "orders", "--yes"), "")
        self.assertEqual(self.ok("table", "ls"), "")
        self.fails(NOT_FOUND, "orders", "table", "delete", "orders", "--yes")
        self.fails(NOT_FOUND, "orders", "table", "show", "orders")

    def test_a_table_that_is_there(self):
        self.assertEqual(self.create(ORDERS)[0], OK)
        code, _, err = self.create(ORDERS)
        self.assertEqual(code, CONDITION)
        self.assertIn("already exists", err)
        self.assertEqual(self.create(ORDERS, "--if-missing")[0], OK)
        other = dict(ORDERS, KeySchema=[{"AttributeName": "who", "KeyType": "HASH"}])
        code, _, err = self.create(other, "--if-missing")
        self.assertEqual(code, USAGE)
        self.assertIn("hash key is id S, expected who S", err)
        more = dict(ORDERS, GlobalSecondaryIndexes=ORDERS["GlobalSecondaryIndexes"] + [
            {"IndexName": "by-at", "KeySchema": [{"AttributeName": "at", "KeyType": "HASH"}],
             "Projection": {"ProjectionType": "ALL"}}])
        self.assertEqual(self.create(more, "--if-missing")[0], USAGE)
        self.assertEqual(self.create(more, "--if-missing", "--add-indexes")[0], OK)
        self.assertEqual(len(self.json("table", "show", "orders")["GlobalSecondaryIndexes"]), 2)

    def test_files_that_cannot_be(self):
        for text, error in [("", "line 1: expected a value"),
                            ("{\n\"TableName\" 1}", "line 2: expected ':'"),
                            ("[]", "the table: expected an object"),
                            ("{}", "TableName: missing"),
                            ('{"TableName": "a", "TableName": "b"}', "duplicate member"),
                            ('{"TableName": "abc"} x', "unexpected text after"),
                            ('{"TableNme": "abc"}', "TableNme: unknown member of CreateTable"),
                            ('{"KeySchema": [{"KeyType": "HSH"}]}',
                             "KeySchema[0].KeyType: expected one of: HASH RANGE"),
                            ('{"ProvisionedThroughput": {"ReadCapacityUnits": 1.5}}',
                             "ProvisionedThroughput.ReadCapacityUnits: expected a whole number"),
                            ('{"Tags": {}}', "Tags: expected a list"),
                            ('{"TableName": "\\q"}', "an escape"), ("[" * 100, "nested too deeply")]:
            with self.subTest(text):
                code, out, err = self.create(None, text=text)
                self.assertEqual((code, out), (USAGE, ""))
                self.assertIn(error, err)
        self.fails(USAGE, "/nowhere: No such file", "table", "create", "-f", "/nowhere")
        self.fails(USAGE, "give a name and --key", "table", "create")


class LockRun(WithDatabase):
    def test_the_program_has_fence_and_name_and_its_code_is_ours(self):
        code, out, _ = self.run_("lock", "run", "job", "--", "sh", "-c",
                                 'echo "$HOLDFAST_LOCK_TOKEN $HOLDFAST_LOCK_NAME"; exit 7')
        self.assertEqual(code, 7)
        fence, name = out.split()
        self.assertEqual(name, "job")
        code, out, _ = self.run_("lock", "run", "job", "--", "printenv", "HOLDFAST_LOCK_TOKEN")
        self.assertEqual(code, 0)
        self.assertGreater(int(out), int(fence))
        shown = self.json("lock", "show", "job")
        self.assertEqual((shown["mode"], shown["fence"], shown["holders"]), ("free", int(out), []))

    def hold(self, *args, name="job", program=("sh", "-c", "echo $HOLDFAST_LOCK_TOKEN; exec sleep 60")):
        """A holder whose program runs, and its fence."""
        holder = self.start("lock", "run", *args, name, "--", *program)
        return holder, int(holder.stdout.readline())

    def test_two_processes_one_after_the_other(self):
        first, fence = self.hold()
        second = self.start("lock", "run", "job", "--", "printenv", "HOLDFAST_LOCK_TOKEN")
        time.sleep(0.3)
        self.assertIsNone(second.poll())
        first.terminate()
        self.assertEqual(first.wait(WAIT_S), 128 + signal.SIGTERM)
        out, err = second.communicate(timeout=WAIT_S)
        self.assertEqual((second.returncode, err), (0, ""))
        self.assertGreater(int(out), fence)

    def test_who_does_not_wait(self):
        holder, _ = self.hold("--owner", "ann")
        self.fails(CONDITION, "held by ann", "lock", "run", "--wait", "0", "job", "--", "true")
        for wait in (1, 4, 20):  # in little time it may not even learn who holds the lock
            begin = time.monotonic()
            code, out, err = self.run_("lock", "run", "--wait", f"{wait}s", "job", "--", "true")
            self.assertEqual((code, out), (CONDITION, ""), err)
            self.assertGreaterEqual(time.monotonic() - begin, wait)
            if "held by ann" in err:
                break
            self.assertIn("could not be acquired in time", err)
        self.assertIn("held by ann", err)
        self.assertEqual(self.run_("lock", "run", "-w0", "-q", "-E", "99", "job", "--", "true"),
                         (99, "", ""))
        holder.terminate()
        self.assertEqual(holder.wait(WAIT_S), 128 + signal.SIGTERM)
        self.ok("lock", "run", "--wait", "0", "job", "--", "true")

    def test_a_holder_that_is_killed_is_replaced_after_its_lease(self):
        holder, fence = self.hold("--lease", "1s", program=(
            "sh", "-c", "echo $HOLDFAST_LOCK_TOKEN; exec sleep 3"))
        holder.send_signal(signal.SIGKILL)
        holder.wait(WAIT_S)
        begin = time.monotonic()
        out = self.ok("lock", "run", "--wait", "20s", "job", "--", "printenv",
                      "HOLDFAST_LOCK_TOKEN")
        self.assertGreaterEqual(time.monotonic() - begin, 0.9)
        self.assertGreater(int(out), fence)

    def test_a_holder_that_is_killed_is_replaced_at_once_in_a_directory(self):
        self.env = clean_env(HOLDFAST_DB="embedded:" + self.path("db"))
        holder, fence = self.hold(program=("sh", "-c", "echo $HOLDFAST_LOCK_TOKEN; exec sleep 3"))
        holder.send_signal(signal.SIGKILL)
        holder.wait(WAIT_S)
        out = self.ok("lock", "run", "--wait", "10s", "job", "--", "printenv",
                      "HOLDFAST_LOCK_TOKEN")
        self.assertGreater(int(out), fence)

    def test_the_lock_is_renewed_while_the_program_runs(self):
        lease_s = 2
        holder, _ = self.hold("--lease", "%ds" % lease_s)
        first = self.renewed()
        self.until(lambda: (self.renewed() - first).total_seconds() > lease_s, "it was not renewed beyond its lease")
        self.fails(CONDITION, "held by", "lock", "run", "--wait", "0", "job", "--", "true")
        holder.terminate()
        self.assertEqual(holder.wait(WAIT_S), 128 + signal.SIGTERM)

    def renewed(self):
        """When the only holder of the lock was heard of last, by its clock."""
        holder, = self.json("lock", "show", "job")["holders"]
        return datetime.datetime.fromisoformat(holder["renewed"].replace("Z", "+00:00"))

    def test_signals_are_passed_on(self):
        for number, program in [
                (signal.SIGTERM, "trap 'exit 21' TERM"), (signal.SIGHUP, "trap 'exit 22' HUP"),
                (signal.SIGUSR1, "trap 'exit 23' USR1"), (signal.SIGINT, "trap 'exit 24' INT")]:
            with self.subTest(number):
                holder, _ = self.hold(program=(
                    "sh", "-c", program + "; echo $HOLDFAST_LOCK_TOKEN; "
                    "while :; do sleep 0.05; done"))
                holder.send_signal(number)
                self.assertEqual(holder.wait(WAIT_S), int(program.split()[2].strip("'")))
        holder, _ = self.hold()
        holder.send_signal(signal.SIGQUIT)
        self.assertEqual(holder.wait(WAIT_S), 128 + signal.SIGQUIT)

    def test_a_signal_while_waiting(self):
        self.hold()
        waiter = self.start("lock", "run", "job", "--", "echo", "ran")
        self.until_it_handles(waiter, signal.SIGTERM)
        time.sleep(0.3)  # in which it does not get the lock
        self.assertIsNone(waiter.poll())
        waiter.terminate()
        self.assertEqual(waiter.communicate(timeout=WAIT_S), ("", ""))
        self.assertEqual(waiter.returncode, 128 + signal.SIGTERM)

    def test_a_lost_lock_ends_the_program(self):
        holder, _ = self.hold("--lease", "1s", program=(
            "sh", "-c", "trap 'echo told; exit 0' TERM; echo $HOLDFAST_LOCK_TOKEN; "
            "while :; do sleep 0.05; done"))
        self.assertEqual(self.json("lock", "break", "job"), {"name": "job", "broken": 1})
        out, err = holder.communicate(timeout=WAIT_S)
        self.assertEqual((holder.returncode, out), (CONDITION, "told\n"))
        self.assertIn("lost lock 'job'", err)

    def test_a_program_that_keeps_running(self):
        broken = self.path("broken")
        holder, _ = self.hold("--lease", "400ms", "--keep-running", program=(
            "sh", "-c", f"echo $HOLDFAST_LOCK_TOKEN; while [ ! -e {broken} ]; do sleep 0.05; done; exit 5"))
        self.ok("lock", "break", "job")
        with open(broken, "x", encoding="ascii"):
            pass
        _, err = holder.communicate(timeout=WAIT_S)
        self.assertEqual(holder.returncode, 5)
        self.assertIn("lost lock", err)

    def test_a_program_that_takes_too_long(self):
        begin = time.monotonic()
        self.assertEqual(self.run_("lock", "run", "--run-timeout", "200ms", "job", "--", "sleep",
                                   "60")[0], 124)
        self.assertEqual(self.run_("lock", "run", "--run-timeout", "200ms", "--kill-after", "200ms",
                                   "job", "--", "sh", "-c", "trap '' TERM; while :; do sleep 0.05; done")[0],
                         124)
        self.assertLess(time.monotonic() - begin, 30)

    def test_a_program_that_cannot_be_run(self):
        self.fails(127, "no-such-program", "lock", "run", "job", "--", "no-such-program")
        self.fails(126, self.dir, "lock", "run", "job", "--", self.dir)
        self.fails(USAGE, "missing argument; usage: holdfast lock run [options] NAME", "lock", "run", "job")

    def test_the_program_has_our_files_and_not_those_of_the_database(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        out = self.ok("lock", "run", "job", "--", "sh", "-c", "ls /proc/$$/fd", pass_fds=[write])
        self.assertEqual(set(map(int, out.split())) - {0, 1, 2, write}, set())
        self.assertIn(str(write), out.split())

    def test_shared_and_permits(self):
        self.hold("--shared")
        self.ok("lock", "run", "--shared", "--wait", "0", "job", "--", "true")
        self.fails(CONDITION, "held", "lock", "run", "--wait", "0", "job", "--", "true")
        for _ in range(2):
            self.hold("--permits", "2", name="seats")
        self.fails(CONDITION, "", "lock", "run", "--permits", "2", "--wait", "0", "seats", "--",
                   "true")
        self.fails(USAGE, "cannot be combined", "lock", "run", "--permits", "2", "--shared", "x", "--", "true")

    def test_list_show_break(self):
        self.hold("--data", '{"why":"night\\nly"}', "--owner", "ann\x1b[1m")
        self.ok("lock", "run", "other", "--", "true")
        listed = self.json("lock", "ls")["locks"]
        self.assertEqual([lock["name"] for lock in listed], ["job"])
        self.assertEqual(listed[0]["holders"][0]["owner"], "ann\x1b[1m")
        self.assertEqual(listed[0]["data"], {"why": "night\nly"})
        self.assertEqual(listed[0]["holders"][0]["lease_ms"], 20000)
        lines = self.ok("lock", "ls").splitlines()
        self.assertEqual(len(lines), 1)
        self.assertEqual(lines[0].split("\t")[:2], ["job", "exclusive"])
        self.assertIn("ann\\x1b[1m", lines[0])
        every = [json.loads(line)["name"] for line in self.ok("lock", "ls", "-a", "--jsonl").splitlines()]
        self.assertEqual(sorted(every), ["job", "other"])
        self.assertEqual(self.ok("lock", "ls", "nothing"), "")
        shown = self.json("lock", "show", "job")
        for one in shown, listed[0]: # but for when it was renewed
            for part in one, one["holders"][0]:
                self.assertTrue(part.pop("renewed"))
        self.assertEqual(shown, listed[0])
        self.fails(NOT_FOUND, "nope", "lock", "show", "nope")
        self.fails(NOT_FOUND, "nope", "lock", "break", "nope")
        self.assertEqual(self.json("lock", "break", "job", "--id", listed[0]["holders"][0]["id"]),
                         {"name": "job", "broken": 1})


class Kv(WithDatabase):
    def test_values_come_back(self):
        self.fails(NOT_FOUND, "key 'a' does not exist", "kv", "get", "a")
        self.ok("kv", "set", "a", "two\nlines")
        self.assertEqual(self.ok("kv", "get", "a"), "two\nlines\n")
        self.assertEqual(self.json("kv", "get", "a")["value"], "two\nlines")
        self.ok("kv", "set", "n", "-1.50", "-t", "number")
        self.assertEqual(self.ok("kv", "get", "n"), "-1.5\n")
        text = '{"a":[1,2,{"b":null}],"c":"\\u00e9\\ud83d\\ude00","d":true}'
        self.ok("kv", "set", "j", text, "--type", "json")
        self.assertEqual(json.loads(self.ok("kv", "get", "j")), json.loads(text))
        self.ok("kv", "set", "s", '{"SS":["x","y"]}', "-t", "dynamodb")
        self.assertEqual(self.ok("kv", "get", "s", "--dynamodb"), '{"SS":["x","y"]}\n')
        self.assertEqual(self.ok("kv", "get", "s"), '["x","y"]\n')
        self.run_("kv", "set", "f", "-f", "-", input="from a pipe")
        self.assertEqual(self.ok("kv", "get", "f"), "from a pipe\n")
        self.fails(NOT_FOUND, "key 'zz' does not exist", "kv", "get", "zz")
        self.ok("kv", "set", "-n", "other", "a", "b")
        self.assertEqual(self.ok("kv", "get", "a"), "two\nlines\n")
        self.assertEqual(self.ok("kv", "get", "-n", "other", "a"), "b\n")

    def test_bytes(self):
        data = bytes(range(256))
        with open(self.path("data"), "wb") as file:
            file.write(data)
        self.ok("kv", "set", "b", "-t", "bytes", "-f", self.path("data"))
        done = subprocess.run([COMMAND, "kv", "get", "b"], capture_output=True, env=self.env,
                              timeout=WAIT_S, check=True)
        self.assertEqual(done.stdout, data)

    def test_large_values(self):
        large, blobs = self.path("large"), "dir:" + self.path("blobs")
        with open(large, "w", encoding="ascii") as file:
            file.write("x" * 600000)
        self.fails(USAGE, "", "kv", "set", "a", "-f", large)
        self.ok("kv", "set", "a", "-f", large, "--blobs", blobs)
        self.assertEqual(self.ok("kv", "get", "a", "--blobs", blobs), "x" * 600000 + "\n")
        env = dict(self.env, HOLDFAST_BLOBS=blobs)
        self.assertEqual(self.ok("kv", "get", "a", env=env), "x" * 600000 + "\n")
        listed = self.json("kv", "ls", env=env)["entries"]
        self.assertEqual([len(entry["value"]) for entry in listed], [600000])
        self.fails(FAILED, "blob store", "kv", "get", "a")
        self.fails(USAGE, "not the URL", "kv", "get", "a", "--blobs", "nonsense")
        # what is small stays in the table; what no key has goes, when it is old
        self.ok("kv", "set", "b", "small", "--blobs", blobs)
        self.assertEqual(self.ok("kv", "get", "b"), "small\n")
        self.ok("kv", "set", "c", "-t", "bytes", "-f", large, env=env)
        self.assertEqual(self.json("kv", "delete", "a", env=env), {"id": "a", "deleted": True})
        part = ("blobs", "ls", "--blobs", blobs, "--part", self.env["HOLDFAST_PREFIX"] + "keys")
        count = len(self.json(*part)["blobs"])
        self.assertEqual(self.json("kv", "sweep", env=env), {"blobs": 0})
        time.sleep(2.2)  # what the sweep takes counts as well
        removed = self.json("kv", "sweep", "--older", "1s", env=env)["blobs"]
        self.assertEqual((count, removed, len(self.json(*part)["blobs"])), (2, 1, 1))
        self.assertEqual(len(self.ok("kv", "get", "c", env=env)), 600000)
        self.fails(USAGE, "--blobs", "kv", "sweep")

    def test_conditions(self):
        version = self.json("kv", "set", "a", "1")["version"]
        self.fails(CONDITION, "has a value", "kv", "set", "a", "2", "--if-absent")
        self.ok("kv", "set", "a", "2", "--if-version", version)
        self.fails(CONDITION, "a", "kv", "set", "a", "3", "--if-version", version)
        self.fails(CONDITION, "a", "kv", "delete", "a", "--if-version", version)
        self.assertEqual(self.json("kv", "delete", "a"), {"id": "a", "deleted": True})
        self.assertEqual(self.json("kv", "delete", "a"), {"id": "a", "deleted": False})
        self.ok("kv", "set", "a", "4", "--if-absent", "--ttl", "1h")
        self.assertRegex(self.json("kv", "get", "a")["expires"], r"^20\d\d-\d\d-\d\dT")

    def test_values_that_cannot_be(self):
        self.fails(USAGE, "not a number", "kv", "set", "a", "x1", "-t", "number")
        self.fails(USAGE, "expected", "kv", "set", "a", "{", "-t", "json")
        self.fails(USAGE, "DynamoDB's JSON", "kv", "set", "a", '{"S":1}', "-t", "dynamodb")
        self.fails(USAGE, "missing value", "kv", "set", "a")
        self.fails(USAGE, "cannot be combined", "kv", "set", "a", "b", "-f", "c")
        self.fails(USAGE, "use one of", "kv", "set", "a", "b", "-t", "c")

    def test_lists(self):
        for i in range(5):
            self.ok("kv", "set", "-p", "u1", "id%d" % i, str(i))
        self.ok("kv", "set", "-p", "u2", "id9", "x\ty")
        self.assertEqual(self.ok("kv", "ls", "-p", "u1", "-k"), "".join("id%d\n" % i for i in range(5)))
        self.assertEqual(self.ok("kv", "ls", "-p", "u1", "-k", "-r", "--limit", "2"), "id4\nid3\n")
        self.assertEqual(self.ok("kv", "ls", "-p", "u1", "-k", "--from", "id1", "--before", "id3"),
                         "id1\nid2\n")
        page = self.json("kv", "ls", "-p", "u1", "--limit", "2")
        self.assertEqual([e["value"] for e in page["entries"]], ["0", "1"])
        rest = self.json("kv", "ls", "-p", "u1", "--after", page["next"])
        self.assertEqual([e["id"] for e in rest["entries"]], ["id2", "id3", "id4"])
        self.assertNotIn("next", rest)
        line = self.ok("kv", "ls", "-p", "u2").rstrip("\n").split("\t")
        self.assertEqual((line[0], line[2], line[3]), ("u2", "id9", "x\\ty"))
        self.assertEqual(len(self.ok("kv", "ls", "--partitioned", "--jsonl").splitlines()), 6)
        self.fails(USAGE, "--yes", "kv", "clear", "-p", "u1")
        self.assertEqual(self.json("kv", "clear", "-p", "u1", "id1", "--yes"), {"cleared": 1})
        self.assertEqual(self.json("kv", "clear", "-p", "u1", "--yes"), {"cleared": 4})
        self.assertEqual(self.ok("kv", "ls", "-p", "u1"), "")


class Counter(WithDatabase):
    def test_a_method_by_name(self):
        self.assertEqual(json.loads(self.ok("call", "counter.add", '{"id":"a","by":5}')), {"value": 5, "again": False})
        self.assertEqual(json.loads(self.ok("call", "--read-only", "counter.get", '{"id":"a"}')), {"value": 5})
        self.assertIn("TableNames", json.loads(self.ok("call", "ListTables")))
        for code, error, args in (
                (DENIED, "counter.add writes, and this is read-only", ("--read-only", "counter.add", '{"id":"a","by":1}')),
                (USAGE, 'counter.get: "id" is missing', ("counter.get",)),
                (USAGE, "the arguments are not valid JSON", ("counter.get", "{")),
                (NOT_FOUND, "nothing", ("DescribeTable", '{"TableName":"nothing"}'))):
            self.assertIn(error, shared.Commands.fails(self, code, error, "call", *args))

    def test_adding(self):
        self.assertEqual(self.ok("counter", "add", "c"), "1\n")
        self.assertEqual(self.json("counter", "add", "c", "41"), {"id": "c", "value": 42})
        self.assertEqual(self.ok("counter", "add", "c", "-2"), "40\n")
        self.fails(CONDITION, "c", "counter", "add", "c", "-41", "--floor", "0")
        self.fails(CONDITION, "c", "counter", "add", "c", "1", "--ceiling", "40")
        self.assertEqual(self.ok("counter", "add", "c", "-40", "--floor", "0"), "0\n")
        self.assertEqual(self.ok("counter", "get", "c"), "0\n")
        self.assertEqual(self.json("counter", "add", "c", "5", "--request", "r"),
                         {"id": "c", "value": 5, "again": False})
        self.assertEqual(self.json("counter", "add", "c", "5", "--request", "r"),
                         {"id": "c", "value": 5, "again": True})
        self.assertEqual(self.ok("counter", "get", "c", "d"), "c\t5\nd\t0\n")
        self.assertEqual(self.json("counter", "get", "c", "d")["counters"][1],
                         {"id": "d", "value": 0, "found": False})
        self.assertEqual(self.ok("counter", "set", "c", "-7"), "5\n")
        self.assertEqual(self.ok("counter", "delete", "c"), "")
        self.assertEqual(self.ok("counter", "get", "c"), "0\n")
        self.assertEqual(self.json("counter", "delete", "c"), {"id": "c"})
        self.fails(USAGE, "'x' is not a 64-bit integer", "counter", "add", "c", "x")
        self.fails(USAGE, "64-bit integer", "counter", "add", "c", "9223372036854775808")

    def test_listing(self):
        self.ok("kv", "set", "ab", "x")
        for name, number in [("aa", 1), ("ab", -2), ("b.c", 3)]:
            self.ok("counter", "add", name, str(number))
        self.ok("counter", "add", "hot", "4", "--shards", "7")
        self.ok("counter", "add", "aa", "9", "-n", "other")
        lines = sorted(self.ok("counter", "ls").splitlines())
        self.assertEqual(lines, ["aa\t1", "ab\t-2", "b.c\t3", "hot\t4"])
        self.assertEqual(self.json("counter", "ls", "b."), {"counters": [{"id": "b.c", "value": 3}]})
        self.assertEqual(self.ok("counter", "ls", "-n", "other"), "aa\t9\n")
        self.assertEqual(self.ok("counter", "ls", "nobody"), "")
        first = self.json("counter", "ls", "--limit", "3")
        rest = self.json("counter", "ls", "--limit", "3", "--after", first["next"])
        self.assertEqual((len(first["counters"]), len(rest["counters"])), (3, 1))
        self.assertNotIn("next", rest)
        self.ok("counter", "add", "-p", "ann", "logins")
        self.assertEqual(self.ok("counter", "ls", "-p", "ann", "--jsonl"),
                         '{"id":"logins","value":1}\n')
        self.fails(USAGE, "", "counter", "ls", "a", "b")

    def test_many_processes_are_counted_one_by_one(self):
        self.ok("counter", "set", "c", "0")
        adders = [self.start("counter", "add", "c") for _ in range(10)]
        seen = sorted(int(adder.communicate(timeout=WAIT_S)[0]) for adder in adders)
        self.assertEqual(seen, list(range(1, 11)))


class Once(WithDatabase):
    def test_in_a_directory(self):
        """Opened after waiting for it, it ends as on a server: done before is code 0, and errors are shown."""
        db = ("--db", "embedded:" + self.path("once.db"))
        self.assertEqual(self.run_("once", "run", *db, "k", "--", "echo", "ran"), (0, "ran\n", ""))
        self.assertEqual(self.run_("once", "run", *db, "k", "--", "echo", "ran"), (0, "", ""))
        self.assertEqual(self.run_("once", "run", *db, "--payload", "a", "p", "--", "true"), (0, "", ""))
        self.fails(CONDITION, "payload", "once", "run", *db, "--payload", "b", "p", "--", "true")

    def test_done_is_done(self):
        program = ("sh", "-c", 'echo "$HOLDFAST_ONCE_KEY $HOLDFAST_ONCE_TRY"; exit $0')
        self.assertEqual(self.run_("once", "run", "k", "--", *program, "9"), (9, "k 1\n", ""))
        self.assertEqual(self.run_("once", "run", "k", "--", *program, "0")[0], 0)
        self.assertEqual(self.run_("once", "run", "k", "--", *program, "0"), (0, "", ""))
        self.assertEqual(self.run_("once", "run", "-u", "ann", "k", "--", "echo", "ran"),
                         (0, "ran\n", ""))
        shown = self.json("once", "show", "k")
        self.assertEqual((shown["state"], shown["code"]), ("done", 0))
        self.assertEqual([r["key"] for r in self.json("once", "ls")["records"]], ["k"])
        self.ok("once", "clear", "k")
        self.fails(NOT_FOUND, "k", "once", "clear", "k")
        self.fails(NOT_FOUND, "k", "once", "show", "k")
        self.assertEqual(self.ok("once", "run", "k", "--", "echo", "again"), "again\n")

    def test_failures_that_count(self):
        self.assertEqual(self.run_("once", "run", "--record-failure", "k", "--", "sh", "-c",
                                   "exit 9"), (9, "", ""))
        self.assertEqual(self.run_("once", "run", "k", "--", "echo", "ran"), (9, "", ""))
        self.assertEqual(self.json("once", "show", "k")["state"], "failed")

    def test_two_processes_and_one_run(self):
        runs = [self.start("once", "run", "k", "--", "sh", "-c", "sleep 0.3; echo ran")
                for _ in range(3)]
        outs = [run.communicate(timeout=WAIT_S)[0] for run in runs]
        self.assertEqual(sorted(outs), ["", "", "ran\n"])
        self.assertEqual([run.returncode for run in runs], [0, 0, 0])

    def test_busy_payload_and_kill(self):
        first = self.start("once", "run", "--lease", "1s", "--payload", "a", "k", "--", "sh", "-c",
                           "echo begun; exec sleep 60")
        first.stdout.readline()
        self.fails(CONDITION, "is being done by", "once", "run", "--wait", "0", "k", "--", "true")
        self.fails(CONDITION, "is being done by", "once", "run", "--wait", "200ms", "k", "--", "true")
        first.send_signal(signal.SIGKILL)
        first.wait(WAIT_S)
        self.fails(CONDITION, "payload", "once", "run", "--payload", "b", "k", "--", "true")
        self.assertEqual(self.ok("once", "run", "--payload", "a", "k", "--", "printenv",
                                 "HOLDFAST_ONCE_TRY"), "2\n")


class Limit(WithDatabase):
    def test_verdicts(self):
        rule = ("--limit", "2", "--window", "1h")
        self.ok("limit", "check", "a", *rule)
        self.assertEqual(self.json("limit", "check", "a", *rule)["left"], 0)
        self.fails(CONDITION, "limit reached for 'a'; try again in ", "limit", "check", "a", *rule)
        code, out, _ = self.run_("limit", "peek", "a", *rule, "--json")
        verdict = json.loads(out)
        self.assertEqual((code, verdict["allowed"], verdict["used"]), (CONDITION, False, 2))
        self.assertGreater(verdict["retry_ms"], 3000000)
        self.assertEqual(self.run_("limit", "check", "-q", "a", *rule), (CONDITION, "", ""))
        self.ok("limit", "reset", "a")
        self.ok("limit", "check", "a", *rule)
        self.ok("limit", "check", "b", "-k", "rate", "-l", "1", "-w", "1h", "--burst", "2",
                "--cost", "2")
        self.fails(CONDITION, "b", "limit", "check", "b", "-k", "rate", "-l", "1", "-w", "1h",
                   "--burst", "2")

    def test_many_processes_never_get_more(self):
        self.ok("limit", "check", "other", "-l", "1", "-w", "1h")
        askers = [self.start("limit", "check", "a", "-l", "3", "-w", "1h") for _ in range(8)]
        codes = sorted(asker.wait(WAIT_S) for asker in askers)
        self.assertEqual(codes, [OK] * 3 + [CONDITION] * 5)

    def test_fail_open(self):
        unreached = ("limit", "check", "a", "-l", "1", "--db", "http://127.0.0.1:1")
        self.assertEqual(self.run_(*unreached)[0], UNAVAILABLE)
        code, _, _ = self.run_(*unreached, "--fail-open")
        self.assertEqual(code, OK)


class Records(WithDatabase):
    def put(self, count):
        lines = "".join(json.dumps({"AccountId": "A%d" % (i % 7), "RunTime": "2026-%05d" % i,
                                    "n": i}) + "\n" for i in range(count))
        done = subprocess.run([COMMAND, "records", "put", "-f", "-", "--json"], input=lines, text=True,
                              capture_output=True, env=self.env, timeout=WAIT_S, check=True)
        self.assertEqual(json.loads(done.stdout), {"put": count})

    def test_each_is_processed_once_and_failures_are_told(self):
        self.fails(NOT_FOUND, "Records", "records", "process", "--exec", "true")
        self.put(40)
        self.assertEqual(self.json("records", "process", "--dry-run")["total"], 40)
        script = ('cat >> "$OUT/$HOLDFAST_RECORD_RUN_TIME"; '
                  'case $HOLDFAST_RECORD_RUN_TIME in *5) exit 65;; *7) exit 1;; esac')
        code, out, err = self.run_("records", "process", "--json", "--retries", "1", "--backoff",
                                   "1ms", "--plain", "--exec", script,
                                   env=dict(self.env, OUT=self.dir))
        report = json.loads(out)
        self.assertEqual((code, err), (FAILED, ""))
        self.assertEqual((report["completed"], report["failed"], report["retried"]), (32, 8, 4))
        self.assertEqual(len(report["errors"]), 8)
        self.assertIn("ended with code", report["errors"][0]["error"])
        self.assertEqual(len(os.listdir(self.dir)), 40)
        for name in os.listdir(self.dir):
            with open(self.path(name), encoding="ascii") as file:
                lines = [json.loads(line) for line in file]
            self.assertEqual(len(lines), 2 if name.endswith("7") else 1)
            self.assertEqual(lines[0]["RunTime"], name)
        self.assertEqual(self.ok("records", "ls"), "")
        failed = self.json("records", "ls", "-s", "failed")["records"]
        self.assertEqual(len(failed), 8)
        self.assertEqual(failed[0]["state"], "failed")
        self.assertEqual(len(self.ok("records", "ls", "-s", "processed", "--jsonl").splitlines()), 32)
        self.assertEqual(len(self.json("records", "ls", "-a", "A1")["records"]), 6)
        self.assertEqual(self.json("records", "retry"), {"waiting": 8})
        report = json.loads(self.ok("records", "process", "--json", "--", "sh", "-c",
                                    "grep -q AccountId"))
        self.assertEqual((report["completed"], report["checkpoint"]), (8, None))

    def test_a_signal_gives_back_what_is_not_finished(self):
        self.put(4)
        process = self.start("records", "process", "-j", "2", "--json", "--exec",
                             "echo begun >&2; exec sleep 60")
        process.stderr.readline()
        process.terminate()
        out, _ = process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertEqual(json.loads(out)["completed"], 0)
        self.assertEqual(len(self.ok("records", "ls").splitlines()), 4)
        self.assertEqual(json.loads(self.ok("records", "process", "--json", "--exec", "true"))["completed"], 4)

    def test_the_total_is_what_was_done(self):
        self.ok("records", "put", '{"AccountId":"a","RunTime":"1"}', '{"AccountId":"a","RunTime":"2"}')
        report = json.loads(self.ok("records", "process", "--json", "--exec", "true"))
        self.assertEqual((report["total"], report["completed"], report["adopted"]), (2, 2, 0))

    def test_records_that_other_programs_put(self):
        table = self.env["HOLDFAST_PREFIX"] + "Records"
        self.ok("records", "put", '{"AccountId":"a","RunTime":"1"}')
        for number, processed in (2, "0"), (3, "0"), (4, "1"):
            call("PutItem", **{"TableName": table, "Item": {
                "AccountId": {"S": "other"}, "RunTime": {"S": str(number)}, "Processed": {"N": processed},
                "DocumentId": {"S": "d"}}})
        self.assertEqual(len(self.json("records", "ls")["records"]), 1)
        self.assertEqual(self.json("records", "adopt"), {"adopted": 2})
        self.assertEqual(len(self.json("records", "ls")["records"]), 3)
        self.assertEqual(self.json("records", "adopt"), {"adopted": 0})
        call("PutItem", **{"TableName": table, "Item": {
            "AccountId": {"S": "other"}, "RunTime": {"S": "5"}, "Processed": {"N": "0"}}})
        report = json.loads(self.ok("records", "process", "--json", "--exec", "true"))
        self.assertEqual((report["total"], report["completed"], report["adopted"]), (4, 4, 1))

    def test_a_table_of_records_of_another_program(self):
        table = self.env["HOLDFAST_PREFIX"] + "Jobs"
        call("CreateTable", **{
            "TableName": table, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "AccountId", "AttributeType": "S"},
                                     {"AttributeName": "RunTime", "AttributeType": "S"},
                                     {"AttributeName": "Processed", "AttributeType": "N"}],
            "KeySchema": [{"AttributeName": "AccountId", "KeyType": "HASH"},
                          {"AttributeName": "RunTime", "KeyType": "RANGE"}],
            "GlobalSecondaryIndexes": [{
                "IndexName": "Processed", "Projection": {"ProjectionType": "ALL"},
                "KeySchema": [{"AttributeName": "Processed", "KeyType": "HASH"}]}]})
        for number in range(3):
            call("PutItem", **{"TableName": table, "Item": {
                "AccountId": {"S": "a"}, "RunTime": {"S": str(number)}, "Processed": {"N": "0"}}})
        where = ["--table", "Jobs", "--index", "Waiting"]
        self.fails(NOT_FOUND, "nowhere", "records", "adopt", "--table", "nowhere")
        self.fails(NOT_FOUND, self.path("new"), "records", "adopt", "--db", "embedded:" + self.path("new"))
        self.assertFalse(os.path.exists(self.path("new")))
        self.fails(USAGE, "Processed", "records", "adopt", "--table", "Jobs")
        self.assertEqual(self.json("records", "adopt", *where), {"adopted": 3})
        report = json.loads(self.ok("records", "process", *where, "--json", "--exec", "true"))
        self.assertEqual((report["completed"], report["total"]), (3, 3))

    def test_records_that_cannot_be(self):
        self.fails(USAGE, "not a JSON object", "records", "put", "[]")
        self.fails(USAGE, "", "records", "put", '{"AccountId":"a"}')
        self.fails(USAGE, "missing", "records", "put")
        self.ok("records", "put", '{"AccountId":"a","RunTime":"b"}')
        self.fails(CONDITION, "", "records", "put", "--only-new", '{"AccountId":"a","RunTime":"b"}')
        self.fails(USAGE, "missing option --exec", "records", "process")
        self.fails(USAGE, "cannot be combined", "records", "process", "--exec", "x", "--", "y")


class Forwards(http.server.BaseHTTPRequestHandler):
    """Requests go on to the server, and answers come back as answered() changes them."""
    protocol_version = "HTTP/1.1"

    def asked(self, target):
        """An answer without asking the server: status, bytes."""

    def answered(self, target, body, status, said):
        """None: there is no answer, and the connection is closed."""
        return status, said

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fields = {k: v for k, v in self.headers.items() if k.lower() != "host"}
        target = self.headers["X-Amz-Target"].split(".")[1]
        answer = self.asked(target)
        try:
            if not answer:
                with urllib.request.urlopen(urllib.request.Request(shared.SERVER.url, body, fields),
                                            timeout=WAIT_S) as got:
                    answer = got.status, got.read()
        except urllib.error.HTTPError as error:
            answer = error.code, error.read()
        answer = self.answered(target, body, *answer)
        if not answer:
            self.close_connection = True
            return
        self.send_response(answer[0])
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(answer[1])))
        self.end_headers()
        self.wfile.write(answer[1])

    def log_message(self, *_):
        pass


class Answers(http.server.BaseHTTPRequestHandler):
    """A service that always has the same trouble."""
    status, kind = 400, ""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"__type": "com.amazon.coral.service#" + self.kind,
                           "message": "because\nof \x1b[31m tests"}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Errors(WithDatabase):
    def test_each_class_has_its_code(self):
        for status, kind, code in [(400, "ResourceNotFoundException", NOT_FOUND),
                                   (400, "ConditionalCheckFailedException", CONDITION),
                                   (400, "AccessDeniedException", DENIED),
                                   (400, "UnrecognizedClientException", DENIED),
                                   (400, "ThrottlingException", UNAVAILABLE),
                                   (400, "ProvisionedThroughputExceededException", UNAVAILABLE),
                                   (503, "ServiceUnavailable", UNAVAILABLE),
                                   (400, "ValidationException", USAGE)]:
            with self.subTest(kind):
                handler = type("Handler", (Answers,), {"status": status, "kind": kind})
                server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
                thread = threading.Thread(target=server.serve_forever)
                thread.start()
                try:
                    err = self.fails(code, "", "table", "ls", "--db",
                                     "http://127.0.0.1:%d?attempts=1" % server.server_port)
                finally:
                    server.shutdown()
                    thread.join()
                    server.server_close()
                self.assertEqual(err.count("\n"), 1)
                self.assertNotIn("\x1b", err)

    def test_unreachable_and_slow(self):
        for words in [("table", "ls"), ("lock", "ls"), ("kv", "get", "a"), ("counter", "get", "a")]:
            self.fails(UNAVAILABLE, "127.0.0.1:1", *words, "--db", "http://127.0.0.1:1")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = "http://127.0.0.1:%d" % silent.getsockname()[1]
            begin = time.monotonic()
            self.fails(TIMEOUT, "", "table", "ls", "--db", url, "--timeout", "300ms")
            self.assertLess(time.monotonic() - begin, 10)

    def test_databases_that_cannot_be(self):
        self.fails(USAGE, "ftp://x", "table", "ls", "--db", "ftp://x")
        self.fails(USAGE, "color", "table", "ls", "--db", shared.SERVER.url + "?color=red")
        self.fails(USAGE, "--profile", "table", "ls", "--db", "memory:", "--profile", "x")
        self.fails(NOT_FOUND, "/nowhere", "table", "ls", "--db", "embedded:/nowhere/x")
        self.fails(FAILED, "/nowhere", "kv", "set", "a", "b", "--db", "embedded:/nowhere/x")
        self.fails(USAGE, "'5' is not a time", "table", "ls", "--timeout", "5")
        self.fails(USAGE, "unexpected argument 'x'", "table", "ls", "x")

    def test_embedded(self):
        url = "embedded:" + self.path("db")
        self.ok("kv", "set", "a", "b", "--db", url)
        self.assertEqual(self.ok("kv", "get", "a", "--db", url), "b\n")
        self.assertEqual(self.ok("table", "ls", "--db", url), "keys\n")
        env = dict(self.env, HOLDFAST_PREFIX="")
        self.assertEqual(self.ok("table", "ls", "--db", url, env=env),
                         self.env["HOLDFAST_PREFIX"] + "keys\n")
        holder = self.start("lock", "run", "--db", url, "x", "--", "sh", "-c",
                            "echo on; exec sleep 60")
        holder.stdout.readline()
        self.fails(UNAVAILABLE, "db", "kv", "get", "a", "--db", url)
        self.end(holder)
        for folder, _, names in os.walk(self.path("db")):
            if "CURRENT" in names:
                with open(os.path.join(folder, "CURRENT"), "w", encoding="ascii") as file:
                    file.write("junk\n")
        self.fails(CORRUPT, "db", "kv", "get", "a", "--db", url)

    def test_a_full_disk_behind_the_output(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([COMMAND, "table", "ls", "--json"], stdout=full,
                                  stderr=subprocess.PIPE, env=self.env, timeout=WAIT_S)
        self.assertEqual(done.returncode, FAILED)


class Outbox(WithDatabase):
    def emit(self, *args):
        return self.json("outbox", "emit", *args)["id"]

    def test_events_go_where_they_are_to_go(self):
        first = self.emit("order.placed", '{"id": 7}', "--key", "7", "-H", "who=ann")
        second = self.emit("order.paid", '{"id": 7}', "--key", "7")
        later = self.emit("report", "{}", "--delay", "1h")
        self.assertEqual(self.emit("x", "--id", "mine"), "mine")
        self.fails(CONDITION, "mine", "outbox", "emit", "x", "--id", "mine")
        listed = [e["id"] for e in self.json("outbox", "ls")["events"]]
        self.assertEqual(sorted(listed), sorted([first, second, "mine"]))
        self.assertIn(later, [e["id"] for e in self.json("outbox", "ls", "--later")["events"]])
        stats = self.json("outbox", "stats")
        self.assertEqual((stats["pending"], stats["due"], stats["scheduled"]), (4, 3, 1))
        out = [json.loads(line) for line in self.ok("outbox", "drain", "--to", "stdout:").splitlines()]
        self.assertEqual(len(out), 3)
        order = [e for e in out if e.get("partitionkey") == "7"]
        self.assertEqual([e["id"] for e in order], [first, second])
        self.assertEqual((order[0]["data"], order[0]["who"]), ({"id": 7}, "ann"))
        self.assertEqual(self.json("outbox", "stats")["pending"], 1)

    def test_a_table_with_other_names(self):
        table = self.env["HOLDFAST_PREFIX"] + "outbox"
        keys = [("part", "HASH"), ("place", "RANGE")]
        call("CreateTable", TableName=table, BillingMode="PAY_PER_REQUEST",
             AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key, _ in keys],
             KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys])
        error = self.fails(USAGE, "part", "outbox", "ls")  # it is nobody's yet
        self.assertIn("pk", error)
        call("PutItem", TableName=table, Item={
            "part": {"S": "c"}, "place": {"S": "config"}, "kind": {"S": "outbox"},
            "format": {"N": "1"}, "buckets": {"N": "2"}, "expires_attribute": {"S": "gone"}})
        self.emit("x", "1", "--id", "mine", "--key", "k")
        self.fails(CONDITION, "mine", "outbox", "emit", "x", "--id", "mine")
        self.assertEqual([e["id"] for e in self.json("outbox", "ls")["events"]], ["mine"])
        self.assertEqual(json.loads(self.ok("outbox", "drain", "--to", "stdout:", "--history", "1h"))["id"],
                         "mine")
        self.assertEqual(self.json("outbox", "stats")["published"], 1)
        items = call("Scan", TableName=table)["Items"]
        self.assertTrue(all(("gone" in item) == (item["part"]["S"][0] in "hi" or "stopped" in item)
                            for item in items), items)
        self.assertEqual(self.json("outbox", "cleanup", "--older", "0"), {"deleted": 1})

    def test_errors_say_which_limit_and_why(self):
        code, _, err = self.run_("outbox", "emit", "x" * 1025, "--json")
        self.assertEqual((code, json.loads(err)["error"]["limit"]),
                         (USAGE, {"name": "HF_EVENT_TEXT_MAX", "max": 1024, "actual": 1025}))
        self.emit("x" * 1024)
        path = self.path("events.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"domain": "d", "id": "1", "type": 7}\n')
        self.ok("events", "append", "d/0", "t", "{}")
        _, _, err = self.run_("events", "import", path, "--json")
        error = json.loads(err)["error"]
        self.assertTrue(error["message"].endswith(error["cause"]["message"]), error)
        self.assertEqual((error["code"], error["cause"]["code"]), ("serialization", "serialization"))

    def test_urgent_events_are_first(self):
        for i in range(30):
            self.emit("usual", "{}", "--key", "7")
        first = self.emit("fire", "{}", "--key", "7", "--urgent")
        self.fails(USAGE, "--delay and --urgent", "outbox", "emit", "x", "--delay", "1s", "--urgent")
        listed = self.json("outbox", "ls", "--key", "7")["events"]
        self.assertEqual([e["urgent"] for e in listed], [True] + 30 * [False])
        self.assertEqual(listed[0]["id"], first)
        self.assertIn("true", self.ok("outbox", "ls", "--key", "7").splitlines()[0])
        stats = self.json("outbox", "stats")
        self.assertEqual((stats["pending"], stats["urgent"]), (31, 1))
        self.assertLess(stats["oldest_due_ms"], 3600000)
        self.assertEqual(self.import_({"type": "flood", "key": "7", "urgent": True},
                                      {"type": "usual", "key": "7", "urgent": False}),
                         {"imported": 2, "duplicates": 0, "skipped": 0})
        out = self.ok("outbox", "drain", "--to", "stdout:", "--history", "1h")
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([e["type"] for e in events], ["fire", "flood"] + 31 * ["usual"])
        self.assertEqual([e.get("urgent") for e in events], [True, True] + 31 * [None])
        self.assertEqual(events[0]["time"][:4], time.strftime("%Y", time.gmtime()))
        # what sinks write can be imported as well, and what was delivered be replayed
        self.ok("outbox", "import", "--table", "other", "--from", "cloudevents", input=out)
        self.assertEqual(self.json("outbox", "stats", "--table", "other")["urgent"], 2)
        self.assertEqual(self.json("outbox", "replay", "--key", "7"), {"waiting": 33})
        self.assertEqual([e["type"] for e in self.drained()][:3], ["fire", "flood", "usual"])

    def test_what_fails_is_put_aside(self):
        self.emit("bad", "{}")
        self.emit("bad", "{}")
        code, out, err = self.run_("outbox", "drain", "--to", "exec:/bin/false", "--attempts", "1",
                                   "--json")
        self.assertEqual((code, json.loads(out)["given_up"]), (FAILED, 2))
        self.assertEqual(err.count("is a dead letter now"), 2)
        failed = self.json("outbox", "failed")["events"]
        self.assertEqual([e["state"] for e in failed], ["failed", "failed"])
        causes = self.json("outbox", "stats")["causes"]
        self.assertEqual([c["count"] for c in causes], [2])
        self.assertEqual(len(self.json("outbox", "failed", "--cause", causes[0]["cause"])["events"]), 2)
        self.assertEqual(self.json("outbox", "discard", failed[0]["id"]), {"discarded": 1})
        self.fails(NOT_FOUND, "nonsense", "outbox", "discard", "nonsense")
        self.assertEqual(self.json("outbox", "retry", "--all"), {"waiting": 1})
        path = self.path("events.jsonl")
        self.ok("outbox", "drain", "--to", "file:" + path, "--history", "1h")
        with open(path, encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["id"] for line in file], [failed[1]["id"]])
        self.assertEqual(len(self.json("outbox", "ls", "-s", "history")["events"]), 1)
        self.assertEqual(self.json("outbox", "replay"), {"waiting": 1})
        self.ok("outbox", "drain", "--to", "file:" + path, "--history", "1h")
        self.assertEqual(self.json("outbox", "cleanup", "--older", "0"), {"deleted": 1})

    def drain_for(self, limit, *args):
        """Drain with a limit of a second, or of more if this machine needs that to begin at all."""
        for seconds in 1, 4, 16:
            began = time.monotonic()
            code, out, err = self.run_("outbox", "drain", "--json", limit, "%ds" % seconds, *args)
            self.assertLess(time.monotonic() - began, seconds + WAIT_S / 2)
            left = json.loads(out)["left"]
            if left is not None:
                break
        return code, left, err

    def test_a_drain_ends_and_says_what_is_left(self):
        nobody = "webhook:http://127.0.0.1:9/"  # where nobody listens
        self.emit("x", "{}")
        for limit in "--timeout", "--for":
            code, left, err = self.drain_for(limit, "--to", nobody)
            self.assertEqual((code, left), (TIMEOUT, True), err)
            self.assertIn("the sink cannot be reached", err)
        # --for is for the whole, also while all goes well
        for i in range(20):
            self.emit("x", str(i))
        code, left, err = self.drain_for("--for", "--to", "exec:/bin/sleep 1", "-j", "1")
        self.assertEqual((code, left), (TIMEOUT, True), err)
        # what waits to be tried again is left, too
        code, out, err = self.run_("outbox", "drain", "--to", "exec:/bin/false", "--json")
        self.assertEqual((code, json.loads(out)["left"]), (CONDITION, True), err)
        self.assertIn("events are left", err)
        for option in "--wake", "--no-stream", "--stop-timeout":
            self.fails(USAGE, option, "outbox", "drain", "--to", "stdout:", option, "1s")

    def test_of_one_key_or_tenant(self):
        for key in "7", "8":
            for tenant in "acme", "initech":
                self.emit("order.placed", "{}", "--key", key, "--tenant", tenant)
        self.assertEqual(len(self.json("outbox", "ls", "--key", "7")["events"]), 2)
        self.assertEqual(len(self.json("outbox", "ls", "--key", "7", "--tenant", "acme")["events"]), 1)
        self.assertEqual(len(self.json("outbox", "ls", "--type", "order.*")["events"]), 4)
        self.assertEqual(self.json("outbox", "stats", "--tenant", "acme")["pending"], 2)
        out = self.json("outbox", "drain", "--to", "file:" + self.path("out"), "--tenant", "acme",
                        "--key", "8", "--history", "1h")
        self.assertEqual((out["delivered"], out["left"]), (1, False))
        code, out, _ = self.run_("outbox", "drain", "--to", "exec:/bin/false", "--tenant", "initech",
                                 "--attempts", "1", "--json")
        self.assertEqual((code, json.loads(out)["given_up"], json.loads(out)["left"]), (FAILED, 2, False))
        self.assertEqual(len(self.json("outbox", "failed", "--key", "8")["events"]), 1)
        self.assertEqual(self.json("outbox", "discard", "--all", "--key", "8"), {"discarded": 1})
        self.assertEqual(self.json("outbox", "retry", "--all", "--tenant", "acme"), {"waiting": 0})
        self.assertEqual(self.json("outbox", "retry", "--all", "--tenant", "initech"), {"waiting": 1})
        self.fails(USAGE, "need --all", "outbox", "retry", "some-id", "--tenant", "acme")
        self.assertEqual(self.json("outbox", "replay", "--tenant", "initech"), {"waiting": 0})
        self.assertEqual(self.json("outbox", "replay", "--tenant", "acme"), {"waiting": 1})

    def test_large_payloads(self):
        large, out, blobs = self.path("large"), self.path("out"), "dir:" + self.path("blobs")
        with open(large, "w", encoding="ascii") as file:
            file.write('"' + "x" * 600000 + '"')
        self.fails(CONDITION, "", "outbox", "emit", "photo", "-f", large)
        id_ = self.emit("photo", "-f", large, "--blobs", blobs)
        env = dict(self.env, HOLDFAST_BLOBS=blobs)
        self.ok("outbox", "drain", "--to", "file:" + out, env=env)
        with open(out, encoding="utf-8") as file:
            event = json.loads(file.read())
        self.assertEqual((event["id"], len(event["data"])), (id_, 600000))
        self.assertEqual(self.json("outbox", "sweep", "--blobs", blobs), {"blobs": 0})
        self.fails(USAGE, "--blobs", "outbox", "sweep")

    def test_a_relay_until_a_signal(self):
        first = self.emit("a", "{}")
        relay = self.start("relay", "--to", "stdout:", "--json", "--poll", "50ms")
        self.assertEqual(json.loads(relay.stdout.readline())["id"], first)
        second = self.emit("b", "{}")
        self.assertEqual(json.loads(relay.stdout.readline())["id"], second)
        relay.terminate()
        out, _ = relay.communicate(timeout=WAIT_S)
        self.assertEqual((relay.returncode, json.loads(out)["delivered"]), (0, 2))

    def test_a_relay_is_woken_by_the_stream(self):
        first = self.emit("a", "{}", "--stream")
        relay = self.start("relay", "--to", "stdout:", "--json", "--poll", "1h", "--wake", "20ms")
        self.assertEqual(json.loads(relay.stdout.readline())["id"], first)
        for _ in range(3):
            event = self.emit("b", "{}")
            self.assertEqual(json.loads(relay.stdout.readline())["id"], event)
        relay.terminate()
        out, _ = relay.communicate(timeout=WAIT_S)
        metrics = json.loads(out)
        self.assertEqual((relay.returncode, metrics["delivered"]), (0, 4))
        self.assertGreater(metrics["stream_reads"], 0)
        self.emit("c", "{}")
        relay = self.start("relay", "--to", "stdout:", "--json", "--no-stream")
        relay.stdout.readline()
        relay.terminate()
        out, _ = relay.communicate(timeout=WAIT_S)
        self.assertEqual(json.loads(out)["stream_reads"], 0)

    def stuck_relay(self, *more):
        """A relay whose delivery hangs, as it says on standard error; and the event."""
        program, _ = self.hanging()
        event = self.emit("slow", "{}")
        relay = self.start("relay", "--to", "exec:" + program, "--poll", "50ms", "--stuck", "300ms",
                           *more)
        begun = time.monotonic()
        line = relay.stderr.readline()
        self.assertRegex(line, "^holdfast relay: event %s \\(slow\\) is stuck: its delivery has taken [0-9]+ ms$" % event)
        for_ms = int(line.split()[-2])
        self.assertGreaterEqual(for_ms, 300)
        self.assertLessEqual(for_ms, (time.monotonic() - begun) * 1000 + 1000)
        return relay, program, event

    def test_a_delivery_that_does_not_return_is_told_and_left(self):
        self.stuck_relay()
        other = self.start("relay", "--to", "stdout:", "--poll", "50ms", "--json")
        self.until_it_handles(other, signal.SIGTERM)
        time.sleep(1)  # in which it gets nothing
        other.terminate()
        out, _ = other.communicate(timeout=WAIT_S)
        self.assertEqual(json.loads(out)["delivered"], 0)
        stats = self.json("outbox", "stats")
        self.assertEqual((stats["pending"], stats["failed"]), (1, 0))

    def test_a_delivery_that_does_not_return_is_handed_over(self):
        _, program, event = self.stuck_relay("--if-stuck", "release")
        other = self.start("relay", "--to", "stdout:", "--poll", "50ms")
        self.assertEqual(json.loads(other.stdout.readline())["id"], event)
        self.until(lambda: self.json("outbox", "stats")["pending"] == 0, program)
        self.assertEqual(self.json("outbox", "failed")["events"], [])

    def test_a_delivery_that_does_not_return_is_given_up(self):
        relay, _, event = self.stuck_relay("--if-stuck", "give-up")
        self.until(lambda: self.json("outbox", "failed")["events"], "failed")
        failed = self.json("outbox", "failed")["events"]
        self.assertEqual([(e["id"], e["state"]) for e in failed], [(event, "failed")])
        self.assertIsNone(relay.poll())
        code, _, err = self.run_("relay", "--to", "stdout:", "--stuck", "0")
        self.assertEqual((code, "--stuck: '0' is out of range" in err), (USAGE, True), err)
        code, _, err = self.run_("relay", "--to", "stdout:", "--if-stuck", "kill")
        self.assertEqual((code, "is invalid: use one of leave release give-up" in err), (USAGE, True), err)

    def drained(self):
        out = self.ok("outbox", "drain", "--to", "stdout:")
        return [json.loads(line) for line in out.splitlines()]

    def test_an_event_of_the_past(self):
        self.emit("x", "--time", "2026-01-31T23:59:59.25Z")
        self.assertEqual(self.drained()[0]["time"], "2026-01-31T23:59:59.250000Z")
        self.fails(USAGE, "--time soon", "outbox", "emit", "x", "--time", "soon")

    def import_(self, *lines, options=()):
        return self.json("outbox", "import", *options, input="".join(
            (line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))

    def test_import(self):
        first = {"id": "a", "type": "order.placed", "key": "7", "sequence": 3,
                 "time": "2026-01-31T23:59:59.25Z", "headers": {"who": "ann", "n": 7, "X": [1]},
                 "schema": "2", "source": "shop", "correlation": "c", "causation": "b",
                 "aggregate": "o-7", "aggregate_type": "order", "tenant": "t", "destination": "d",
                 "trace_parent": "p", "trace_state": "s", "id2": None}
        del first["id2"]
        line = json.dumps(first)[:-1] + ', "payload": {"b":1.50,\t"a":"\\u00e9"}}'
        lines = [line, "", {"type": "x", "payload": None}, {"type": "y", "key": None},
                 {"type": "z", "id": "z", "payload_base64": "AP8=", "content_type": "image/x"},
                 {"type": "later", "id": "l", "due": "2999-01-01T00:00:00Z"}]
        self.assertEqual(self.import_(*lines), {"imported": 5, "duplicates": 0, "skipped": 0})
        stored = next(e for e in call("Scan", TableName=self.env["HOLDFAST_PREFIX"] + "outbox")["Items"]
                      if e.get("id") == {"S": "a"} and "payload" in e)
        self.assertEqual(base64.b64decode(stored["payload"]["B"]), b'{"b":1.50,\t"a":"\\u00e9"}')
        out = {event["type"]: event for event in self.drained()}
        self.assertEqual(set(out), {"order.placed", "x", "y", "z"})
        self.assertEqual(out["order.placed"], {
            "specversion": "1.0", "id": "a", "source": "shop", "type": "order.placed",
            "time": "2026-01-31T23:59:59.250000Z", "datacontenttype": "application/json",
            "schemaversion": "2", "subject": "o-7", "aggregatetype": "order", "partitionkey": "7",
            "sequence": "3", "correlationid": "c", "causationid": "b", "tenant": "t",
            "destination": "d", "traceparent": "p", "tracestate": "s", "who": "ann", "n": 7,
            "headersjson": '{"X":[1]}', "data": {"b": 1.5, "a": "\u00e9"}})
        self.assertEqual((out["x"]["data"], "data" in out["y"], out["z"]["data_base64"]),
                         (None, False, "AP8="))
        # again: those with ids are there, and are not delivered again; of the others we cannot know
        self.assertEqual(self.import_(*lines), {"imported": 2, "duplicates": 3, "skipped": 0})
        self.assertEqual({event["type"] for event in self.drained()}, {"x", "y"})
        self.assertEqual(self.import_({"type": "x", "id": "twin"}, {"type": "x", "id": "twin"}),
                         {"imported": 1, "duplicates": 1, "skipped": 0})
        self.assertEqual(self.import_(), {"imported": 0, "duplicates": 0, "skipped": 0})

    def test_import_in_batches_keeps_the_order(self):
        lines = [{"type": "x", "id": "e%d" % i, "key": "k", "payload": i} for i in range(120)]
        path = self.path("lines")
        with open(path, "w", encoding="ascii") as file:
            file.write("\n".join(map(json.dumps, lines)))
        self.assertEqual(self.json("outbox", "import", path)["imported"], 120)
        self.assertEqual([event["data"] for event in self.drained()], list(range(120)))
        # what sinks write can be imported as well, headers and all
        self.emit("y", '{"n": 1}', "--id", "y", "-k", "7", "-H", "a=b", "-H", "B=c", "--sequence", "4")
        first = self.ok("outbox", "drain", "--to", "stdout:")
        self.ok("outbox", "import", "--table", "other", "--from", "cloudevents", input=first)
        self.assertEqual(json.loads(self.ok("outbox", "drain", "--table", "other", "--to", "stdout:")),
                         json.loads(first))

    def test_import_says_what_is_stored(self):
        def fails(error, *lines):
            return self.fails(USAGE, error, "outbox", "import", "--batch", "4",
                              input="\n".join(lines))
        good = ['{"type":"x","id":"%d"}' % i for i in range(10)]
        self.assertIn("line 1: expected a name in quotes; nothing is stored", fails("line 1", "{x"))
        said = fails("line 7: ", *good[:6], '{"type":"x","tpye":"y"}', good[6])
        self.assertIn('"tpye" is not a member of an event', said)
        self.assertIn("lines 1 to 6 are done: 6 imported, 0 duplicates, later lines are not stored",
                      said)
        self.assertEqual(sorted(e["id"] for e in self.drained()), list("012345"))
        # one that the outbox refuses, in the middle of a batch
        said = fails("line 8: ", *good[:6], "", '{"type":"x","key":"%s"}' % ("k" * 1025), good[7])
        self.assertIn("key has 1025 bytes", said)
        self.assertIn("lines 1 to 6 are done: 0 imported, 6 duplicates", said)
        self.assertEqual(self.drained(), [])
        for line, error in (
                ("[]", "not a JSON object"), ("{} {}", "unexpected text after"), ("{}", "has no type"),
                ('{"type":7}', '"type" must be a string'),
                ('{"type":"x","time":"soon"}', '"time" must be a time such as'),
                ('{"type":"x","time":"2026-01-01T00:00:00+1:00"}', '"time" must be'),
                ('{"type":"x","time":"2026-01-01T00:00:00+99:99"}', '"time" must be'),
                ('{"type":"x","sequence":-1}', '"sequence" must be'),
                ('{"type":"x","urgent":"yes"}', '"urgent" must be true or false'),
                ('{"type":"x","urgent":true,"due":"2999-01-01T00:00:00Z"}', "an urgent event is due at once"),
                ('{"type":"x","sequence":18446744073709551616}', '"sequence" must be'),
                ('{"type":"x","payload_base64":"!"}', '"payload_base64" must be base64'),
                ('{"type":"x","payload":1,"payload_base64":""}', "second payload"),
                ('{"type":"x","headers":[]}', '"headers" must be an object'),
                ('{"type":"x","headers":{"n":1e999}}', '"headers" has a value')):
            self.assertIn("nothing is stored", fails(error, line))
        self.fails(USAGE, "nowhere", "outbox", "import", "nowhere")
        self.fails(USAGE, "specversion", "outbox", "import", "--from", "cloudevents", input=good[0])
        self.fails(USAGE, "--failed", "outbox", "import", "--failed", input="")
        self.assertEqual(self.drained(), [])

    def test_import_of_texts(self):
        event = '{"type":"x","key":"%s","content_type":"%s","payload":"hi"}\n'
        self.ok("outbox", "import", input=event % ("1", "text/plain") + event % ("2", "application/json"))
        self.ok("outbox", "import", "--from", "cloudevents",
                input='{"specversion":"1.0","id":"3","source":"s","type":"x","partitionkey":"3",'
                      '"datacontenttype":"text/plain","data":"hi"}\n')
        sent = [json.loads(line) for line in self.ok("outbox", "drain", "--to", "stdout:").splitlines()
                if line.startswith("{")]
        self.assertEqual({e["partitionkey"]: e.get("data", e.get("data_base64")) for e in sent},
                         {"1": "aGk=", "2": "hi", "3": "aGk="})

    def test_import_at_its_limits(self):
        limit = 32 << 20
        for size in limit, limit + 1:  # too large for an event, or for a line
            line = '{"type":"x","payload":"' + "p" * (size - 25) + '"}'
            self.assertEqual(len(line), size)
            got, _, err = self.run_("outbox", "import", input=line)
            self.assertEqual(got, USAGE, err[:200])
            self.assertIn("line 1: ", err)
        large = json.dumps({"type": "x", "id": "l", "payload": "p" * 500000})
        self.assertEqual(self.json("outbox", "import", "--blobs", "dir:" + self.path("blobs"),
                                   input=large)["imported"], 1)

    def test_import_is_interrupted(self):
        process = subprocess.Popen([COMMAND, "outbox", "import"], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.env, start_new_session=True)
        self.addCleanup(self.end, process)
        process.stdin.write('{"type":"x","id":"1"}\n{"type":"x","id":"2"}\n')
        process.stdin.flush()
        self.until(lambda: self.tables() and len(self.json("outbox", "ls")["events"]) == 2, "events")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=WAIT_S), 128 + signal.SIGINT)
        err = process.communicate()[1]
        self.assertIn("lines 1 to 2 are done: 2 imported", err)

    def tables(self):
        return "outbox" in self.ok("table", "ls")

    def forwards(self, handler):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return "http://127.0.0.1:%d" % server.server_port

    def test_import_without_transactions(self):
        """As ScyllaDB is: events are stored one by one, and known again by their id and time."""
        class NoTransactions(Forwards):
            asked_for = []

            def asked(self, target):
                NoTransactions.asked_for.append(target)
                if target.startswith("Transact"):
                    return 400, json.dumps({"__type": "com.amazonaws.dynamodb.v20120810#"
                                                      "UnknownOperationException"}).encode()
                return None

        db = ("--db", self.forwards(NoTransactions))
        lines = [{"type": "x", "id": "e%d" % i, "key": "k", "time": "2026-01-31T00:00:%02dZ" % i,
                  "payload": i} for i in range(20)]
        bare = [{"type": "x", "key": "k", "payload": 20 + i} for i in range(5)]
        self.assertEqual(self.import_(*lines, *bare, options=db),
                         {"imported": 25, "duplicates": 0, "skipped": 0})
        self.assertIn("PutItem", NoTransactions.asked_for)
        self.assertLessEqual(NoTransactions.asked_for.count("TransactWriteItems"), 1)  # the question
        self.assertEqual(self.import_(*lines[:10], options=db),
                         {"imported": 0, "duplicates": 10, "skipped": 0})
        err = self.fails(USAGE, "line 2: ", "outbox", "import", *db, input="\n".join(
            ['{"type":"y","key":"k","payload":25}', '{"type":"y","id":"no-time"}', '{"type":"y"}']))
        self.assertIn("time", err)
        self.assertIn("lines 1 to 1 are done: 1 imported", err)
        out = self.ok("outbox", "drain", "--to", "stdout:", *db).splitlines()
        self.assertEqual([json.loads(line)["data"] for line in out if line.startswith("{")],
                         list(range(26)))
        self.assertEqual(self.json("outbox", "stats", *db)["pending"], 0)

    def test_import_says_what_may_be_stored(self):
        """The second batch is stored, and no answer to it ever arrives."""
        class Proxy(Forwards):
            transactions = 0

            def answered(self, target, body, status, said):
                Proxy.transactions += target == "TransactWriteItems" and b'"type"' in body
                return None if Proxy.transactions > 1 else (status, said)

        url = self.forwards(Proxy)
        lines = "".join('{"type":"x","id":"%d"}\n' % i for i in range(6))
        code, _, err = self.run_("outbox", "import", "--batch", "2", "--timeout", "20s", "--json", "--db",
                                 url, input=lines)
        self.assertIn(code, (UNAVAILABLE, TIMEOUT), err)
        self.assertTrue(json.loads(err)["error"]["may_have_happened"])
        self.assertIn("lines 1 to 2 are done: 2 imported, 0 duplicates, lines 3 to 4 may be stored, "
                      "later lines are not", err)
        self.assertEqual(self.json("outbox", "import", input=lines),
                         {"imported": 2, "duplicates": 4, "skipped": 0})

    def test_import_of_rows_of_other_libraries(self):
        rows = [{"id": {"S": "a1"}, "type": {"S": "order.placed"}, "status": {"S": "created"},
                 "payload": {"M": {"total": {"N": "9.50"}, "tags": {"L": [{"NULL": True}]}}},
                 "occurredAt": {"S": "2026-01-31T23:59:59.250Z"}, "retryCount": {"N": "1"},
                 "gsiSortKey": {"N": "1769903999250"}, "lastError": {"S": "no"}},
                {"id": "a2", "type": "x", "status": "active", "payload": "text", "gsiSortKey": 1,
                 "occurredAt": "2026-01-31T23:59:59.250Z", "metadata": {"who": "ann"}},
                {"Item": {"id": {"S": "a3"}, "type": {"S": "x"}, "status": {"S": "completed"}}},
                {"id": "a4", "type": "x", "status": "failed"},
                {"id": "a5", "type": "later", "status": "created", "gsiSortKey": 32472144000000},
                {"id": "a6", "type": "later", "status": "created", "gsiSortKey": 32472144000000,
                 "occurredAt": "2999-01-01T00:00:00.000Z"},
                {"id": "a7", "type": "x", "status": "COMPLETED"}]  # of its first versions
        bus = ("--from", "outbox-event-bus")
        self.assertEqual(self.import_(*rows, options=bus),
                         {"imported": 4, "duplicates": 0, "skipped": 3})
        self.assertEqual(self.import_(*rows, options=(*bus, "--failed")),
                         {"imported": 1, "duplicates": 4, "skipped": 2})
        out = {event["id"]: event for event in self.drained()}
        self.assertEqual(set(out), {"a1", "a2", "a4"})
        self.assertEqual((out["a1"]["data"], out["a1"]["time"]),
                         ({"total": 9.5, "tags": [None]}, "2026-01-31T23:59:59.250000Z"))
        self.assertEqual((out["a2"]["data"], out["a2"]["who"]), ("text", "ann"))
        self.fails(USAGE, '"type" is missing', "outbox", "import", *bus, input='{"id":"a"}')
        self.fails(USAGE, '"id" is missing', "outbox", "import", *bus, input='{"type":"a"}')
        self.fails(USAGE, "line 1: ", "outbox", "import", *bus, input='{"id":{"Q":"a"}}')
        self.fails(USAGE, '"occurredAt" must be', "outbox", "import", *bus,
                   input='{"id":"a","type":"b","occurredAt":"x"}')
        self.fails(USAGE, '"status" must be created', "outbox", "import", *bus,
                   input='{"id":"a","type":"b","status":"x"}')

        rows = [{"pk": {"S": "orders"}, "sk": {"S": "b1"}, "messageType": {"S": "OrderPlaced"},
                 "payload": {"S": base64.b64encode(b'{"n": 1}').decode()},
                 "headers": {"S": '{"who":"ann"}'}, "isPublished": {"BOOL": False},
                 "createdAt": {"S": "2026-02-01T01:59:59.1234567+02:00"}, "retryCount": {"N": "0"},
                 "aggregateId": {"S": "7"}, "aggregateType": {"S": "order"},
                 "correlationId": {"S": "c"}, "causationId": {"S": "d"},
                 "tenantId": {"S": "__untenanted__"}, "destination": {"S": "q"}},
                {"pk": "orders", "sk": "b2", "messageType": "x", "payload": "AP8=", "tenantId": "t"},
                {"pk": "orders", "sk": "b3", "messageType": "x", "isPublished": True}]
        excalibur = ("--from", "excalibur")
        self.assertEqual(self.import_(*rows, options=excalibur),
                         {"imported": 2, "duplicates": 0, "skipped": 1})
        out = self.drained()
        self.assertEqual(out[0], {
            "specversion": "1.0", "id": "b1", "source": "holdfast", "type": "OrderPlaced",
            "time": "2026-01-31T23:59:59.123456Z", "datacontenttype": "application/json",
            "subject": "7", "aggregatetype": "order", "partitionkey": "orders",
            "correlationid": "c", "causationid": "d", "destination": "q", "who": "ann",
            "data": {"n": 1}})
        self.assertEqual((out[1]["data_base64"], out[1]["datacontenttype"], out[1]["tenant"]),
                         ("AP8=", "application/octet-stream", "t"))
        self.fails(USAGE, '"payload" must be base64', "outbox", "import", *excalibur,
                   input='{"sk":"a","messageType":"b","payload":"!"}')

        rows = [{"PK": {"S": "OUTBOX#Staged"}, "SK": {"S": "00000#x#d1"}, "messageId": {"S": "d1"},
                 "messageType": {"S": "OrderPlaced"}, "payload": {"B": base64.b64encode(b'{"n": 1}').decode()},
                 "destination": {"S": "q"}, "createdAt": {"S": "2026-02-01T00:00:00.0000000+00:00"},
                 "status": {"N": "0"}, "priority": {"N": "0"}, "retryCount": {"N": "0"}},
                {"PK": {"S": "OUTBOX#Sent"}, "messageId": {"S": "d2"}, "messageType": {"S": "x"}},
                {"PK": {"S": "OUTBOX#Failed"}, "messageId": {"S": "d3"}, "messageType": {"S": "x"}}]
        data = ("--from", "excalibur-data")
        self.assertEqual(self.import_(*rows, options=data), {"imported": 1, "duplicates": 0, "skipped": 2})
        self.assertEqual(self.import_(*rows, options=(*data, "--failed")),
                         {"imported": 1, "duplicates": 1, "skipped": 1})
        self.assertEqual({event["id"] for event in self.drained()}, {"d1", "d3"})
        self.fails(USAGE, '"PK" must be OUTBOX#', "outbox", "import", *data,
                   input='{"PK":"x","messageId":"a","messageType":"b"}')

    def test_relays_of_a_paused_outbox_wait(self):
        sink = os.path.join(self.dir, "events.jsonl")
        self.json("outbox", "emit", "t", "{}")
        self.ok("outbox", "pause", "--why", "the shop is down")
        stats = self.json("outbox", "stats")
        self.assertEqual((stats["paused"], stats["paused_why"], stats["pending"]),
                         (True, "the shop is down", 1))
        code, _, err = self.run_("outbox", "drain", "--to", "file:" + sink, "--timeout", "1s")
        self.assertNotEqual(code, 0)
        self.assertIn("paused", err)
        self.ok("outbox", "resume")
        self.json("outbox", "drain", "--to", "file:" + sink)
        stats = self.json("outbox", "stats")
        self.assertEqual((stats["paused"], stats["pending"]), (False, 0))

    def test_outbox_that_cannot_be(self):
        self.fails(USAGE, "missing", "outbox", "drain")
        self.fails(USAGE, "begins with", "outbox", "drain", "--to", "nonsense:x")
        code, _, err = self.run_("relay")
        self.assertEqual((code, "holdfast relay: missing option --to" in err), (USAGE, True))
        self.fails(USAGE, "NAME=VALUE", "outbox", "emit", "x", "-H", "novalue")
        self.fails(USAGE, "cannot be combined", "outbox", "emit", "x", "{}", "-f", "-")
        self.fails(USAGE, "missing", "outbox", "retry")
        self.fails(USAGE, "cannot be combined", "outbox", "retry", "a", "--all")

    def test_policies(self):
        policy = self.json_of("iam", "outbox", "--role", "relay", "--region", "eu-west-1",
                              "--account", "123456789012", "--stream")
        table, stream = policy["Statement"]
        self.assertEqual(table["Resource"], "arn:aws:dynamodb:eu-west-1:123456789012:table/outbox")
        self.assertEqual(stream["Resource"], table["Resource"] + "/stream/*")
        self.assertIn("dynamodb:Query", table["Action"])
        producer = self.json_of("iam", "outbox")["Statement"][0]["Action"]
        self.assertNotIn("dynamodb:DeleteItem", producer)
        self.fails(USAGE, "ARN", "iam", "outbox", "--table", 'a"b')
        index = self.json_of("iam", "records", "--role", "processor", "--table", "r")["Statement"][1]
        self.assertEqual((index["Action"], index["Resource"]),
                         (["dynamodb:Query"], "arn:aws:dynamodb:*:*:table/r/index/*"))
        keys = self.json_of("iam", "kv", "--partitioned")["Statement"][0]["Resource"]
        self.assertEqual(keys, "arn:aws:dynamodb:*:*:table/partitioned_keys")
        self.fails(USAGE, "missing option --table", "iam", "streams")

    def json_of(self, *args):
        return json.loads(self.ok(*args))


class Events(WithDatabase):
    def append(self, *args):
        return self.json("events", "append", *args)

    def lines(self, *args, **more):
        return [json.loads(line) for line in self.ok("events", *args, **more).splitlines()]

    def three(self):
        """placed and shipped in order/7, paid in ledger/2026, which placed led to."""
        placed = self.append("order/7", "placed", '{"pieces": 2}', "--expect", "none")
        paid = self.append("ledger/2026", "paid", "--id", "pay-1", "--cause", placed["ids"][0])
        shipped = self.append("order/7", "shipped", "--expect", "1")
        return placed["ids"][0], paid["ids"][0], shipped["ids"][0]

    def test_append_and_read(self):
        first = self.append("order/7", "placed", '{"pieces": 2}', "-m", "by=ann", "--schema", "3",
                            "--time", "2026-11-15T09:30:00.25Z")
        self.assertEqual((first["stream"], first["first"], first["version"], first["repeated"]),
                         ("order/7", 1, 1, False))
        self.assertEqual(first["ids"], [first["position"]])
        with open(self.path("p"), "wb") as file:
            file.write(b"\x00\xff binary")
        second = self.append("order/7", "scan", "-f", self.path("p"), "--content-type",
                             "image/png", "--id", "mine", "--expect", "1")
        self.assertEqual((second["version"], second["ids"]), (2, ["mine"]))
        events = self.json("events", "read", "order/7")["events"]
        self.assertEqual([(e["domain"], e["stream"], e["version"], e["type"]) for e in events],
                         [("order", "7", 1, "placed"), ("order", "7", 2, "scan")])
        self.assertEqual(events[0]["payload"], {"pieces": 2})
        self.assertEqual((events[0]["meta"], events[0]["schema"], events[0]["time"]),
                         ({"by": {"S": "ann"}}, 3, "2026-11-15T09:30:00.250000Z"))
        self.assertEqual(base64.b64decode(events[1]["payload_base64"]), b"\x00\xff binary")
        self.assertEqual(self.json("events", "get", "mine")["version"], 2)
        done = subprocess.run([COMMAND, "events", "get", "mine", "--payload"], env=self.env,
                              capture_output=True, timeout=WAIT_S, check=True)
        self.assertEqual(done.stdout, b"\x00\xff binary")
        line = self.ok("events", "read", "order/7", "--limit", "1").split("\t")
        self.assertEqual(line[:5], ["order/7", "1", "placed", "2026-11-15T09:30:00.250Z",
                                    first["ids"][0]])
        self.assertEqual(line[5], '{"pieces": 2}\n')
        self.assertEqual(self.ok("events", "read", "nothing/here"), "")

    def test_expectations(self):
        self.fails(CONDITION, "order/7", "events", "append", "order/7", "x", "--expect", "exists")
        self.append("order/7", "x", "--expect", "none")
        err = self.fails(CONDITION, "order/7", "events", "append", "order/7", "x", "-e", "none")
        self.assertIn("1", err)
        self.append("order/7", "x", "--expect", "1")
        self.append("order/7", "x", "--expect", "exists")
        self.fails(CONDITION, "version 3", "events", "append", "order/7", "x", "--expect", "2")
        self.fails(CONDITION, "version 3", "events", "append", "order/7", "x", "--expect", "0")
        self.fails(USAGE, "--expect: 'some'", "events", "append", "order/7", "x", "-e", "some")
        self.assertEqual(self.json("events", "info", "order/7")["version"], 3)

    def test_an_id_is_taken_once(self):
        first = self.append("order/7", "x", "{}", "--id", "a", "--time", "2026-01-01")
        again = self.append("order/7", "x", "{}", "--id", "a", "--time", "2026-01-01")
        self.assertEqual((again["repeated"], again["version"]), (True, first["version"]))
        self.fails(CONDITION, "a", "events", "append", "order/8", "x", "{}", "--id", "a")
        self.fails(NOT_FOUND, "nobody", "events", "append", "order/7", "x", "--cause", "nobody")
        self.fails(NOT_FOUND, "nobody", "events", "get", "nobody")

    def test_streams_of_any_name(self):
        for name in ("a%2Fb/c/d", "100%25/%41", "empty", "ü/ö"):
            self.assertEqual(self.append(name, "x")["stream"], name)
            self.assertEqual(len(self.json("events", "read", name)["events"]), 1)
        self.assertEqual(self.append("empty/", "x")["version"], 2)
        event = self.json("events", "read", "a%2Fb/c/d")["events"][0]
        self.assertEqual((event["domain"], event["stream"]), ("a/b", "c/d"))
        self.fails(USAGE, "no domain", "events", "read", "/7")
        self.fails(USAGE, "two hex digits", "events", "read", "a%/7")
        names = sorted(s["stream"] for s in self.json("events", "ls")["streams"])
        self.assertEqual(names, sorted(["a%2Fb/c/d", "100%25/%41", "empty", "ü/ö"]))

    def test_lines(self):
        text = "\n".join(['{"type":"a","payload":{"n": 1.50}}', "",
                          '{"type":"b","domain":"ledger","stream":"x","id":"l1"}',
                          '  {"type":"c","time":"2026-11-15T09:30:00Z","meta":{"k":{"N":"1"}}}  '])
        out = json.loads(self.ok("events", "append", "order/7", "--lines", "-", "--json",
                                 input=text))
        self.assertEqual([(a["stream"], a["first"], a["version"]) for a in out["appended"]],
                         [("order/7", 1, 2), ("ledger/x", 1, 1)])
        self.assertEqual(out["appended"][1]["ids"], ["l1"])
        events = self.lines("read", "order/7", "--jsonl")
        self.assertEqual([e["type"] for e in events], ["a", "c"])
        self.assertIn('"payload":{"n": 1.50}', self.ok("events", "read", "order/7", "--jsonl"))
        self.ok("events", "append", "--lines", "-", input='{"type":"d","domain":"order","stream":"7"}')
        self.assertEqual(self.json("events", "info", "order/7")["version"], 3)
        for bad, error in (("{}", "event 1"), ("[]", "not a JSON object"), ("{", "event 1"), ("", "no events"),
                           ('{"type":"x","colour":1}', "colour"), ('{"type":7}', "event 1")):
            self.fails(USAGE, error, "events", "append", "order/7", "-l", "-", input=bad)
        self.fails(USAGE, "event 2", "events", "append", "order/7", "-l", "-",
                   input='{"type":"x"}\n{"type":')
        self.fails(USAGE, "domain", "events", "append", "-l", "-", input='{"type":"x"}')
        many = "".join('{"type":"x","domain":"s","stream":"%d"}\n' % n for n in range(21))
        self.fails(USAGE, "more streams", "events", "append", "-l", "-", input=many)
        self.fails(USAGE, "cannot be combined", "events", "append", "order/7", "x", "-l", "-", input="")
        self.fails(USAGE, "missing", "events", "append", "order/7")
        self.fails(USAGE, "cannot be combined", "events", "append", "order/7", "x", "{}", "-f", "-", input="")
        self.fails(USAGE, "NAME=VALUE", "events", "append", "order/7", "x", "-m", "=x")
        self.fails(USAGE, "--time", "events", "append", "order/7", "x", "--time", "noon")
        self.assertEqual(self.json("events", "info", "order/7")["version"], 3)

    def test_parts_of_a_stream(self):
        text = "".join('{"type":"t%d","time":"2026-01-0%dT00:00:00Z"}\n' % (n, n)
                       for n in range(1, 8))
        self.ok("events", "append", "s/1", "-l", "-", input=text)

        def types(*args):
            return [e["type"] for e in self.lines("read", "s/1", "--jsonl", *args)]
        self.assertEqual(types("--from", "3", "--to", "5"), ["t3", "t4", "t5"])
        self.assertEqual(types("--reverse", "--limit", "2"), ["t7", "t6"])
        self.assertEqual(types("--reverse", "--from", "3"), ["t3", "t2", "t1"])
        self.assertEqual(types("--since", "2026-01-03", "--before", "2026-01-05"), ["t3", "t4"])
        page = self.json("events", "read", "s/1", "--limit", "3")
        self.assertEqual((len(page["events"]), page["next"]), (3, "4"))
        self.assertNotIn("next", self.json("events", "read", "s/1", "--limit", "7", "--from", "2"))
        self.fails(USAGE, "--since", "events", "read", "s/1", "--since", "now")

    def test_looking_makes_nothing(self):
        for words in ["get", "x"], ["info", "a/1"], ["tree", "x"], ["subscribe", "--until-end"]:
            self.fails(NOT_FOUND, "event", "events", *words)
        self.assertEqual(self.json("events", "verify")["streams"], 0)
        self.assertEqual(self.ok("events", "export"), "")
        for words in (["read", "a/1"], ["all"], ["ls"], ["caused", "x"], ["correlated", "x"]):
            self.assertEqual(self.ok("events", *words), "")
        self.assertEqual(self.ok("table", "ls"), "")

    def test_all(self):
        self.ok("events", "import", "/dev/null")
        self.assertEqual(self.json("events", "all"), {"events": []})
        ids = self.three()
        events = self.lines("all", "--jsonl")
        self.assertEqual([e["id"] for e in events], list(ids))
        self.assertEqual([e["position"] for e in events], sorted(e["position"] for e in events))
        whole = self.json("events", "all")
        self.assertEqual([e["id"] for e in whole["events"]], list(ids))
        self.assertEqual(self.json("events", "all", "--after", whole["next"])["events"], [])
        page = self.json("events", "all", "--limit", "2")
        self.assertEqual([e["id"] for e in page["events"]], list(ids[:2]))
        self.assertEqual([e["id"] for e in self.json("events", "all", "--after",
                                                     page["next"])["events"]], [ids[2]])
        self.assertEqual([e["type"] for e in self.lines("all", "--jsonl", "-d", "order")],
                         ["placed", "shipped"])
        self.assertEqual([e["type"] for e in self.lines("all", "--jsonl", "-t", "p*")],
                         ["placed", "paid"])
        self.assertEqual(len(self.lines("all", "--jsonl", "--until", events[1]["position"])), 2)
        self.assertEqual(len(self.lines("all", "--jsonl", "--since", "1h")), 3)
        self.assertEqual(self.lines("all", "--jsonl", "--since", "2999-01-01"), [])
        self.assertEqual(len(self.ok("events", "all").splitlines()), 3)
        self.fails(USAGE, "cannot be combined", "events", "all", "--after", "x", "--since", "1h")

    def test_what_led_to_what(self):
        placed, paid, _ = self.three()
        mailed = self.append("mail/1", "mailed", "--cause", paid)["ids"][0]
        tree = self.json("events", "tree", placed)
        self.assertEqual(tree["event"]["id"], placed)
        self.assertEqual([c["event"]["id"] for c in tree["children"]], [paid])
        self.assertEqual([c["event"]["id"] for c in tree["children"][0]["children"]], [mailed])
        lines = self.ok("events", "tree", placed).splitlines()
        self.assertEqual(lines, ["placed  order/7 1  " + placed, "  paid  ledger/2026 1  " + paid,
                                 "    mailed  mail/1 1  " + mailed])
        self.assertEqual([e["id"] for e in self.lines("caused", placed, "--jsonl")], [paid])
        self.assertEqual([e["id"] for e in self.lines("correlated", placed, "--jsonl")],
                         [placed, paid, mailed])
        event = self.json("events", "get", mailed)
        self.assertEqual((event["causation"], event["correlation"]), (paid, placed))
        self.fails(CONDITION, "", "events", "tree", placed, "--depth", "1")
        self.fails(NOT_FOUND, "nobody", "events", "tree", "nobody")

    def test_streams_that_end(self):
        for n in range(5):
            self.append("meter/1", "read%d" % n)
        self.append("order/7", "x")
        info = self.json("events", "truncate", "meter/1", "3")
        self.assertEqual((info["first"], info["version"]), (3, 5))
        self.assertEqual([e["version"] for e in self.lines("read", "meter/1", "--jsonl")], [3, 4, 5])
        self.fails(USAGE, "", "events", "truncate", "meter/1", "99")
        self.fails(USAGE, "is not a version", "events", "truncate", "meter/1", "x")
        info = self.json("events", "limit", "meter/1", "--max-count", "2")
        self.assertEqual((info["max_count"], info["max_age_s"]), (2, 0))
        info = self.json("events", "limit", "meter/1", "--max-age", "720h")
        self.assertEqual((info["max_count"], info["max_age_s"]), (2, 720 * 3600))
        self.assertEqual([e["version"] for e in self.lines("read", "meter/1", "--jsonl")], [4, 5])
        self.fails(USAGE, "missing", "events", "limit", "meter/1")
        self.fails(NOT_FOUND, "meter/9", "events", "limit", "meter/9", "--max-count", "1")
        self.assertTrue(self.json("events", "archive", "order/7")["archived"])
        self.assertEqual({e["domain"] for e in self.lines("all", "--jsonl")}, {"meter"})
        self.assertIn("order", {e["domain"] for e in self.lines("all", "--jsonl", "--archived")})
        self.fails(CONDITION, "order/7", "events", "append", "order/7", "x")
        self.assertFalse(self.json("events", "unarchive", "order/7")["archived"])
        self.append("order/7", "x")
        self.fails(USAGE, "--yes", "events", "delete", "meter/1")
        self.fails(CONDITION, "5", "events", "delete", "meter/1", "--yes", "--expect", "4")
        self.assertTrue(self.json("events", "delete", "meter/1", "--yes")["deleted"])
        self.fails(CONDITION, "meter/1", "events", "read", "meter/1")
        self.fails(CONDITION, "meter/1", "events", "append", "meter/1", "x")
        self.assertEqual([s["stream"] for s in self.json("events", "ls", "order")["streams"]],
                         ["order/7"])
        self.assertEqual(set(self.json("events", "sweep")), {"events", "aside", "blobs"})

    def test_export_and_import(self):
        self.three()
        self.append("order/8", "scan", "a\tb\nc", "--content-type", "text/plain")
        lines = self.ok("events", "export")
        self.assertEqual(len(lines.splitlines()), 4)
        path = self.path("out.jsonl")
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        for mode in 0o600, 0o644:  # a new file is for its owner alone, others keep their mode
            self.assertEqual(self.json("events", "export", "-f", path), {"exported": 4})
            self.assertEqual(os.stat(path).st_mode & 0o7777, mode)
            os.chmod(path, 0o644)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), lines)
        self.assertEqual(os.listdir(self.dir), ["out.jsonl"])
        url = "embedded:" + self.path("copy")
        self.assertEqual(self.json("events", "import", path, "--db", url), {"imported": 4})
        with open(path, encoding="utf-8") as file:
            self.assertEqual(self.json("events", "import", "-", "--db", url, stdin=file),
                             {"imported": 0})

        def contents(text):
            return [{k: v for k, v in json.loads(line).items() if k not in ("position", "hash")}
                    for line in text.splitlines()]
        self.assertEqual(contents(self.ok("events", "export", "--db", url)), contents(lines))
        self.fails(USAGE, "--yes", "events", "import", path, "--replace", "--db", url)
        self.assertEqual(self.json("events", "import", path, "--replace", "--yes", "--db", url),
                         {"imported": 4})
        self.assertEqual(len(self.ok("events", "export", "-d", "order").splitlines()), 3)
        with open(path, "a", encoding="utf-8") as file:
            file.write("nonsense\n")
        self.fails(USAGE, "line 5", "events", "import", path, "--db", url)
        self.fails(USAGE, "/nowhere", "events", "import", "/nowhere/x")
        self.fails(USAGE, "/nowhere", "events", "export", "-f", "/nowhere/x")
        self.assertEqual(self.json("events", "export", "-f", "/dev/null"), {"exported": 4})
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([COMMAND, "events", "export"], stdout=full, timeout=WAIT_S,
                                  stderr=subprocess.PIPE, env=self.env)
        self.assertEqual(done.returncode, FAILED)

    def test_a_signal_while_waiting_for_input(self):
        process = subprocess.Popen([COMMAND, "events", "import"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while "events" not in self.ok("table", "ls"):
            time.sleep(0.05)
        process.stdin.write(b'{"domain":"a","stream":"1","type":"x","id":"1"}\n')
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(WAIT_S), 128 + signal.SIGINT)

    def test_a_program_may_finish(self):
        self.three()
        path = self.path("done")
        process = self.start("events", "subscribe", "--", "sh", "-c",
                             "echo on; sleep 1; echo done > " + path)
        self.assertEqual(process.stdout.readline(), "on\n")
        process.terminate()
        process.communicate(timeout=WAIT_S)
        self.assertEqual((process.returncode, os.path.exists(path)), (0, True))

    def on_terminal(self, *args):
        """What a command says on a terminal."""
        main, side = os.openpty()
        done = subprocess.run([COMMAND, *args], stdout=subprocess.PIPE, stderr=side, env=self.env,
                              timeout=WAIT_S)
        os.write(side, b".")
        os.close(side)
        said = os.read(main, 10000)
        os.close(main)
        self.assertEqual(done.returncode, 0, said)
        return said

    @unittest.skipUnless(shutil.which("jq"), "no jq")
    def test_the_recipe_of_the_manual_loses_nothing(self):
        """docs/moving.md: events of another store, as its export has them."""
        with open(os.path.join(SOURCE, "docs/moving.md"), encoding="utf-8") as file:
            program = re.search(r"(?s)    jq -c '(def value.*?)' \\", file.read()).group(1)
        events = [{"id": "1", "domain": "order", "identifier": "7", "type": "placed", "sequence": 1,
                   "created": "2026-01-31T23:59:59.250Z", "payload": None,
                   "meta": {"schemaVersion": 2, "by": "ann", "n": 1.5, "ok": True, "no": None,
                            "list": ["a", {"b": 0}]}},
                  {"id": "2", "domain": "order", "identifier": "7", "type": "paid", "sequence": 2,
                   "created": "2026-01-31T23:59:59.251Z", "payload": {"total": 0, "text": ""},
                   "causationId": "1", "correlationId": "1", "meta": {"schemaVersion": 1}},
                  {"id": "3", "domain": "order", "identifier": "7", "type": "noted", "sequence": 3,
                   "created": "2026-01-31T23:59:59.252Z"}]
        lines = subprocess.run(["jq", "-c", program], input="\n".join(map(json.dumps, events)),
                               capture_output=True, text=True, check=True, timeout=WAIT_S).stdout
        self.assertEqual(self.json("events", "import", input=lines), {"imported": 3})
        first, second, third = [json.loads(line) for line in
                                self.ok("events", "export").splitlines()]
        self.assertEqual((first["payload"], first["schema"], first["time"][:23]),
                         (None, 2, "2026-01-31T23:59:59.250"))
        self.assertEqual(first["meta"], {
            "by": {"S": "ann"}, "n": {"N": "1.5"}, "ok": {"BOOL": True}, "no": {"NULL": True},
            "list": {"L": [{"S": "a"}, {"M": {"b": {"N": "0"}}}]}})
        self.assertEqual((second["payload"], second["causation"], second["correlation"]),
                         ({"total": 0, "text": ""}, "1", "1"))
        self.assertNotIn("meta", second)
        self.assertNotIn("payload", third)

    def test_progress_on_a_terminal(self):
        self.three()
        self.assertIn(b"events exported",
                      self.on_terminal("events", "export", "-f", "/dev/null", "--batch", "1"))
        self.assertIn(b"6 of 6 events verified", self.on_terminal("events", "verify"))
        self.assertNotIn(b"verified", self.on_terminal("events", "verify", "--quiet"))
        path = self.path("lines")
        with open(path, "w", encoding="ascii") as file:
            file.write('{"type":"x"}\n' * 3)
        self.assertIn(b"3 lines done", self.on_terminal("outbox", "import", path))
        self.assertNotIn(b"done", self.on_terminal("outbox", "import", path, "--quiet"))
        self.assertEqual(self.run_("events", "verify")[2], "")

    def test_verify(self):
        self.three()
        self.assertEqual(self.json("events", "verify"), {"streams": 2, "events": 3})
        self.assertEqual(self.json("events", "verify", "order/7"), {"streams": 1, "events": 2})
        prefix = self.env["HOLDFAST_PREFIX"]
        items = call("Scan", TableName=prefix + "events")["Items"]
        event = next(i for i in items if i["pk"]["S"].startswith("s.") and "paid" in str(i))
        text = json.dumps(event).replace("paid", "gift")
        call("PutItem", TableName=prefix + "events", Item=json.loads(text))
        code, out, err = self.run_("events", "verify", "--json")
        self.assertEqual(code, CORRUPT, err)
        self.assertIn("ledger/2026", err)
        self.assertEqual((json.loads(out)["bad_stream"], json.loads(out)["bad_version"]),
                         ("ledger/2026", 1))
        self.ok("events", "verify", "order/7")
        self.ok("events", "append", "s/1", "x", "--no-chain", "--table", "plain")
        self.fails(FAILED, "chain", "events", "verify", "--table", "plain")

    def blobs(self, folder):
        return sum(name != "FORMAT" for _, _, names in os.walk(self.path(folder)) for name in names)

    def test_large_payloads(self):
        path, blobs = self.path("large"), "dir:" + self.path("blobs")
        with open(path, "w", encoding="ascii") as file:
            file.write('"' + "x" * 600000 + '"')
        self.fails(CONDITION, "blob", "events", "append", "photo/1", "taken", "-f", path)
        self.append("photo/1", "taken", "-f", path, "--blobs", blobs)
        self.append("photo/2", "taken", "-f", path, "--blobs", blobs)
        event = self.json("events", "read", "photo/1", "--blobs", blobs)["events"][0]
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        self.assertEqual((len(event["payload"]), event["blob"]), (600000, digest))
        self.assertEqual(self.blobs("blobs"), 1)  # for both
        env = dict(self.env, HOLDFAST_BLOBS=blobs)
        self.assertEqual(len(self.ok("events", "export", env=env).splitlines()), 2)
        url = "embedded:" + self.path("db")
        self.append("photo/1", "taken", "-f", path, "--db", url)
        self.assertEqual(self.blobs("db/blobs"), 1)
        small = self.append("photo/3", "taken", '"%s"' % ("x" * 999), "--db", url, "--blob-bytes",
                            "500")
        self.assertEqual(self.json("events", "get", small["ids"][0], "--db", url)["payload"],
                         "x" * 999)
        self.assertEqual(self.blobs("db/blobs"), 2)
        self.append("photo/1", "taken", "-f", path, "--db", url, "--prefix", "p-")
        self.assertEqual(self.json("blobs", "ls", "--db", url), {"blobs": []})
        for prefix, count in ((self.env["HOLDFAST_PREFIX"], 2), ("p-", 1)):
            listed = self.json("blobs", "ls", "--db", url, "--part", prefix + "events")["blobs"]
            self.assertEqual(len(listed), count)

    def test_subscribe_without_a_name(self):
        ids = self.three()
        self.assertEqual([e["id"] for e in self.lines("subscribe", "--until-end")], list(ids))
        self.assertEqual([e["id"] for e in self.lines("subscribe", "--count", "2")], list(ids[:2]))
        self.assertEqual([e["version"] for e in self.lines("subscribe", "-s", "order/7",
                                                           "--until-end")], [1, 2])
        self.assertEqual([e["version"] for e in self.lines("subscribe", "-s", "order/7", "--after",
                                                           "1", "--until-end")], [2])
        follower = self.start("events", "subscribe", "--domain", "order", "--poll", "20ms")
        for id_ in (ids[0], ids[2]):
            self.assertEqual(json.loads(follower.stdout.readline())["id"], id_)
        # When it begins to look it does not say: so events are added until it sees one of them.
        process = self.start("events", "subscribe", "--latest", "--poll", "20ms")
        later = []
        while not later or not select.select([process.stdout], [], [], 0.5)[0]:
            later.append(self.append("order/9", "placed")["ids"][0])
            self.assertEqual(json.loads(follower.stdout.readline())["id"], later[-1])
            self.assertLess(len(later), 2 * WAIT_S)
        seen = json.loads(process.stdout.readline())["id"]
        self.assertIn(seen, later)
        for id_ in later[later.index(seen) + 1:]:
            self.assertEqual(json.loads(process.stdout.readline())["id"], id_)
        for one, number in ((process, signal.SIGTERM), (follower, signal.SIGINT)):
            one.send_signal(number)
            self.assertEqual(one.communicate(timeout=WAIT_S), ("", ""))
            self.assertEqual(one.returncode, 0)
        self.fails(USAGE, "cannot be combined", "events", "subscribe", "--latest", "--since", "1h")
        self.fails(USAGE, "--stream", "events", "subscribe", "-s", "a/1", "-d", "a")
        self.fails(USAGE, "a version", "events", "subscribe", "-s", "a/1", "--after", "x")
        self.fails(USAGE, "--name", "events", "subscribe", "--park")
        self.fails(USAGE, "cannot be combined", "events", "subscribe", "-x", "true", "--", "true")
        self.fails(FAILED, "code 3", "events", "subscribe", "--until-end", "-x", "exit 3")

    def test_a_name_goes_on(self):
        ids = self.three()
        seen = []
        for count in (1, 1, 9):
            seen += [e["id"] for e in self.lines("subscribe", "--name", "audit", "--until-end",
                                                 "--count", str(count))]
        self.assertEqual(seen, list(ids))
        self.assertEqual(self.lines("subscribe", "--name", "audit", "--until-end"), [])
        info = self.json("events", "subscription", "audit")
        self.assertEqual((info["name"], info["handled"], info["parked"]), ("audit", 3, 0))
        fourth = self.append("order/9", "placed")["ids"][0]
        self.assertEqual([e["id"] for e in self.lines("subscribe", "-n", "audit", "--until-end")],
                         [fourth])
        self.assertEqual(len(self.lines("subscribe", "-n", "other", "-s", "order/7",
                                        "--until-end")), 2)
        self.ok("events", "rebuild", "audit")
        self.assertEqual(len(self.lines("subscribe", "-n", "audit", "--until-end")), 4)
        self.fails(USAGE, "--yes", "events", "forget", "audit")
        self.ok("events", "forget", "audit", "--yes")
        self.fails(NOT_FOUND, "audit", "events", "subscription", "audit")
        self.assertEqual(len(self.lines("subscribe", "-n", "audit", "--until-end")), 4)

    def test_a_program_for_each_event(self):
        ids = self.three()
        path = self.path("seen")
        script = ('printf "%s %s %s %s\\n" "$HOLDFAST_EVENT_STREAM" "$HOLDFAST_EVENT_VERSION" '
                  '"$HOLDFAST_EVENT_TYPE" "$HOLDFAST_EVENT_ID" >> ' + path + '; cat >> ' + path)
        self.ok("events", "subscribe", "--name", "job", "--until-end", "--exec", script)
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[0::2], ["order/7 1 placed " + ids[0], "ledger/2026 1 paid " + ids[1],
                                       "order/7 2 shipped " + ids[2]])
        self.assertEqual([json.loads(line)["id"] for line in lines[1::2]], list(ids))
        # one that fails is tried again, and then in the way of the others
        self.append("order/7", "bad")
        last = self.append("order/7", "good")["ids"][0]
        program = '[ "$HOLDFAST_EVENT_TYPE" != bad ] || exit 9'
        code, _, err = self.run_("events", "subscribe", "--name", "job", "--until-end", "-x", program,
                                 "--attempts", "2", "--backoff", "1ms")
        self.assertEqual(code, FAILED, err)
        self.assertIn("code 9", err)
        code, _, err = self.run_("events", "subscribe", "--name", "job", "--until-end", "-x", program,
                                 "--attempts", "2", "--backoff", "1ms", "--park")
        self.assertEqual(code, 0, err)
        parked = self.json("events", "parked", "job")["events"]
        self.assertEqual([(p["stream"], p["type"]) for p in parked], [("order/7", "bad")])
        self.assertIn("code 9", parked[0]["error"])
        self.assertEqual(self.json("events", "subscription", "job")["handled"], 4)
        self.assertEqual(self.json("events", "replay", "job", parked[0]["position"]), {"waiting": 1})
        self.ok("events", "subscribe", "--name", "job", "--until-end", "--", "true")
        self.assertEqual(self.json("events", "parked", "job")["events"], [])
        self.assertIsNotNone(last)
        self.fails(USAGE, "missing", "events", "replay", "job")
        self.fails(USAGE, "cannot be combined", "events", "discard", "job", "x", "--all")
        self.assertEqual(self.json("events", "discard", "job", "--all"), {"discarded": 0})

    def stuck_subscriber(self, *more):
        """One whose program hangs with the first event, as it says on standard error."""
        program, starts = self.hanging()
        ids = self.three()
        process = self.start("events", "subscribe", "--name", "job", "--poll", "20ms", "--stuck",
                             "1s", *more, "--", program)  # what does not hang takes less, on a busy machine too
        line = process.stderr.readline()
        self.assertRegex(line, "^holdfast events subscribe: .* ms")
        self.assertIn("placed", line)
        return process, program, starts, ids

    def test_a_program_that_hangs_is_told_and_left(self):
        self.stuck_subscriber()
        other = self.start("events", "subscribe", "--name", "job", "--poll", "20ms")
        self.until_it_handles(other, signal.SIGTERM)
        time.sleep(1)  # in which it gets nothing
        other.terminate()
        self.assertEqual(other.communicate(timeout=WAIT_S)[0], "")
        self.assertEqual(self.json("events", "subscription", "job")["handled"], 0)

    def test_a_program_that_hangs_is_replaced(self):
        _, program, starts, _ = self.stuck_subscriber("--if-stuck", "release")
        self.ok("events", "subscribe", "--name", "job", "--until-end", "--", program)
        info = self.json("events", "subscription", "job")
        self.assertEqual((info["handled"], info["parked"]), (3, 0))
        with open(starts, encoding="ascii") as file:
            self.assertEqual(len(file.readlines()), 4)

    def test_an_event_whose_program_hangs_is_put_aside(self):
        _, program, starts, _ = self.stuck_subscriber("--if-stuck", "give-up")
        self.ok("events", "subscribe", "--name", "job", "--until-end", "--", program)
        info = self.json("events", "subscription", "job")
        self.assertEqual((info["handled"], info["parked"]), (2, 1))
        parked = self.json("events", "parked", "job")["events"]
        self.assertEqual([(p["stream"], p["type"]) for p in parked], [("order/7", "placed")])
        with open(starts, encoding="ascii") as file:
            self.assertEqual(len(file.readlines()), 3)

    def test_a_named_one_that_follows(self):
        ids = self.three()
        process = self.start("events", "subscribe", "--name", "tail", "--poll", "20ms")
        for id_ in ids:
            self.assertEqual(json.loads(process.stdout.readline())["id"], id_)
        fourth = self.append("order/9", "placed")["ids"][0]
        self.assertEqual(json.loads(process.stdout.readline())["id"], fourth)
        process.terminate()
        process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.lines("subscribe", "--name", "tail", "--until-end"), [])

    def test_nobody_reads(self):
        self.three()
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([COMMAND, "events", "subscribe", "--name", "audit"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, env=self.env, timeout=WAIT_S)
        self.assertEqual(done.returncode, FAILED)
        self.assertEqual(len(self.lines("subscribe", "--name", "audit", "--until-end")), 3)

    def test_told_to_end_while_they_begin(self):
        self.three()
        begun = [(self.start("events", *args, "--poll", "20ms"), ms)
                 for args in (("consume", "workers"), ("subscribe", "--name", "audit"))
                 for ms in range(4, 36, 4)]
        for process, ms in begun:
            time.sleep(ms / 1000)
            process.terminate()
        for process, _ in begun:
            _, err = process.communicate(timeout=WAIT_S)
            # Before it watches for signals, one of them ends it.
            self.assertIn((process.returncode, err), ((0, ""), (-signal.SIGTERM, "")))

    def test_a_group_shares_events(self):
        ids = self.three()
        self.fails(NOT_FOUND, "group 'workers'", "events", "group", "workers")
        self.assertNotIn("workers", self.ok("table", "ls"))
        fast = ("--until-end", "--poll", "20ms")
        self.assertEqual(sorted(e["id"] for e in self.lines("consume", "workers", *fast)),
                         sorted(ids))
        self.assertEqual(self.lines("consume", "workers", *fast), [])
        info = self.json("events", "group", "workers")
        self.assertEqual((info["name"], info["pending"], info["parked"], info["fed"]),
                         ("workers", 0, 0, 3))
        # several at once: each event goes to one of them
        wanted = {self.append("order/%d" % n, "x")["ids"][0] for n in range(20)}
        processes = [self.start("events", "consume", "workers", "--poll", "20ms", "-w", "2")
                     for _ in range(3)]
        time_over = time.monotonic() + WAIT_S
        while True:
            info = self.json("events", "group", "workers")
            if (info["pending"], info["fed"]) == (0, 23):
                break
            self.assertLess(time.monotonic(), time_over)
            time.sleep(0.05)
        seen = []
        for process in processes:
            process.terminate()
            out, err = process.communicate(timeout=WAIT_S)
            # Before it watches for signals, one of them ends it: the others were done by then.
            self.assertIn((process.returncode, err), ((0, ""), (-signal.SIGTERM, "")))
            seen += [json.loads(line)["id"] for line in out.splitlines()]
        self.assertEqual((len(seen), set(seen)), (20, wanted))

    def test_what_a_group_puts_aside(self):
        self.three()
        fast = ("--until-end", "--poll", "20ms", "--attempts", "2", "--backoff", "1ms")
        program = '[ "$HOLDFAST_EVENT_TYPE" != paid ] || exit 9'
        code, _, err = self.run_("events", "consume", "workers", *fast, "-x", program)
        self.assertEqual(code, 0, err)
        self.assertEqual(err.count("(paid): "), 2)
        self.assertIn("code 9", err)
        parked = self.json("events", "parked", "--group", "workers")["events"]
        self.assertEqual([(p["stream"], p["version"], p["type"], p["attempts"]) for p in parked],
                         [("ledger/2026", 1, "paid", 2)])
        self.assertIn("code 9", parked[0]["error"])
        self.assertEqual(self.json("events", "group", "workers")["parked"], 1)
        self.assertEqual(self.json("events", "replay", "-g", "workers", parked[0]["position"]),
                         {"waiting": 1})
        self.assertEqual(self.json("events", "replay", "-g", "workers", parked[0]["position"]),
                         {"waiting": 0})
        self.fails(NOT_FOUND, "nobody", "events", "replay", "-g", "workers", "nobody")
        out = self.lines("consume", "workers", *fast)
        self.assertEqual([e["type"] for e in out], ["paid"])
        self.append("order/9", "paid")
        self.run_("events", "consume", "workers", *fast, "-q", "-x", program)
        self.assertEqual(self.json("events", "discard", "-g", "workers", "--all"),
                         {"discarded": 1})
        self.assertEqual(self.lines("consume", "workers", *fast), [])
        for command in (["group", "none"], ["parked", "-g", "none"], ["replay", "-g", "none", "x"],
                        ["discard", "-g", "none", "--all"], ["forget", "-g", "none", "--yes"]):
            self.fails(NOT_FOUND, "group 'none'", "events", *command)
        self.fails(USAGE, "group 'workers'", "events", "forget", "-g", "workers")
        self.ok("events", "forget", "-g", "workers", "--yes")
        self.fails(NOT_FOUND, "workers", "events", "group", "workers")
        self.assertEqual(len(self.lines("consume", "workers", *fast)), 4)

    def test_an_event_whose_consumer_hangs_is_put_aside(self):
        program, _ = self.hanging()
        self.three()
        process = self.start("events", "consume", "workers", "--poll", "20ms", "-w", "2",
                             "--stuck", "1s", "--if-stuck", "give-up", "--", program)
        line = process.stderr.readline()
        self.assertRegex(line, r"^holdfast events consume: version \d+ of \S+/\S+ \(\w+\) .* ms$")
        # On a busy machine one that does not hang may be late, too.
        self.until(lambda: self.json("events", "group", "workers")["parked"] >= 1, "parked")
        for parked in self.json("events", "parked", "--group", "workers")["events"]:
            self.assertIn("had not returned", parked["error"])
        self.until(lambda: self.json("events", "group", "workers")["pending"] == 0, "the others")

    def test_an_ordered_group(self):
        for n in range(12):
            self.append("order/%d" % (n % 2), "t%d" % n)
        path = self.path("seen")
        script = ('echo "$HOLDFAST_EVENT_STREAM $HOLDFAST_EVENT_VERSION" >> ' + path +
                  '; [ -e "%s.$HOLDFAST_EVENT_ID" ] || { touch "%s.$HOLDFAST_EVENT_ID"; exit 1; }'
                  % (path, path))
        code, _, err = self.run_("events", "consume", "o", "--ordered", "--until-end", "--poll",
                                 "20ms", "--backoff", "1ms", "--exec", script)
        self.assertEqual(code, 0, err)
        with open(path, encoding="ascii") as file:
            lines = [line.split() for line in file]
        for stream in ("order/0", "order/1"):
            self.assertEqual([int(v) for s, v in lines if s == stream],
                             [v for v in range(1, 7) for _ in range(2)])
        self.fails(USAGE, "cannot be combined", "events", "consume", "o", "--latest", "--since", "1h")
        self.fails(USAGE, "--stream", "events", "consume", "o", "-s", "a/1", "-d", "a")
        self.fails(USAGE, "a version", "events", "consume", "o", "-s", "a/1", "--after", "x")
        self.fails(USAGE, "cannot be combined", "events", "consume", "o", "-x", "true", "--", "true")
        self.fails(USAGE, "GROUP", "events", "consume")
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([COMMAND, "events", "consume", "p"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, env=self.env, timeout=WAIT_S)
        self.assertEqual(done.returncode, FAILED, done.stderr)

    def test_revert(self):
        placed, paid, shipped = self.three()
        preview = self.json("events", "revert", placed, "--preview")["events"]
        self.assertEqual([e["id"] for e in preview], [placed, paid])
        program = ("""printf '{"type":"un-%s","payload":{"of":"%s"}}\\n' """
                   '"$HOLDFAST_EVENT_TYPE" "$HOLDFAST_EVENT_ID"')
        self.fails(FAILED, "code 5", "events", "revert", placed, "-x", "exit 5")
        self.fails(FAILED, "event 1", "events", "revert", placed, "-x", "echo nonsense")
        self.assertEqual(len(self.lines("all", "--jsonl")), 3)
        done = self.json("events", "revert", placed, "--exec", program)["compensations"]
        self.assertEqual([(c["reverted"], c["stream"], c["type"]) for c in done],
                         [(paid, "ledger/2026", "un-paid"), (placed, "order/7", "un-placed")])
        event = self.json("events", "get", done[1]["id"])
        self.assertEqual((event["compensates"], event["causation"], event["payload"]),
                         (placed, placed, {"of": placed}))
        again = self.json("events", "revert", placed, "--exec", program)["compensations"]
        self.assertEqual([c["id"] for c in again], [c["id"] for c in done])
        self.assertTrue(all(c["repeated"] for c in again))
        self.assertEqual(len(self.lines("all", "--jsonl")), 5)
        self.fails(USAGE, "", "events", "revert", paid, "-x", program)
        self.fails(NOT_FOUND, "nobody", "events", "revert", "nobody", "-x", program)
        self.fails(USAGE, "--exec", "events", "revert", shipped)
        self.fails(USAGE, "--preview", "events", "revert", shipped, "--preview", "-x", "true")

    def test_embedded(self):
        url = "embedded:" + self.path("db")
        first = self.append("order/7", "placed", "{}", "--db", url)["ids"][0]
        self.append("order/7", "paid", "{}", "--db", url, "--cause", first)
        self.assertEqual([e["type"] for e in self.lines("all", "--jsonl", "--db", url)],
                         ["placed", "paid"])
        self.assertEqual(len(self.lines("subscribe", "--name", "n", "--until-end", "--db", url)), 2)
        self.assertEqual(self.json("events", "verify", "--db", url), {"streams": 1, "events": 2})
        self.assertEqual(len(self.json("events", "revert", first, "--db", url, "-x",
                                       "echo '{\"type\":\"undone\"}'")["compensations"]), 2)

    def test_many_processes_append(self):
        processes = [self.start("events", "append", "s/1", "x", "--json") for _ in range(8)]
        answers = [p.communicate(timeout=WAIT_S) for p in processes]
        self.assertEqual([err for _, err in answers], [""] * len(processes))
        self.assertEqual(sorted(json.loads(out)["version"] for out, _ in answers),
                         list(range(1, 9)))

    def test_policies(self):
        policy = json.loads(self.ok("iam", "events", "--role", "reader", "--table", "prod-events"))
        self.assertEqual(policy["Statement"][0]["Resource"],
                         "arn:aws:dynamodb:*:*:table/prod-events")
        self.assertNotIn("dynamodb:BatchWriteItem", policy["Statement"][0]["Action"])
        self.assertNotIn("dynamodb:Scan", policy["Statement"][0]["Action"])
        self.fails(USAGE, "ARN", "iam", "events", "--table", 'a"b')


class Blobs(WithDatabase):
    def test_bytes_by_their_digest(self):
        blobs = "dir:" + self.path("blobs")
        data = os.urandom(100000)
        done = subprocess.run([COMMAND, "blobs", "put", "--json", "--blobs", blobs], input=data,
                              stdout=subprocess.PIPE, env=self.env, timeout=WAIT_S, check=True)
        put = json.loads(done.stdout)
        self.assertEqual(put, {"digest": hashlib.sha256(data).hexdigest(), "size": len(data)})
        with open(self.path("file"), "wb") as file:
            file.write(data)
        self.assertEqual(self.json("blobs", "put", self.path("file"), "--blobs", blobs), put)
        done = subprocess.run([COMMAND, "blobs", "get", put["digest"], "--blobs", blobs],
                              stdout=subprocess.PIPE, env=self.env, timeout=WAIT_S, check=True)
        self.assertEqual(done.stdout, data)
        listed = self.json("blobs", "ls", "--blobs", blobs)["blobs"]
        self.assertEqual([(b["digest"], b["size"]) for b in listed], [(put["digest"], 100000)])
        self.assertEqual(len(self.ok("blobs", "ls", "--blobs", blobs).splitlines()), 1)
        self.assertEqual(self.json("blobs", "ls", "--blobs", blobs, "--part", "x"), {"blobs": []})
        self.ok("blobs", "put", self.path("file"), "--blobs", blobs, "--part", "x")
        self.assertEqual(len(self.json("blobs", "ls", "--blobs", blobs, "--part", "x")["blobs"]), 1)
        self.assertEqual(len(self.json("blobs", "ls", "--blobs", blobs)["blobs"]), 1)
        url = "embedded:" + self.path("db")
        self.ok("blobs", "put", self.path("file"), "--db", url)
        self.assertEqual(len(self.json("blobs", "ls", "--db", url)["blobs"]), 1)

    def test_blobs_that_cannot_be(self):
        blobs = "dir:" + self.path("blobs")
        os.mkdir(self.path("blobs"))
        self.fails(NOT_FOUND, "0" * 64, "blobs", "get", "0" * 64, "--blobs", blobs)
        self.fails(USAGE, "", "blobs", "get", "../../etc/passwd", "--blobs", blobs)
        self.fails(USAGE, "missing option --blobs", "blobs", "ls")
        self.fails(USAGE, "ftp", "blobs", "ls", "--blobs", "ftp://x")
        self.fails(USAGE, "/nowhere", "blobs", "put", "/nowhere/x", "--blobs", blobs)
        with open(self.path("file"), "w", encoding="ascii") as file:
            file.write("what was put")
        digest = self.json("blobs", "put", self.path("file"), "--blobs", blobs)["digest"]
        for folder, _, names in os.walk(self.path("blobs")):
            for name in names:
                if name != "FORMAT":
                    with open(os.path.join(folder, name), "r+", encoding="ascii") as file:
                        file.write("W")
        self.fails(CORRUPT, digest, "blobs", "get", digest, "--blobs", blobs)


class Streams(WithDatabase):
    def setUp(self):
        super().setUp()
        self.prefix = self.env["HOLDFAST_PREFIX"]

    def create(self, stream=True):
        spec = {"TableName": "orders",
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
        if stream:
            spec["StreamSpecification"] = {"StreamEnabled": True,
                                           "StreamViewType": "NEW_AND_OLD_IMAGES"}
        code, _, err = self.run_("table", "create", "-f", "-", input=json.dumps(spec))
        self.assertEqual((code, err), (0, ""))

    def put(self, id_, n):
        call("PutItem", TableName=self.prefix + "orders",
                  Item={"id": {"S": id_}, "n": {"N": str(n)}, "tags": {"SS": ["x"]}})

    def tail(self, *args):
        return [json.loads(line) for line in
                self.ok("streams", "tail", "orders", *args).splitlines()]

    def test_every_change(self):
        self.create()
        self.assertEqual(self.tail(), [])
        for n in range(1, 4):
            self.put("ann", n)
        self.put("ben", 7)
        call("DeleteItem", TableName=self.prefix + "orders", Key={"id": {"S": "ann"}})
        lines = self.tail()
        ann = [line for line in lines if line["key"] == {"id": "ann"}]
        self.assertEqual([line["kind"] for line in ann], ["INSERT", "MODIFY", "MODIFY", "REMOVE"])
        self.assertEqual(len(lines), 5)
        self.assertEqual(len({line["id"] for line in lines}), 5)
        self.assertEqual(set(ann[0]), {"kind", "time", "key", "sequence", "shard", "id"})
        ann = self.tail("--images", "--partition", "ann")
        self.assertEqual([(line["old"] or {}).get("n") for line in ann], [None, 1, 2, 3])
        self.assertEqual([(line["new"] or {}).get("n") for line in ann], [1, 2, 3, None])
        line = self.tail("-i", "--dynamodb", "-p", "ben")[0]
        self.assertEqual(line["key"], {"id": {"S": "ben"}})
        self.assertEqual(line["new"]["tags"], {"SS": ["x"]})
        self.assertIsNone(line["old"])

    def test_a_name_goes_on(self):
        self.create()
        for n in range(1, 6):
            self.put("ann", n)
        seen = []
        for count in (1, 2, 9):
            seen += [line["new"]["n"] for line in
                     self.tail("--name", "audit", "--images", "--count", str(count))]
        self.assertEqual(seen, [1, 2, 3, 4, 5])
        self.assertEqual(self.tail("--name", "audit"), [])
        self.put("ann", 6)
        self.assertEqual(len(self.tail("--name", "audit", "--from", "latest")), 1)
        self.assertEqual(len(self.tail("--name", "other", "--positions", "elsewhere")), 6)
        self.assertIn("elsewhere", self.ok("table", "ls"))

    def test_from(self):
        self.create()
        self.put("ann", 1)
        self.assertEqual(self.tail("--from", "latest"), [])
        self.assertEqual(len(self.tail("--from", "1h")), 1)
        self.assertEqual(len(self.tail("--from", "2020-01-01")), 1)
        self.assertEqual(self.tail("--from", "2999-01-01T00:00:00Z"), [])
        self.assertEqual(len(self.tail("--count", "1", "--from", "horizon")), 1)
        for bad in ("yesterday", "2020-13-01", "2020-01-01T00:00:00+2"):
            self.fails(USAGE, "--from: '%s'" % bad, "streams", "tail", "orders", "--from", bad)
        self.assertEqual(self.ok("table", "ls"), "orders\n")  # looking makes nothing

    def test_follow(self):
        self.create()
        self.put("ann", 1)
        process = self.start("streams", "tail", "orders", "--follow", "--images")
        for n in range(1, 4):
            self.assertEqual(json.loads(process.stdout.readline())["new"]["n"], n)
            self.put("ann", n + 1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)

    def test_nobody_reads(self):
        self.create()
        for n in range(1, 200):
            self.put("ann", n)
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([COMMAND, "streams", "tail", "orders", "--name", "audit"],
                                  stdout=full, stderr=subprocess.PIPE, text=True, env=self.env,
                                  timeout=WAIT_S)
        self.assertEqual(done.returncode, FAILED)
        self.assertEqual(len(self.tail("--name", "audit")), 199)  # nothing of it is lost

    def test_errors(self):
        self.fails(NOT_FOUND, "orders", "streams", "tail", "orders")
        self.create(stream=False)
        self.fails(USAGE, "orders has no stream", "streams", "tail", "orders")
        self.fails(USAGE, "TABLE", "streams", "tail")


class WithDirectory(WithDatabase):
    """A directory with two tables: made once, copied for each test."""
    made = None
    LINE = r"about \d+ %: [\d.]+ of about [\d.]+ MB read, \d+ keys compared, [\d.]+ MB/s, (done|(checksums|comparing)(, about [\w ]+ left)?)"

    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_PREFIX"] = "dir-"
        self.store = self.path("store")
        self.url = "embedded:" + self.store
        if not WithDirectory.made:
            WithDirectory.made = tempfile.mkdtemp(prefix="holdfast-commands-")
            unittest.addModuleCleanup(shutil.rmtree, WithDirectory.made, ignore_errors=True)
            self.fill()
            shutil.copytree(self.store, os.path.join(WithDirectory.made, "store"))
        else:
            shutil.copytree(os.path.join(WithDirectory.made, "store"), self.store)
        self.items = 21  # and the one that kv keeps for itself

    def fill(self):
        self.ok("table", "create", "-f", "-", "--db", self.url, "-q", input=json.dumps(ORDERS))
        for i in range(20):
            self.ok("kv", "set", "key-%d" % i, "value " * 100, "--db", self.url, "-q")

    def table_file(self):
        db = os.path.join(self.store, "db")
        return max((os.path.join(db, name) for name in os.listdir(db) if name.endswith(".sst")),
                   key=os.path.getsize)


class Check(WithDirectory):
    """A directory that is looked at while nobody has it open, whole and damaged."""
    def damaged(self, error):
        code, out, err = self.run_("check", self.store)
        self.assertEqual((code, out), (CORRUPT, ""), err)
        self.assertTrue(err.startswith("holdfast check: "), err)
        self.assertIn(error, err)
        code, out, _ = self.run_("check", self.store, "--json")
        self.assertEqual(code, CORRUPT)
        self.assertFalse(json.loads(out)["sound"])

    def test_a_sound_one(self):
        self.assertIn("no damage found: 2 tables, %d items" % self.items, self.ok("check", self.store))
        found = self.json("check", self.store)
        self.assertEqual((found["sound"], found["items"], found["problems"]),
                         (True, self.items, 0))

    def test_a_table_that_is_cut_or_flipped(self):
        path = self.table_file()
        with open(path, "rb") as file:
            whole = file.read()
        for bytes_ in (whole[:-20], whole[:30] + bytes([whole[30] ^ 1]) + whole[31:]):
            with open(path, "wb") as file:
                file.write(bytes_)
            self.damaged(".sst")
        with open(path, "wb") as file:
            file.write(whole)
        self.ok("check", self.store)

    def test_a_journal_that_is_flipped(self):
        server = subprocess.Popen([COMMAND, "serve", "--port", "0", "--db-path", self.store],
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env=clean_env())
        self.addCleanup(server.wait, WAIT_S)
        self.addCleanup(server.kill)
        url = re.search(r"http://\S+", server.stdout.readline()).group(0)
        code, _, err = self.run_("check", self.store)
        self.assertEqual(code, UNAVAILABLE, err)
        for i in range(5):
            self.ok("kv", "set", "late-%d" % i, "x" * 100, "--db", url, "-q")
        server.kill()
        server.communicate(timeout=WAIT_S)
        self.assertIn("%d items" % (self.items + 5), self.ok("check", self.store))
        journal = os.path.join(self.store, "journal")
        path = os.path.join(journal, sorted(os.listdir(journal))[0])
        with open(path, "r+b") as file:
            file.seek(4096 + 40)
            byte = file.read(1)
            file.seek(4096 + 40)
            file.write(bytes([byte[0] ^ 1]))
        self.damaged("journal")

    def test_what_is_no_database(self):
        code, _, err = self.run_("check", self.path("none"))
        self.assertEqual(code, NOT_FOUND, err)
        self.assertFalse(os.path.exists(self.path("none")))
        self.assertEqual(self.run_("check", "dynamodb://eu-central-1")[0], USAGE)
        self.assertEqual(self.run_("check", self.store, "--profile", "x")[0], USAGE)
        del self.env["HOLDFAST_DB"]
        code, _, err = self.run_("check")
        self.assertEqual(code, USAGE)
        self.assertIn("or set HOLDFAST_DB", err)

    def test_other_names_of_a_database(self):
        sound = "no damage found: 2 tables, %d items" % self.items
        self.assertIn(sound, self.ok("check", self.url))
        self.assertIn(sound, self.ok("check", env=dict(self.env, HOLDFAST_DB=self.url)))
        self.assertIn("no damage found", self.ok("check"))  # of a server
        self.ok("config", "set", "shop", "db=" + self.url)
        self.assertIn(sound, self.ok("check", "@shop"))
        self.assertIn(sound, self.ok("check", env=dict(self.env, HOLDFAST_DB="@shop")))
        code, _, err = self.run_("check", "@shpo")
        self.assertEqual(code, USAGE)
        self.assertIn("did you mean '@shop'?", err)

    def digest(self):
        sums = {}
        for folder, _, names in os.walk(self.store):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    sums[path] = (hashlib.sha256(file.read()).hexdigest(),
                                  os.stat(path).st_mtime_ns)
        return sums

    def test_a_manifest_that_lost_its_end(self):
        db = os.path.join(self.store, "db")
        manifest = max(os.path.join(db, name) for name in os.listdir(db)
                       if name.startswith("MANIFEST-"))
        os.truncate(manifest, os.path.getsize(manifest) - 18)
        before = self.digest()
        self.damaged("MANIFEST")
        self.assertEqual(self.digest(), before)

    def test_quiet_prints_nothing(self):
        self.assertEqual(self.ok("check", self.store, "--quiet"), "")

    def test_progress_in_a_pipe_is_asked_for(self):
        code, out, err = self.run_("check", self.store, "--progress")
        self.assertEqual(code, 0, err)
        self.assertIn("no damage found: ", out)
        lines = err.splitlines()
        self.assertGreaterEqual(len(lines), 2)
        for line in lines:
            self.assertRegex(line, "^" + self.LINE + "$")
        self.assertTrue(lines[-1].startswith("about 100 %"), lines)
        code, out, err = self.run_("check", self.store, "--json", "--progress")
        self.assertTrue(json.loads(out)["sound"])
        self.assertRegex(err, self.LINE)

    def on_terminal(self, *args):
        """What is written to a standard error that is a terminal, and to an output that is none."""
        ours, theirs = pty.openpty()
        try:
            done = subprocess.run([COMMAND, "check", *args], stdout=subprocess.PIPE, stderr=theirs,
                                  env=self.env, timeout=WAIT_S)
            os.close(theirs)
            theirs = -1
            shown = b""
            try:
                while part := os.read(ours, 65536):
                    shown += part
            except OSError:  # the end of what a terminal has, on Linux
                pass
        finally:
            os.close(ours)
            if theirs >= 0:
                os.close(theirs)
        self.assertEqual(done.returncode, 0)
        return shown.decode(), done.stdout.decode()

    def test_progress_on_a_terminal(self):
        shown, out = self.on_terminal(self.store)
        self.assertIn("no damage found: ", out)
        self.assertTrue(shown.startswith("\rabout "), shown)
        self.assertEqual(shown.count("\n"), 1, shown)
        self.assertRegex(shown.split("\r")[-2], self.LINE)
        self.assertEqual(self.on_terminal(self.store, "--quiet"), ("", ""))
        shown, out = self.on_terminal(self.store, "--json")
        self.assertEqual(shown, "")
        self.assertTrue(json.loads(out)["sound"])
        self.assertIn("\rabout ", self.on_terminal(self.store, "--json", "--progress")[0])


class CheckOnline(WithDirectory):
    """The same directory, while a server works on it."""
    def serve(self, *args):
        server = subprocess.Popen([COMMAND, "serve", "--port", "0", "--db-path", self.store, *args],
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env=clean_env())
        self.addCleanup(server.communicate, timeout=WAIT_S)
        self.addCleanup(server.kill)
        return re.search(r"http://\S+", server.stdout.readline()).group(0)

    def test_a_sound_server(self):
        url = self.serve()
        self.assertIn("no damage found: 2 tables, %d items" % self.items, self.ok("check", url))
        found = self.json("check", url)
        self.assertEqual((found["sound"], found["items"], found["problems"]),
                         (True, self.items, 0))
        self.assertEqual(sorted(found), sorted(self.check_json()))
        code, _, err = self.run_("check", url, "--progress")
        self.assertEqual(code, 0)
        self.assertRegex(err, self.LINE)

    def test_a_server_that_does_not_answer(self):
        """A check changes nothing, so nothing may have been changed."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = "http://127.0.0.1:%d?attempt_ms=100" % listener.getsockname()[1]
            code, _, err = self.run_("check", url)
        self.assertEqual(code, UNAVAILABLE, err)
        self.assertNotIn("may have been made", err)

    def check_json(self):
        return ["sound", "tables", "items", "index_entries", "stream_records", "expiry_entries",
                "tokens", "backups", "backup_items", "problems"]

    def test_a_table_that_is_damaged_under_a_server(self):
        url = self.serve()
        self.ok("check", url)
        while True:
            path = self.table_file()
            with open(path, "r+b") as file:
                file.seek(30)
                byte = file.read(1)
                file.seek(30)
                file.write(bytes([byte[0] ^ 1]))
            code, out, err = self.run_("check", url)
            if code != OK:
                break
            # An idle store merges its tables, which may be just now: then this one is damaged and not needed.
            self.until(lambda: not os.path.exists(path), "damage to a table that is used was not found")
        self.assertEqual((code, out), (CORRUPT, ""), err)
        self.assertIn(".sst", err)
        code, out, _ = self.run_("check", url, "--json")
        self.assertEqual((code, json.loads(out)["sound"]), (CORRUPT, False))

    def test_several_at_the_same_time(self):
        url = self.serve()
        many = [self.start("check", url) for _ in range(6)]
        for one in many:
            out, err = one.communicate(timeout=WAIT_S)
            self.assertEqual((one.returncode, err), (0, ""))
            self.assertIn("no damage found: ", out)

    def test_keys(self):
        keys = self.path("keys")
        with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write("[a]\naws_access_key_id = KEY\naws_secret_access_key = hush\n")
        url = self.serve("--credentials", keys)
        code, out, err = self.run_("check", url)
        self.assertEqual((code, out), (DENIED, ""), err)
        for method in ("GET", "POST"):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(url + "/_holdfast/check",
                                                              method=method), timeout=WAIT_S)
            self.assertEqual(refused.exception.code, 400)
            refused.exception.close()
        env = dict(self.env, AWS_ACCESS_KEY_ID="KEY", AWS_SECRET_ACCESS_KEY="hush")
        self.assertIn("no damage found: ", self.ok("check", url, env=env))

    def test_what_is_no_server_of_ours(self):
        handler = type("Handler", (Answers,), {"status": 404, "kind": "UnknownOperationException"})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            code, _, err = self.run_("check", "http://127.0.0.1:%d" % server.server_port)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        self.assertEqual(code, FAILED, err)
        self.assertIn("is not a holdfast server, or is too old for checks", err)
        code, _, err = self.run_("check", "http://127.0.0.1:1")
        self.assertEqual(code, UNAVAILABLE, err)

    def test_a_signal_leaves_the_check_of_the_server_alone(self):
        class Runs(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = b'{"state":"running","check":1,"bytes":1,"about_bytes":9}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                asked.set()

            do_POST = do_GET

            def log_message(self, *_):
                pass

        asked = threading.Event()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Runs)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            process = self.start("check", "http://127.0.0.1:%d" % server.server_port)
            self.assertTrue(asked.wait(WAIT_S))
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=WAIT_S)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assertIn("the server's check goes on", err)


class EnvFile(WithDatabase):
    """Variables from a file: for the command, and for the programs that it runs."""

    def test_variables_of_a_file(self):
        file = self.path("env")
        with open(file, "w") as out:
            out.write("# here\nHOLDFAST_DB='%s'\nHOLDFAST_PREFIX=file- # not the other\nMORE=1\n"
                      % shared.SERVER.url)
        bare = clean_env()
        self.ok("--env-file", file, "kv", "set", "a", "1", env=bare)
        self.assertEqual("1\n", self.ok("--env-file=" + file, "kv", "get", "a", env=bare))
        self.assertEqual("1\n", self.ok("kv", "get", "a", "--db", shared.SERVER.url, "--prefix", "file-",
                                        env=bare))
        code, _, _ = self.run_("--env-file", file, "kv", "get", "a")  # another prefix is set
        self.assertEqual(3, code)
        self.assertEqual("1\n", self.ok("--env-file", file, "lock", "run", "job", "--", "sh", "-c",
                                        "echo $MORE", env=bare))

    def test_a_bad_line(self):
        file = self.path("env")
        with open(file, "w") as out:
            out.write("A=1\n\nHOLDFAST_DB\n")
        code, out, err = self.run_("--env-file", file, "kv", "ls")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(err, "holdfast: %s, line 3: missing '='; write NAME=VALUE\n" % file)


APART = (LockRun, Outbox, Events, Check, CheckOnline)  # tests of their own: CMakeLists.txt


def Others():
    """All classes but those that run apart."""
    loader = unittest.defaultTestLoader
    return unittest.TestSuite(
        loader.loadTestsFromTestCase(case) for case in globals().values()
        if isinstance(case, type) and issubclass(case, WithDatabase) and case not in APART)


if __name__ == "__main__":
    main()
