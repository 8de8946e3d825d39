#!/usr/bin/env python3
"""The demo: demo_test.py COMMAND SOURCE [unittest arguments]. It ends with all checks, gives the same for the same
seed, prints commands that work, shows a picture on a terminal and leaves that as it was, and touches no database that
is not its own.
"""
import concurrent.futures
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from process import (COMMAND, FAILED, UNAVAILABLE, USAGE, WAIT_S, Commands, clean_env, main, serve,  # noqa: F401
                     setUpModule, tearDownModule)

SAME = ("seed", "seconds", "orders", "refused", "revenue_cents", "events_delivered", "dead_letters", "pending", "payments",
        "payments_repeated", "sound", "checks")
CHECKS = {"events": True, "payments": True, "fences": True, "projection": True, "counters": True}


class Demo(Commands):
    def prepare(self):
        self.env = clean_env(HOME=self.dir, TZ="UTC", HOLDFAST_DB="http://127.0.0.1:1")  # it does not look there

    def run_(self, *args, **more):
        return super().run_(*args, cwd=more.pop("cwd", self.dir), **more)

    def test_quick_and_what_it_prints(self):
        """--quick in a pipe: a line a second, the checks, and commands that can be pasted and all work."""
        out = self.ok("demo", "--quick", "--db", "it's mine")
        self.assertRegex(out, r"(?m)^ 1 s: orders \d+, refused \d+; events delivered \d+, waiting \d+, dead letters \d+; ")
        self.assertEqual(len(re.findall(r"(?m)^holds   \S.*$", out)), len(CHECKS))
        self.assertNotIn("BROKEN", out)
        self.assertNotIn("\033", out)
        self.assertIn("\nThe data is in 'it'\\''s mine'. Look at it:\n", out)
        commands = re.findall(r"(?m)^    (.*)$", out)
        self.assertGreater(len(commands), 10)
        self.assertEqual(commands[0], "export HOLDFAST_DB=embedded:'it'\\''s mine'")
        self.assertTrue(commands[-1].startswith("holdfast serve"))
        env = dict(self.env, PATH=os.path.dirname(COMMAND) + ":" + os.environ["PATH"])
        for command in commands[1:-1]:
            done = subprocess.run(["sh", "-c", commands[0] + "\n" + command], capture_output=True, text=True, env=env,
                                  cwd=self.dir, timeout=WAIT_S, check=False)
            if "limit peek" in command:  # zoe has reached hers
                self.assertEqual((done.returncode, done.stdout), (4, ""), command)
                self.assertIn("limit", done.stderr)
                continue
            self.assertEqual(done.returncode, 0, (command, done.stderr))
            self.assertNotEqual(done.stdout, "", command)
            self.assertTrue(done.stderr == "" or "there may be more" in done.stderr, (command, done.stderr))
        server = serve("--db-path", self.path("it's mine"))
        try:
            tables = self.ok("table", "ls", env=dict(self.env, HOLDFAST_DB=server.url))
            self.assertIn("orders\n", tables)
        finally:
            server.terminate()
            server.communicate(timeout=WAIT_S)

    def demo(self, *args, **more):
        return json.loads(self.ok("demo", "--json", *args, **more))

    def test_a_seed_gives_the_same_again(self):
        """Also in a directory that an earlier demo made; another seed gives something else."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            one = pool.submit(self.demo, "--seconds", "1", "--seed", "7", "--db", "embedded:again.db")
            two = pool.submit(self.demo, "--seconds", "1", "--seed", "8")
            first, other = one.result(), two.result()
        self.assertEqual(first["checks"], CHECKS)
        self.assertTrue(first["sound"])
        self.assertEqual(first["db"], "embedded:again.db")
        self.assertEqual(first["orders"] + first["refused"], 25)
        self.assertGreater(first["refused"], 0)
        self.assertEqual(first["payments"], first["orders"])
        self.assertEqual(first["nights"], 2)
        for number in range(2, 99):
            os.mkdir(self.path("holdfast-demo-%d" % number))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            one = pool.submit(self.demo, "--seconds", "1", "--seed", "7", "--db", "again.db")
            two = pool.submit(self.demo, "--seconds", "1")
            again, third = one.result(), two.result()
        self.assertEqual({k: again[k] for k in SAME}, {k: first[k] for k in SAME})
        self.assertNotEqual(other["revenue_cents"], first["revenue_cents"])
        self.assertEqual(other["db"], "embedded:holdfast-demo")
        self.assertEqual(third["db"], "embedded:holdfast-demo-99")
        self.fails(FAILED, "there are 99 directories holdfast-demo-N here; delete some, or use --db DIR", "demo")
        self.assertIn("ann", self.ok("query", "orders", "ann", "--db", "embedded:holdfast-demo"))

    def test_databases_that_are_not_its_own(self):
        url = "embedded:" + self.path("mine.db")
        self.ok("kv", "set", "x", "1", "--db", url)
        before = sorted(os.listdir(self.path("mine.db")))
        self.fails(USAGE, "mine.db has a database that no demo made; choose another directory", "demo", "--quick", "--db", url)
        self.assertEqual(sorted(os.listdir(self.path("mine.db"))), before)
        self.assertEqual(self.ok("kv", "get", "x", "--db", url), "1\n")
        os.mkdir(self.path("full"))
        with open(self.path("full/letter"), "w", encoding="utf-8") as file:
            file.write("x")
        code, out, err = self.run_("demo", "--quick", "--db", "full")
        self.assertNotEqual(code, 0)
        self.assertIn("full", err)
        self.assertEqual((out, os.listdir(self.path("full"))), ("", ["letter"]))
        self.fails(USAGE, "the demo needs a directory of its own", "demo", "--db", "http://127.0.0.1:8000")
        self.fails(USAGE, "the demo needs a directory of its own", "demo", "--db", "memory:")
        self.fails(USAGE, "the demo needs a directory of its own", "demo", "--db", "@shop")
        self.assertFalse(os.path.exists(self.path("@shop")))
        self.fails(USAGE, "--quick and --seconds cannot be combined", "demo", "--quick", "--seconds", "5")
        for seconds in ("0", "3601"):
            self.fails(USAGE, "--seconds", "demo", "--seconds", seconds)
        self.fails(FAILED, "no/such", "demo", "--quick", "--db", "no/such/place")
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("holdfast-demo")], [])
        held = serve("--db-path", self.path("mine.db"))
        try:
            self.fails(UNAVAILABLE, "process %d" % held.pid, "demo", "--quick", "--db", url)
        finally:
            held.terminate()
            held.communicate(timeout=WAIT_S)

    def test_what_does_not_stop_it(self):
        """A directory whose making was interrupted, and a config file that it does not need."""
        os.mkdir(self.path("begun"))
        open(self.path("begun/HOLDFAST.new"), "w", encoding="ascii").close()
        os.makedirs(self.path(".config/holdfast"))
        with open(self.path(".config/holdfast/config"), "w", encoding="ascii") as file:
            file.write("[broken")
        del self.env["HOLDFAST_DB"]
        self.assertTrue(self.demo("--seconds", "1", "--db", "begun")["sound"])

    def on_screen(self, columns, *args, keys=None, env=None):
        """(exit code, what a terminal of that width was sent, its settings before and after)"""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        before = termios.tcgetattr(theirs)
        process = subprocess.Popen([COMMAND, *args], stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.dir,
                                   env=dict(self.env, TERM="xterm", **(env or {})), preexec_fn=self.control if keys else None)
        shown, sent, end = b"", False, time.monotonic() + WAIT_S
        while time.monotonic() < end:
            ended = process.poll() is not None
            while select.select([ours], [], [], 0 if ended else 0.1)[0]:
                shown += os.read(ours, 65536)
                if keys and not sent and b"orders" in shown:
                    os.write(ours, keys)
                    sent = True
            if ended:
                break
        process.kill()
        code = process.wait(WAIT_S)
        after = termios.tcgetattr(theirs)
        os.close(ours)
        os.close(theirs)
        return code, shown.decode(), before, after

    @staticmethod
    def control():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def test_on_terminals(self):
        """A picture that draws over itself, no line of which is too wide; without colors; lines where it is too small."""
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            runs = [pool.submit(self.on_screen, columns, "demo", "--seconds", "1", "--db", "%d.db" % columns, env=env)
                    for columns, env in ((100, {"NO_COLOR": ""}), (20, {"NO_COLOR": "1"}), (19, None))]
            wide, narrow, small = (run.result() for run in runs)
        for code, shown, before, after in (wide, narrow, small):
            self.assertEqual(code, 0, shown)
            self.assertEqual(before, after)
            self.assertGreater(shown.rindex("\033[?25h"), shown.rindex("\033[?25l"))
            self.assertIn("Look at it:", shown)
        for part in ("\033[1morders", "limits", "outbox", "payments", "projection", "nightly job", "setting", "done"):
            self.assertIn(part, wide[1])
        self.assertNotIn("\033[1m", narrow[1])
        picture = narrow[1][:narrow[1].rindex("\033[?25h")]
        self.assertIn("\033[8A", picture)
        for line in re.sub(r"\033\[[?0-9]*[A-Za-z]", "", picture).split("\r\n"):
            self.assertLess(len(line), 20, line)
        self.assertNotIn("\033[8A", small[1])
        self.assertIn(" 1 s: orders ", small[1])

    def test_ctrl_c_ends_in_order(self):
        code, shown, before, after = self.on_screen(80, "demo", "--seconds", "60", keys=b"\x03")
        self.assertEqual(code, 0, shown)
        self.assertEqual(before, after)
        self.assertGreater(shown.rindex("\033[?25h"), shown.rindex("\033[?25l"))
        self.assertEqual(shown.count("\nholds   "), len(CHECKS), shown[-2000:])

    def test_a_signal_and_a_closed_pipe(self):
        process = self.start("demo", "--seconds", "3600", cwd=self.dir)
        self.assertIn("1 s:", process.stdout.readline())
        os.kill(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=WAIT_S)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(out.count("\nholds   "), len(CHECKS))
        process = self.start("demo", "--seconds", "1", cwd=self.dir)
        process.stdout.close()
        self.assertNotEqual(process.wait(WAIT_S), 0)
        process.stderr.close()

    def test_killed_and_run_again(self):
        """kill -9 in the middle: nothing is damaged, and the directory can be used for the next one."""
        process = self.start("demo", "--seconds", "60", "--db", "killed.db", cwd=self.dir)
        self.assertIn("1 s:", process.stdout.readline())
        process.kill()
        process.communicate(timeout=WAIT_S)
        self.ok("check", "killed.db")
        self.assertEqual(self.ok("demo", "--seconds", "1", "--db", "killed.db", "--quiet"), "")


if __name__ == "__main__":
    main()
