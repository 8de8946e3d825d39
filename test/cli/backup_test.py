#!/usr/bin/env python3
"""holdfast backup and `serve --backup-to` as processes: what is printed, exit codes, refusals; a server that is killed
again and again beside writers, and what a restore has of it."""
import json
import os
import random
import signal
import subprocess
import threading
import time
import unittest
import urllib.request

from process import COMMAND, CORRUPT, DENIED, NOT_FOUND, OK, TIMEOUT, USAGE, WAIT_S, Commands, clean_env, \
    setUpModule, tearDownModule  # noqa: F401
import process


class Backup(Commands):
    def prepare(self):
        self.db, self.place = self.path("a.db"), "dir:" + self.path("place")
        self.env.pop("HOLDFAST_PREFIX")
        self.env["HOLDFAST_DB"] = "embedded:" + self.db

    def fill(self, items=3):
        self.ok("table", "create", "orders", "--key", "id:S", "--quiet")
        for i in range(items):
            self.ok("item", "put", "orders", json.dumps({"id": "i%d" % i}), "--quiet")

    def run_once(self, *args):
        return json.loads(self.ok("backup", "run", self.db, self.place, "--once", "--json", *args))

    def ids(self, path):
        out = self.ok("scan", "orders", "--all", "--jsonl", "--db", "embedded:" + path)
        return sorted(json.loads(line)["id"] for line in out.splitlines())

    def test_a_directory(self):
        self.fill()
        done = self.run_once()
        self.assertEqual((done["state"], done["snapshots"]), ("shipping", 1))
        self.ok("item", "put", "orders", '{"id":"later"}', "--quiet")
        self.run_once()
        info = json.loads(self.ok("backup", "ls", self.place, "--json"))
        self.assertEqual((info["closed"], info["encrypted"], info["unneeded"]), (True, False, 0))
        snapshots = json.loads(self.ok("backup", "ls", self.place, "--snapshots", "--json"))["snapshots"]
        self.assertEqual(len(snapshots), 2)  # the item was put by a process without a backup
        self.assertGreater(json.loads(self.ok("backup", "verify", self.place, "--json"))["objects"], 1)
        self.ok("backup", "restore", self.place, self.path("new.db"), "--quiet")
        self.assertEqual(self.ids(self.path("new.db")), ["i0", "i1", "i2", "later"])
        self.ok("backup", "restore", self.place, "embedded:" + self.path("old.db"), "--at", info["oldest"], "--quiet")
        self.assertEqual(self.ids(self.path("old.db")), ["i0", "i1", "i2"])
        code, _, err = self.run_("backup", "restore", self.place, self.path("new.db"))
        self.assertNotEqual(code, OK)
        self.assertIn("restore to a new directory", err)

    def test_tables_into_another_database(self):
        self.fill()
        self.ok("table", "create", "other", "--key", "id:S", "--quiet")
        self.run_once()
        url = process.SERVER.url
        out = json.loads(self.ok("backup", "restore", self.place, url, "--tables", "orders", "--json", cwd=self.dir))
        self.assertEqual(out["items"], 3)
        self.assertEqual(len(self.ok("scan", "orders", "--jsonl", "--db", url).splitlines()), 3)
        self.assertNotIn("other", self.ok("table", "ls", "--db", url).split())
        self.ok("backup", "restore", self.place, self.path("only.db"), "--tables", "orders", "--quiet", cwd=self.dir)
        self.assertEqual(self.ids(self.path("only.db")), ["i0", "i1", "i2"])
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith("holdfast-restore")], [])

    def test_mistakes(self):
        self.fill()
        self.run_once()
        for args, expected in (
                (["ls", "dir:" + self.path("nothing")], NOT_FOUND),
                (["ls", "nothing"], USAGE),
                (["restore", self.place, self.path("x"), "--at", "yesterday"], USAGE),
                (["restore", self.place, self.path("x"), "--at", "2001-01-01"], NOT_FOUND),
                (["restore", self.place, "http://127.0.0.1:1"], USAGE),
                (["run", self.path("nothing.db"), self.place, "--once"], NOT_FOUND)):
            code, out, err = self.run_("backup", *args)
            self.assertEqual((code, out), (expected, ""), (args, err))
            self.assertEqual(err.count("holdfast backup"), 1, err) if expected != USAGE else None
        self.ok("backup", "restore", self.place, self.path("copy.db"), "--quiet")
        code, _, err = self.run_("backup", "run", self.path("copy.db"), self.place, "--once", "--timeout", "500ms")
        self.assertEqual(code, TIMEOUT)
        self.assertIn("another database", err)

    def test_damage(self):
        self.fill()
        self.run_once()
        folder = self.path("place/snapshot")
        name = os.listdir(folder)[0]
        with open(os.path.join(folder, name), "r+b") as file:
            file.seek(-50, 2)
            file.write(b"!")
        code, _, err = self.run_("backup", "verify", self.place)
        self.assertEqual(code, CORRUPT)
        self.assertIn("snapshot/" + name + " is damaged", err)
        code, _, err = self.run_("backup", "restore", self.place, self.path("x.db"))
        self.assertEqual(code, CORRUPT)
        self.assertFalse(os.path.exists(self.path("x.db")))

    def test_keys(self):
        self.fill()
        for name, text in (("right", "ab" * 32), ("wrong", "cd" * 32), ("short", "ab")):
            with open(os.open(self.path(name), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(text + "\n")
        self.run_once("--key-file", self.path("right"))
        self.ok("backup", "verify", self.place, "--key-file", self.path("right"))
        self.assertEqual(self.run_("backup", "verify", self.place)[0], DENIED)
        self.assertEqual(self.run_("backup", "verify", self.place, "-k", self.path("wrong"))[0], DENIED)
        self.assertEqual(self.run_("backup", "verify", self.place, "-k", self.path("short"))[0], USAGE)

    def serve(self):
        server = subprocess.Popen([COMMAND, "serve", "--port", "0", "--db-path", self.db, "--backup-to", self.place,
                                   "--backup-window", "50ms", "--backup-snapshot", "1s"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_env())
        for line in server.stdout:
            if " serves on " in line:
                server.url = line.split()[-1]
            if line.startswith("  try"):
                break
        return server

    def metrics(self, server):
        with urllib.request.urlopen(server.url + "/metrics", timeout=WAIT_S) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines if line.startswith("holdfast_backup")}

    def put(self, url, name):
        body = json.dumps({"TableName": "orders", "Item": {"id": {"S": name}}}).encode()
        request = urllib.request.Request(url, body, {
            "X-Amz-Date": "20260101T000000Z", "X-Amz-Target": "DynamoDB_20120810.PutItem", "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, "
                             "SignedHeaders=host;x-amz-date, Signature=0"})
        urllib.request.urlopen(request, timeout=WAIT_S).read()

    def test_a_server_that_is_killed(self):
        """What was acknowledged before the backup was up to date is in it; nothing else than what was sent is."""
        sent, acknowledged, shipped = set(), set(), set()
        server = self.serve()
        self.ok("table", "create", "orders", "--key", "id:S", "--quiet", "--db", server.url)
        for run in range(5):
            stop = threading.Event()

            def write(worker, url=server.url, run=run, stop=stop):
                for i in range(10000):
                    name = "%d-%d-%d" % (run, worker, i)
                    sent.add(name)
                    try:
                        self.put(url, name)
                    except OSError:
                        return
                    acknowledged.add(name)
                    if stop.is_set():
                        return

            workers = [threading.Thread(target=write, args=(n,)) for n in range(3)]
            for worker in workers:
                worker.start()
            time.sleep(random.random() / 2)
            if run % 2:  # they stop, and all is shipped before the kill
                stop.set()
                for worker in workers:
                    worker.join(WAIT_S)
                for _ in range(WAIT_S * 20):
                    if self.metrics(server)["holdfast_backup_lag_changes"] == "0":
                        break
                    time.sleep(0.05)
                shipped |= acknowledged
            server.send_signal(signal.SIGKILL)
            server.communicate(timeout=WAIT_S)
            for worker in workers:
                worker.join(WAIT_S)
            server = self.serve()
        self.assertEqual(self.metrics(server)['holdfast_backup_state{state="fenced"}'], "0")
        server.terminate()
        server.communicate(timeout=WAIT_S)
        self.assertEqual(server.returncode, 0)
        self.ok("backup", "verify", self.place)
        self.ok("backup", "restore", self.place, self.path("new.db"), "--quiet")
        there = set(self.ids(self.path("new.db")))
        self.assertGreater(len(shipped), 10)
        self.assertEqual(shipped - there, set())
        self.assertEqual(acknowledged - there, set())  # the last server has shipped all before its end
        self.assertEqual(there - sent, set())
        self.ok("check", self.path("new.db"))


if __name__ == "__main__":
    unittest.main(argv=["backup_test.py", "-v"])
