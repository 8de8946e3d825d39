#!/usr/bin/env python3
"""`holdfast mcp` as a client sees it: mcp_test.py COMMAND SOURCE [unittest arguments]. Messages over pipes: every tool
on a server and on a directory, what is refused, bad messages, cancellation.
"""
import json
import os
import re
import select
import socket
import subprocess
import unittest

import process
from process import (COMMAND, FAILED, OK, SOURCE, USAGE, WAIT_S, Commands, main, setUpModule,  # noqa: F401
                     tearDownModule)

LINE_MAX = 8 * 1024 * 1024
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


class Client:
    def __init__(self, test, *args, version=VERSIONS[-1]):
        self.test = test
        self.process = subprocess.Popen([COMMAND, "mcp", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=test.env)
        test.addCleanup(self.kill)
        self.last = 0
        if version:
            self.hello = self.request("initialize", protocolVersion=version, capabilities={},
                                      clientInfo={"name": "test", "version": "1"})["result"]
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        self.process.wait()

    def send(self, message):
        self.process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self.process.stdin.flush()

    def receive(self):
        self.test.assertTrue(select.select([self.process.stdout], [], [], WAIT_S)[0], "no answer")
        return json.loads(self.process.stdout.readline())

    def ask(self, message):
        self.send(message)
        return self.receive()

    def request(self, method, **params):
        self.last += 1
        answer = self.ask({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        self.test.assertEqual((answer["jsonrpc"], answer["id"]), ("2.0", self.last), answer)
        return answer

    def tool(self, name, /, **arguments):
        """The structured result of a tool that has to succeed."""
        result = self.request("tools/call", name=name, arguments=arguments)["result"]
        self.test.assertFalse(result["isError"], (name, result))
        self.test.assertEqual(json.loads(result["content"][0]["text"]), result["structuredContent"])
        return result["structuredContent"]

    def fails(self, error, name, /, **arguments):
        result = self.request("tools/call", name=name, arguments=arguments)["result"]
        self.test.assertTrue(result["isError"], (name, result))
        self.test.assertIn(error, result["content"][0]["text"])

    def end(self):
        self.process.stdin.close()
        self.test.assertEqual(self.process.wait(timeout=WAIT_S), OK)
        self.test.assertEqual((self.process.stdout.read(), self.process.stderr.read()), ("", ""))


class Mcp(Commands):
    def names(self, client):
        return {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}

    def test_versions(self):
        for version in VERSIONS:
            client = Client(self, version=version)
            self.assertEqual(client.hello["protocolVersion"], version)
            self.assertEqual(client.hello["serverInfo"]["name"], "holdfast")
            self.assertEqual("annotations" in self.names(client)["query"], version > "2024-11-05")
            result = client.request("tools/call", name="list_tables", arguments={})["result"]
            self.assertEqual("structuredContent" in result, version >= "2025-06-18")
            self.assertEqual(json.loads(result["content"][0]["text"]), {"tables": []})
            client.end()
        self.assertEqual(Client(self, version="1999-01-01").hello["protocolVersion"], VERSIONS[-1])
        none = Client(self, version=None)
        self.assertEqual(none.request("initialize")["error"]["code"], -32602)

    def every_tool(self, db):
        """Each is called once, in an order in which it finds something."""
        write = Client(self, "--db", db, "--write", "--prefix", self.env["HOLDFAST_PREFIX"])
        called = set()

        def call(name, /, **arguments):
            called.add(name)
            return write.tool(name, **arguments)
        call("create_table", table="orders", keys="customer:S,day:N", indexes=["by_day=day:N"], ttl="expires")
        self.assertEqual(call("list_tables"), {"tables": [{"name": "orders"}]})
        self.assertEqual(call("describe_table", table="orders")["KeySchema"][1]["AttributeName"], "day")
        number = "12345678901234567890123456789012345678"
        write.send('{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{"name":"put_item","arguments":{"table":'
                   '"orders","item":{"customer":"ann","day":1,"n":%s,"s":{"$set":["a"]}}}}}' % number)
        self.assertEqual(write.receive()["result"]["structuredContent"], {"done": True})
        call("put_item", table="orders", item={"customer": "ann", "day": 2}, if_missing=True)
        write.fails("condition", "put_item", table="orders", item={"customer": "ann", "day": 2}, if_missing=True)
        item = call("get_item", table="orders", key=["ann", 1])
        self.assertEqual((str(item["n"]), item["s"]), (number, {"$set": ["a"]}))
        got = call("batch_get_items", table="orders", keys=[["ann", 2], ["ann", 3], ["ann", 1]], attributes="day")
        self.assertEqual(got, {"items": [{"day": 2}, None, {"day": 1}]})
        self.assertEqual(call("update_item", table="orders", key=["ann", 2], update="SET #s = :s",
                              names={"#s": "status"}, values={":s": "paid"})["status"], "paid")
        first = call("query", table="orders", key="ann", limit=1)
        self.assertEqual([i["day"] for i in first["items"]], [1])
        rest = write.tool("query", table="orders", key="ann", start=first["next"])
        self.assertEqual([i["day"] for i in rest["items"]], [2])
        self.assertEqual(write.tool("query", table="orders", key="ann", range=">=2", count=True), {"count": 1})
        self.assertEqual(write.tool("query", table="orders", key="2", index="by_day")["items"][0]["status"], "paid")
        self.assertEqual(len(call("scan", table="orders")["items"]), 2)
        self.assertEqual(call("table_stats", table="orders", exact=True)["items"], 2)
        self.assertEqual(len(call("execute_statement", statement="SELECT * FROM orders WHERE customer = ? AND day = ?",
                                  parameters=["ann", 2])["items"]), 1)
        write.tool("execute_statement", statement="INSERT INTO orders VALUE {'customer': 'ben', 'day': 1}")
        call("delete_item", table="orders", key=["ben", 1])
        write.fails("not_found", "get_item", table="orders", key=["ben", 1])
        self.assertEqual(call("list_locks", all=True), {"locks": []})
        self.ok("lock", "run", "job", "--db", db, "--", "true")
        self.assertEqual(call("show_lock", name="job")["mode"], "free")
        call("break_lock", name="job")
        call("set_key", id="motd", value="hi")
        self.assertEqual(call("get_key", id="motd")["value"], "hi")
        self.assertEqual([e["id"] for e in call("list_keys", prefix="m")["entries"]], ["motd"])
        call("delete_key", id="motd")
        self.assertEqual(call("add_to_counter", id="visits", number=-3)["value"], -3)
        call("set_counter", id="visits", number=7)
        self.assertIn("7", json.dumps(call("get_counters", ids=["visits"])))
        self.assertEqual(call("list_counters")["counters"], [{"id": "visits", "value": 7}])
        self.assertEqual(call("call_operation", operation="DescribeTimeToLive", request={"TableName": "orders"}),
                         {"TimeToLiveDescription": {"AttributeName": "expires", "TimeToLiveStatus": "ENABLED"}})
        write.tool("call_operation", operation="DeleteItem",
                   request={"TableName": "orders", "Key": {"customer": {"S": "x"}, "day": {"N": "1"}}})
        self.ok("once", "run", "month", "--db", db, "--", "true")
        call("show_once", key="month")
        self.assertEqual(len(call("list_once")["records"]), 1)
        call("clear_once", key="month")
        self.assertTrue(call("peek_limit", name="x", calls=5, window="1h", kind="fixed")["allowed"])
        self.ok("limit", "check", "x", "--limit", "5", "--db", db)
        call("reset_limit", name="x")
        self.ok("records", "put", '{"AccountId":"a","RunTime":"2026-02-17T12:00:00Z"}', "--db", db)
        self.assertEqual(len(call("list_records", state="unprocessed")["records"]), 1)
        call("retry_records")
        call("emit_event", type="order.placed", payload={"id": 7}, key="7")
        self.assertEqual(call("outbox_stats")["pending"], 1)
        self.assertEqual(len(call("list_outbox")["events"]), 1)
        self.assertEqual(call("list_dead_letters")["events"], [])
        call("retry_dead_letters", all=True)
        call("discard_dead_letters", all=True)
        event = call("append_event", stream="order/7", type="placed", payload={"n": 2}, expect="none")
        self.assertEqual(call("read_stream", stream="order/7")["events"][0]["payload"], {"n": 2})
        self.assertEqual(len(call("read_all_events")["events"]), 1)
        self.assertEqual(call("get_event", id=event["ids"][0])["type"], "placed")
        self.assertEqual(call("stream_info", stream="order/7")["version"], 1)
        self.assertEqual(len(call("list_streams", domain="order")["streams"]), 1)
        call("list_parked_events", name="none")
        self.assertEqual(called, set(self.names(write)))
        write.end()
        return called

    def test_every_tool_on_a_server(self):
        self.every_tool(self.env["HOLDFAST_DB"])

    def test_every_tool_on_a_directory(self):
        self.every_tool("embedded:" + self.path("db"))

    def test_annotations(self):
        tools = self.names(Client(self, "--write"))
        self.assertEqual(tools["query"]["annotations"], {"readOnlyHint": True, "destructiveHint": False,
                                                         "idempotentHint": True, "openWorldHint": False})
        self.assertEqual(tools["execute_statement"]["annotations"]["destructiveHint"], True)
        self.assertEqual(tools["delete_item"]["annotations"]["destructiveHint"], True)
        self.assertEqual(tools["emit_event"]["annotations"],
                         {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False})
        schema = tools["get_item"]["inputSchema"]
        self.assertEqual((schema["type"], schema["required"], schema["additionalProperties"]),
                         ("object", ["table", "key"], False))
        self.assertEqual(tools["set_key"]["inputSchema"]["properties"]["type"]["enum"], ["text", "number", "json"])
        read_only = self.names(Client(self))
        self.assertEqual({name for name, tool in tools.items() if tool["annotations"]["readOnlyHint"]} |
                         {"execute_statement", "call_operation"}, set(read_only))
        for tool in read_only.values():
            self.assertTrue(tool["annotations"]["readOnlyHint"], tool)

    def test_nothing_is_written_without_write(self):
        self.ok("table", "create", "orders", "--key", "id", "-q")
        self.ok("item", "put", "orders", '{"id":"a"}')
        client = Client(self)
        all_tools = set(self.names(Client(self, "--write")))
        for name in all_tools - set(self.names(client)):
            error = client.request("tools/call", name=name, arguments={"table": "orders", "key": ["a"]})["error"]
            self.assertEqual((error["code"], error["message"]),
                             (-32602, "Unknown tool: %s (this server was started without --write)" % name))
        for statement in ["DELETE FROM orders WHERE id = 'a'", "/* SELECT */ DELETE FROM orders WHERE id = 'a'",
                          "-- SELECT\nDELETE FROM orders WHERE id = 'a'", "delete from orders where id='a'",
                          "/*/ SELECT */ DELETE FROM orders WHERE id='a'", "/**/UPDATE orders SET x=1 WHERE id='a'",
                          "INSERT INTO orders VALUE {'id':'b'}", "SELECTED", "", "/* SELECT * FROM orders", "-- SELECT",
                          "SELECT\0", "EXISTS(SELECT * FROM orders WHERE id='a')", " \n\t", "\ufeffDELETE FROM orders"]:
            with self.subTest(statement):
                result = client.request("tools/call", name="execute_statement", arguments={"statement": statement})
                self.assertTrue(result["result"]["isError"], result)
        for statement in ["SELECT * FROM orders; DELETE FROM orders WHERE id = 'a'",
                          "/* /* */ SELECT * FROM orders */ DELETE FROM orders WHERE id = 'a'"]:
            client.request("tools/call", name="execute_statement", arguments={"statement": statement})
        self.assertEqual(self.ok("scan", "orders"), '{"id":"a"}\n')
        for statement in ["SELECT * FROM orders", "select * from orders", " /* x */ -- y\n SELECT * FROM orders"]:
            self.assertEqual(client.tool("execute_statement", statement=statement)["items"], [{"id": "a"}])
        client.end()

    def test_every_operation_that_reads(self):
        """As the table of operations has them: a new one is there by itself."""
        with open(os.path.join(SOURCE, "src/ops/ops.def")) as file:
            operations = dict(re.findall(r"(?m)^OP\((\w+),[^)]*?\b(READ|WRITE)\b", file.read()))
        self.assertGreater(list(operations.values()).count("READ"), 20)
        client = Client(self)
        for name, access in operations.items():
            with self.subTest(name):
                result = client.request("tools/call", name="call_operation",
                                        arguments={"operation": name, "request": {}})["result"]
                text = result["content"][0]["text"]
                self.assertEqual("writes, and this is read-only" in text, access == "WRITE", text)
                self.assertNotIn("unknown", text.lower())
        client.end()

    def test_nothing_is_created(self):
        client = Client(self, "--db", "embedded:" + self.path("none"))
        client.fails("There is no store", "list_tables")
        client.fails("There is no store", "list_locks")
        client.end()
        self.assertFalse(os.path.exists(self.path("none")))
        client = Client(self, "--db", process.NOBODY, "--timeout", "2s")
        client.fails("127.0.0.1:1", "list_tables")
        client.end()

    def test_some_tables_alone(self):
        for name in ("orders", "users", "secret"):
            self.ok("table", "create", name, "--key", "id", "-q")
        client = Client(self, "--table", "orders", "--table", "users", "--table", "none", "--write")
        self.assertEqual(client.tool("list_tables"), {"tables": [{"name": "orders"}, {"name": "users"}]})
        client.tool("put_item", table="orders", item={"id": "a"})
        for name, more in [("scan", {}), ("describe_table", {}), ("batch_get_items", {"keys": [["a"]]}), ("put_item", {"item": {"id": "a"}}),
                           ("delete_item", {"key": ["a"]}), ("create_table", {"keys": "id"})]:
            client.fails("limited to other tables", name, table="secret", **more)
        client.fails("limited to other tables", "scan", table="--table=orders")
        tools = self.names(client)
        for name in ("execute_statement", "get_key", "set_key", "list_locks"):
            self.assertNotIn(name, tools)
            self.assertEqual(client.request("tools/call", name=name, arguments={})["error"]["code"], -32602)
        client.end()

    def test_results_are_bounded(self):
        self.ok("table", "create", "orders", "--key", "id,n:N", "-q")
        for n in range(4):
            self.ok("item", "put", "orders", json.dumps({"id": "a", "n": n, "text": "x" * 400}))
        client = Client(self, "--max-items", "3", "--max-bytes", "1024")
        client.fails("at most 1024 are returned: ask for fewer items", "scan", table="orders")
        first = client.tool("scan", table="orders", attributes="id,n", limit=1000)
        self.assertEqual(len(first["items"]), 3)
        self.assertEqual(len(client.tool("scan", table="orders", start=first["next"])["items"]), 1)
        self.assertEqual(len(client.tool("scan", table="orders", attributes="n", count=False, limit=2)["items"]), 2)
        self.assertEqual(client.tool("scan", table="orders", count=True), {"count": 4})
        result = client.request("tools/call", name="execute_statement", arguments={
            "statement": "SELECT n FROM orders"})["result"]
        self.assertEqual(len(result["structuredContent"]["items"]), 3)
        self.assertEqual((result["structuredContent"]["more"], len(result["content"])), (True, 1))
        client.end()
        client = Client(self, "--max-items", "4")
        self.assertEqual(set(client.tool("execute_statement", statement="SELECT n FROM orders")), {"items"})
        client.end()
        self.fails(USAGE, "out of range: use 1 to 10000", "mcp", "--max-items", "10001")
        self.fails(USAGE, "out of range: use 1KiB to 64MiB", "mcp", "--max-bytes", "1023")

    def test_a_list_that_goes_on_says_so(self):
        for i in range(3):
            self.ok("outbox", "emit", "t%d" % i, "{}")
            self.ok("events", "append", "order/%d" % i, "placed", "{}")
            self.ok("once", "run", "job%d" % i, "--", "true")
            self.ok("lock", "run", "job%d" % i, "--", "true")
        lists = [("list_outbox", "events", {}), ("list_streams", "streams", {"domain": "order"}),
                 ("list_once", "records", {}), ("list_locks", "locks", {"all": True})]
        for most, more in ((2, True), (3, None)):
            client = Client(self, "--max-items", str(most))
            for name, member, arguments in lists:
                with self.subTest(name):
                    result = client.tool(name, **arguments)
                    self.assertEqual((len(result[member]), result.get("more")), (most, more))
                    result = client.tool(name, limit=1, **arguments)
                    self.assertEqual((len(result[member]), result["more"]), (1, True))
            client.end()

    def test_blobs(self):
        """A value that is larger than an item, by the option and by a named database."""
        blobs = "dir:" + self.path("blobs")
        self.ok("kv", "set", "big", "-f", "-", "--blobs", blobs, input="x" * 500000)
        self.ok("config", "set", "shop", "db=" + self.env["HOLDFAST_DB"], "blobs=" + blobs)
        for args in (["--blobs", blobs], ["--db", "@shop"]):
            client = Client(self, "--max-bytes", "1MiB", *args)
            self.assertEqual(len(client.tool("get_key", id="big")["value"]), 500000)
            self.assertEqual(client.tool("list_tables")["tables"], [{"name": "keys"}])  # it has no blobs
            client.end()

    def test_wrong_arguments(self):
        self.ok("table", "create", "orders", "--key", "id", "-q")
        client = Client(self, "--write")
        for error, name, arguments in [
                ("argument 'table': missing", "scan", {}), ("argument 'table': missing", "scan", {"table": None}),
                ("'table': expected a string", "scan", {"table": 1}),
                ("unknown argument 'tabel'", "scan", {"tabel": "orders"}),
                ("'limit': expected an integer", "scan", {"table": "orders", "limit": "1"}),
                ("'limit': expected an integer", "scan", {"table": "orders", "limit": 0}),
                ("'limit': expected an integer", "scan", {"table": "orders", "limit": -1}),
                ("'limit': expected an integer", "scan", {"table": "orders", "limit": 1.5}),
                ("'key': expected an array", "get_item", {"table": "orders", "key": "a"}),
                ("'key': a key has one part or two", "get_item", {"table": "orders", "key": []}),
                ("'key': a key has one part or two", "get_item", {"table": "orders", "key": ["a", "b", "c"]}),
                ("'key': expected strings or numbers", "get_item", {"table": "orders", "key": [True]}),
                ("'item': expected an object", "put_item", {"table": "orders", "item": "{}"}),
                ("'consistent': expected true or false", "get_item", {"table": "orders", "key": ["a"], "consistent": 1}),
                ("'range': needs argument 'key'", "query", {"table": "orders", "range": "a"}),
                ("'number': expected an integer", "set_counter", {"id": "a", "number": "x"}),
                ("'type': expected one of: text number json", "set_key", {"id": "a", "value": "b", "type": "bytes"}),
                ("'keys': expected an array of 1 to 25 keys", "batch_get_items", {"table": "orders", "keys": []}),
                ("'keys': expected an array of 1 to 25 keys", "batch_get_items", {"table": "orders", "keys": [["a"]] * 26}),
                ("'key': expected an array", "batch_get_items", {"table": "orders", "keys": ["a"]}),
                ("not_found", "batch_get_items", {"table": "none", "keys": [["a"]]}),
                ("unknown argument 'key'", "batch_get_items", {"table": "orders", "key": ["a"]}),
                ("'table': missing", "batch_get_items", {"keys": [["a"]]}),
                ("NUL", "get_key", {"id": "a\0b"}), ("'ids': expected strings", "get_counters", {"ids": [1]}),
                ("more than 1000 values", "get_counters", {"ids": ["x"] * 1001}),
                ("empty", "scan", {"table": "orders", "filter": ""}),
                ("not_found", "scan", {"table": "none"}), ("invalid", "scan", {"table": "orders", "filter": "x x"}),
                ("not_found", "get_item", {"table": "orders", "key": ["--help"]}),
                ("not_found", "get_key", {"id": "--table=orders"})]:
            with self.subTest(error):
                client.fails(error, name, **arguments)
        self.assertEqual(client.tool("batch_get_items", table="orders", keys=[["a"]] * 25), {"items": [None] * 25})
        self.assertEqual(client.request("tools/call", name="none")["error"]["message"], "Unknown tool: none")
        self.assertEqual(client.request("tools/call", name="scan", arguments=[])["error"]["code"], -32602)
        self.assertEqual(client.request("tools/call")["error"]["code"], -32602)
        self.assertEqual(client.request("tools/call", name=5)["error"]["code"], -32602)
        client.end()

    def test_bad_messages(self):
        client = Client(self)
        for message, code in [("{", -32700), ("x", -32700), ("{} {}", -32700), ("[" * 100, -32700), ("1", -32600),
                              ("{}", -32600), ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
                              ('{"jsonrpc":"2.0","id":1}', -32600), ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
                              ('{"jsonrpc":"2.0","id":1,"method":7}', -32600), ("[]", -32600),
                              ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600)]:
            with self.subTest(message[:30]):
                self.assertEqual(client.ask(message)["error"]["code"], code)
        self.assertEqual(client.request("prompts/list")["error"],
                         {"code": -32601, "message": "Method not found: prompts/list"})
        client.send('{"jsonrpc":"2.0","id":1,"result":{}}')  # an answer, to nothing
        client.send('{"jsonrpc":"2.0","method":"notifications/unknown"}')
        client.send("")
        self.assertEqual(client.ask({"jsonrpc": "2.0", "id": "a\n", "method": "ping"}),
                         {"jsonrpc": "2.0", "id": "a\n", "result": {}})
        client.end()

    def test_resources(self):
        for name in ("orders", "secret"):
            self.ok("table", "create", name, "--key", "id", "-q")
        client = Client(self, "--table", "orders")
        self.assertIn("resources", client.hello["capabilities"])
        [resource] = client.request("resources/list")["result"]["resources"]
        self.assertEqual((resource["uri"], resource["name"]), ("holdfast://tables/orders", "orders"))
        [content] = client.request("resources/read", uri=resource["uri"])["result"]["contents"]
        self.assertEqual(json.loads(content["text"])["TableName"], "orders")
        for uri in ("holdfast://tables/secret", "holdfast://tables/none", "holdfast://tables/", "file:///etc/passwd"):
            self.assertEqual(client.request("resources/read", uri=uri)["error"]["code"], -32002)
        self.assertEqual(client.request("resources/read")["error"]["code"], -32602)
        client.end()
        client = Client(self, "--db", "embedded:" + self.path("none"))
        self.assertIn("There is no store", client.request("resources/list")["error"]["message"])
        client.end()

    def test_long_lines(self):
        client = Client(self)
        message = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
        self.assertEqual(client.ask(message.ljust(LINE_MAX))["result"], {})
        for more in (1, 5 * 1024 * 1024, 30 * 1024 * 1024):
            answer = client.ask(message.ljust(LINE_MAX + more))
            self.assertEqual((answer["id"], answer["error"]["code"]), (None, -32600))
            self.assertIn("at most %d bytes" % LINE_MAX, answer["error"]["message"])
            self.assertEqual(client.ask(message)["result"], {})  # the next one is understood
        client.end()

    def test_batches(self):
        client = Client(self, version="2025-03-26")
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_tables"}}
        answers = client.ask([ping, {"jsonrpc": "2.0", "method": "notifications/x"}, call, 5])
        self.assertEqual(sorted(str(a["id"]) for a in answers), ["1", "2", "None"])
        client.send([{"jsonrpc": "2.0", "method": "notifications/x"}])  # no answer at all
        self.assertEqual(client.ask([]), {"jsonrpc": "2.0", "id": None, "error": {
            "code": -32600, "message": "Invalid request: a batch has 1 to 100 messages"}})
        self.assertEqual(len(client.ask([ping] * 100)), 100)
        self.assertEqual(client.ask([ping] * 101)["error"]["code"], -32600)
        client.end()

    def test_cancellation(self):
        """A service that never answers: the call ends, and nothing is said of it."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            client = Client(self, "--db", "http://127.0.0.1:%d" % silent.getsockname()[1], "--timeout", "10m")
            call = {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "list_tables"}}
            client.send(call)
            client.send(dict(call, id="waits"))
            self.assertEqual(client.request("ping")["result"], {})  # answered meanwhile
            accepted = silent.accept()[0]
            self.addCleanup(accepted.close)
            for name in ("nobody", "waits", "slow"):
                client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": name}})
            client.send({"jsonrpc": "2.0", "method": "notifications/cancelled"})
            self.assertEqual(client.request("ping")["result"], {})
            client.end()  # without an answer to either

    def test_many_calls_wait(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            client = Client(self, "--db", "http://127.0.0.1:%d" % silent.getsockname()[1], "--timeout", "10m")
            call = {"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": {"name": "list_tables"}}
            client.send(call)
            self.addCleanup(silent.accept()[0].close)  # it runs
            for i in range(1, 257):
                client.send(dict(call, id=i))
            answer = client.ask(dict(call, id="one too many"))
            self.assertEqual((answer["id"], answer["error"]["code"]), ("one too many", -32000))

    def test_end_of_input_answers_all(self):
        calls = "".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call",
                                    "params": {"name": "list_tables"}}) + "\n" for i in range(5))
        answers = [json.loads(line) for line in self.ok("mcp", input=calls).splitlines()]
        self.assertEqual([answer["id"] for answer in answers], list(range(5)))
        self.assertEqual(self.ok("mcp", input=""), "")

    def test_a_client_that_is_gone(self):
        client = Client(self)
        client.process.stdout.close()
        client.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        self.assertIn(client.process.wait(timeout=WAIT_S), (FAILED, -13))


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    main()
