#!/usr/bin/env python3
"""`holdfast top`: top_test.py COMMAND SOURCE [unittest arguments]. A server under a known load: its figures in
pipes, as JSON and on screens of several sizes; keys, another size, signals; the terminal is as it was afterwards.
"""
import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

import process
from process import (COMMAND, FAILED, NOBODY, NOT_FOUND, TIMEOUT, UNAVAILABLE, USAGE, WAIT_S, Commands, main, serve,
                     setUpModule, tearDownModule)  # noqa: F401

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?25h\x1b[?1049l"


class Screen:
    """A command in a terminal of its own."""

    def __init__(self, test, *args, rows=24, columns=80, env=None):
        self.ours, self.theirs = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen([COMMAND, *args], stdin=self.theirs, stdout=self.theirs, stderr=self.theirs,
                                        env=env or test.env, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.text = ""
        self.test = test
        test.addCleanup(self.close)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, wait=0.05):
        while select.select([self.ours], [], [], wait)[0]:
            self.text += os.read(self.ours, 65536).decode(errors="replace")
            wait = 0

    def frames(self):
        """What was drawn so far, as lists of lines; the last one may not be whole."""
        return [[line.replace("\x1b[K", "") for line in frame.split("\x1b[J")[0].split("\r\n")]
                for frame in self.text.split("\x1b[H")[1:] if "\x1b[J" in frame and "\x1b[2J" not in frame]

    def until(self, what):
        """The first new frame for which that holds."""
        seen = len(self.frames())
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            for frame in self.frames()[seen:]:
                if what(frame):
                    return frame
            self.read()
        self.test.fail(self.text[-3000:])

    def key(self, key):
        os.write(self.ours, key.encode())

    def end(self):
        """The exit code; the terminal is as it was."""
        deadline = time.monotonic() + WAIT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        self.read()
        self.test.assertEqual(termios.tcgetattr(self.theirs), self.before)
        self.test.assertEqual(self.text.count(ENTER), self.text.count(LEAVE))
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=WAIT_S)
        os.close(self.ours)
        os.close(self.theirs)


