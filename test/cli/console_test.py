#!/usr/bin/env python3
"""The console of the command: console_test.py COMMAND SOURCE [unittest arguments]. Where `serve` offers it, and
`holdfast console` over a server and a directory: what it refuses, and what it leaves behind.
"""
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request

import process
from process import (COMMAND, DENIED, UNAVAILABLE, USAGE, WAIT_S, Commands, clean_env, main, setUpModule,
                     tearDownModule)  # noqa: F401


def get(url, body=None, **fields):
    """Status and body of a GET, or of a POST of JSON."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **fields} if data else fields
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=WAIT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class Console(Commands):
    def running(self, *args):
        """A command that runs until a signal, with the first URL of a console that it prints."""
        env = {name: value for name, value in self.env.items() if name != "HOLDFAST_PREFIX"}
        running = subprocess.Popen([COMMAND, *args], env=env, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.reap, running)
        for line in running.stdout:
            found = re.search(r"https?://\S+/console/", line)
            if found:
                return running, found.group(0)
        raise AssertionError(running.communicate()[1])

    def reap(self, running):
        if running.poll() is None:
            running.kill()
        running.communicate()

    def stop(self, running, number=signal.SIGINT):
        running.send_signal(number)
        running.communicate(timeout=WAIT_S)
        return running.returncode

    def test_serve_offers_it_on_this_machine(self):
        server, url = self.running("serve", "--in-memory", "--port", "0")
        status, page = get(url)
        self.assertEqual(status, 200)
        self.assertIn("<!doctype html>", page.lower())
        info = json.loads(get(url + "api/info")[1])
        self.assertEqual((info["access"], info["database"]), ("open", {"kind": "engine", "url": "memory:"}))
        self.assertIn("lock.list", info["methods"])
        status, answer = get(url + "api/call", {"method": "bind.version"})
        self.assertEqual((status, list(json.loads(answer))), (200, ["result"]))
        self.assertEqual(self.stop(server, signal.SIGTERM), 0)

    def test_serve_without_it(self):
        for args in (["--console", "off"], ["--host", "0.0.0.0", "--insecure-any-key"]):
            server = subprocess.Popen([COMMAND, "serve", "--in-memory", "--port", "0", *args], env=self.env, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(self.reap, server)
            start = ""
            while "  try" not in start:
                start += server.stdout.readline()
            self.assertNotIn("console", start)
            url = re.search(r"http://127.0.0.1:\d+", start).group(0)
            status, text = get(url + "/console/")
            self.assertEqual(status, 404)
            self.assertIn("--console on", text)
            self.stop(server)
        self.fails(USAGE, "--console", "serve", "--console", "maybe")
        self.fails(USAGE, "not a directory", "serve", "--in-memory", "--console-dir", COMMAND)

    def test_files_of_a_directory(self):
        os.mkdir(self.path("page"))
        with open(self.path("page/index.html"), "w", encoding="utf-8") as file:
            file.write("of the directory")
        server, url = self.running("serve", "--in-memory", "--port", "0", "--console-dir", self.path("page"))
        self.assertEqual(get(url), (200, "of the directory"))
        self.stop(server)

    def test_over_a_server_it_only_reads(self):
        self.ok("table", "create", "orders", "--key", "customer:S", "--quiet")
        self.ok("item", "put", "orders", '{"customer":"ann"}')
        console, url = self.running("console", "--db", process.SERVER.url)
        db = url[:-len("/console/")]
        info = json.loads(get(url + "api/info")[1])
        self.assertEqual((info["read_only"], info["database"]),
                         (True, {"kind": "remote", "url": process.SERVER.url}))
        self.assertIn("ann", self.ok("scan", "orders", "--db", db))
        table = self.env["HOLDFAST_PREFIX"] + "orders"
        self.fails(DENIED, "read-only", "item", "put", "orders", '{"customer":"eve"}', "--db", db)
        self.fails(DENIED, "read-only", "sql", f"DELETE FROM \"{table}\" WHERE customer='ann'", "--db", db)
        for method, arguments in (("lock.break", {"name": "a"}),
                                  ("PutItem", {"TableName": table, "Item": {"customer": {"S": "eve"}}}),
                                  ("ExecuteStatement",
                                   {"Statement": f"DELETE FROM \"{table}\" WHERE customer='ann'"})):
            status, answer = get(url + "api/call", {"method": method, "arguments": arguments})
            self.assertEqual((status, json.loads(answer)["error"]["code"]), (403, "HF_DENIED"), method)
        explained = json.loads(get(url + "api/explain", {"statement": f"SELECT * FROM \"{table}\""})[1])
        self.assertEqual((explained["operation"], explained["full_scan"]), ("Scan", True))
        self.assertEqual(self.ok("scan", "orders"), '{"customer":"ann"}\n')
        self.assertEqual(self.stop(console), 0)

    def test_over_a_server_it_may_write(self):
        self.ok("table", "create", "orders", "--key", "customer:S", "--quiet")
        console, url = self.running("console", "--write", "--db", process.SERVER.url)
        self.assertFalse(json.loads(get(url + "api/info")[1])["read_only"])
        self.ok("item", "put", "orders", '{"customer":"ben"}', "--db", url[:-len("/console/")])
        self.assertEqual(self.ok("scan", "orders"), '{"customer":"ben"}\n')
        self.assertEqual(self.stop(console, signal.SIGTERM), 0)

    def test_a_directory_that_is_served_says_where(self):
        directory = self.path("db")
        url = "embedded:" + directory
        self.ok("table", "create", "orders", "--key", "customer:S", "--quiet", "--db", url)
        console, page = self.running("console", "--write", "--db", url)
        db = page[:-len("/console/")]
        with open(os.path.join(directory, "served"), encoding="utf-8") as file:
            self.assertEqual(file.read(), f"{console.pid} {db}\n")
        self.fails(UNAVAILABLE, "connect to it with --db " + db, "table", "ls", "--db", url)
        self.ok("item", "put", "orders", '{"customer":"ann"}', "--db", db)
        with open(os.path.join(directory, "served"), "w", encoding="utf-8") as file:
            file.write("1 http://127.0.0.1:1\n")  # of another process: it counts for nothing
        code, _, error = self.run_("table", "ls", "--db", url)
        self.assertEqual(code, UNAVAILABLE)
        self.assertNotIn("127.0.0.1:1", error)
        self.assertEqual(self.stop(console), 0)
        self.assertFalse(os.path.exists(os.path.join(directory, "served")))
        self.assertIn("ann", self.ok("scan", "orders", "--db", url))

    def test_a_directory_is_only_read(self):
        url = "embedded:" + self.path("db")
        self.ok("table", "create", "orders", "--key", "customer:S", "--quiet", "--db", url)
        before = sorted(os.listdir(self.path("db")))
        console, page = self.running("console", "--db", url)
        self.assertTrue(json.loads(get(page + "api/info")[1])["read_only"])
        self.assertEqual(sorted(os.listdir(self.path("db"))), before)
        self.assertIn("orders", self.ok("table", "ls", "--db", page[:-len("/console/")]))
        self.assertEqual(self.stop(console), 0)
        self.run_("console", "--db", "embedded:" + self.path("none"))
        self.assertFalse(os.path.exists(self.path("none")))

    def test_keys_keep_others_out(self):
        keys = self.path("keys.ini")
        with open(keys, "w", encoding="utf-8") as file:
            file.write("[a]\naws_access_key_id = ANN\naws_secret_access_key = secret\n")
        os.chmod(keys, 0o600)
        server, url = self.running("serve", "--in-memory", "--port", "0", "--credentials", keys)
        self.assertEqual(get(url)[0], 200)
        self.assertEqual(sorted(json.loads(get(url + "api/info")[1])), ["access", "version"])
        for path, body in (("api/history", None), ("api/stream", None), ("api/call", {"method": "bind.version"}),
                           ("api/explain", {"statement": "SELECT * FROM a"})):
            self.assertEqual(get(url + path, body)[0], 403, path)
        signed = subprocess.run(["curl", "-s", "--aws-sigv4", "aws:amz:us-east-1:dynamodb", "--user", "ANN:secret",
                                 "-H", "Content-Type: application/json", "-d", '{"method":"bind.version"}',
                                 url + "api/call"], capture_output=True, text=True, env=clean_env(), check=False)
        self.assertIn('{"result":', signed.stdout)
        self.stop(server)


if __name__ == "__main__":
    main()
