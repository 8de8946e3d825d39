#!/usr/bin/env python3
"""The holdfast command as a process: serve_test.py COMMAND SOURCE [unittest arguments].

Python's standard library is enough: requests are written by hand.
"""
import ctypes
import hashlib
import http.client
import json
import os
import platform
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

COMMAND, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WAIT_S = 60
SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}


def clean_env(**more):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("HOLDFAST_", "LISTEN_", "NOTIFY_", "WATCHDOG_"))}
    env.update(more)
    return env


class Server:
    """A `holdfast serve` that is ready; its log is in `log`."""

    def __init__(self, *args, env=None, cwd=None, **more):
        self.process = subprocess.Popen(
            [COMMAND, "serve", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=env or clean_env(), cwd=cwd, **more)
        self.start = []
        for line in self.process.stdout:
            self.start.append(line)
            if line.startswith("  try"):
                break
        if not self.start:
            raise AssertionError(self.process.communicate()[1])
        self.port = int(re.search(r":(\d+)$", self.start[0]).group(1))

    def call(self, operation, body, host=None, **headers):
        return call(self.port, operation, body, host, **headers)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        _, self.log = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self.process.stdout.close()
        self.process.stderr.close()


def call(port, operation, body, host=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    fields = {"X-Amz-Target": "DynamoDB_20120810." + operation,
              "Content-Type": "application/x-amz-json-1.0", "X-Amz-Date": "20260101T000000Z",
              "Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/"
                               "aws4_request, SignedHeaders=host, Signature=" + "0" * 64}
    if host:
        fields["Host"] = host
    fields.update(headers)
    connection.request("POST", "/", json.dumps(body), fields)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer, json.loads(data) if data.startswith(b"{") else data


def fetch(host, port):
    connection = http.client.HTTPConnection(host, port, timeout=WAIT_S)
    connection.request("GET", "/readyz")
    data = connection.getresponse().read()
    connection.close()
    return data


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
        return True
    except OSError:
        return False


TABLE = {"TableName": "one", "BillingMode": "PAY_PER_REQUEST",
         "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
         "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}


def run(*args, env=None, **more):
    done = subprocess.run([COMMAND, *args], capture_output=True, text=True, timeout=WAIT_S,
                          env=env or clean_env(), **more)
    return done.returncode, done.stdout, done.stderr


class InDirectory(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="holdfast-serve-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)


class Words(InDirectory):
    def test_help_and_version(self):
        code, out, err = run("--help")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("serve", out)
        self.assertRegex(run("--version")[1], r"^holdfast \d+\.\d+\.\d+\n$")
        code, out, err = run("serve", "--help")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(run("serve", "-help"), (0, out, ""))
        self.assertEqual(run("help", "serve"), (0, out, ""))

    def test_bad_arguments_end_with_2(self):
        for args, error in [
                ([], ""),
                (["sevre"], "did you mean 'serve'?"),
                (["serve", "--port", "x"], "--port: 'x' is not a number"),
                (["serve", "--prot", "1"], "did you mean --port?"),
                (["serve", "-inMemory", "-dbPath", "."], "cannot be combined"),
                (["serve", "--host", "0.0.0.0"], "--credentials"),
                (["serve", "--in-memory", "--port", "0", "--host", "no.such.host.invalid",
                  "--insecure-any-key"], "no.such.host.invalid"),
                (["serve", "--port", "0", "--tls-cert", "/nowhere", "--tls-key", "/nowhere"],
                 "--tls-cert: '/nowhere': No such file or directory"),
                (["serve", "--port", "0", "--account", "12345678901"],
                 "--account: '12345678901' is not a twelve-digit number"),
                (["serve", "--port", "0", "--account", "12345678901x"], "--account"),
                (["serve", "--port", "0", "--region", "a:b"], "--region: 'a:b' is invalid")]:
            with self.subTest(args):
                code, _, err = run(*args, cwd=self.dir)
                self.assertEqual(code, 2)
                self.assertIn(error, err)
        self.assertEqual(os.listdir(self.dir), [])

    def test_variables(self):
        code, _, err = run("serve", env=clean_env(HOLDFAST_PORT="x"), cwd=self.dir)
        self.assertEqual(code, 2)
        self.assertIn("HOLDFAST_PORT: 'x' is not a number", err)


class Serving(InDirectory):
    def test_in_memory_until_sigterm(self):
        with Server("-inMemory", "-sharedDb", "-port", "0", "-delayTransientStatuses",
                    "-optimizeDbBeforeStartup", "-disableTelemetry", cwd=self.dir) as server:
            answer, body = server.call("CreateTable", TABLE)
            self.assertEqual(answer.status, 200, body)
            self.assertEqual(server.call("ListTables", {})[1], {"TableNames": ["one"]})
            self.assertEqual(server.stop(), 0)
            self.assertIn("in memory", server.start[1])
            self.assertEqual(server.start[3], "  console http://127.0.0.1:%d/console/\n" % server.port)
            self.assertEqual(server.start[4],
                             "  try     AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any aws "
                             "dynamodb list-tables --region us-east-1 --endpoint-url "
                             "http://127.0.0.1:%d\n" % server.port)
            self.assertEqual(server.log.count("-delayTransientStatuses"), 1)
            self.assertRegex(server.log, r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info  stop")
        self.assertEqual(os.listdir(self.dir), [])

    def test_sigint_too(self):
        with Server("--in-memory", "--port=0") as server:
            self.assertEqual(server.stop(signal.SIGINT), 0)

    def test_profiles(self):
        """The patterns find out what a database lacks, and say so."""
        with Server("--in-memory", "-p0", "--profile", "alternator") as server:
            url = "http://127.0.0.1:%d" % server.port
            code, out, err = run("lock", "run", "job", "--db", url, "--", "echo", "locked")
            self.assertEqual((code, out), (0, "locked\n"), err)
            code, out, err = run("outbox", "emit", "order.placed", "{}", "--quiet", "--db", url)
            self.assertEqual(code, 0, err)
            code, out, err = run("events", "append", "order/7", "placed", "{}", "--db", url)
            self.assertNotEqual(code, 0)
            self.assertIn("has no transactions", err)
            code, out, err = run("sql", "SELECT * FROM outbox", "--db", url)
            self.assertNotEqual(code, 0)
            self.assertIn("does not have the operation ExecuteStatement", err)
            self.assertEqual(server.stop(), 0)
        with Server("--in-memory", "-p0", "--profile", "dynamodb-local") as server:
            code, out, err = run("events", "append", "order/7", "placed", "{}", "--db",
                                 "http://127.0.0.1:%d" % server.port)
            self.assertEqual(code, 0, err)
            self.assertEqual(server.stop(), 0)
        code, out, err = run("serve", "--profile", "cassandra")
        self.assertEqual(code, 2)
        self.assertIn("use one of dynamodb alternator", err)

    def test_data_stays(self):
        with Server("-p0", cwd=self.dir) as server:
            self.assertIn(os.path.realpath(self.path("holdfast.db")), server.start[1])
            self.assertEqual(server.call("CreateTable", TABLE)[0].status, 200)
            self.assertEqual(server.stop(), 0)
        with Server("-port", "0", "-dbPath", self.dir) as server:
            self.assertEqual(server.call("ListTables", {})[1], {"TableNames": ["one"]})
            self.assertEqual(server.stop(), 0)
        with Server("-p0", "--region", "eu-west-1", "--account", "000000000001", "--sync", "batch",
                    "--sync-window", "5ms", "--memtable", "1MiB", "--loops", "1",
                    env=clean_env(HOLDFAST_DB_PATH=self.path("holdfast.db"))) as server:
            table = dict(TABLE, TableName="two")
            arn = server.call("CreateTable", table)[1]["TableDescription"]["TableArn"]
            self.assertEqual(arn, "arn:aws:dynamodb:eu-west-1:000000000001:table/two")
            self.assertEqual(server.stop(), 0)

    def test_json_log(self):
        with Server("--in-memory", "--port", "0", "--log-format", "json", "--log-level", "debug",
                    "--access-log") as server:
            server.call("ListTables", {})
            self.assertEqual(server.stop(), 0)
            lines = [json.loads(line) for line in server.log.splitlines()]
            self.assertEqual({tuple(line) for line in lines}, {("time", "level", "message")})
            self.assertEqual(lines[-1]["message"], "stopped")

    def test_access_log(self):
        with Server("--in-memory", "--port", "0", "--access-log") as server:
            answer = server.call("ListTables", {})[0]
            server.call("NoSuchThing", {})
            with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as client:
                client.sendall(b"GET /livez?X-Amz-Signature=hush HTTP/1.1\r\nHost: x.localhost\r\n"
                               b"X-Amz-Target: a.b\xffc d\r\n\r\n")
                client.recv(1000)
            with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as client:
                client.sendall(b"nonsense\r\n\r\n")
                client.recv(1000)
            self.assertEqual(server.stop(), 0)
        lines = re.findall(r"info  127\.0\.0\.1 port \d+: (.*), [\d.]+ ms, [0-9A-V]{52}\n", server.log)
        self.assertIn(answer.headers["x-amzn-RequestId"], server.log)
        self.assertEqual(len(lines), 4, server.log)
        self.assertEqual(lines[0], "POST / ListTables: 200, 17 bytes")
        self.assertRegex(lines[1], r"^POST /.*: 400, \d+ bytes$")
        self.assertEqual(lines[2], "GET /livez: 200, 6 bytes")
        self.assertRegex(lines[3], r": 400, \d+ bytes$")
        self.assertNotIn("hush", server.log)

    def test_a_second_signal_does_not_wait(self):
        with Server("--in-memory", "--port", "0", "--drain-timeout", "5m") as server:
            with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as client:
                client.sendall(b"GET /livez HTTP/1.1\r\n")  # and never the rest
                while server.call("ListTables", {})[0].status != 200:
                    pass
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
                self.assertIsNone(server.process.poll())
                self.assertEqual(server.stop(signal.SIGINT), 0)

    def test_quiet_log(self):
        with Server("--in-memory", "--port", "0", "--log-level", "error") as server:
            self.assertEqual(server.stop(), 0)
            self.assertEqual(server.log, "")

    def test_files_limit_is_raised(self):
        with Server("--in-memory", "--port", "0",
                    preexec_fn=lambda: __import__("resource").setrlimit(
                        __import__("resource").RLIMIT_NOFILE, (64, 512))) as server:
            with open("/proc/%d/limits" % server.process.pid, encoding="ascii") as limits:
                self.assertRegex(limits.read(), r"Max open files +512 +512 ")
            self.assertEqual(server.stop(), 0)

    def test_short_turns_at_the_same_priority(self):
        def turns(pid):
            """(nice, nanoseconds) of each thread, as sched_getattr() tells them"""
            libc, attr = ctypes.CDLL(None), ctypes.create_string_buffer(48)
            seen = []
            for tid in os.listdir(f"/proc/{pid}/task"):
                self.assertEqual(0, libc.syscall(SCHED_GETATTR[platform.machine()], int(tid), attr,
                                                 len(attr), 0))
                seen.append(struct.unpack("=IIQiIQQQ", attr.raw)[3:6:2])
            return seen

        if platform.machine() not in SCHED_GETATTR:
            self.skipTest("no number for sched_getattr() on this machine")
        if tuple(int(n) for n in re.findall(r"\d+", platform.release())[:2]) < (6, 12):
            self.skipTest("Linux has settable time slices from 6.12 on")
        mine = os.nice(0)
        # The loops', the four workers', and with a store on disk its maintenance thread's and the syncer's.
        for args, threads in (["--in-memory"], 7), (["--db-path", self.path("db")], 9):
            with Server("--port", "0", "--loops", "3", *args,
                        preexec_fn=lambda: os.nice(3)) as server:
                # A thread takes its turn, and a worker its priority, when it first runs, which may be after others serve.
                end = time.monotonic() + WAIT_S
                while True:
                    seen = turns(server.process.pid)
                    if ([turn for _, turn in seen].count(100000) >= threads
                            and [nice for nice, _ in seen].count(mine + 8) >= 4
                            or time.monotonic() > end):
                        break
                    time.sleep(0.02)
                # Workers let loops go first.
                self.assertEqual({mine + 3, mine + 8}, {nice for nice, _ in seen})
                self.assertEqual(4, [nice for nice, _ in seen].count(mine + 8))
                self.assertEqual(threads, [turn for _, turn in seen].count(100000))
                self.assertEqual(0, server.stop())

    def test_names_of_the_host(self):
        with Server("--in-memory", "--port", "0", "--allow-host", "db.example") as server:
            self.assertEqual(server.call("ListTables", {}, "db.example")[0].status, 200)
            self.assertNotEqual(server.call("ListTables", {}, "evil.example")[0].status, 200)

    def test_a_closed_stdout_is_no_reason_to_stop(self):
        reader, writer = os.pipe()
        os.close(reader)
        port = free_port()
        process = subprocess.Popen([COMMAND, "serve", "--in-memory", "--port", str(port)],
                                   stdout=writer, stderr=subprocess.PIPE, env=clean_env())
        os.close(writer)
        wait_for(lambda: reachable(port))
        self.assertEqual(call(port, "ListTables", {})[0].status, 200)
        process.terminate()
        process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 0)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def reachable(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


def make_certificate(name, key, chain):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                    "-keyout", key, "-out", chain], check=True, capture_output=True)


def wait_for(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited too long")
        time.sleep(0.02)


class Refused(InDirectory):
    @unittest.skipUnless(has_ipv6(), "no IPv6")
    def test_localhost_is_both(self):
        with Server("--in-memory", "--port", "0") as server:
            for host in "127.0.0.1", "::1", "localhost":
                self.assertEqual(fetch(host, server.port), b"ready\n")
            self.assertEqual(server.stop(), 0)
        with Server("--in-memory", "--port", "0", "--host", "127.0.0.1") as server:
            self.assertRaises(ConnectionRefusedError, fetch, "::1", server.port)
            self.assertEqual(server.stop(), 0)
        with socket.socket(socket.AF_INET6) as taken:
            taken.bind(("::1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            code, _, err = run("serve", "--in-memory", "--port", str(port))
            self.assertEqual(code, 4)
            self.assertIn("cannot listen on ::1 port %d: Address already in use" % port, err)

    def test_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            code, out, err = run("serve", "--in-memory", "--port", port)
        self.assertEqual((code, out), (4, ""))
        self.assertIn(port, err)
        self.assertIn("in use", err)

    def test_locked_directory(self):
        with Server("--port", "0", cwd=self.dir) as server:
            code, out, err = run("serve", "--port", "0", cwd=self.dir)
            self.assertEqual((code, out), (3, ""))
            self.assertIn("holdfast.db", err)
            self.assertIn("process %d (holdfast serve)" % server.process.pid, err)

    def test_directory_of_somebody_else(self):
        with open(self.path("letter"), "w", encoding="ascii") as file:
            file.write("dear")
        code, _, err = run("serve", "--port", "0", "--db-path", self.dir)
        self.assertEqual(code, 3)
        self.assertIn(self.dir, err)
        code, _, err = run("serve", "--port", "0", "--db-path", self.path("a/b"))
        self.assertEqual(code, 3)
        self.assertIn("a/b", err)

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "root may do anything")
    def test_no_permission(self):
        os.chmod(self.dir, 0o555)
        args = [COMMAND, "serve", "--port", "0", "--db-path", self.path("x")]
        if os.geteuid() == 0:
            # The program may be where others cannot go.
            copy = tempfile.mkdtemp(prefix="holdfast-serve-")
            self.addCleanup(shutil.rmtree, copy)
            os.chmod(copy, 0o755)
            shutil.copy(COMMAND, copy)
            args = ["setpriv", "--reuid=65534", "--clear-groups",
                    os.path.join(copy, os.path.basename(COMMAND)), *args[1:]]
        done = subprocess.run(args, capture_output=True, text=True, env=clean_env(),
                              timeout=WAIT_S)
        self.assertEqual(done.returncode, 3)
        self.assertIn("Permission denied", done.stderr)
        self.assertIn(self.path("x"), done.stderr)

    def test_credentials(self):
        keys = self.path("keys")
        with open(keys, "w", encoding="ascii") as file:
            file.write("[a]\naws_access_key_id = AKIA\naws_secret_access_key = hush\n")
        os.chmod(keys, 0o644)
        code, _, err = run("serve", "--in-memory", "--port", "0", "--credentials", keys)
        self.assertEqual(code, 2)
        self.assertIn("other users can read this file", err)
        self.assertNotIn("hush", err)
        os.chmod(keys, 0o600)
        with Server("--in-memory", "--port", "0", "--host", "0.0.0.0",
                    "--credentials", keys) as server:
            self.assertIn("signed", server.start[2])
            self.assertNotEqual(server.call("ListTables", {})[0].status, 200)
            self.assertEqual(server.stop(), 0)
        with open(keys, encoding="ascii") as file:
            with Server("--in-memory", "--port", "0", "--credentials", "-",
                        stdin=file) as server:
                self.assertNotEqual(server.call("ListTables", {})[0].status, 200)

    def test_any_key_from_anywhere_is_said_aloud(self):
        with Server("--in-memory", "--port", "0", "--host", "0.0.0.0",
                    "--insecure-any-key") as server:
            self.assertIn("ANY KEY", server.start[2])
            self.assertEqual(server.call("ListTables", {})[0].status, 200)


def digest(directory):
    """Names, sizes, times and contents of all that is in a directory."""
    found = {}
    for where, _, files in os.walk(directory):
        found[where] = os.stat(where).st_mtime_ns
        for name in files:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[path] = (os.stat(path).st_mtime_ns, hashlib.sha256(file.read()).digest())
    return found


class ReadOnly(InDirectory):
    ITEMS = 200
    WRITES = [("PutItem", {"TableName": "one", "Item": {"pk": {"S": "new"}}}),
              ("DeleteItem", {"TableName": "one", "Key": {"pk": {"S": "k1"}}}),
              ("UpdateItem", {"TableName": "one", "Key": {"pk": {"S": "k1"}}}),
              ("BatchWriteItem", {"RequestItems": {"one": [
                  {"PutRequest": {"Item": {"pk": {"S": "new"}}}}]}}),
              ("TransactWriteItems", {"TransactItems": [
                  {"Delete": {"TableName": "one", "Key": {"pk": {"S": "k1"}}}}]}),
              ("ExecuteStatement", {"Statement": "DELETE FROM one WHERE pk = 'k1'"}),
              ("CreateTable", {**TABLE, "TableName": "two"}),
              ("DeleteTable", {"TableName": "one"}),
              ("CreateBackup", {"TableName": "one", "BackupName": "back"})]

    def kill_a_writer(self):
        with Server("--port", "0", "--db-path", self.path("db")) as server:
            self.assertEqual(server.call("CreateTable", TABLE)[0].status, 200)
            for i in range(self.ITEMS):
                self.assertEqual(server.call("PutItem", {"TableName": "one", "Item": {
                    "pk": {"S": f"k{i}"}, "v": {"N": str(i)}}})[0].status, 200)
            server.process.kill()
            server.process.wait(WAIT_S)

    def check_reads(self, server):
        answer, body = server.call("Scan", {"TableName": "one", "ConsistentRead": True})
        self.assertEqual((answer.status, body["Count"]), (200, self.ITEMS))
        self.assertEqual({item["pk"]["S"]: item["v"]["N"] for item in body["Items"]},
                         {f"k{i}": str(i) for i in range(self.ITEMS)})
        answer, body = server.call("GetItem", {"TableName": "one", "Key": {"pk": {"S": "k7"}}})
        self.assertEqual(body["Item"]["v"]["N"], "7")
        self.assertEqual(server.call("ListTables", {})[1]["TableNames"], ["one"])
        answer, body = server.call("ExecuteStatement", {
            "Statement": "SELECT * FROM one WHERE pk = 'k7'"})
        self.assertEqual(len(body["Items"]), 1)

    def check_refusals(self, server):
        for operation, body in self.WRITES:
            answer, error = server.call(operation, body)
            self.assertEqual(answer.status, 400, operation)
            self.assertTrue(error["__type"].endswith("#AccessDeniedException"), error)
            text = error.get("Message") or error.get("message")
            self.assertIn("The database was opened read-only", text, operation)
            self.assertIn("refused", text, operation)

    def test_two_read_a_killed_database_and_nothing_changes(self):
        self.kill_a_writer()
        before = digest(self.path("db"))
        args = ("--port", "0", "--db-path", self.path("db"))
        with Server(*args, "--read-only") as first, Server(*args, "--read-only") as second:
            for server in first, second:
                self.check_reads(server)
                self.check_refusals(server)
                self.check_reads(server)
                self.assertEqual(fetch("127.0.0.1", server.port), b"ready, read-only\n")
            code, out, err = run("serve", *args)
            self.assertEqual((code, out), (3, ""))
            self.assertIn("is already open read-only in this or another process, and cannot be opened for", err)
            self.assertRegex(err, r"process (%d|%d) \(holdfast serve\)" % (first.process.pid,
                                                                         second.process.pid))
            self.assertEqual((first.stop(), second.stop()), (0, 0))
        self.assertEqual(digest(self.path("db")), before)
        with Server(*args) as writer:
            self.check_reads(writer)
            code, out, err = run("serve", *args, "--read-only")
            self.assertEqual((code, out), (3, ""))
            self.assertIn("is already open in this or another process", err)
            self.assertIn("process %d (holdfast serve)" % writer.process.pid, err)
            answer, _ = writer.call("PutItem", self.WRITES[0][1])
            self.assertEqual(answer.status, 200)

    def test_what_is_not_there_is_not_made(self):
        code, out, err = run("serve", "--port", "0", "--read-only", "--db-path", self.path("none"))
        self.assertEqual((code, out), (3, ""))
        self.assertIn("There is no store in " + self.path("none"), err)
        self.assertFalse(os.path.exists(self.path("none")))
        code, out, err = run("serve", "--port", "0", "--read-only", "--in-memory")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("--in-memory and --read-only cannot be combined", err)

    LOOKS = [(("kv", "get", "a"), "1\n"),
             (("lock", "ls"), None),
             (("counter", "get", "c"), "3\n"),
             (("events", "read", "d/s"), None),
             (("outbox", "ls"), None)]

    def test_patterns_are_looked_at(self):
        args = ("--port", "0", "--db-path", self.path("db"))
        with Server(*args) as server:
            env = clean_env(HOLDFAST_DB=f"http://127.0.0.1:{server.port}")
            for command in [("kv", "set", "a", "1"), ("lock", "run", "l", "--", "true"),
                            ("counter", "add", "c", "3"),
                            ("events", "append", "d/s", "happened", '{"n":1}'),
                            ("outbox", "emit", "happened", '{"n":1}')]:
                code, _, err = run(*command, env=env)
                self.assertEqual((code, err), (0, ""), command)
            expected = [run(*look, env=env) for look, _ in self.LOOKS]
            for operation, body in [
                    ("CreateTable", {**TABLE, "TableName": "bare", "AttributeDefinitions": [
                        {"AttributeName": "key", "AttributeType": "S"}], "KeySchema": [
                            {"AttributeName": "key", "KeyType": "HASH"}]}),
                    ("UpdateTimeToLive", {"TableName": "bare", "TimeToLiveSpecification": {
                        "Enabled": True, "AttributeName": "expires"}})]:
                self.assertEqual(server.call(operation, body)[0].status, 200)
            self.assertEqual(server.stop(), 0)
        with Server(*args, "--read-only") as server:
            env = clean_env(HOLDFAST_DB=f"http://127.0.0.1:{server.port}")
            for (look, out), before in zip(self.LOOKS, expected):
                got = run(*look, env=env)
                self.assertEqual((got[0], got[2]), (0, ""), look)
                self.assertEqual(got, before, look)
                if out:
                    self.assertEqual(got[1], out, look)
            for write in [("kv", "set", "a", "2"), ("lock", "run", "l", "--", "true"),
                          ("counter", "add", "c")]:
                code, out, err = run(*write, env=env)
                self.assertEqual((code, out), (5, ""), (write, err))
                self.assertIn("The database was opened read-only", err)
            # A table that is no pattern's yet would have to be marked first.
            code, out, err = run("kv", "get", "a", "--table", "bare", env=env)
            self.assertEqual((code, out), (5, ""), err)
            self.assertIn("table bare is not marked as a table of values yet, and the mark cannot "
                          "be written: The database was opened read-only", err)
            code, out, err = run("kv", "get", "a", "--table", "none", env=env)
            self.assertEqual((code, out), (3, ""), err)
            self.assertIn("table none does not exist", err)


class Reserve(InDirectory):
    def test_sizes(self):
        for size, error in [("", "is not a size"), ("10x", "is not a size"), ("-1", "is not a size"),
                            ("0", "is out of range: use 1MiB to 1TiB"),
                            ("1023KiB", "is out of range: use 1MiB to 1TiB"),
                            ("1048575", "is out of range: use 1MiB to 1TiB"),
                            ("1025GiB", "is out of range: use 1MiB to 1TiB")]:
            code, out, err = run("serve", "--port", "0", "--db-path", self.path("db"),
                                 "--reserve=" + size)
            self.assertEqual((code, out), (2, ""), size)
            self.assertIn(f"--reserve: '{size}' {error}", err)
            self.assertFalse(os.path.exists(self.path("db")))

    def test_a_reserve_is_left_alone(self):
        """With one that is more than the disk has: nothing is put; with a small one it is."""
        args = ("--port", "0", "--db-path", self.path("db"))
        item = {"TableName": "one", "Item": {"pk": {"S": "a"}}}
        with Server(*args, "--reserve", "1MiB") as server:
            self.assertEqual(server.call("CreateTable", TABLE)[0].status, 200)
            self.assertEqual(server.call("PutItem", item)[0].status, 200)
            self.assertEqual(fetch("127.0.0.1", server.port), b"ready\n")
            self.assertEqual(server.stop(), 0)
        if shutil.disk_usage(self.dir).free >= 1 << 40:
            self.skipTest("the disk has more than the largest reserve")
        with Server(*args, "--reserve", "1TiB") as server:
            answer, error = server.call("PutItem", {"TableName": "one", "Item": {"pk": {"S": "b"}}})
            self.assertEqual(answer.status, 500)
            self.assertIn("bytes free; writing needs", error.get("message") or error["Message"])
            self.assertEqual(fetch("127.0.0.1", server.port),
                             b"the disk is full: writes are refused\n")
            key = {"TableName": "one", "Key": item["Item"]}
            self.assertEqual(server.call("GetItem", key)[1]["Item"], item["Item"])
            self.assertEqual(server.stop(), 0)


class Systemd(InDirectory):
    def notify_socket(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind(self.path("notify"))
        listener.settimeout(WAIT_S)
        self.addCleanup(listener.close)
        return listener

    def test_notify_and_watchdog(self):
        listener = self.notify_socket()
        env = clean_env(NOTIFY_SOCKET=self.path("notify"), WATCHDOG_USEC="200000")
        with Server("--in-memory", "--port", "0", env=env) as server:
            first = listener.recv(1000).decode()
            self.assertEqual(
                first, "READY=1\nSTATUS=Serving on http://127.0.0.1:%d" % server.port)
            for _ in range(3):
                self.assertEqual(listener.recv(1000), b"WATCHDOG=1")
            self.assertEqual(server.stop(), 0)
            rest = b""
            while not rest.startswith(b"STOPPING=1"):
                rest = listener.recv(1000)

    def test_a_stopped_process_does_not_feed_the_watchdog(self):
        listener = self.notify_socket()
        env = clean_env(NOTIFY_SOCKET=self.path("notify"), WATCHDOG_USEC="100000")
        with Server("--in-memory", "--port", "0", env=env) as server:
            listener.recv(1000)
            self.assertEqual(listener.recv(1000), b"WATCHDOG=1")
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            listener.settimeout(0.3)
            with self.assertRaises(socket.timeout):
                while True:
                    listener.recv(1000)
            server.process.send_signal(signal.SIGCONT)
            listener.settimeout(WAIT_S)
            self.assertEqual(listener.recv(1000), b"WATCHDOG=1")
            self.assertEqual(server.stop(), 0)

    def test_faults_that_were_asked_for_do_not_starve_the_watchdog(self):
        listener = self.notify_socket()
        env = clean_env(NOTIFY_SOCKET=self.path("notify"), WATCHDOG_USEC="100000")
        with Server("--in-memory", "--port", "0", "--admin", env=env) as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)
            connection.request("PUT", "/_holdfast/faults", json.dumps(
                {"faults": [{"kind": "throttle"}]}))
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()
            self.assertEqual(server.call("ListTables", {})[0].status, 400)
            listener.settimeout(0.01)
            with self.assertRaises(socket.timeout):
                while True:
                    listener.recv(1000)
            listener.settimeout(WAIT_S)
            self.assertEqual(listener.recv(1000), b"WATCHDOG=1")
            self.assertEqual(server.stop(), 0)

    def activated(self, listener, *args, env=None):
        """Start with `listener` as descriptor 3, as systemd would: the shell knows its own pid."""
        def prepare():
            os.dup2(listener.fileno(), 3)
            os.set_inheritable(3, True)

        return ["/bin/sh", "-c",
                'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "sh", COMMAND, "serve", *args], dict(
                    preexec_fn=prepare, close_fds=False, env=env or clean_env())

    def test_socket_activation(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            # A connection that came before the server did.
            early = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
            args, more = self.activated(listener, "--in-memory", "--port", "1")
            process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, **more)
            early.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            self.assertTrue(early.recv(100).startswith(b"HTTP/1.1 200 "))
            early.close()
            self.assertEqual(call(port, "ListTables", {})[0].status, 200)
            process.terminate()
            out, log = process.communicate(timeout=WAIT_S)
            self.assertEqual(process.returncode, 0)
            self.assertIn(":%d\n" % port, out)
            self.assertIn("--host and --port are ignored", log)
            # The socket is not ours to close: systemd goes on listening.
            socket.create_connection(("127.0.0.1", port)).close()

    def test_sockets_are_judged_like_addresses(self):
        with socket.create_server(("0.0.0.0", 0)) as listener:
            args, more = self.activated(listener, "--in-memory")
            done = subprocess.run(args, capture_output=True, text=True, timeout=WAIT_S, **more)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a socket of LISTEN_FDS can be reached", done.stderr)
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            args, more = self.activated(silent, "--in-memory")
            done = subprocess.run(args, capture_output=True, text=True, timeout=WAIT_S, **more)
        self.assertEqual(done.returncode, 2)
        self.assertIn("does not listen", done.stderr)

    def test_journal(self):
        reader, writer = os.pipe()
        stat = os.fstat(writer)
        env = clean_env(JOURNAL_STREAM="%d:%d" % (stat.st_dev, stat.st_ino))
        port = free_port()
        process = subprocess.Popen([COMMAND, "serve", "--in-memory", "--port", str(port)],
                                   stdout=subprocess.DEVNULL, stderr=writer, env=env)
        os.close(writer)
        wait_for(lambda: reachable(port))
        process.terminate()
        self.assertEqual(process.wait(timeout=WAIT_S), 0)
        with os.fdopen(reader, encoding="utf-8") as log:
            for line in log:
                self.assertRegex(line, r"^<[3-7]>\d{4}-")


class Signals(InDirectory):
    def test_a_signal_as_soon_as_the_port_is_open(self):
        for _ in range(20):
            port = free_port()
            process = subprocess.Popen([COMMAND, "serve", "--in-memory", "--port", str(port)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=clean_env())
            while not reachable(port):
                self.assertIsNone(process.poll())
            process.terminate()
            self.assertEqual(process.wait(timeout=WAIT_S), 0)

    def test_sighup_without_certificates_changes_nothing(self):
        with Server("--in-memory", "--port", "0") as server:
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.1)
            self.assertEqual(server.call("ListTables", {})[0].status, 200)
            self.assertEqual(server.stop(), 0)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_tls_and_reload(self):
        def make(name):
            make_certificate(name, self.path("key.pem"), self.path("chain.pem"))

        def certificate(port):
            return ssl.get_server_certificate(("127.0.0.1", port), timeout=WAIT_S)

        make("one")
        with Server("--in-memory", "--port", "0", "--tls-cert", self.path("chain.pem"),
                    "--tls-key", self.path("key.pem")) as server:
            self.assertIn("https://127.0.0.1:", server.start[3])
            first = certificate(server.port)
            make("two")
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: certificate(server.port) != first)
            with open(self.path("chain.pem"), encoding="ascii") as file:
                self.assertEqual(certificate(server.port), file.read())
            self.assertEqual(server.stop(), 0)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_why_a_certificate_or_key_cannot_be_used(self):
        for name in "one", "two":
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
                            "2", "-subj", "/CN=" + name, "-keyout", self.path(name + ".key"), "-out",
                            self.path(name + ".pem")], check=True, capture_output=True)
        subprocess.run(["openssl", "rsa", "-in", self.path("one.key"), "-aes256", "-passout",
                        "pass:secret", "-out", self.path("locked.key")], check=True,
                       capture_output=True)
        for certificate, key, error in [
                ("one.key", "one.key", "one.key cannot be used: it contains no PEM certificate\n"),
                ("one.pem", "one.pem", "one.pem cannot be used: it contains no PEM private key\n"),
                ("one.pem", "two.key", "two.key cannot be used: key values mismatch\n"),
                ("one.pem", "locked.key", "cannot be used: it is encrypted with a password\n")]:
            with self.subTest((certificate, key)):
                code, _, err = run("serve", "--in-memory", "--port", "0", "--tls-cert",
                                   self.path(certificate), "--tls-key", self.path(key))
                self.assertEqual(code, 2)
                self.assertIn(error, err)


@unittest.skipUnless(os.environ.get("COMMAND_STATIC") == "ON", "it has its libraries from the start")
class Loaded(InDirectory):
    """Which libraries are in the process: the fewer, the sooner it answers."""

    def libraries(self, server):
        with open(f"/proc/{server.process.pid}/maps", encoding="ascii") as maps:
            names = {os.path.basename(line.split()[5]) for line in maps if len(line.split()) > 5}
        found = (re.match(r"(lib.*?)\.so", name) for name in names)
        return [match.group(1) for match in found if match]

    def keys(self):
        path = self.path("keys")
        with open(path, "w", encoding="ascii") as file:
            file.write("[a]\naws_access_key_id = any\naws_secret_access_key = hush\n")
        os.chmod(path, 0o600)
        return path

    def test_none_that_is_not_needed(self):
        few = {"libc", "libm", "libuv", "libdeflate", "libxxhash"}
        for where in [["--in-memory"], ["--db-path", self.path("db")]]:
            with self.subTest(where), Server("--port", "0", *where) as server:
                self.assertEqual(server.call("CreateTable", TABLE)[0].status, 200)
                item = {"TableName": "one", "Item": {"pk": {"S": "x"}}}
                self.assertEqual(server.call("PutItem", item)[0].status, 200)
                self.assertEqual(set(self.libraries(server)) - few, set())
                self.assertEqual(server.stop(), 0)

    def test_digests_for_keys(self):
        with Server("--in-memory", "--port", "0", "--credentials", self.keys()) as server:
            self.assertIn("libcrypto", self.libraries(server))
            self.assertNotIn("libssl", self.libraries(server))
            self.assertEqual(server.stop(), 0)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_tls_for_certificates(self):
        key, chain = self.path("key.pem"), self.path("chain.pem")
        make_certificate("one", key, chain)
        with Server("--in-memory", "--port", "0", "--tls-cert", chain, "--tls-key", key) as server:
            found = self.libraries(server)
            self.assertEqual((found.count("libcrypto"), found.count("libssl")), (1, 1))

    def test_one_that_is_broken_is_known_at_the_start(self):
        for version in "1.1", "3":
            with open(self.path("libcrypto.so." + version), "w", encoding="ascii") as file:
                file.write("not a library")
        code, out, err = run("serve", "--in-memory", "--port", "0", "--credentials", self.keys(),
                             env=clean_env(LD_LIBRARY_PATH=self.dir))
        self.assertEqual((code, out), (127, ""))
        self.assertRegex(err, r"^holdfast: .*libcrypto\.so")
        # Who does not need it does not notice.
        with Server("--in-memory", "--port", "0",
                    env=clean_env(LD_LIBRARY_PATH=self.dir)) as server:
            self.assertEqual(server.call("ListTables", {})[0].status, 200)
            self.assertEqual(server.stop(), 0)


class Draining(InDirectory):
    def test_a_request_under_way_is_answered(self):
        with Server("--in-memory", "--port", "0", "--drain-timeout", "20s") as server:
            body = b"{}"
            client = socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S)
            self.addCleanup(client.close)
            client.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                           b"X-Amz-Target: DynamoDB_20120810.ListTables\r\n"
                           b"Content-Type: application/x-amz-json-1.0\r\n"
                           b"X-Amz-Date: 20260101T000000Z\r\n"
                           b"Authorization: AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/"
                           b"dynamodb/aws4_request, SignedHeaders=host, Signature=" + b"0" * 64 +
                           b"\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
            self.assertEqual(client.recv(10000), b"HTTP/1.1 100 Continue\r\n\r\n")  # it is under way
            stopper = threading.Thread(target=server.stop)
            stopper.start()
            wait_for(lambda: not reachable(server.port))
            client.sendall(body)
            answer = client.recv(10000)
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer)
            stopper.join(WAIT_S)
            self.assertEqual(server.process.returncode, 0)


