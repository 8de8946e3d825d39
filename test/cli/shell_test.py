#!/usr/bin/env python3
"""The shell: shell_test.py COMMAND SOURCE [unittest arguments]. Scripts through pipes, files and -c; a person at a
pseudo-terminal, with keys, signals and resizing; on a server in memory and on a directory.
"""
import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import termios
import threading
import time

import process
from process import (COMMAND, CONDITION, NOBODY, NOT_FOUND, UNAVAILABLE, USAGE, WAIT_S, Commands, main, setUpModule,
                     tearDownModule)  # noqa: F401

UNIT_MAX = 4 * 1024 * 1024  # SHELL_UNIT_MAX
HISTORY_MAX = 1000  # SHELL_HISTORY_MAX
HOSTILE = "\x1b]0;owned\x07\x9b31m\r\n"
CONTROL = re.compile(r"\x1b\]|owned\x07|\x9b|\x1b\[31m")


class Terminal:
    """The command on a terminal of its own, which it can send signals by keys."""

    def __init__(self, test, *args, rows=24, columns=80, **env):
        self.ours, theirs = pty.openpty()
        self.resize(rows, columns, theirs)
        self.process = subprocess.Popen(
            [COMMAND, *args], stdin=theirs, stdout=theirs, stderr=theirs, env=dict(test.env, **env),
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)
        self.text, self.seen = "", 0
        test.addCleanup(self.close)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=WAIT_S)
        if self.ours >= 0:
            os.close(self.ours)
        self.ours = -1

    def resize(self, rows, columns, fd=None):
        fcntl.ioctl(self.ours if fd is None else fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, wait_s):
        """False: nothing came, or it is the end."""
        if not select.select([self.ours], [], [], wait_s)[0]:
            return False
        try:
            part = os.read(self.ours, 65536)
        except OSError:
            return False
        self.text += part.decode(errors="replace")
        return bool(part)

    def until(self, what):
        """All up to a text that has to come, without \\r."""
        end = time.monotonic() + WAIT_S
        while (at := self.text.find(what, self.seen)) < 0:
            if not self.read(max(0, end - time.monotonic())):
                raise AssertionError("no %r in %r" % (what, self.text[self.seen:]))
        got = self.text[self.seen:at + len(what)]
        self.seen = at + len(what)
        return got.replace("\r\n", "\n")

    def send(self, keys):
        os.write(self.ours, keys.encode())

    def run(self, line, prompt="> "):
        """What a line prints, up to the next prompt."""
        self.send(line + "\r")
        self.until("\n")  # the echo
        return self.until(self.name + prompt)[:-len(self.name + prompt)]

    def start(self, name):
        self.name = name
        self.until(name + "> ")
        return self

    def ended(self):
        while self.read(WAIT_S):
            pass
        return self.process.wait(timeout=WAIT_S)


class Shell(Commands):
    """A database for each test, and a history that no other test sees."""

    def prepare(self):
        self.env.update(TERM="xterm", PAGER="cat", LC_ALL="C.UTF-8")
        with open(self.path("leaks"), "w", encoding="ascii") as file:
            file.write("leak:wcsdup\n")  # by libedit, which has no other use for it
        self.env["LSAN_OPTIONS"] = "print_suppressions=0:suppressions=" + self.path("leaks")
        self.env.pop("XDG_STATE_HOME", None)
        self.env["HOLDFAST_PREFIX"] = ""
        self.env["HOLDFAST_DB"] = "embedded:" + self.path("shop")

    def script(self, text, *args, code=0, err=""):
        got, out, said = self.run_("shell", *args, input=text)
        self.assertEqual((got, said), (code, err), out)
        return out

    def orders(self, count=3):
        lines = ["table create orders --key customer:S,day:N --index by_day=day:N/keys --stream new --ttl expires -q"]
        lines += ["INSERT INTO orders VALUE {'customer': 'ann', 'day': %d, 'total': %d};" % (day, day * 10)
                  for day in range(1, count + 1)]
        self.assertEqual(self.script("\n".join(lines)), "")

    def terminal(self, *args, name="shop", **more):
        return Terminal(self, "shell", *args, **more).start(name)


