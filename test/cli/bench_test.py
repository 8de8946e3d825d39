#!/usr/bin/env python3
"""`holdfast bench`: bench_test.py COMMAND SOURCE [unittest arguments]. On a server and on a directory: results,
the table that is gone in the end, also after signals; errors, throttles, limits; pipes and terminals.
"""
import json
import os
import pty
import signal
import subprocess
import time
import urllib.request

from process import (COMMAND, FAILED, NOBODY, OK, UNAVAILABLE, USAGE, WAIT_S, Commands, main, serve, setUpModule,
                     tearDownModule)  # noqa: F401

QUICK = ("--seconds", "1", "--warm-up", "0", "--items", "50", "--size", "64", "-c", "2")
FIELDS = ["operation", "requests", "per_second", "p50_us", "p95_us", "p99_us", "p999_us", "max_us", "errors",
          "throttles", "missed"]


class Bench(Commands):
    def tables(self, *args):
        return self.ok("table", "ls", *args).split()

    def results(self, *args, code=OK, left=()):
        """What was measured, by operation, and standard error. Only the tables `left` are there then."""
        got, out, err = self.run_("bench", "--json", *QUICK, *args)
        self.assertEqual(got, code, err)
        database = args[args.index("--db"):] if "--db" in args else ()
        self.assertEqual(self.tables(*database), list(left))
        results = json.loads(out)["results"]
        for result in results:
            self.assertEqual(list(result), FIELDS)
            if result["requests"]:
                times = [result[name] for name in FIELDS[3:8]]
                self.assertEqual(times, sorted(times))
                self.assertGreater(times[0], 0)
        return {result["operation"]: result for result in results}, err

    def test_operations(self):
        found, err = self.results("get", "update")
        self.assertEqual((list(found), err), (["get", "update"], ""))
        for result in found.values():
            self.assertGreater(result["requests"], 0)
            self.assertEqual((result["errors"], result["throttles"], result["missed"]), (0, 0, 0))
            self.assertGreater(result["per_second"], 0)
            self.assertLessEqual(result["per_second"], result["requests"] + 1)  # of a second, or a little more

    def test_a_mixture_beside_other_tables(self):
        self.ok("table", "create", "holdfast-bench-mine", "-k", "id:S", "-q")
        self.ok("item", "put", "holdfast-bench-mine", '{"id":"a"}')
        found, _ = self.results("mixed", "--warm-up", "100ms", left=["holdfast-bench-mine"])
        self.assertEqual(list(found), ["mixed " + op for op in ("get", "put", "update", "query", "transact")])
        self.assertGreater(found["mixed get"]["requests"], found["mixed update"]["requests"])
        self.assertEqual(self.ok("scan", "holdfast-bench-mine"), '{"id":"a"}\n')

    def test_a_directory_and_a_rate(self):
        url = "embedded:" + self.path("db")
        found, err = self.results("put", "--rate", "20", "--db", url)
        self.assertIn("was created, and is an empty database now", err)
        self.assertEqual(found["put"]["requests"] + found["put"]["missed"], 20)

    def test_errors_and_throttles(self):
        """Faults of the server: every request counts, and none is retried."""
        server = serve("--in-memory", "--admin")
        try:
            faults = {"faults": [{"kind": "throttle", "operation": "GetItem", "count": 5},
                                 {"kind": "error", "operation": "GetItem", "skip": 9, "count": 3}]}
            urllib.request.urlopen(urllib.request.Request(
                server.url + "/_holdfast/faults", method="PUT", data=json.dumps(faults).encode()))
            found, err = self.results("get", "--db", server.url, code=FAILED)
            self.assertEqual((found["get"]["throttles"], found["get"]["errors"]), (5, 3))
            self.assertGreater(found["get"]["requests"], 0)
            self.assertIn('"the first error: get: ', err)
        finally:
            server.terminate()
            server.communicate(timeout=WAIT_S)

    def test_slow_requests(self):
        """One request for each connection, which ends after --seconds: the rate is that of the time it took."""
        server = serve("--in-memory", "--admin")
        try:
            faults = {"faults": [{"kind": "latency", "operation": "GetItem", "latency_ms": 2500}]}
            urllib.request.urlopen(urllib.request.Request(
                server.url + "/_holdfast/faults", method="PUT", data=json.dumps(faults).encode()))
            found, _ = self.results("get", "-c", "10", "--db", server.url)
            self.assertEqual(found["get"]["requests"], 10)
            self.assertLessEqual(found["get"]["per_second"], 4)
        finally:
            server.terminate()
            server.communicate(timeout=WAIT_S)

    def test_signals(self):
        """The table is gone, and what was measured is printed."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            running = self.start("bench", "get", *QUICK, "--seconds", "1000", "--json")
            deadline = time.monotonic() + WAIT_S
            while not self.tables() and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(0.3)
            running.send_signal(number)
            out, err = running.communicate(timeout=WAIT_S)
            self.assertEqual((running.returncode, err), (128 + number, ""))
            self.assertEqual(self.tables(), [])
            if out:
                self.assertEqual(json.loads(out)["results"][0]["operation"], "get")

    def test_a_closed_pipe_leaves_no_table(self):
        running = self.start("bench", "get", *QUICK)
        running.stdout.close()
        running.stderr.close()
        running.wait(timeout=WAIT_S)
        self.assertEqual(running.returncode, FAILED)
        self.assertEqual(self.tables(), [])

    def test_costs(self):
        """Nothing is sent to Amazon unasked."""
        for url in ("dynamodb://eu-central-1", "https://dynamodb.eu-west-1.amazonaws.com",
                    "https://dynamodb.eu-west-1.api.aws"):
            err = self.fails(USAGE, "which cost money; add --yes", "bench", "--db", url, "--rate", "100",
                             "--seconds", "10", "--warm-up", "0", "--items", "250", "get", "put")
            self.assertIn("about 2010 requests", err)

    def test_costs_are_asked_for_on_a_terminal(self):
        ours, theirs = pty.openpty()
        running = subprocess.Popen([COMMAND, "bench", "get", "--db", "dynamodb://eu-central-1"], stdin=theirs,
                                   stdout=theirs, stderr=theirs, env=self.env)
        os.close(theirs)
        shown = b""
        while b"Type yes: " not in shown:
            shown += os.read(ours, 65536)
        self.assertIn(b"about 5200 requests", shown)
        os.write(ours, b"y\n")
        self.assertEqual(running.wait(timeout=WAIT_S), USAGE)
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the end of what a terminal has, on Linux
            pass
        os.close(ours)
        self.assertIn(b"nothing was done", shown)

    def test_limits(self):
        for option, most in (("--connections", 1024), ("--items", 10000000), ("--size", 390 * 1024),
                             ("--rate", 1000000), ("--seconds", 86400)):
            self.fails(USAGE, option, "bench", option, str(most + 1))
            self.fails(UNAVAILABLE, "127.0.0.1", "bench", option, str(most), "--db", NOBODY)
        self.fails(USAGE, "--items", "bench", "--items", "1")
        self.fails(USAGE, "unknown operation 'gets'", "bench", "gets")
        self.fails(USAGE, "'get' is given twice", "bench", "get", "put", "get")
        found, _ = self.results("transact", "--items", "2", "--connections", "1")
        self.assertGreater(found["transact"]["requests"], 0)
        self.assertEqual(found["transact"]["errors"], 0)

    def test_the_largest_items(self):
        found, _ = self.results("put", "--size", str(390 * 1024), "--items", "3", "--connections", "1")
        self.assertGreater(found["put"]["requests"], 0)
        self.assertEqual(found["put"]["errors"], 0)

    def test_pipes_and_progress(self):
        ours, theirs = pty.openpty()
        running = subprocess.Popen([COMMAND, "bench", "get", *QUICK], stdout=subprocess.PIPE, stderr=theirs,
                                   env=self.env, text=True)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:
            pass
        os.close(ours)
        fields = running.communicate(timeout=WAIT_S)[0].split("\t")
        self.assertEqual(len(fields), len(FIELDS))
        self.assertRegex(shown.decode(), r"\rget: \d of 1 s, \d+ requests/s, 0 failed")

    def test_terminals(self):
        lines = self.on_terminal("bench", "get", *QUICK, columns=100)
        self.assertEqual(lines[0].split(), ["operation", "requests", "per_second", "p50", "p95", "p99", "p99.9", "max"])
        self.assertRegex(lines[1], r"^get +\d+ +\d+ +[0-9.]+ (us|ms|s) ")


if __name__ == "__main__":
    main()