def options_of_help():
    return set(re.findall(r"(?m)^  (?:-\w, |    )(--?[A-Za-z-]+)", run("serve", "--help")[1]))


class Papers(InDirectory):
    """What describes the command from outside agrees with it."""

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_units(self):
        source = os.path.join(SOURCE, "packaging/systemd")
        with open(os.path.join(source, "holdfast.service.in"), encoding="ascii") as file:
            unit = file.read()
        start = re.search(r"(?m)^ExecStart=@CMAKE_INSTALL_FULL_BINDIR@/holdfast (.*)$", unit)
        # Its options are options of ours.
        words = start.group(1).replace("%S", "/var/lib").replace("$HOLDFAST_OPTIONS", "").split()
        self.assertEqual(words[0], "serve")
        for word in words[1:]:
            if word.startswith("-"):
                self.assertIn(word, options_of_help())
        unit = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=" + COMMAND, unit)
        with open(self.path("holdfast.service"), "w", encoding="ascii") as file:
            file.write(unit)
        shutil.copy(os.path.join(source, "holdfast.socket"), self.dir)
        done = subprocess.run(
            ["systemd-analyze", "--man=no", "verify", self.path("holdfast.service"),
             self.path("holdfast.socket")],
            capture_output=True, text=True, timeout=WAIT_S)
        complaints = [line for line in done.stderr.splitlines() if "holdfast." in line]
        self.assertEqual((done.returncode, complaints), (0, []))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
