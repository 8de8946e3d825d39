#!/usr/bin/env python3
"""Budgets of memory, descriptors, threads and time: budget_test.py COMMAND [unittest arguments].

Servers are started with little of each and attacked; others must not notice. HF_BUDGET_SECONDS says
how long each attack takes (default: a part of a second each, which is what every test run has time
for), and HF_BUDGET_CONNECTIONS how many connections the largest test opens (default 2,000; the
limit of open files of this process may make it fewer, which is printed).
"""
import gzip
import json
import os
import resource
import shutil
import socket
import sys
import tempfile
import threading
import time
import unittest

from box import MIB, Box, Pulse, request_bytes

COMMAND = os.path.abspath(sys.argv[1])
SECONDS = float(os.environ.get("HF_BUDGET_SECONDS", "0.4"))
CONNECTIONS = int(os.environ.get("HF_BUDGET_CONNECTIONS", "2000"))
SLOW_BUILD = os.environ.get("HF_BUDGET_SLOW") == "1"  # a sanitizer's: no promise about time
ITEM = 400 * 1024


def say(text):
    print("    " + text, flush=True)


class Attack(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="holdfast-budget-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def box(self, *args, **more):
        box = Box(COMMAND, "--db-path", os.path.join(self.dir, "db"), *args, **more)
        self.addCleanup(box.close)
        return box

    def put(self, box, item, client=None):
        status, text = box.call("PutItem", {"TableName": "tab", "Item": item}, client)
        self.assertEqual(status, 200, text[:300])

    def ends_well(self, box):
        self.assertTrue(box.alive(), "the server is gone")
        self.assertEqual(box.stop(), 0, box.log[-1000:])


class Memory(Attack):
    """In 256 MiB, of which a quarter is for requests and answers."""
    LIMIT = 256 * MIB

    def fill(self, box):
        box.make_table()
        client = box.client()
        for i in range(40):
            self.put(box, {"pk": {"S": f"k{i}"}, "v": {"S": "\1" * (ITEM - 100)}}, client)
        self.put(box, {"pk": {"S": "small"}}, client)
        client.close()

    BATCH = {"RequestItems": {"tab": {"Keys": [{"pk": {"S": f"k{i}"}} for i in range(40)]}}}

    def settled(self, box):
        """What was held is given back once nobody holds it."""
        for _ in range(200):
            if box.metric("holdfast_output_bytes") == box.metric("holdfast_input_bytes") == 0:
                return
            time.sleep(0.05)
        self.fail("memory is still counted: " + box.get("/metrics")[1])

    def check_peak(self, box):
        say(f"peak {box.peak() // MIB} MiB; {box.how}")
        self.assertLess(box.peak(), self.LIMIT)

    def test_silent_readers_of_the_largest_answers(self):
        box = self.box(memory=self.LIMIT)
        self.fill(box)
        request = request_bytes("BatchGetItem", self.BATCH)
        pulse = Pulse(box)
        silent = [box.connect(receive=4096) for _ in range(25)]
        for each in silent:
            each.sendall(request)
        status, text = box.call("BatchGetItem", self.BATCH)  # whoever reads gets an answer, too
        self.assertEqual(status, 200)
        self.assertEqual(len(json.loads(text)["Responses"]["tab"]), 40)
        slowest, most = pulse.stop()
        say(f"others meanwhile: 99 % below {most:.1f} ms, all below {slowest:.1f} ms")
        self.assertEqual(pulse.failures, [])
        if not SLOW_BUILD:
            self.assertLess(most, 20)
        self.assertGreater(box.metric("holdfast_connections_evicted_total"), 0)
        self.check_peak(box)
        for each in silent:
            each.close()
        self.settled(box)
        self.ends_well(box)

    def test_silent_readers_of_many_answers(self):
        """A page of 1 MB is 6 MB as JSON; small ones are sent again and again."""
        box = self.box(memory=self.LIMIT)
        self.fill(box)
        pulse = Pulse(box)
        request = request_bytes("Scan", {"TableName": "tab"})
        silent = [box.connect(receive=4096) for _ in range(150)]
        for each in silent:
            each.sendall(request)
        get = request_bytes("GetItem", {"TableName": "tab", "Key": {"pk": {"S": "k1"}}})
        for i in range(100):
            silent.append(box.connect(receive=4096))
            silent[-1].sendall(get * 5)
        time.sleep(max(1.0, SECONDS))
        _, most = pulse.stop()
        self.assertEqual(pulse.failures, [])
        if not SLOW_BUILD:
            self.assertLess(most, 20)
        self.check_peak(box)
        for each in silent:
            each.close()
        self.settled(box)
        self.ends_well(box)

    def test_large_requests_that_never_end(self):
        box = self.box(memory=self.LIMIT)
        self.fill(box)
        head = request_bytes("PutItem", b"").replace(b"Content-Length: 0",
                                                    b"Content-Length: 16000000")
        part = head + b"{" + b" " * (15 * MIB)
        refused, held = 0, []
        for _ in range(8):
            each = box.connect(timeout=0.5)
            try:
                each.sendall(part)
                refused += b" 503 " in each.recv(4096)
            except TimeoutError:
                pass  # it waits for the rest
            except OSError:
                refused += 1
            held.append(each)
        self.assertEqual(box.call("GetItem", {"TableName": "tab", "Key": {
            "pk": {"S": "small"}}})[0], 200)
        say(f"{refused} of 8 requests of 15 MiB were refused")
        self.assertGreater(refused, 0)
        self.check_peak(box)
        for each in held:
            each.close()
        self.settled(box)
        self.ends_well(box)

    def test_large_requests_that_do_end(self):
        """Many at once: each is carried out, or refused with a status that SDKs repeat."""
        box = self.box(memory=self.LIMIT)
        self.fill(box)
        body = b'{"TableName":"tab","Key":{"pk":{"S":"small"}},"x":[' + b"[1]," * (3 * MIB) + b"1]}"
        outcomes = []

        def send():
            try:
                outcomes.append(box.call("GetItem", body)[0])
            except OSError:
                outcomes.append("cut off")

        threads = [threading.Thread(target=send) for _ in range(10)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        say(f"outcomes: {outcomes}")
        self.assertLessEqual(set(outcomes), {200, 503, "cut off"})
        self.assertEqual(box.call("GetItem", body)[0], 200)
        self.check_peak(box)
        self.settled(box)
        self.ends_well(box)

    def test_address_space(self):
        """ulimit -v: what cannot be allocated is refused, and nothing ends."""
        box = self.box("--memory", "32MiB", limits=((resource.RLIMIT_AS, 1024 * MIB, 1024 * MIB),))
        self.fill(box)
        held = [box.connect(receive=4096) for _ in range(25)]
        for each in held:
            each.sendall(request_bytes("BatchGetItem", self.BATCH))
        time.sleep(0.5)
        for each in held:
            each.close()
        self.settled(box)
        self.assertEqual(box.call("GetItem", {"TableName": "tab", "Key": {
            "pk": {"S": "small"}}})[0], 200)
        self.put(box, {"pk": {"S": "after"}})
        self.ends_well(box)


class Descriptors(Attack):
    def attack(self, limit, idle):
        box = self.box(limits=((resource.RLIMIT_NOFILE, limit, limit),))
        box.make_table()
        honest = box.client()
        self.put(box, {"pk": {"S": "small"}}, honest)
        attackers = [box.connect() for _ in range(idle)]
        self.assertLess(box.descriptors(), limit - (limit - 32) // 2 if limit < 1024 else limit - 600)
        for i in range(30):
            self.put(box, {"pk": {"S": f"a{i}"}, "v": {"S": "x" * 300000}}, honest)
        time.sleep(1.05)  # who has said nothing for a second makes place
        for i in range(30):
            self.put(box, {"pk": {"S": f"b{i}"}, "v": {"S": "x" * 1000}})
        self.assertEqual(box.get("/readyz")[0], 200)
        self.assertGreater(box.metric("holdfast_connections_displaced_total"), 0)
        for each in attackers:
            each.close()
        self.ends_well(box)
        self.assertIn("as the limit of open files is", box.log)

    def test_idle_connections_beyond_4096(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 4500:
            self.skipTest(f"the hard limit of open files, {hard}, is too low")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.attack(4096, 4300)

    def test_idle_connections_beyond_256(self):
        self.attack(256, 400)

    def test_idle_connections_beyond_64(self):
        self.attack(64, 150)

    def test_too_few_to_serve(self):
        with self.assertRaises(AssertionError) as raised:
            self.box(limits=((resource.RLIMIT_NOFILE, 40, 40),))
        self.assertIn("the limit of open files, 40, leaves none for connections: raise it",
                      str(raised.exception))

    def test_many_connections(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        many = min(CONNECTIONS, hard - 200)
        say(f"{many} connections")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        box = self.box("--connections", str(many + 100), memory=256 * MIB)
        box.make_table()
        self.put(box, {"pk": {"S": "small"}})
        request = request_bytes("GetItem", {"TableName": "tab", "Key": {"pk": {"S": "small"}}})
        limit = box.metric("holdfast_connections_limit")
        opened = [box.connect() for _ in range(min(many, limit - 50))]
        pulse = Pulse(box)
        for each in opened:
            each.sendall(request)
        for each in opened:
            self.assertIn(b"200 OK", each.recv(4096))
        _, most = pulse.stop()
        say(f"others meanwhile: 99 % below {most:.1f} ms; peak {box.peak() // MIB} MiB")
        self.assertEqual(pulse.failures, [])
        for each in opened:
            each.close()
        self.ends_well(box)


class Threads(Attack):
    def test_no_thread_can_be_had(self):
        """ulimit -u counts what the user has, and does not bind root: then there is one to start as."""
        if os.getuid() == 0:
            self.skipTest("root is not bound by ulimit -u")
        with self.assertRaises(AssertionError) as raised:
            self.box(limits=((resource.RLIMIT_NPROC, 1, 1),))
        self.assertIn("thread", str(raised.exception))


def wide(names, value):
    return {"pk": {"S": "wide"}, **{name: value for name in names}}


class Time(Attack):
    """No request keeps others waiting: each is sent again and again on two connections."""

    @staticmethod
    def names(count):
        return [f"a{i:05}" for i in range(count)]

    def fill(self, box):
        box.make_table()
        box.make_table("pages")
        client = box.client()
        self.put(box, {"pk": {"S": "small"}}, client)
        for i in range(2):
            self.put(box, {**wide(self.names(40000), {"NULL": True}), "pk": {"S": f"wide{i}"}}, client)
        self.put(box, {"pk": {"S": "list"}, "l": {"L": [{"NULL": True}] * 200000}}, client)
        self.put(box, {"pk": {"S": "map"}, "m": {"M": dict.fromkeys(self.names(40000),
                                                                   {"NULL": True})}}, client)
        self.put(box, {"pk": {"S": "set"}, "s": {"SS": self.names(40000)}}, client)
        self.put(box, {"pk": {"S": "text"}, "t": {"S": "a" * (ITEM - 100)}}, client)
        for i in range(40):
            self.put(box, {"pk": {"S": f"k{i}"}, "v": {"S": "\1" * (ITEM - 100)}}, client)
        for i in range(0, 4000, 25):
            status, text = box.call("BatchWriteItem", {"RequestItems": {"pages": [
                {"PutRequest": {"Item": {"pk": {"S": f"p{i + j}"}, "v": {"S": "\1" * 150}}}}
                for j in range(25)]}}, client)
            self.assertEqual(status, 200, text)
        client.close()

    def bombs(self):
        """Name, operation, body, header fields."""
        key = {"pk": {"S": "wide0"}}
        nul = {"NULL": True}

        def update(pk, expression, **more):
            return {"TableName": "tab", "Key": {"pk": {"S": pk}}, "UpdateExpression": expression,
                    **more}

        def scan(expression, **more):
            return {"TableName": "tab", "FilterExpression": expression, **more}

        conditions = {f"b{i:05}": {"ComparisonOperator": "NULL"} for i in range(15900)}
        yield "legacy filter of 15,900 names", "Scan", {"TableName": "tab", "ScanFilter": conditions}, {}
        yield "legacy filter, all found", "Scan", {"TableName": "tab", "ScanFilter": {
            name: {"ComparisonOperator": "NOT_NULL"} for name in self.names(15900)}}, {}
        yield "legacy expected of 3,000 names", "PutItem", {
            "TableName": "tab", "Item": key, "ConditionalOperator": "AND", "Expected": {
                **{f"b{i}": {"Exists": False} for i in range(3000)}, "zz": {
                    "ComparisonOperator": "NOT_NULL"}}}, {}
        yield "legacy updates of 2,500 names", "UpdateItem", {
            "TableName": "tab", "Key": key, "AttributeUpdates": {
                **{f"a{i * 16:05}": {"Action": "ADD", "Value": {"N": "1"}} for i in range(2500)}}}, {}
        yield "legacy projection", "GetItem", {"TableName": "tab", "Key": key, "AttributesToGet": [
            f"a{i * 10:05}" for i in range(4000)]}, {}
        many = " OR ".join(["contains(l,:v)"] * 200)
        yield "contains() of a list", "Scan", scan(many, ExpressionAttributeValues={
            ":v": {"S": "x"}}), {}
        many = " OR ".join(["contains(s,:v)"] * 200)
        yield "contains() of a set", "Scan", scan(many, ExpressionAttributeValues={
            ":v": {"S": "x"}}), {}
        many = " OR ".join(["contains(t,:v)"] * 200)
        yield "contains() of a text", "Scan", scan(many, ExpressionAttributeValues={
            ":v": {"S": "a" * 2000 + "b"}}), {}
        many = " OR ".join(f"m.x{i}=:v" for i in range(300))
        yield "names of a map", "Scan", scan(many, ExpressionAttributeValues={":v": nul}), {}
        many = " OR ".join(f"l[{199000 - i}]=:v" for i in range(250))
        yield "places of a list", "Scan", scan(many, ExpressionAttributeValues={":v": {"S": "x"}}), {}
        many = " OR ".join(["size(t)=:v"] * 250)
        yield "sizes of a text", "Scan", scan(many, ExpressionAttributeValues={":v": {"N": "1"}}), {}
        many = " AND ".join(["contains(l,:v)"] * 200)
        yield "a condition on a list", "UpdateItem", update(
            "list", "SET x = :v", ConditionExpression=many.replace("AND", "OR"),
            ExpressionAttributeValues={":v": {"S": "x"}}), {}
        yield "an update that appends", "UpdateItem", update("list", "SET " + ",".join(
            f"x{i}=list_append(l,l)" for i in range(120))), {}
        yield "an update of many names", "UpdateItem", update("wide0", "REMOVE " + ",".join(
            f"b{i}" for i in range(600))), {}
        yield "a union of sets", "UpdateItem", update(
            "set", "ADD s :v", ExpressionAttributeValues={":v": {"SS": self.names(5000)}}), {}
        yield "parentheses", "Scan", scan("(" * 1500 + "a=:v" + ")" * 1500,
                                          ExpressionAttributeValues={":v": nul}), {}
        yield "NOT", "Scan", scan("NOT " * 1000 + "a=:v", ExpressionAttributeValues={":v": nul}), {}
        names = {f"#n{i}": "x" * 200 for i in range(8000)}
        yield "names that are not used", "Scan", scan("a=:v", ExpressionAttributeNames=names,
                                                      ExpressionAttributeValues={":v": nul}), {}
        filled = b'{"TableName":"tab","Item":{"pk":{"S":"j"},"x":%s}}'
        yield "lists in lists", "PutItem", filled % (b'{"L":[' * 31 + b"]}" * 31), {}
        yield "a million lists", "PutItem", filled % (
            b'{"L":[' + b'{"L":[]},' * 1500000 + b'{"L":[]}]}'), {}
        yield "a million names", "PutItem", b'{"TableName":"tab","Item":{' + b",".join(
            b'"n%d":{"NULL":true}' % i for i in range(600000)) + b"}}", {}
        yield "a name a million times", "PutItem", b'{"TableName":"tab","Item":{' + b",".join(
            [b'"n":{"NULL":true}'] * 800000) + b"}}", {}
        yield "unknown members", "PutItem", b"{" + b'"x":[[[[[]]]]],' * 1000000 + b'"y":1}', {}
        yield "deep unknown members", "PutItem", b'{"x":' + b"[" * 8000000, {}
        yield "escapes", "PutItem", filled % (b'{"S":"' + rb"\u00e4" * 2500000 + b'"}'), {}
        yield "a number of many digits", "PutItem", filled % (b'{"N":"' + b"9" * 15000000 + b'"}'), {}
        yield "numbers", "PutItem", filled % (
            b'{"NS":[' + b",".join(b'"%d.%d"' % (i, i) for i in range(700000)) + b"]}"), {}
        yield "a set", "PutItem", filled % (
            b'{"SS":[' + b",".join(b'"%d"' % (i * 7919 % 999983) for i in range(900000)) + b"]}"), {}
        yield "base64", "PutItem", filled % (b'{"B":"' + b"QUJD" * 3900000 + b'"}'), {}
        packed = {"Content-Encoding": "gzip"}
        yield "gzip of blanks", "PutItem", gzip.compress(b" " * (16 * MIB)), packed
        yield "gzip of a value", "PutItem", gzip.compress(filled % (
            b'{"L":[' + b'{"L":[]},' * 1500000 + b'{"L":[]}]}')), packed
        yield "gzip of many members", "PutItem", gzip.compress(b"") * 500000, packed
        yield "gzip that is too long", "PutItem", gzip.compress(b" " * (64 * MIB)), packed

        def statement(text):
            return {"Statement": text}

        yield "PartiQL IN", "ExecuteStatement", statement(
            "SELECT * FROM tab WHERE x IN [" + ",".join(["1"] * 2000) + "]"), {}
        yield "PartiQL OR", "ExecuteStatement", statement(
            "SELECT * FROM tab WHERE " + " OR ".join(["contains(l,'x')"] * 300)), {}
        yield "PartiQL brackets", "ExecuteStatement", statement(
            "SELECT * FROM tab WHERE x = " + "[" * 4000), {}
        yield "PartiQL columns", "ExecuteStatement", statement(
            "SELECT " + ",".join(f"a{i * 40:05}" for i in range(900)) + " FROM tab"), {}
        yield "a batch of statements", "BatchExecuteStatement", {"Statements": [statement(
            f"SELECT * FROM tab WHERE pk = 'k{i}'") for i in range(25)]}, {}
        yield "a batch of the largest items", "BatchGetItem", {"RequestItems": {"tab": {"Keys": [
            {"pk": {"S": f"k{i}"}} for i in range(40)]}}}, {}
        yield "a transaction of the largest items", "TransactGetItems", {"TransactItems": [
            {"Get": {"TableName": "tab", "Key": {"pk": {"S": f"k{i}"}}}} for i in range(40)]}, {}
        yield "a batch of puts", "BatchWriteItem", {"RequestItems": {"tab": [
            {"PutRequest": {"Item": {"pk": {"S": f"w{i}"}, "v": {"S": "x" * (ITEM - 100)}}}}
            for i in range(25)]}}, {}
        yield "checks of large items", "TransactWriteItems", {"TransactItems": [
            {"ConditionCheck": {"TableName": "tab", "Key": {"pk": {"S": f"k{i}"}},
                                "ConditionExpression": "attribute_exists(v)"}} for i in range(40)]}, {}
        yield "a page of the largest items", "Scan", {"TableName": "tab"}, {}
        yield "a page, packed", "Scan", {"TableName": "tab"}, {"Accept-Encoding": "gzip"}
        yield "a page of small items", "Scan", {"TableName": "pages"}, {}
        yield "a page of small items, packed", "Scan", {"TableName": "pages"}, {
            "Accept-Encoding": "gzip"}
        many = " OR ".join(["contains(v,:v)"] * 200)
        yield "a filter of small items", "Scan", {
            "TableName": "pages", "FilterExpression": many,
            "ExpressionAttributeValues": {":v": {"S": "x"}}}, {}

    def run_bomb(self, box, name, operation, body, fields):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        statuses, until = [], time.monotonic() + SECONDS

        def send():
            client = box.client()
            while not statuses or time.monotonic() < until:
                statuses.append(box.call(operation, text, client, **fields)[0])
            client.close()

        threads = [threading.Thread(target=send) for _ in range(2)]
        pulse = Pulse(box)
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        slowest, most = pulse.stop()
        say(f"{name}: {len(statuses)} x {sorted(set(statuses))}; others: 99 % below {most:.1f} ms, "
            f"all below {slowest:.1f} ms")
        self.assertEqual(pulse.failures, [], name)
        self.assertTrue(box.alive(), name)
        return slowest, most

    def test_bombs(self):
        box = self.box("--sync", "none", "--loops", "2")
        self.fill(box)
        slow = []
        for bomb in self.bombs():
            for _ in range(5):  # this machine may be busy with something else for a moment
                slowest, most = self.run_bomb(box, *bomb)
                if most < 20 and slowest < 100:
                    break
            else:
                slow.append((bomb[0], round(slowest, 1), round(most, 1)))
        say(f"requests that held a loop: {box.metric('holdfast_requests_long_total')}")
        if not SLOW_BUILD:
            self.assertEqual(slow, [])
        self.ends_well(box)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
