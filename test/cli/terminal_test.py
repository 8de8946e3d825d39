#!/usr/bin/env python3
"""The command as people meet it: terminal_test.py COMMAND SOURCE [unittest arguments]. Lists in a
pseudo-terminal with real data, directories that others have open, databases that are new or not there,
errors as JSON. A server in memory is started once; each test has a prefix of its own.
"""
import json
import os
import pty
import re
import signal
import subprocess
import urllib.error
import urllib.request

import process
from process import (COMMAND, CONDITION, DENIED, FAILED, NOBODY, NOT_FOUND, OK, UNAVAILABLE, USAGE, WAIT_S, Commands,
                     main, serve, setUpModule, tearDownModule)  # noqa: F401


class Lists(Commands):
    """Every command that lists, on a terminal."""

    def fill(self):
        """Something of each kind; lists of what has several entries of different widths."""
        self.ok("table", "create", "-f", "-", "-q", input=json.dumps(
            {"TableName": "orders", "AttributeDefinitions": [
                {"AttributeName": "id", "AttributeType": "S"}],
             "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}))
        for name in ("a", "a-longer-name", "mid"):
            self.ok("kv", "set", name, "value of " + name)
            self.ok("counter", "add", name, "7", "-n", "c")
            self.ok("once", "run", name, "--", "true")
            self.ok("lock", "run", name, "--", "true")
            self.ok("outbox", "emit", "type." + name, '{"n":1}', "--key", name, "-q")
            self.ok("events", "append", "order/" + name, "Placed", '{"name":"%s"}' % name, "-q")
            self.ok("blobs", "put", "--blobs", "dir:" + self.path("blobs"), "-q", input=name)
        self.ok("records", "put", '{"AccountId":"A1","RunTime":"2026-01"}',
                '{"AccountId":"A22222","RunTime":"2026-02-03"}')
        self.event = self.ok("events", "read", "order/a").split("\t")[4]
        self.ok("events", "append", "order/b", "Paid", '{"of":"a"}', "--cause", self.event, "-q")

    LISTS = [
        (("table", "ls"), "tables", ["name"]),
        (("kv", "ls"), "entries", ["namespace", "id", "value", "version", "expires"]),
        (("counter", "ls", "-n", "c"), "counters", ["id", "value"]),
        (("counter", "get", "-n", "c", "a", "mid", "none"), "counters", ["id", "value"]),
        (("once", "ls"), "records",
         ["user", "key", "state", "code", "tries", "owner", "began", "done"]),
        (("lock", "ls", "--all"), "locks",
         ["name", "mode", "fence", "owner", "since", "renewed", "data"]),
        (("records", "ls"), "records", ["account", "run_time", "state", "attempts", "error"]),
        (("outbox", "ls"), "events", ["id", "type", "key", "state", "urgent", "time", "attempts", "error"]),
        (("events", "ls"), "streams", ["stream", "version", "first", "position"]),
        (("events", "read", "order/a"), "events",
         ["stream", "version", "type", "time", "id", "payload"]),
        (("events", "all"), "events", ["stream", "version", "type", "time", "id", "payload"]),
        (("events", "caused", "{event}"), "events",
         ["stream", "version", "type", "time", "id", "payload"]),
        (("events", "correlated", "{event}"), "events",
         ["stream", "version", "type", "time", "id", "payload"]),
        (("events", "revert", "--preview", "{event}"), "events",
         ["stream", "version", "type", "time", "id", "payload"]),
        (("blobs", "ls", "--blobs", "dir:{blobs}"), "blobs", ["digest", "size", "put"]),
    ]

    def check_table(self, lines, names, rows):
        """A heading, and rows whose fields begin where its names do."""
        self.assertEqual(lines[0].split(), names)
        starts = [lines[0].index(name + " ") if i + 1 < len(names) else lines[0].rindex(name)
                  for i, name in enumerate(names)]
        self.assertEqual(len(lines) - 1, len(rows), lines)
        shown = []
        for line in lines[1:]:
            cells = [line[start:end].strip()
                     for start, end in zip(starts, starts[1:] + [len(line)])]
            for start in starts[1:]:
                self.assertEqual(line[start - 2:start], "  ", (lines[0], line))
                self.assertNotEqual(line[start:start + 1], " ", (lines[0], line))
            shown.append(cells)
        for cells, row in zip(sorted(shown), sorted(rows)):
            for name, cell, field in zip(names, cells, row):
                if not re.match(r"\d{4}-\d\d-\d\dT", field):
                    self.assertEqual(cell, field, name)

    def test_every_list_is_a_table(self):
        self.fill()
        known = set()
        for words, list_, names in self.LISTS:
            words = [word.format(event=self.event, blobs=self.path("blobs")) for word in words]
            known.add(" ".join(words[:2]))
            with self.subTest(words):
                rows = [line.split("\t") for line in self.ok(*words).splitlines()]
                self.assertTrue(rows)
                self.assertEqual(len(set(map(tuple, rows))), len(rows))
                if names[0] == "stream" and names[-1] == "position":
                    rows = [row[:4] for row in rows]
                self.check_table(self.on_terminal(*words), names, rows)
                self.assertEqual(len(json.loads(self.ok(*words, "--json"))[list_]), len(rows))
        every = {words for words in process.commands()
                 if " " in words and "--jsonl" in self.ok(*words.split(), "--help")}
        elsewhere = {"events parked", "outbox failed", "config ls", "table update"}
        self.assertEqual(every - known, elsewhere)
        tree = self.on_terminal("events", "tree", self.event)
        self.assertEqual([line.split()[:2] for line in tree],
                         [["Placed", "order/a"], ["Paid", "order/b"]])

    def test_json_behind_an_operand_is_the_program_s(self):
        self.fails(USAGE, "unknown option '--json'", "lock", "run", "x", "echo", "--json")
        self.assertEqual(self.ok("lock", "run", "--json", "x", "--", "echo", "--json"), "--json\n")
        code, out, err = self.run_("--json", "lock", "run", "x", "--", self.path("none"))
        self.assertEqual((code, json.loads(err)["error"]["code"]), (127, "no_program"))

    def answered(self, answer, *args):
        """Exit code, and what a terminal was asked."""
        ours, theirs = pty.openpty()
        process_ = subprocess.Popen([COMMAND, *args], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=self.env)
        os.close(theirs)
        asked = b""
        while b"[y/N] " not in asked:
            asked += os.read(ours, 1000)
        os.write(ours, answer)
        process_.communicate(timeout=WAIT_S)
        os.close(ours)
        return process_.returncode, asked.decode()

    def test_what_destroys_asks_on_a_terminal(self):
        self.ok("table", "create", "doomed", "-k", "id", "-q")
        self.ok("kv", "set", "a", "1", "-q")
        self.ok("events", "append", "order/9", "Placed", "-q")
        self.ok("events", "subscribe", "--name", "reader", "--until-end", "-x", "true")
        with open(self.path("events.jsonl"), "w") as file:
            file.write(self.ok("events", "export"))
        for there, question, *words in (
                (("table", "show", "doomed"), "This deletes table 'doomed' and everything in it. Go on?", "table", "delete", "doomed"),
                (("kv", "get", "a"), "This deletes all these keys. Go on?", "kv", "clear"),
                (("events", "read", "order/9"), "This deletes stream 'order/9' permanently. Go on?", "events", "delete", "order/9"),
                (("events", "subscription", "reader"), "This deletes subscription 'reader' permanently. Go on?", "events", "forget", "reader"),
                (None, "This deletes all events of table", "events", "import", "--replace", self.path("events.jsonl"))):
            with self.subTest(words):
                look = self.ok(*there) if there else ""
                self.fails(USAGE, "add --yes to confirm", *words, stdin=subprocess.DEVNULL)
                code, asked = self.answered(b"n\n", *words)
                self.assertEqual(code, CONDITION, asked)
                self.assertIn(question, asked)
                self.assertEqual(self.ok(*there) if there else "", look)
                self.assertEqual(self.answered(b"y\n", *words)[0], OK)
                if there:
                    self.assertNotEqual(self.run_(*there)[1], look)

    def test_what_failed_is_listed(self):
        self.ok("outbox", "emit", "t", "{}", "-q")
        self.ok("outbox", "emit", "longer.type", "{}", "-q")
        self.run_("outbox", "drain", "--to", "exec:/bin/false", "--attempts", "1")
        lines = self.on_terminal("outbox", "failed")
        rows = [line.split("\t") for line in self.ok("outbox", "failed").splitlines()]
        self.assertEqual(len(rows), 2)
        self.check_table(lines, ["id", "type", "key", "state", "urgent", "time", "attempts", "error"], rows)
        for name in ("a", "longer"):
            self.ok("events", "append", "order/" + name, "Placed", "-q")
        self.run_("events", "subscribe", "--name", "mailer", "--attempts", "1", "--park", "--until-end",
                  "-x", "exit 9")
        lines = self.on_terminal("events", "parked", "mailer")
        rows = [line.split("\t") for line in self.ok("events", "parked", "mailer").splitlines()]
        self.assertEqual(len(rows), 2)
        self.check_table(lines, ["position", "stream", "version", "type", "attempts", "parked",
                                 "replay", "error"], rows)

    def test_columns_that_say_nothing_are_left_out(self):
        for name in ("a", "b"):
            self.ok("events", "append", "order/" + name, "Placed", "-q")
        self.assertEqual(self.on_terminal("events", "ls")[0].split(),
                         ["stream", "version", "first", "position"])
        self.assertEqual({len(line.split("\t")) for line in self.ok("events", "ls").splitlines()},
                         {8})
        self.ok("events", "limit", "order/a", "--max-count", "5", "-q")
        self.assertEqual(self.on_terminal("events", "ls")[0].split(),
                         ["stream", "version", "first", "position", "max_count"])

    def test_narrow_terminals(self):
        for name in ("a", "b"):
            self.ok("kv", "set", name, "words " * 40)
        whole = self.on_terminal("kv", "ls")
        self.assertGreater(len(whole[1]), 200)
        for columns in (100, 80):
            lines = self.on_terminal("kv", "ls", columns=columns)
            self.assertEqual(len(lines), 3)
            self.assertLessEqual(max(map(len, lines)), columns)
            self.assertEqual({line.split()[1] for line in lines}, {"id", "a", "b"})
            self.assertIn("...", lines[1])
        blocks = self.on_terminal("kv", "ls", columns=40)
        self.assertEqual(len(blocks), 11)
        self.assertEqual([line.split()[0] if line else "" for line in blocks[:6]],
                         ["namespace", "id", "value", "version", "expires", ""])
        self.assertEqual({blocks[1], blocks[7]}, {"id         a", "id         b"})
        self.assertIn("words " * 39, blocks[2])
        pipe = self.ok("kv", "ls").splitlines()
        self.assertEqual(len(pipe[0].split("\t")), 5)

    def test_many_rows_and_wide_characters(self):
        lines = "".join(json.dumps({"id": "e%03d" % i, "type": "T" if i < 210 else "Longer", "payload": i})
                        + "\n" for i in range(420))
        for part in range(0, 420, 60):
            self.ok("events", "append", "s/1", "-q", "--lines", "-",
                    input="".join(lines.splitlines(True)[part:part + 60]))
        shown = self.on_terminal("events", "read", "s/1")
        headings = [line for line in shown if line.startswith("stream")]
        self.assertEqual(len(headings), 2, headings)  # again when a column has to be wider
        self.assertEqual(len(shown), 420 + 2 + 1)
        self.assertEqual(len(set(shown) - {""} - set(headings)), 420)
        for key, value in (("k1", "日本"), ("k2", "e\u0301x"), ("k3", "plain"), ("k4", "\x1b[31m\x85")):
            self.ok("kv", "set", key, value)
        cells = {line.split()[1]: line for line in self.on_terminal("kv", "ls")[1:]}
        start = cells["k3"].index("plain")
        width = len("\\x1b[31m\\xc2\\x85")
        for key, shown_as, columns in (("k1", "日本", 4), ("k2", "e\u0301x", 2), ("k3", "plain", 5),
                                       ("k4", "\\x1b[31m\\xc2\\x85", width)):
            rest = cells[key][start:]
            self.assertTrue(rest.startswith(shown_as), rest)
            rest = rest[len(shown_as):]
            self.assertEqual(len(rest) - len(rest.lstrip()), width - columns + 2, rest)

    def test_wide_characters_in_headings(self):
        self.ok("table", "create", "t", "--key", "id:S", "-q")
        for id_, value in (("a", "x"), ("bb", "yyyyyyyy")):
            self.ok("item", "put", "t", json.dumps({"id": id_, "日本語": value, "e\u0301te\u0301": value, "z": 1}))
        heading, *rows = self.on_terminal("scan", "t")
        columns = dict(zip("日本語", (2, 2, 2)), **{"\u0301": 0})
        places = [sum(columns.get(c, 1) for c in heading[:heading.index(name)])
                  for name in ("日本語", "e\u0301te\u0301", "z")]
        row = next(line for line in rows if "yyyyyyyy" in line)
        self.assertEqual([row[place] for place in places], ["y", "y", "1"])
        self.assertEqual([row[place - 2:place] for place in places], ["  "] * 3)

    def test_times(self):
        """Local with the offset on a terminal, UTC elsewhere; what is shown can be typed."""
        self.ok("events", "append", "s/1", "T", "-q", "--time", "2026-01-31T20:00:00Z")
        self.assertIn("\t2026-01-31T20:00:00.000Z\t", self.ok("events", "read", "s/1"))
        line = self.on_terminal("events", "read", "s/1")[1]
        self.assertIn(" 2026-02-01T01:30:00.000+05:30 ", line)
        for since, count in (("2026-02-01T01:30:00.000+05:30", 1), ("2026-02-01T01:30:01+05:30", 0),
                             ("2026-01-31T12:00:00-08:00", 1), ("2026-01-31T12:00:01-08:00", 0)):
            self.assertEqual(len(self.ok("events", "read", "s/1", "--since", since).splitlines()),
                             count, since)
        for since in ("2026-02-01T01:30:00+24:00", "2026-02-01T01:30:00+5", "2026-02-01T01:30:00+05:60"):
            self.fails(USAGE, "is not a time", "events", "read", "s/1", "--since", since)
        self.assertIn("2026-01-31T20:00:00", self.on_terminal("events", "read", "s/1", "--json")[0])
        self.env["TZ"] = "UTC"
        self.assertIn(" 2026-01-31T20:00:00.000Z ", self.on_terminal("events", "read", "s/1")[1])

    def test_one_thing_is_aligned(self):
        self.ok("outbox", "emit", "t", "{}", "-q")
        for lines in (self.ok("outbox", "stats").splitlines(), self.on_terminal("outbox", "stats")):
            starts = {re.match(r"\S+ +", line).end() for line in lines}
            self.assertEqual(len(starts), 1, lines)
        names = {line.split()[0]: line.split()[1] for line in self.on_terminal("outbox", "stats")}
        self.assertRegex(names["oldest_due"], r"^\d+(ms|s)$")
        self.assertIn("oldest_due_ms", json.loads(self.ok("outbox", "stats", "--json")))

    def test_limits_say_when(self):
        rule = ("--limit", "1", "--window", "15m")
        self.ok("limit", "check", "a", *rule)
        err = self.fails(CONDITION, "", "limit", "check", "a", *rule)
        self.assertRegex(err, r"again in (15m|14m [1-5]?[0-9]s)$")


class NewDatabases(Commands):
    """What nobody has stored yet, and what is not there."""
    EMPTY = [("table", "ls"), ("kv", "ls"), ("kv", "ls", "-p", "x"), ("counter", "ls"), ("once", "ls"),
             ("lock", "ls"), ("records", "ls"), ("outbox", "ls"), ("outbox", "failed"), ("events", "ls"),
             ("events", "all"), ("events", "read", "a/1"), ("events", "parked", "nobody")]

    def test_lists_are_empty(self):
        for words in self.EMPTY:
            with self.subTest(words):
                self.assertEqual(self.ok(*words), "")
                answer = json.loads(self.ok(*words, "--json"))
                self.assertEqual(list(answer.values()), [[]])
        self.assertEqual(self.on_terminal("kv", "ls"), [])
        self.assertEqual(self.ok("table", "ls"), "")  # and nothing was made

    def test_other_reads(self):
        self.fails(NOT_FOUND, "key 'x' does not exist", "kv", "get", "x")
        self.fails(NOT_FOUND, "job 'x' was never started", "once", "show", "x")
        self.fails(NOT_FOUND, "lock 'x' does not exist: nobody has held it yet", "lock", "show", "x")
        self.assertEqual(self.ok("counter", "get", "x"), "0\n")
        self.assertEqual(self.ok("counter", "get", "x", "y"), "x\t0\ny\t0\n")
        self.assertEqual(json.loads(self.ok("kv", "delete", "x", "--json")),
                         {"id": "x", "deleted": False})
        self.assertEqual(json.loads(self.ok("kv", "clear", "--yes", "--json")), {"cleared": 0})
        self.assertEqual(json.loads(self.ok("outbox", "stats", "--json"))["pending"], 0)
        rule = ("--limit", "5", "--json")
        before = json.loads(self.ok("limit", "peek", "x", *rule))
        self.ok("limit", "reset", "x")
        self.assertEqual(self.ok("table", "ls"), "")
        self.ok("limit", "check", "other", *rule)
        self.assertEqual(before, json.loads(self.ok("limit", "peek", "x", *rule)))

    def test_an_event_store_without_events(self):
        """What is said of a store that is not there yet is what is said of an empty one."""
        said = []
        for there in (False, True):
            if there:
                self.ok("events", "append", "other/1", "T", "-q")
            for words, text in [(("get", "e1"), 'there is no event with the id "e1"'),
                                (("tree", "e1"), 'there is no event with the id "e1"'),
                                (("revert", "e1", "--preview"), 'there is no event with the id "e1"'),
                                (("info", "order/7"), 'stream "order/7" does not exist'),
                                (("truncate", "order/7", "2"), 'stream "order/7" does not exist'),
                                (("limit", "order/7", "--max-count", "2"),
                                 'stream "order/7" does not exist'),
                                (("archive", "order/7"), 'stream "order/7" does not exist'),
                                (("subscription", "mailer"), 'there is no subscription "mailer"'),
                                (("group", "mailers"), "group 'mailers' does not exist"),
                                (("parked", "--group", "mailers"), "group 'mailers' does not exist")]:
                self.fails(NOT_FOUND, text, "events", *words)
            said.append([self.run_("events", *words) for words in (
                ("sweep",), ("replay", "mailer", "--all"), ("discard", "mailer", "--all"),
                ("rebuild", "mailer"), ("forget", "mailer", "--yes"), ("caused", "e1"),
                ("correlated", "e1"), ("verify", "order/7"), ("read", "order/7"))])
            if not there:
                self.assertEqual(self.ok("events", "verify").split(), ["streams", "0", "events", "0"])
                self.assertEqual(self.ok("events", "export"), "")
                for words in (("delete", "order/7", "--yes"), ("subscribe",), ("consume", "g", "-x", ":")):
                    self.fails(NOT_FOUND, "events does not exist yet; 'holdfast events append' creates it",
                               "events", *words)
                self.assertEqual(self.ok("table", "ls"), "")
        self.assertEqual(said[0], said[1])

    def test_an_outbox_without_events(self):
        said = []
        for there in (False, True):
            if there:
                self.ok("outbox", "emit", "t", "{}", "-q")
                self.ok("outbox", "drain", "--to", "file:" + self.path("events"), "-q")
            said.append([self.run_("outbox", *words) for words in (
                ("retry", "--all"), ("retry", "e1"), ("discard", "--all"), ("discard", "e1"),
                ("cleanup",), ("replay",), ("drain", "--to", "stdout:"))])
            if not there:
                answer = json.loads(self.ok("outbox", "drain", "--to", "stdout:", "--json"))
                self.assertEqual((answer["delivered"], answer["left"]), (0, False))
                self.assertEqual(json.loads(self.ok("records", "retry", "--json")), {"waiting": 0})
                for words in (("relay", "--to", "stdout:"),
                              ("outbox", "sweep", "--blobs", "dir:" + self.path("blobs"))):
                    self.fails(NOT_FOUND, "outbox does not exist yet; 'holdfast outbox emit' creates it",
                               *words)
                self.fails(NOT_FOUND, "keys does not exist yet; 'holdfast kv set' creates it", "kv",
                           "sweep", "--blobs", "dir:" + self.path("blobs"))
                self.fails(NOT_FOUND, "Records does not exist yet; 'holdfast records put' creates it",
                           "records", "process", "--exec", "true")
                self.assertEqual(self.ok("table", "ls"), "")
                self.assertEqual(os.listdir(self.dir), [])
        self.assertEqual(said[0], said[1])

    def test_looking_makes_no_blob_store(self):
        """A folder of blobs is made by what stores something, with and without a table."""
        blobs = self.path("blobs")
        looks = [("kv", "get", "x"), ("kv", "ls"), ("kv", "delete", "x"), ("kv", "clear", "--yes"),
                 ("kv", "sweep"), ("outbox", "ls"), ("outbox", "failed"), ("outbox", "stats"),
                 ("outbox", "retry", "--all"), ("outbox", "cleanup"), ("outbox", "replay"),
                 ("outbox", "sweep"), ("outbox", "drain", "--to", "stdout:"), ("events", "all"),
                 ("events", "read", "a/1"), ("events", "get", "e"), ("events", "tree", "e"),
                 ("events", "info", "a/1"), ("events", "ls"), ("events", "caused", "e"),
                 ("events", "correlated", "e"), ("events", "verify"), ("events", "export"),
                 ("events", "sweep"), ("events", "subscribe", "--until-end", "-x", "true"),
                 ("events", "subscription", "n"), ("events", "parked", "n"), ("events", "group", "g"),
                 ("events", "revert", "e", "--preview"), ("blobs", "ls"), ("blobs", "get", "0" * 64)]
        for there in (False, True):
            for words in looks:
                code, _, err = self.run_(*words, "--blobs", "dir:" + blobs)
                self.assertIn(code, (OK, NOT_FOUND, FAILED), (words, err))
                self.assertFalse(os.path.exists(blobs), words)
            self.ok("kv", "set", "x", "y")
            self.ok("outbox", "emit", "t", "{}", "-q")
            self.ok("events", "append", "a/1", "T", "-q")
        self.ok("kv", "set", "x", "-f", "-", "--blobs", "dir:" + blobs, input="y" * 500000)
        parts = sorted(os.listdir(blobs))
        for words in looks:
            if words[1] not in ("delete", "clear"):
                self.run_(*words, "--blobs", "dir:" + blobs)
        self.assertEqual(sorted(os.listdir(blobs)), parts)
        self.assertEqual(self.ok("kv", "get", "x", "--blobs", "dir:" + blobs), "y" * 500000 + "\n")

    def test_a_table_that_is_named_has_to_be_there(self):
        for words in (("kv", "ls"), ("kv", "get", "x"), ("lock", "ls"), ("events", "ls"),
                      ("outbox", "ls"), ("counter", "get", "x")):
            self.fails(NOT_FOUND, "typo", *words, "--table", "typo")

    def test_a_directory_that_is_not_there(self):
        db = "embedded:" + self.path("typo.db")
        for words in self.EMPTY + [("kv", "get", "x"), ("lock", "break", "x"), ("kv", "delete", "x"),
                                   ("limit", "peek", "x", "--limit", "1"), ("blobs", "ls"),
                                   ("records", "process", "--exec", "true"), ("streams", "tail", "x"),
                                   ("relay", "--to", "stdout:"), ("table", "delete", "x", "--yes")]:
            with self.subTest(words):
                self.fails(NOT_FOUND, "There is no store in " + self.path("typo.db"), *words,
                           "--db", db)
        for words in (("blobs", "ls"), ("blobs", "get", "0" * 64)):
            self.fails(NOT_FOUND, "directory %s does not exist" % self.path("blobs"), *words, "--blobs",
                       "dir:" + self.path("blobs"))
        self.assertEqual(os.listdir(self.dir), [])
        os.mkdir(self.path("typo.db"))
        self.fails(NOT_FOUND, "There is no store in ", "kv", "ls", "--db", db)
        self.assertEqual(os.listdir(self.path("typo.db")), [])
        self.ok("kv", "set", "a", "b", "--db", db)
        self.assertEqual(self.ok("kv", "get", "a", "--db", db), "b\n")

    def test_nobody_answers(self):
        for words in (("kv", "get", "x"), ("lock", "run", "x", "--", "true"), ("events", "ls")):
            err = self.fails(UNAVAILABLE, NOBODY, *words, env=dict(self.env, HOLDFAST_DB=NOBODY))
            self.assertIn("start a server with 'holdfast serve', or name another database with --db", err)


class Directories(Commands):
    """A directory that another process has open."""

    def setUp(self):
        super().setUp()
        del self.env["HOLDFAST_PREFIX"]
        self.store = self.path("shop.db")
        self.env["HOLDFAST_DB"] = "embedded:" + self.store

    def hold(self):
        """It is open until the pipe is closed."""
        process = self.start("lock", "run", "job", "--", "sh", "-c", "echo on; read line; echo off",
                             stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "on\n")
        return process

    def test_programs_wait_for_it(self):
        for words in (("lock", "run", "job"), ("lock", "run", "other"), ("once", "run", "job")):
            with self.subTest(words):
                first = self.hold()
                second = self.start(*words, "--", "echo", "ran")
                said = second.stderr.readline()
                self.assertIn("holdfast %s run: waiting for %s: in use by process %d (holdfast "
                              "lock run)" % (words[0], self.store, first.pid), said)
                self.assertIsNone(second.poll())
                first.communicate("\n", timeout=WAIT_S)
                out, err = second.communicate(timeout=WAIT_S)
                self.assertEqual((second.returncode, out, err), (0, "ran\n", ""))

    def test_the_wait_is_bounded(self):
        first = self.hold()
        who = "process %d (holdfast lock run)" % first.pid
        for words in (("lock", "run", "job"), ("once", "run", "job")):
            self.fails(CONDITION, who, *words[:2], "--wait", "0", words[2], "--", "true")
            self.fails(9, who, *words[:2], "--wait", "50ms", "-E", "9", words[2], "--", "true")
            self.assertEqual(self.run_(*words[:2], "--wait", "50ms", "--quiet", words[2], "--", "true"),
                             (CONDITION, "", ""))
        self.assertIsNone(first.poll())

    def test_a_signal_ends_the_wait(self):
        self.hold()
        for words in (("lock", "run", "job"), ("once", "run", "job")):
            second = self.start(*words, "--", "echo", "ran")
            second.stderr.readline()
            second.send_signal(signal.SIGINT)
            out, _ = second.communicate(timeout=WAIT_S)
            self.assertEqual((second.returncode, out), (128 + signal.SIGINT, ""))

    def test_others_name_the_process(self):
        first = self.hold()
        for words in (("kv", "get", "x"), ("kv", "set", "x", "y"), ("table", "ls"), ("events", "ls"),
                      ("limit", "check", "x", "-l", "1"), ("relay", "--to", "stdout:")):
            err = self.fails(UNAVAILABLE, "process %d (holdfast lock run)" % first.pid, *words)
            self.assertIn("'holdfast serve --db-path %s'" % self.store, err)
        self.fails(UNAVAILABLE, "process %d " % first.pid, "check", self.store)

    def test_a_server_is_named_with_its_url(self):
        server = serve("--db-path", self.store)
        self.addCleanup(server.communicate, timeout=WAIT_S)
        self.addCleanup(server.kill)
        expected = "process %d (holdfast serve); connect to it with --db %s" % (server.pid, server.url)
        self.fails(UNAVAILABLE, expected, "kv", "get", "x")
        self.fails(UNAVAILABLE, expected, "check", self.store)
        self.fails(UNAVAILABLE, expected, "lock", "run", "-w", "0", "-q", "job", "--", "true")
        waiting = self.start("lock", "run", "job", "--", "true")
        self.assertIn("connect to it with --db " + server.url, waiting.stderr.readline())
        self.ok("kv", "set", "x", "y", "--db", server.url)

    def test_who_runs_us_is_not_waited_for(self):
        code, out, err = self.run_("lock", "run", "a", "--", COMMAND, "lock", "run", "b", "--", "true")
        self.assertEqual((code, out), (UNAVAILABLE, ""))
        self.assertIn("started this command", err)


class Errors(Commands):
    def error(self, code, *args):
        got, out, err = self.run_(*args)
        self.assertEqual((got, out), (code, ""), (args, err))
        self.assertEqual(err.count("\n"), 1, err)
        return json.loads(err)["error"]

    def test_errors_in_json(self):
        self.assertEqual(self.error(NOT_FOUND, "kv", "get", "x", "--json"),
                         {"code": "not_found", "message": "key 'x' does not exist",
                          "may_have_happened": False, "command": "kv get"})
        self.ok("kv", "set", "x", "y")
        self.assertEqual(self.error(CONDITION, "kv", "set", "x", "z", "--if-absent", "--json")["code"],
                         "condition")
        for words, code, name in [
                (("kv", "ls", "--jsonl", "--db", NOBODY), UNAVAILABLE, "io"),
                (("kv", "ls", "--json", "--nmae"), USAGE, "invalid"),
                (("kv", "ls", "--timeout", "x", "--json"), USAGE, "invalid"),
                (("kv", "ls", "--json", "--db", "embedded:" + self.path("no")), NOT_FOUND, "not_found"),
                (("table", "show", "none", "--json"), NOT_FOUND, "not_found"),
                (("check", self.path("no"), "--json"), NOT_FOUND, "not_found")]:
            error = self.error(code, *words)
            self.assertEqual((error["code"], error["may_have_happened"]), (name, False), words)
            self.assertEqual(sorted(error), ["code", "command"] + ["hint"] * (code == USAGE) +
                             ["may_have_happened", "message"])
            self.assertNotIn("\n", error["message"])
        self.fails(NOT_FOUND, "holdfast kv get: key '--json' does not exist", "kv", "get", "--", "--json")
        self.assertTrue(self.run_("kv", "get", "no")[2].startswith("holdfast kv get: "))

    def test_slips(self):
        for words, meant in ((("events", "subscribe", "--nmae", "x"), "--name"),
                             (("kv", "ls", "--nmae", "x"), "--namespace"),
                             (("kv", "ls", "--name", "x"), "--namespace"),
                             (("kv", "set", "--tll", "1h"), "--ttl")):
            self.fails(USAGE, "did you mean %s?" % meant, *words)
        self.assertNotIn("did you mean", self.fails(USAGE, "--zzz", "kv", "ls", "--zzz"))

    def test_options_of_other_commands(self):
        """Three letters are not near three others because both have dashes in front."""
        for words, meant in ((("relay", "--for", "1s"), ""), (("outbox", "drain", "--type", "x"), "--only-type"),
                             (("outbox", "drain", "--stop-timeout", "1s"), ""),
                             (("lock", "ls", "--name", "x"), ""), (("kv", "get", "x", "--ttl", "1h"), "")):
            err = self.fails(USAGE, "unknown option", *words, "--db", NOBODY)
            if meant:
                self.assertIn("did you mean %s?" % meant, err)
            else:
                self.assertNotIn("did you mean", err)

    def test_nouns_and_no_command(self):
        code, listed, err = self.run_("kv")
        self.assertEqual((code, err), (USAGE, ""))
        for words in (("kv", "--db", NOBODY), ("kv", "-q")):
            code, out, err = self.run_(*words)
            self.assertEqual((code, out), (USAGE, listed), words)
            self.assertEqual(err, "holdfast kv: missing command: use one of get, set, delete, ls, clear, index, "
                                  "sweep, import\n")
        self.assertEqual(self.error(USAGE, "kv", "--json"),
                         {"code": "invalid", "may_have_happened": False, "command": "kv",
                          "message": "missing command: use one of get, set, delete, ls, clear, index, sweep, import"})
        self.assertEqual(self.error(USAGE, "kv", "foo", "--json"),
                         {"code": "invalid", "may_have_happened": False, "command": "",
                          "message": "unknown command 'kv foo'",
                          "hint": "Try 'holdfast kv --help' for a list."})
        self.assertEqual(self.error(USAGE, "kv", "gett", "--jsonl")["message"],
                         "unknown command 'kv gett'; did you mean 'kv get'?")
        self.assertEqual(self.error(USAGE, "kv", "get", "x", "extra", "--json")["hint"],
                         "Try 'holdfast kv get --help'.")
        self.assertEqual(self.error(USAGE, "--json")["message"], "missing command")
        self.assertIn("unknown command 'kv foo'\nTry ", self.fails(USAGE, "", "kv", "foo", "--", "--json"))

    def test_a_limit_has_to_be_given(self):
        for verb in ("check", "peek"):
            self.fails(USAGE, "missing option --limit", "limit", verb, "x")

    def test_payloads_are_json_or_say_what_they_are(self):
        deep = "[" * 1024 + "]" * 1024
        for words in (("outbox", "emit", "t"), ("events", "append", "s/1", "t")):
            for bad in ("{bad", "plain", '{"a":1}}', "[1,]", '{"a" 1}', "01", '"\\x"', "[" + deep + "]"):
                self.fails(USAGE, "the payload is not valid JSON", *words, bad)
            self.fails(USAGE, "(line 2)", *words, "-f", "-", input='{"a":\nb}')
            for good in ('{"a":[1,-2.5e3,"\\u00fc",true,null,{}]}', " 7 ", '"x"', "[]", deep, ""):
                self.ok(*words, good, "-q")
            self.ok(*words, "{bad", "--content-type", "text/plain", "-q")
            self.fails(USAGE, "not valid JSON", *words, "{bad", "--content-type",
                       "application/vnd.shop+json; charset=utf-8")
            self.ok(*words, "-q")

    def test_help_is_grouped(self):
        out = self.ok("--help")
        self.assertIn("holdfast is a DynamoDB-compatible database and a set of durable", out)
        headings = re.findall(r"(?m)^([A-Z][a-z ]+):$", out)
        self.assertEqual(headings, ["Data", "Patterns", "Server", "Tools", "More"])
        self.assertRegex(out, r"(?s)\nData:\n  item .*\n  query .*\nServer:\n  serve .*\nTools:\n.*  version ")
        self.assertLessEqual(max(map(len, out.splitlines())), 80)
        self.assertLessEqual(len(out.splitlines()), 2 * 35)

    def test_headings_are_bold_on_a_terminal(self):
        self.env.update(TERM="xterm")
        for words, heading in ((["--help"], "Data"), (["kv"], "Commands"), (["kv", "get", "--help"], "Help")):
            bold = "\033[1m%s:\033[0m" % heading
            code = USAGE if words == ["kv"] else OK
            self.assertIn(bold, self.on_terminal(*words, code=code))
            self.assertNotIn("\033", self.run_(*words)[1])
            for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
                before, self.env = self.env, {**self.env, **more}
                lines = self.on_terminal(*words, code=code)
                self.env = before
                self.assertIn(heading + ":", lines)
                self.assertNotIn("\033", "".join(lines))

    def test_help_on_a_narrow_terminal(self):
        for columns in (1, 40, 60, 300):
            lines = self.on_terminal("--help", columns=columns)
            self.assertLessEqual(max(map(len, lines)), max(60, min(columns, 100)))

    def test_the_admin_interface_says_how_to_get_it(self):
        for path in ("/_holdfast/", "/_holdfast/clock"):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(process.SERVER.url + path, timeout=WAIT_S)
            self.assertEqual(refused.exception.code, 404)
            self.assertIn("start the server with --admin", refused.exception.read().decode())
            refused.exception.close()


class Access(Commands):
    """What to do about credentials and certificates."""

    def test_no_credentials(self):
        keys = self.path("keys")
        with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write("[a]\naws_access_key_id = KEY\naws_secret_access_key = hush\n")
        server = serve("--in-memory", "--credentials", keys)
        self.addCleanup(server.communicate, timeout=WAIT_S)
        self.addCleanup(server.kill)
        err = self.fails(DENIED, "no credentials were found", "kv", "ls", "--db", server.url)
        self.assertIn("AWS_ACCESS_KEY_ID", err)
        env = dict(self.env, AWS_ACCESS_KEY_ID="other", AWS_SECRET_ACCESS_KEY="wrong")
        err = self.fails(DENIED, "", "kv", "ls", "--db", server.url, env=env)
        self.assertNotIn("no credentials were found", err)
        env = dict(self.env, AWS_ACCESS_KEY_ID="KEY", AWS_SECRET_ACCESS_KEY="hush")
        self.assertEqual(self.ok("kv", "ls", "--db", server.url, env=env), "")

    def test_a_certificate_that_is_not_trusted(self):
        cert, key = self.path("cert.pem"), self.path("key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
                        "-out", cert], check=True, capture_output=True, timeout=WAIT_S)
        server = serve("--in-memory", "--tls-cert", cert, "--tls-key", key)
        self.addCleanup(server.communicate, timeout=WAIT_S)
        self.addCleanup(server.kill)
        err = self.fails(FAILED, "ertificate", "kv", "ls", "--db", server.url)
        self.assertIn("ca_file", err)
        self.assertIn("?ca_file=FILE", err)
        self.assertEqual(self.ok("kv", "ls", "--db", server.url + "?ca_file=" + cert), "")


class Arguments(Commands):
    def test_options_of_all_commands_may_come_first(self):
        url, self.env["HOLDFAST_DB"] = self.env["HOLDFAST_DB"], NOBODY
        self.ok("--db", url, "kv", "set", "a", "1")
        self.assertEqual(self.ok("--db=" + url, "-q", "--timeout", "20s", "kv", "get", "a"), "")
        self.assertEqual(json.loads(self.ok("--db", url, "--json", "kv", "get", "a"))["value"], "1")
        self.assertIn("Usage: holdfast kv get", self.ok("--json", "kv", "get", "--help"))
        self.fails(USAGE, "missing command", "--db", url)
        self.fails(USAGE, "missing command", "-q")
        self.fails(USAGE, "unknown command 'nonsense'", "--db", url, "nonsense")
        self.fails(USAGE, "missing command: use one of get,", "--json", "kv")
        self.assertIn("Usage: holdfast kv COMMAND", self.ok("--db", url, "kv", "--help"))
        self.fails(USAGE, "did you mean 'kv get'", "--db", url, "kv", "gett")
        self.assertIn("Usage: holdfast kv get", self.ok("--json", "help", "kv", "get"))
        self.fails(USAGE, "unknown option '--from'", "--from", "x", "kv", "ls")

    def test_health(self):
        self.assertEqual(self.ok("healthcheck"), "status       healthy\n")
        self.assertEqual(json.loads(self.ok("healthcheck", "--json")), {"status": "healthy"})
        self.assertEqual(self.ok("healthcheck", "-q"), "")
        self.fails(FAILED, "no connection", "healthcheck", "--db", NOBODY)
        self.fails(FAILED, "none.db", "healthcheck", "--db", "embedded:" + self.path("none.db"))
        keys = self.path("keys")
        with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write("[a]\naws_access_key_id = KEY\naws_secret_access_key = hush\n")
        server = serve("--in-memory", "--credentials", keys)
        self.addCleanup(server.communicate, timeout=WAIT_S)
        self.addCleanup(server.kill)
        self.ok("healthcheck", "--db", server.url)  # without a key
        self.fails(FAILED, "", "healthcheck", "--db", "http://127.0.0.1:1")

    def test_standard_output_that_is_closed_is_no_file_of_the_database(self):
        db = "embedded:" + self.path("shop.db")
        self.ok("kv", "set", "a", "1", "--db", db)
        for closed in ("<&- >&-", ">&- 2>&-", "<&- >&- 2>&-", ">&-"):
            with self.subTest(closed):
                done = subprocess.run(["/bin/sh", "-c", '"$0" kv get a --db "$1" ' + closed, COMMAND, db],
                                      timeout=WAIT_S, env=self.env)
                self.assertEqual(done.returncode, FAILED)
                self.assertEqual(self.ok("kv", "get", "a", "--db", db), "1\n")
                self.ok("check", self.path("shop.db"), "-q")


if __name__ == "__main__":
    main()