class Top(Commands):
    def setUp(self):
        super().setUp()
        self.env.pop("HOLDFAST_PREFIX")
        self.env["LANG"] = "C.UTF-8"

    def fill(self, table="orders", keys=("hot", "cold\x1b[2J")):
        self.run_("table", "create", table, "-k", "id:S", "-q")
        for i in range(6):
            self.ok("item", "put", table, json.dumps({"id": keys[0], "n": i, "data": "x" * 3000}))
        self.ok("item", "put", table, json.dumps({"id": keys[1]}))
        self.run_("item", "get", table, "missing")
        self.run_("item", "put", table, "--if-missing", json.dumps({"id": keys[0]}))

    def test_programs(self):
        self.fill()
        lines = self.ok("top", "--count", "2", "--interval", "100ms").splitlines()
        fields = [line.split("\t") for line in lines]
        for line in fields:
            self.assertRegex(line[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        lengths = {"total": 10, "operation": 7, "table": 6, "partition": 5, "largest": 6}
        self.assertEqual({(line[1], len(line)) for line in fields}, set(lengths.items()))
        self.assertEqual(len([line for line in fields if line[1] == "total"]), 2)
        self.assertNotIn("\x1b", "".join(lines))
        self.assertIn("cold\\x1b[2J", "".join(lines))
        out = self.ok("top", "--json", "--count", "2", "--interval", "100ms")
        first, second = map(json.loads, out.splitlines())
        self.assertEqual(set(first), set(second))
        self.assertGreater(first["memory_bytes"], 1 << 20)
        self.assertGreaterEqual(first["connections"], 1)
        self.assertEqual(len(self.ok("top", "--once", "--json", "-i", "100ms").splitlines()), 1)

    def test_what_is_hot_and_large(self):
        server = serve("--in-memory")
        self.addCleanup(server.communicate, timeout=WAIT_S)
        self.addCleanup(server.terminate)
        self.env["HOLDFAST_DB"] = server.url
        self.fill()
        running = self.start("top", "--once", "--json", "--interval", "2s")
        while running.poll() is None:
            self.ok("item", "get", "orders", "hot")
            self.ok("query", "orders", "hot")
        found = json.loads(running.communicate(timeout=WAIT_S)[0])
        self.assertEqual([row["table"] for row in found["tables"]], ["orders"])
        self.assertGreater(found["tables"][0]["reads_per_second"], 0)
        rates = {row["key"]: row["per_second"] for row in found["partitions"]}
        self.assertEqual(found["partitions"][0]["key"], "hot")
        self.assertGreater(rates["hot"], 3 * rates.get("cold\x1b[2J", 0))  # which may be forgotten by now
        self.assertEqual(found["largest"][0]["key"], "hot")
        self.assertGreater(found["largest"][0]["bytes"], 3000)
        self.assertLess(found["largest"][0]["bytes"], 3100)
        get = [row for row in found["operations"] if row["operation"] == "GetItem"][0]
        self.assertGreater(get["per_second"], 0)
        self.assertGreater(get["p99_us"], 0)
        self.assertLessEqual(get["p50_us"], get["p99_us"])

    def test_the_lag_of_an_outbox(self):
        for _ in range(3):
            self.ok("outbox", "emit", "order.placed", "{}", "-q")
        found = json.loads(self.ok("top", "--once", "--json", "-i", "100ms", "--outbox", "outbox"))["outboxes"]
        self.assertEqual([(row["outbox"], row["waiting"], row["failed"], row["whole"]) for row in found],
                         [("outbox", 3, 0, True)])
        self.assertGreater(found[0]["oldest_due_ms"], 0)
        lines = self.on_terminal("top", "--once", "-i", "100ms", "--outbox", "outbox", columns=80)
        self.assertRegex("\n".join(lines), r"waiting +longest +failed  outbox\n +3 +\S+ +0  outbox")
        self.fails(NOT_FOUND, "none", "top", "--once", "--outbox", "none")
        self.fails(USAGE, "8 times at most", "top", "--once", *["--outbox", "none"] * 9)
        self.fails(NOT_FOUND, "none", "top", "--once", *["--outbox", "none"] * 8)

    def test_screens(self):
        self.fill("a-table-with-a-name-that-is-much-too-long-for-any-narrow-screen-" + "x" * 60)
        for rows, columns in ((24, 80), (10, 40), (50, 200), (3, 20), (1, 1)):
            screen = Screen(self, "top", "-i", "100ms", rows=rows, columns=columns)
            for _ in range(3):
                frame = screen.until(lambda _: True)
                self.assertLessEqual(len(frame), rows)
                self.assertLessEqual(max(map(len, frame)), columns, (rows, columns, frame))
            if columns >= 80:
                self.assertIn(process.SERVER.url, frame[0])
                self.assertRegex(frame[1], r"^requests \S+/s  errors \S+/s  connections \d+  memory ")
                self.assertIn("▁", frame[2] + "▁" * (not re.search("[▂-█]", frame[2])))
                self.assertTrue(frame[-1].startswith("q quit"), frame)
                self.assertTrue([line for line in frame if "operation" in line], frame)
            screen.key("q")
            self.assertEqual(screen.end(), 0)
            self.assertNotIn("\x1b[2J", screen.text.replace(ENTER + "\x1b[?25l\x1b[H\x1b[2J", ""))

    def test_keys_and_another_size(self):
        self.fill()
        screen = Screen(self, "top", "-i", "200ms")
        screen.until(lambda frame: "sort (rate)" in frame[-1])
        screen.key("s")
        screen.until(lambda frame: "sort (p99)" in frame[-1])
        screen.key("+")
        screen.until(lambda frame: "every 0.4 s" in frame[0])
        screen.key("-")
        screen.until(lambda frame: "every 0.2 s" in frame[0])
        screen.key("\x1b[A")  # an arrow is no key of ours
        screen.key(" ")
        paused = screen.until(lambda frame: "PAUSED" in frame[0])
        screen.resize(12, 50)
        small = screen.until(lambda frame: len(frame) == 12)
        self.assertLessEqual(max(map(len, small)), 50)
        self.assertEqual(small[0][:8], paused[0][:8])  # the same sample
        screen.key(" ")
        screen.until(lambda frame: "PAUSED" not in frame[0])
        screen.key("q")
        self.assertEqual(screen.end(), 0)

    def test_signals_restore_the_terminal(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            screen = Screen(self, "top", "-i", "100ms")
            screen.until(lambda _: True)
            self.assertNotEqual(termios.tcgetattr(screen.theirs), screen.before)
            screen.process.send_signal(number)
            self.assertEqual(screen.end(), 128 + number)
        screen = Screen(self, "top", "-i", "100ms")
        screen.until(lambda _: True)
        screen.key("\x03")
        self.assertEqual(screen.end(), 128 + signal.SIGINT)
        screen = Screen(self, "top", "-i", "100ms")
        screen.until(lambda _: True)
        screen.process.send_signal(signal.SIGABRT)  # a fault of ours
        self.assertNotEqual(screen.end(), 0)

    def test_a_server_that_ends(self):
        server = serve("--in-memory")
        screen = Screen(self, "top", "-i", "100ms", "--db", server.url)
        lines = self.start("top", "--interval", "100ms", "--db", server.url)
        screen.until(lambda _: True)
        lines.stdout.readline()
        server.kill()
        server.communicate(timeout=WAIT_S)
        screen.until(lambda frame: "NO ANSWER" in "\n".join(frame))
        screen.key("q")
        self.assertEqual(screen.end(), 0)
        self.assertIn(server.url[7:], lines.communicate(timeout=WAIT_S)[1])
        self.assertEqual(lines.returncode, UNAVAILABLE)

    def test_a_server_with_keys(self):
        """The figures are for everybody, names and keys are not."""
        keys = self.path("keys.ini")
        with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("[a]\naws_access_key_id = AKIDEXAMPLEEXAMPLE00\naws_secret_access_key = right\n")
        server = serve("--in-memory", "--credentials", keys)
        try:
            found = json.loads(self.ok("top", "--once", "--json", "-i", "100ms", "--db", server.url))
            self.assertEqual([found[name] for name in ("version", "tables", "partitions", "largest")], [None] * 4)
            self.assertIn("the server refused", found["refused"])
            code, out, err = self.run_("top", "--count", "2", "-i", "100ms", "--db", server.url)
            self.assertEqual((code, out.count("\ttotal\t"), err.count("the server refused")), (0, 2, 1))
            screen = Screen(self, "top", "-i", "100ms", "--db", server.url)
            screen.until(lambda frame: "the server refused" in "\n".join(frame))
            screen.key("q")
            self.assertEqual(screen.end(), 0)
            self.env.update(AWS_ACCESS_KEY_ID="AKIDEXAMPLEEXAMPLE00", AWS_SECRET_ACCESS_KEY="right")
            found = json.loads(self.ok("top", "--once", "--json", "-i", "100ms", "--db", server.url))
            self.assertTrue(found["version"])
            self.assertEqual((found["refused"], found["tables"]), (None, []))
        finally:
            server.terminate()
            server.communicate(timeout=WAIT_S)

    def test_databases_without_a_server(self):
        self.fails(UNAVAILABLE, "127.0.0.1", "top", "--db", NOBODY)
        self.fails(USAGE, "run 'holdfast serve --db-path", "top", "--db", "embedded:" + self.path("none"))
        self.fails(USAGE, "CloudWatch", "top", "--db", "dynamodb://eu-central-1")
        self.fails(USAGE, "is not the URL of a holdfast server", "top", "--db", "memory:")
        server = serve("--db-path", self.path("db"))
        try:
            self.fails(USAGE, "connect to it with --db " + server.url, "top", "--db", "embedded:" + self.path("db"))
        finally:
            server.terminate()
            server.communicate(timeout=WAIT_S)

    def imitate(self, answer):
        """The URL of a server that answers as the function says, by path."""
        class Imitation(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = answer(self.path)
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Imitation)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return "http://127.0.0.1:%d" % server.server_port

    def test_a_table_that_was_left_out(self):
        """Of a table that the sample before may have left out nobody knows how it grew; in a short list it is new."""
        for before, rated in ((64, False), (63, True)):
            looks = []

            def answer(path, before=before, looks=looks):
                if path == "/metrics":
                    return b"holdfast_connections 1\n"
                looks.append(path)
                tables = [{"name": "t%d" % i, "reads": 5} for i in range(before)]
                if len(looks) > 1:
                    tables[0] = {"name": "other", "reads": 1000000}
                return json.dumps({"tables": tables}).encode()

            found = json.loads(self.ok("top", "--once", "--json", "-i", "100ms", "--db", self.imitate(answer)))
            rates = {row["table"]: row["reads_per_second"] for row in found["tables"]}
            self.assertEqual(rates["other"] > 0, rated)

    def test_a_server_that_does_not_answer_was_only_read(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        url = "http://127.0.0.1:%d" % listener.getsockname()[1]
        err = self.fails(TIMEOUT, "deadline", "top", "--once", "--timeout", "300ms", "--db", url)
        self.assertNotIn("may have been made", err)

    def test_a_hostile_server(self):
        """Figures that are none, names that would move the cursor, lists that do not end."""
        metrics = b"".join([
            b"holdfast_connections 1e400\nprocess_resident_memory_bytes NaN\nholdfast_disk_bytes -5\n",
            b"holdfast_requests_total{operation=\"\x1b[2J\",outcome=\"ok\"} 99999999999999999999999\n",
            b"holdfast_requests_total{operation=\"\n}{{{\n\n# x\nholdfast_request_seconds_bucket{le=\"} 1\n",
            *[b"holdfast_requests_total{operation=\"op%d\",outcome=\"ok\"} 7\n" % i for i in range(500)]])
        top = json.dumps({"version": "\x1b[31m" * 40, "largest": [{"bytes": 10 ** 300}] * 100, "partitions": [{}, 1, []],
                          "tables": [{"name": "\x1b]0;x\x07" * 50, "reads": -1, "writes": "x"}] * 500}).encode()

        url = self.imitate(lambda path: metrics if path == "/metrics" else top)
        found = json.loads(self.ok("top", "--once", "--json", "-i", "100ms", "--db", url))
        self.assertEqual((found["connections"], found["memory_bytes"], found["largest"][0]["bytes"]), (0, 0, 0))
        self.assertLessEqual(len(found["tables"]), 64)
        self.assertNotIn("\x1b", self.ok("top", "--once", "-i", "100ms", "--db", url))
        screen = Screen(self, "top", "-i", "100ms", "--db", url)
        frame = screen.until(lambda _: True)
        self.assertNotIn("\x1b", "".join(frame))
        self.assertLessEqual(max(map(len, frame)), 80)
        screen.key("q")
        self.assertEqual(screen.end(), 0)

    def test_usage(self):
        self.fails(USAGE, "give --once or --count", "top", "--once", "--count", "2")
        self.fails(USAGE, "--interval", "top", "--interval", "99ms")
        self.fails(USAGE, "--interval", "top", "--interval", "3601s")
        self.fails(USAGE, "--sort", "top", "--sort", "size")
        self.assertEqual(len(self.ok("top", "--once", "-i", "100ms", "--sort", "name", "--json").splitlines()), 1)

    def test_a_closed_pipe(self):
        running = self.start("top", "-i", "100ms")
        running.stdout.readline()
        running.stdout.close()
        running.stderr.close()
        self.assertEqual(running.wait(timeout=WAIT_S), FAILED)

    def test_a_terminal_without_input(self):
        """Without keys there is no screen: one look is printed after the other."""
        lines = self.on_terminal("top", "--once", "-i", "100ms", columns=60)
        self.assertLessEqual(max(map(len, lines)), 60)
        self.assertNotIn("\x1b", "".join(lines))


if __name__ == "__main__":
    main()