class Scripts(Shell):
    def test_statements_and_commands_of_a_pipe(self):
        self.orders(2)
        out = self.script("-- all of it;\nSELECT *\n  FROM orders -- two; of them\n WHERE customer = 'ann';\n"
                          "/* none; */ item get orders ann 2; table ls\n"
                          "SELECT day FROM orders WHERE total = 10")  # the last needs no ;
        self.assertEqual(out, '{"customer":"ann","day":1,"total":10}\n{"customer":"ann","day":2,"total":20}\n'
                              '{"customer":"ann","day":2,"total":20}\norders\n{"day":1}\n')
        self.assertEqual(self.script("\n\n;;\n  -- nothing\n"), "")
        self.assertEqual(self.script(""), "")

    def test_strings_and_names_span_lines(self):
        self.orders(0)
        self.script("INSERT INTO \"orders\" VALUE {'customer': 'it''s; --\nme', 'day': 1,\n 'a\nb': 1};\n"
                    "item put orders '{\"customer\":\"x;\",\n\"day\":2}'\n"
                    "item put orders {\\\"customer\\\":\\\"y\\\",\\\"day\\\":3}\n")
        self.assertEqual(self.script("SELECT customer FROM orders WHERE customer = 'it''s; --\nme' AND \"day\" = 1;"),
                         '{"customer":"it\'s; --\\nme"}\n')
        self.assertEqual(self.script("scan orders --count; item get orders y 3"), 'count        3\n{"customer":"y","day":3}\n')

    def test_a_failure_ends_it_and_names_the_line(self):
        self.orders(1)
        text = "table ls\n\nSELECT *\nFROM nope;\ntable ls\n"
        code, out, err = self.run_("shell", input=text)
        self.assertEqual((code, out), (NOT_FOUND, "orders\n"))
        self.assertIn("holdfast sql: ", err)
        self.assertIn("standard input: line 3 failed; what follows was not run", err)
        code, out, err = self.run_("shell", "--keep-going", input=text + "item get orders x\n")
        self.assertEqual((code, out), (NOT_FOUND, "orders\norders\n"))  # that of the first
        self.assertIn("line 3 failed\n", err)
        self.assertIn("line 6 failed\n", err)
        with open(self.path("f.sql"), "w") as file:
            file.write("table ls\nitem get orders ann 7\n")
        code, out, err = self.run_("shell", "-f", self.path("f.sql"), "--json")
        self.assertEqual((code, json.loads(out)["tables"]), (NOT_FOUND, [{"name": "orders"}]))
        error, notice = [json.loads(line) for line in err.splitlines()]
        self.assertEqual((error["error"]["code"], error["error"]["command"]), ("not_found", "item get"))
        self.assertIn("f.sql: line 2 failed", notice["notice"]["message"])
        self.fails(CONDITION, "conditional", "shell", "-c",
                   "UPDATE orders SET a = 1 WHERE customer = 'ann' AND day = 1 AND total = 7")
        self.fails(USAGE, "unknown command 'tabel'; did you mean 'table ls'?", "shell", "-c", "tabel ls")
        self.fails(USAGE, "a quote or comment does not end; it is in what begins at line 1", "shell", "-c", "SELECT 'x")
        self.fails(USAGE, "not both", "shell", "-c", "table ls", "-f", "-")
        self.fails(USAGE, "No such file", "shell", "-f", self.path("none"))
        self.fails(USAGE, "unknown command '\\nope'; \\? lists", "shell", "-c", "\\nope")

    def test_what_cannot_run_inside(self):
        for words in ("serve", "shell", "shell --db x"):
            self.fails(USAGE, "'%s' does not run inside of the shell" % words.split()[0], "shell", "-c", words)

    def test_commands_of_the_command_line(self):
        self.orders(1)
        self.assertEqual(self.ok("shell", "-c", "table ls", "-c", "SELECT day FROM orders"), 'orders\n{"day":1}\n')
        self.assertEqual(self.ok("shell", "-c", "holdfast table ls; exit; table ls"), "orders\n")
        self.assertEqual(self.ok("shell", "-c", "table ls\n\\q\ntable ls"), "orders\n")
        self.assertEqual(json.loads(self.ok("shell", "--dynamodb", "-c", "SELECT day FROM orders")), {"day": {"N": "1"}})
        self.assertEqual(json.loads(self.ok("shell", "--json", "-c", "SELECT day FROM orders"))["items"], [{"day": 1}])
        self.assertEqual(self.ok("shell", "--jsonl", "-c", "table ls"), '{"name":"orders"}\n')
        self.assertIn("Usage: holdfast item get", self.ok("shell", "-c", "help item get"))
        self.assertIn("\\watch", self.ok("shell", "-c", "help"))

    def test_patterns_share_the_database(self):
        """A directory is open once, so each of these would fail if it opened its own."""
        out = self.script("kv set a 1 -q\nkv get a\ncounter add hits 5\noutbox emit t '{}' -q\noutbox drain --to stdout: -q\n"
                          "lock run x -- echo inside\nevents append s/1 Made '{}' -q\nevents read s/1 --json\n")
        self.assertIn("inside\n", out)
        self.assertIn('"type":"t"', out)
        self.assertIn('"type":"Made"', out)
        other = "embedded:" + self.path("other")
        self.script("kv set a other --db %s -q; kv get a --db %s; kv get a" % (other, other))
        self.assertEqual(self.ok("kv", "get", "a", "--db", other), "other\n")

    def test_reading_creates_nothing(self):
        code, out, err = self.run_("shell", "-c", "table ls")
        self.assertEqual((code, out), (NOT_FOUND, ""), err)
        self.assertFalse(os.path.exists(self.path("shop")))
        self.assertFalse(os.path.exists(self.path(".local")))
        self.orders(0)  # this one creates
        self.assertFalse(os.path.exists(self.path(".local")))  # and no history in any case
        self.fails(UNAVAILABLE, "start a server", "shell", "-c", "table ls", "--db", NOBODY)

    def test_limits(self):
        self.orders(0)
        item = "item put orders '{\"customer\":\"a\",\"day\":1,\"x\":\"%s\"}'"
        exact = "version " + "x" * (UNIT_MAX - len("version "))
        code, out, err = self.run_("shell", input=exact + "\n")
        self.assertNotIn("longer than", err)
        code, out, err = self.run_("shell", input=exact + "x\n")
        self.assertEqual((code, out), (USAGE, ""))
        self.assertIn("longer than %d bytes" % UNIT_MAX, err)
        code, out, err = self.run_("shell", input="SELECT\n" + ("x" * 99 + "\n") * (UNIT_MAX // 100 + 1))
        self.assertEqual((code, out), (USAGE, ""))
        self.assertIn("what begins at line 1 is longer than %d bytes: a ; is missing" % UNIT_MAX, err)
        self.assertEqual(self.script(item % ("y" * 100000)), "")
        with open(self.path("loop.sql"), "w") as file:
            file.write("\\i %s\n" % self.path("loop.sql"))
        self.fails(USAGE, "more than 16 files include each other", "shell", "-f", self.path("loop.sql"))
        self.fails(USAGE, "NUL", "shell", "-f", self.nul())

    def nul(self):
        with open(self.path("nul.sql"), "wb") as file:
            file.write(b"table ls\0\n")
        return self.path("nul.sql")

    def test_transactions(self):
        self.orders(2)
        update = "UPDATE orders SET v = %d WHERE customer = 'ann' AND day = %d;\n"
        self.script("BEGIN;\n" + update % (1, 1) + update % (2, 2) + "COMMIT;\n")
        self.assertEqual(self.script("SELECT v FROM orders;"), '{"v":1}\n{"v":2}\n')
        self.script("BEGIN;\n" + update % (7, 1) + "ROLLBACK;\n")
        self.script("BEGIN;\n" + update % (7, 1), code=CONDITION,
                    err="holdfast shell: the transaction was not committed: its 1 statement was not run\n")
        code, out, err = self.run_("shell", input="begin;\n" + update % (8, 1) +
                                   "UPDATE orders SET v = 8 WHERE customer = 'ann' AND day = 2 AND v = 9;\ncommit;\n")
        self.assertEqual((code, out), (CONDITION, ""))
        self.assertIn("statement 2: ", err)
        self.assertEqual(self.script("SELECT v FROM orders;"), '{"v":1}\n{"v":2}\n')
        read = "SELECT v FROM orders WHERE customer = 'ann' AND day = %d;\n"
        self.assertEqual(self.script("BEGIN;\n" + read % 2 + read % 1 + "COMMIT;\n"), '{"v":2}\n{"v":1}\n')
        self.fails(USAGE, "no transaction has begun", "shell", "-c", "COMMIT")
        self.fails(USAGE, "already begun", "shell", "-c", "BEGIN; BEGIN")
        self.fails(USAGE, "at most 100 statements", "shell", "-c", "BEGIN;" + read % 1 * 101)
        out = self.ok("shell", "-c", "BEGIN;" + "".join(read % day for day in range(1, 101)) + "COMMIT")
        self.assertEqual(out, '{"v":1}\n{"v":2}\n')
        self.assertEqual(self.ok("sql", "--transaction", read[:-2] % 1, read[:-2] % 2), '{"v":1}\n{"v":2}\n')

    def test_transactions_are_all_or_nothing(self):
        self.orders(2)
        update = "UPDATE orders SET v = 7 WHERE customer = 'ann' AND day = 1;\n"
        for between, code, error in [("item put orders '{\"customer\":\"x\",\"day\":1}'\n", USAGE, "commands do not run"),
                                     ("\\use embedded:%s\n" % self.path("other"), USAGE, "one database"),
                                     ("BEGIN;\n", USAGE, "already begun"),
                                     ("COMMIT\n" + update, USAGE, "missing ';' behind COMMIT"),
                                     (update * 100, USAGE, "at most 100 statements")]:
            got, out, err = self.run_("shell", "--keep-going", input="BEGIN;\n" + update + between + "COMMIT;\n")
            self.assertEqual((got, out), (code, ""), between)
            self.assertIn(error, err)
            self.assertIn("nothing was committed", err)
        self.fails(USAGE, "missing ';' behind BEGIN", "shell", "-c", "BEGIN\n" + update)
        self.script("BEGIN TRANSACTION;\nROLLBACK WORK;\n")
        self.assertEqual(self.script("SELECT v FROM orders;"), "{}\n{}\n")
        self.assertFalse(os.path.exists(self.path("other")))

    def test_options_before_the_command(self):
        self.orders(1)
        env = dict(self.env, HOLDFAST_DB="embedded:" + self.path("another"))
        for line in ("-q item put orders '{\"customer\":\"z\",\"day\":1}'", "holdfast -q item get orders z 1"):
            done = subprocess.run([COMMAND, "shell", "--db", self.env["HOLDFAST_DB"], "-c", line], env=env,
                                  capture_output=True, text=True, timeout=WAIT_S)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
        self.assertEqual(self.ok("query", "orders", "z"), '{"customer":"z","day":1}\n')
        self.assertFalse(os.path.exists(self.path("another")))
        self.fails(USAGE, "does not run inside of the shell", "shell", "-c", "-q shell -c '\\q'")

    def test_a_reader_first_and_a_writer_then(self):
        self.orders(1)
        self.ok("shell", "-c", "export orders --to " + self.path("x.jsonl"), "-c",
                "item put orders '{\"customer\":\"z\",\"day\":1}'")

    def test_use_of_a_name(self):
        self.orders(1)
        self.env["HOLDFAST_CONFIG"] = self.path("config")
        url = self.env.pop("HOLDFAST_DB")
        self.ok("config", "set", "shop", "db=" + url)
        self.ok("config", "set", "other", "db=embedded:" + self.path("more"), "prefix=p-")
        self.assertEqual(self.ok("shell", "--db", "@other", "-c", "\\use @shop", "-c", "table ls"), "orders\n")
        self.assertEqual(self.ok("shell", "-c", "\\use @shop", "-c", "table ls", "-c", "\\use").splitlines()[1:],
                         [url])
        self.fails(USAGE, "nobody", "shell", "-c", "\\use @nobody")

    def test_backslash_commands(self):
        self.orders(2)
        out = self.script("\\d\n\\d orders;\n")
        self.assertEqual(out.splitlines()[0].split("\t")[:4], ["orders", "customer:S,day:N", "1", "2"])
        self.assertRegex(out, r"key +customer:S,day:N\n")
        self.assertRegex(out, r"ttl +expires\n")
        self.assertRegex(out, r"stream +new\n")
        self.assertRegex(out, r"index +by_day=day:N, keys only\n")
        self.fails(NOT_FOUND, "not found", "shell", "-c", "\\d nope")
        about = json.loads(self.ok("shell", "--json", "-c", "\\d orders"))
        self.assertEqual((about["items"], about["indexes"]), (2, [{"name": "by_day", "key": "day:N"}]))
        self.assertGreater(about["bytes"], 0)
        self.assertEqual(self.ok("shell", "-q", "-c", "SELECT * FROM orders; table ls"), "")
        self.assertEqual(self.script("\\limit 1\nSELECT day FROM orders;\n\\limit 0\nSELECT day FROM orders;\n"),
                         '{"day":1}\n{"day":1}\n{"day":2}\n')
        self.assertEqual(self.script("SELECT day FROM orders WHERE total = 20;\n\\watch 10ms 3\n"), '{"day":2}\n' * 4)
        self.assertEqual(self.script("\\dynamodb\nSELECT day FROM orders WHERE total = 20;\n\\dynamodb off\n"
                                     "SELECT day FROM orders WHERE total = 20;"), '{"day":{"N":"2"}}\n{"day":2}\n')
        self.assertEqual(self.script("\\echo a  'b  c'\n"), "a b  c\n")
        self.assertEqual(self.script("\\! echo 'x;' | tr x y\n"), "y;\n")
        self.fails(7, "", "shell", "-c", "\\! exit 7")
        self.script("\\o %s\nSELECT day FROM orders;\n\\o\n" % self.path("out"))
        with open(self.path("out")) as file:
            self.assertEqual(file.read(), '{"day":1}\n{"day":2}\n')
        with open(self.path("in.sql"), "w") as file:
            file.write("\\echo one\nSELECT day FROM orders WHERE total = 10;\n")
        self.assertEqual(self.script("\\i %s\n\\echo two\n" % self.path("in.sql")), 'one\n{"day":1}\ntwo\n')
        code, out, err = self.run_("shell", "-c", "\\timing\nSELECT day FROM orders WHERE total = 10;")
        self.assertEqual(out, '{"day":1}\n')
        self.assertRegex(err, r"^time: [0-9.]+ ms, 0.5 read units, 0 write units\n$")
        for bad in ("\\watch soon", "\\watch 1ms", "\\watch 25h", "\\watch 1s 0", "\\limit x", "\\limit 4294967296",
                    "\\x maybe", "\\d a b", "\\i", "\\q now"):
            self.assertIn("\\? shows how to use it", self.fails(USAGE, bad.split()[0], "shell", "-c", "table ls -q\n" + bad))
        self.fails(USAGE, "there is none yet", "shell", "-c", "\\watch")

    def test_a_disk_that_is_full(self):
        self.orders(1)
        full = "cannot write to /dev/full: No space left on device"
        self.assertIn(full, self.fails(1, full, "shell", "-c", "\\o /dev/full", "-c", "SELECT * FROM orders"))
        self.fails(1, full, "shell", "-c", "\\o /dev/full", "-c", "\\echo x")
        self.fails(1, full, "shell", "-c", "\\o /dev/full", "-c", "table ls")
        code, out, err = self.run_("shell", "-k", input="\\o /dev/full\ntable ls\n\\o\ntable ls\n")
        self.assertEqual((code, out), (1, "orders\n"), err)
        self.assertNotIn("standard output", err)
        code, out, err = self.run_("shell", input="\\o /dev/full\nBEGIN;\n")  # nothing to write
        self.assertNotIn("/dev/full", err)

    def test_another_database(self):
        self.orders(1)
        other = "embedded:" + self.path("other")
        self.ok("table", "create", "things", "-k", "id", "--db", other, "-q")
        self.assertEqual(self.script("table ls\n\\use %s\ntable ls\n\\use\n" % other), "orders\nthings\n%s\n" % other)
        code, out, err = self.run_("shell", "-k", input="\\use %s\ntable ls\n" % NOBODY)
        self.assertEqual((code, out), (UNAVAILABLE, "orders\n"))  # it stays on the one before
        self.assertEqual(self.script("\\use memory:\ntable create ttt -k id -q\ntable ls\n"), "ttt\n")

    def test_an_end_of_the_reader(self):
        """`holdfast shell | head` ends, and says nothing."""
        self.orders(60)
        done = subprocess.run(["/bin/sh", "-c", '"$0" shell -c "SELECT * FROM orders; SELECT * FROM orders" | head -n 1',
                               COMMAND], capture_output=True, text=True, timeout=WAIT_S, env=self.env)
        self.assertEqual(done.stdout, '{"customer":"ann","day":1,"total":10}\n')

    def test_signals(self):
        with open(self.path("wait.sql"), "w") as file:
            file.write("\\echo begun\ntable create ttt -k id -q\nscan ttt --count -q\n\\watch 1h\n\\echo not this\n")
        for number in (signal.SIGINT, signal.SIGTERM):
            process_ = self.start("shell", "--db", "memory:", "-k", "-f", self.path("wait.sql"))
            self.assertEqual(process_.stdout.readline(), "begun\n")
            time.sleep(0.2)
            process_.send_signal(number)
            out, err = process_.communicate(timeout=WAIT_S)
            self.assertEqual((process_.returncode, out), (128 + number, ""), err)

    def test_signals_while_a_program_runs(self):
        """The program gets them as well, and how it ends is not what the shell ends with."""
        calm = "trap 'exit 0' INT TERM; echo begun; while :; do sleep 0.05; done"
        for line in ("\\! %s" % calm, "\\! echo begun; exec sleep 1000", "lock run x -- sh -c \"%s\"" % calm):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(line=line, number=number):
                    with open(self.path("wait.sql"), "w") as file:
                        file.write(line + "\n\\echo not this\n")
                    process_ = self.start("shell", "--db", "memory:", "-k", "-f", self.path("wait.sql"))
                    self.assertEqual(process_.stdout.readline(), "begun\n")
                    process_.send_signal(number)
                    out, err = process_.communicate(timeout=WAIT_S)
                    self.assertEqual((process_.returncode, out), (128 + number, ""), err)

    def test_interrupt_by_the_terminal_ends_a_script(self):
        with open(self.path("wait.sql"), "w") as file:
            file.write("\\! echo begun; exec sleep 1000\n\\echo not this\n")
        at = Terminal(self, "shell", "--db", "memory:", "-k", "-f", self.path("wait.sql"))
        at.until("begun")
        at.send("\x03")
        self.assertEqual(at.ended(), 128 + signal.SIGINT, at.text)
        self.assertNotIn("not this", at.text)


class ScriptsOnAServer(Scripts):
    def prepare(self):
        super().prepare()
        self.env["HOLDFAST_DB"] = process.SERVER.url
        self.env["HOLDFAST_PREFIX"] = "s%d-" % Commands.count

    test_reading_creates_nothing = test_patterns_share_the_database = test_limits = test_signals = None
    test_what_cannot_run_inside = test_another_database = None
    test_signals_while_a_program_runs = test_interrupt_by_the_terminal_ends_a_script = None


class Person(Shell):
    def test_statements_of_several_lines(self):
        self.orders(2)
        at = self.terminal()
        self.assertIn("\\? shows help", at.text)
        at.send("SELECT day,\r")
        at.until("..> ")
        at.send("total FROM orders\r")
        at.until("..> ")
        self.assertIn("day  total\n1    10\n2    20\n(2 items)\n", at.run("WHERE customer = 'ann';"))
        self.assertIn("total  day\n10     1\n", at.run('SELECT total, "day" FROM orders;'))  # as it was asked for
        at.run("INSERT INTO orders VALUE {'customer': 'z', 'day': 1, 'a': 1};")
        self.assertIn("customer  day  a\nz         1    1\n", at.run("SELECT * FROM orders WHERE customer = 'z';"))
        at.run("DELETE FROM orders WHERE customer = 'z' AND day = 1;")
        self.assertIn("(0 items)\n", at.run("SELECT * FROM orders WHERE customer = 'x';"))
        self.assertIn("ok\n", at.run("DELETE FROM orders WHERE customer = 'ann' AND day = 1;"))
        self.assertIn("holdfast sql: ", at.run("SELECT * FROM nope;"))  # no end
        self.assertIn("there is no table or index 'nope'; \\d lists the tables", at.text)
        self.assertIn("unknown command 'SHOW'", at.run("SHOW tables;"))
        self.assertIn("\\? shows what you can type", at.text)
        self.assertIn("(1 item)\n", at.run("scan orders"))
        at.send("\x04")
        self.assertEqual(at.ended(), 0)

    def test_settings(self):
        self.orders(2)
        at = self.terminal()
        self.assertIn("timing is on", at.run("\\timing"))
        self.assertRegex(at.run("SELECT day FROM orders;"), r"\(2 items\)\ntime: [0-9.]+ ms, 0.5 read units")
        at.run("\\timing off")
        at.run("\\x")
        self.assertIn("day    2\ntotal  20\n", at.run("SELECT day, total FROM orders;"))
        at.run("\\x off")
        at.run("\\json")
        self.assertIn('{"day":1}\n{"day":2}\n', at.run("SELECT day FROM orders;"))
        at.run("\\json off")
        at.run("\\limit 1")
        self.assertIn("(1 item; \\limit 0 shows all)", at.run("SELECT day FROM orders;"))
        self.assertIn("customer:S,day:N  1        2", at.run("\\d"))
        at.send("BEGIN;\r")
        at.until("shop*> ")
        at.send("UPDATE orders SET v = 1 WHERE customer = 'ann' AND day = 1;\r")
        at.until("statement 1 of the transaction")
        at.until("shop*> ")
        self.assertIn("committed", at.run("COMMIT;"))
        at.send("\\q\r")
        self.assertEqual(at.ended(), 0)

    def test_completion(self):
        self.orders(2)
        self.ok("item", "put", "orders", '{"customer":"ben","day":5,"weight":1}')
        at = self.terminal()

        def completes(typed, whole):
            at.send(typed + "\t")
            at.until(whole)
            at.send("\x03")
            at.until("^C")
            at.until("shop> ")

        completes("ite", "m ")
        completes("table sh", "ow ")
        completes("table show o", "rders ")
        completes("item get o", "rders ")
        completes("item get orders b", "en ")
        completes("item get orders ben ", "5 ")
        completes("query orders --ind", "ex ")
        completes("query orders --index b", "y_day ")
        completes("scan orders --attributes w", "eight ")
        completes("\\tim", "ing ")
        completes("\\d or", "ders ")
        completes("sel", "ect ")
        completes("SEL", "ECT ")
        completes("SELECT * FROM or", "ders ")
        completes("SELECT * FROM \"or", "ders\"")
        completes("SELECT * FROM orders WHERE cu", "stomer ")
        completes("SELECT * FROM orders WHERE customer = 'b", "en'")
        completes('SELECT * FROM orders."by', '_day"')
        at.send("SELECT *\r")
        at.until("..> ")
        at.send("FROM orders WHERE wei\t")
        at.until("ght ")
        at.send("\x03")
        at.until("shop> ")
        at.send("table \t\t")  # several: they are listed
        self.assertRegex(at.until("delete"), r"create +ls +show")
        at.until("shop> ")
        at.until("table ")
        at.send("\x03")
        at.until("shop> ")
        at.send("nothing-begins-so\t\x03")
        at.until("shop> ")

    def test_history(self):
        self.orders(1)
        path = self.path(".local/state/holdfast/history")
        self.assertFalse(os.path.exists(path))
        at = self.terminal()
        at.run("table ls")
        at.run("table ls")  # once is enough
        at.run(" table show orders")  # begins with a blank
        at.send("SELECT day\r")
        at.until("..> ")
        at.run("FROM orders; -- a\\b")
        at.process.kill()  # (1) of shell_history.c
        at.close()
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700)
        with open(path) as file:
            self.assertEqual(file.read(), "table ls\nSELECT day\\nFROM orders; -- a\\\\b\n")
        at = self.terminal()  # the database is well, too
        at.send("\x1b[A")
        at.until("a\\b")
        at.send("\r")
        at.until("(1 item)")
        at.until("shop> ")
        at.send("\x12le l")  # Ctrl-R
        at.until("table ls")
        at.send("\r")
        at.until("orders")
        at.until("shop> ")
        at.send("\\q\r")
        self.assertEqual(at.ended(), 0)

    def test_history_of_another_file(self):
        for value in ("none", self.path("my")):
            at = Terminal(self, "shell", "--db", "memory:", HOLDFAST_HISTORY=value).start("memory")
            at.run("table ls")
            at.send("\x04")
            self.assertEqual(at.ended(), 0)
            self.assertFalse(os.path.exists(self.path(".local")))
        with open(self.path("my")) as file:
            self.assertEqual(file.read(), "table ls\n")
        at = Terminal(self, "shell", "--db", "memory:", HOLDFAST_HISTORY=self.path("my/no/such")).start("memory")
        self.assertEqual(at.text.count("no history is kept: "), 1)
        at.run("table ls")
        self.assertEqual(at.text.count("no history is kept: "), 1)

    def test_history_is_bounded(self):
        path = self.path("my")
        lines = ["version %d" % i for i in range(2 * HISTORY_MAX)]
        for more, kept in ((0, 2 * HISTORY_MAX), (1, HISTORY_MAX)):
            with open(path, "w") as file:
                file.write("\n".join(lines + ["last"] * more) + "\n")
            at = Terminal(self, "shell", "--db", "memory:", "--history", path).start("memory")
            at.send("\x1b[A")
            at.until("last" if more else lines[-1])
            at.close()
            with open(path) as file:
                self.assertEqual(len(file.readlines()), kept)
        with open(path, "w") as file:
            file.write("y" * 1024 * 1024 + "\nshort\n")
        at = Terminal(self, "shell", "--db", "memory:", "--history", path).start("memory")
        at.close()
        with open(path) as file:
            self.assertEqual(file.read(), "short\n")

    def test_interrupt_clears_the_line(self):
        at = self.terminal("--db", "memory:", name="memory")
        at.send("SELECT * FROM\r")
        at.until("..> ")
        at.send("nothing\x03")
        at.until("^C")
        at.until("memory> ")
        self.assertNotIn("error", at.run("version"))
        for _ in range(2):
            at.send("\x03")
            at.until("^C")
            at.until("memory> ")
        self.assertIn("\\watch", at.run("\\?"))
        at.process.terminate()
        self.assertEqual(at.ended(), 128 + signal.SIGTERM)

    def test_watch(self):
        self.orders(1)
        at = self.terminal()
        at.run("SELECT total FROM orders;")
        at.send("\\watch 50ms\r")
        for _ in range(3):
            at.until("total\n".replace("\n", "\r\n"))
        at.send("\x03")
        at.until("shop> ")
        for _ in range(5):  # also while a statement runs
            at.send("\\watch 10ms\r")
            at.until("every 0.01s")
            at.send("\x03")
            at.until("shop> ")
        with open(self.path("long.sql"), "w") as file:
            file.write("SELECT total FROM orders;\n" * 100000)
        at.send("\\i %s\r" % self.path("long.sql"))
        at.until("(1 item)")
        at.send("\x03")
        at.until("shop> ")
        self.assertEqual(at.run("\\watch 10ms 2").count("every 0.01s"), 2)
        at.send("SELECT day\r")
        at.until("..> ")
        at.send("FROM orders\r")
        at.until("..> ")
        self.assertEqual(at.run("\\watch 10ms 3").count("(1 item)"), 3)

    def test_resize(self):
        self.orders(1)
        self.ok("item", "put", "orders", json.dumps({"customer": "x" * 30, "day": 1, "text": "y" * 60}))
        at = self.terminal()
        self.assertIn("y" * 20 + "...", at.run("SELECT * FROM orders WHERE customer = '%s';" % ("x" * 30)))
        at.send("SELECT customer, ")
        at.until("customer, ")
        at.resize(50, 200)
        time.sleep(0.2)
        at.send("text FROM orders WHERE day = 1 AND customer >= 'x';\r")
        self.assertIn("y" * 60, at.until("(1 item)"))

    def test_narrow(self):
        self.orders(2)
        at = Terminal(self, "shell", columns=20).start("")
        shown = at.run("scan orders")
        self.assertIn("customer  day  total\nann       1    10\n", shown)  # just fits
        at.run("UPDATE orders SET v=1 WHERE customer='ann' AND day=1;")
        self.assertIn("customer  ann\nday       1\ntotal     10\nv         1\n\ncustomer  ann\n", at.run("scan orders"))
        at.send("\\d\r")
        at.until("customer:S,day:N")
        at.send("table \t\t")
        at.until("delete")
        at.send("\x03")
        at.until("^C")
        at.send("\x04")
        self.assertEqual(at.ended(), 0)

    def test_hostile_items(self):
        self.orders(0)
        item = {"customer": "a" + HOSTILE, "day": 1, "n" + HOSTILE: "v" + HOSTILE, "m": {"k" + HOSTILE: [HOSTILE]}}
        self.ok("item", "put", "orders", json.dumps(item))
        at = self.terminal()
        begin = len(at.text)
        for line in ("SELECT * FROM orders;", "scan orders", "\\x", "SELECT * FROM orders;", "\\x", "\\json",
                     "SELECT * FROM orders;", "\\json", "\\dynamodb", "SELECT * FROM orders;", "\\dynamodb", "\\d orders"):
            self.assertNotIn("holdfast sql", at.run(line))
        for typed in ("item get orders \t\t", "SELECT * FROM orders WHERE \t\t", "SELECT * FROM orders WHERE customer = '\t\t"):
            at.send(typed)
            time.sleep(0.3)
            at.send("\x03")
            at.until("^C")
            at.until("shop> ")
        self.assertIsNone(CONTROL.search(at.text[begin:]), at.text[begin:])
        self.assertIn("\\x1b]0;owned\\x07", at.text)

    def test_a_pager(self):
        self.orders(60)
        at = self.terminal(PAGER="head -n 3")  # leaves early: no error
        shown = at.run("SELECT day FROM orders;")
        self.assertIn("day\n1\n2\n", shown)
        self.assertNotIn("3\n4\n", shown)
        self.assertNotIn("holdfast", shown)
        self.assertIn("(1 item)", at.run("SELECT day FROM orders WHERE day = 9 AND customer = 'ann';"))  # short: none
        at.close()
        at = self.terminal(PAGER="sed s/^/P/")
        shown = at.run("SELECT day FROM orders;")
        self.assertIn("P59\nP60\n(60 items)", shown)
        at.close()
        self.script("".join(
            "UPDATE orders SET text = '%s' WHERE customer = 'ann' AND day = %d;\n" % ("x" * 3000, day)
            for day in range(1, 61)))
        at = self.terminal(PAGER="sleep 1000")  # the pipe to it is full, and the statement waits
        at.run("\\x")
        at.send("SELECT * FROM orders;\r")
        at.until("\n")
        time.sleep(0.2)
        at.send("\x03")
        at.until("shop> ")
        self.assertIn("(1 item)", at.run("SELECT day FROM orders WHERE day = 9 AND customer = 'ann';"))
        at.close()
        at = self.terminal("--no-pager", PAGER="false")
        self.assertIn("59\n60\n(60 items)", at.run("SELECT day FROM orders;"))

    def test_signals_while_a_pager_runs(self):
        self.orders(60)
        stays = "sh -c \"echo pager; trap : INT; trap 'kill $!; exit 3' TERM; sleep 1000 & wait; wait\""
        for size, number in ((1, signal.SIGTERM), (3000, signal.SIGTERM), (3000, signal.SIGINT)):
            with self.subTest(size=size, number=number):
                self.script("".join("UPDATE orders SET text = '%s' WHERE customer = 'ann' AND day = %d;\n" %
                                    ("x" * size, day) for day in range(1, 61)))
                at = self.terminal(PAGER=stays)
                at.run("\\x")
                at.send("SELECT * FROM orders;\r")
                at.until("pager")
                at.process.send_signal(number)  # the shell alone; its pager reads nothing, or has all of it
                if number == signal.SIGINT:  # it waits for the pager, and would end with it
                    at.process.send_signal(signal.SIGTERM)
                self.assertEqual(at.ended(), 143, at.text)
                at.close()

    def test_a_resized_page_takes_no_processor(self):
        self.orders(60)
        del self.env["PAGER"]
        at = self.terminal(PATH=self.path("none"))
        at.send("SELECT day FROM orders;\r")
        at.until("--more--")

        def ticks():
            with open("/proc/%d/stat" % at.process.pid) as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        before = ticks()
        at.resize(30, 100)
        time.sleep(1)
        self.assertLess(ticks() - before, 30)
        at.send("q")
        at.until("shop> ")

    def test_pages_without_a_pager(self):
        self.orders(60)
        del self.env["PAGER"]
        at = self.terminal(PATH=self.path("none"))
        at.send("SELECT day FROM orders;\r")
        self.assertIn("\n22\n", at.until("--more--"))
        at.send(" ")
        self.assertIn("\n45\n", at.until("--more--"))
        at.send("\r")
        self.assertIn("46\n", at.until("--more--"))
        at.send("q")
        self.assertNotIn("47", at.until("shop> "))
        at.send("SELECT day FROM orders;\r")
        at.until("--more--")
        at.send("\x03")  # as well
        at.until("shop> ")
        self.assertIn("(1 item)", at.run("SELECT day FROM orders WHERE day = 9 AND customer = 'ann';"))

    def test_without_an_editor(self):
        self.orders(1)
        at = self.terminal(TERM="dumb")
        self.assertNotIn("cannot be edited", at.text)
        self.assertIn("(1 item)", at.run("SELECT day FROM orders;"))
        at.send("\x03")
        at.until("shop> ")
        at.send("\x04")
        self.assertEqual(at.ended(), 0)
        with open(self.path("libedit.so.2"), "w"):
            pass
        at = self.terminal(LD_LIBRARY_PATH=self.dir)  # it cannot be loaded
        self.assertEqual(at.text.count("lines cannot be edited: library libedit.so.2 cannot be loaded"), 1)
        self.assertIn("(1 item)", at.run("SELECT day FROM orders;"))

    def test_a_missing_directory(self):
        at = self.terminal()
        self.assertIn("does not exist yet: 'table create' creates it", at.text)
        at.run("table ls")
        self.assertFalse(os.path.exists(self.path("shop")))
        at.run("table create ttt -k id")
        self.assertIn("ttt    id:S  0        0      0 bytes", at.run("\\d"))
        at.send("\\q\r")
        self.assertEqual(at.ended(), 0)
        self.assertTrue(os.path.exists(self.path("shop")))

    def test_a_directory_that_is_in_use(self):
        self.orders(1)
        self.terminal()
        at = Terminal(self, "shell")
        at.until("is already open")
        at.until("(holdfast shell)")
        self.assertEqual(at.ended(), UNAVAILABLE)

    def test_on_a_server(self):
        self.env["HOLDFAST_DB"], self.env["HOLDFAST_PREFIX"] = process.SERVER.url, "p%d-" % Commands.count
        self.orders(2)
        at = self.terminal(name=process.SERVER.url.split("//")[1])
        self.assertIn("(2 items)", at.run("SELECT * FROM orders;"))
        at.send("table show o\t")
        at.until("rders ")
        at.send("\r")
        at.until("customer S, day N")
        at.until("> ")
        at.send("\x04")
        self.assertEqual(at.ended(), 0)

    def test_interrupt_of_a_call_that_hangs(self):
        """A service that answers one operation, and never the others."""
        hangs, done = threading.Event(), threading.Event()

        class Service(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                if not self.headers["X-Amz-Target"].endswith("ListTables"):
                    hangs.set()
                    done.wait(WAIT_S)
                    return
                body = b'{"TableNames":[]}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=service.serve_forever, daemon=True).start()
        self.addCleanup(service.server_close)
        self.addCleanup(service.shutdown)
        self.addCleanup(done.set)
        url = "http://127.0.0.1:%d" % service.server_port
        at = self.terminal("--db", url, name=url[7:], AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
        at.send("SELECT * FROM orders;\r")
        self.assertTrue(hangs.wait(WAIT_S))
        at.send("\x03")
        at.until("canceled")
        at.until("> ")
        at.send("\x04")
        self.assertEqual(at.ended(), 0)


if __name__ == "__main__":
    main()
