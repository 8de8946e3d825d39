#!/usr/bin/env python3
"""Import and export: transfer_test.py COMMAND SOURCE [unittest arguments]. Random items of every type through each
format and back; AWS's layout, made and read here as AWS documents it; kill -9, Ctrl-C, full disks, broken files.
"""
import base64
import csv
import fcntl
import glob
import gzip
import hashlib
import json
import os
import pty
import random
import re
import resource
import signal
import subprocess
import time
import unittest

import process
from process import (COMMAND, CONDITION, CORRUPT, FAILED, NOBODY, NOT_FOUND, UNAVAILABLE, USAGE, WAIT_S,  # noqa: F401
                     Commands, main, setUpModule, tearDownModule)

ITEM_MAX = 400 * 1024


class Dice:
    """Random items, in DynamoDB's JSON."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def text(self):
        pieces = ["", "a", 'q"uo,te', "\n", "\r\n", "\t", "é", "日本", "\U0001F600", "\x00", "\x1b[31m", "\x7f", "\x85",
                  "\\", "'", " ", "true", "$set", "null", "1", ",", "\u2028", "{}", "[", ":S"]
        return "".join(self.r.choice(pieces) for _ in range(self.r.randrange(5)))

    def number(self):
        digits = "".join(self.r.choice("0123456789") for _ in range(self.r.choice([1, 3, 17, 38]))).lstrip("0") or "0"
        sign = self.r.choice(["", "-"]) if digits != "0" else ""
        if self.r.random() < 0.3 and digits != "0":
            return sign + digits + "E" + str(self.r.choice([-90, -3, 4, 80]))
        return sign + digits

    def bytes(self):
        return base64.b64encode(self.r.randbytes(self.r.randrange(6))).decode()

    def value(self, depth=0):
        kind = self.r.choice(["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS"] + (["L", "M"] * 2 if depth < 4 else []))
        some = range(self.r.randrange(1, 4))
        if kind == "S":
            return {"S": self.text()}
        if kind == "N":
            return {"N": self.number()}
        if kind == "B":
            return {"B": self.bytes()}
        if kind == "BOOL":
            return {"BOOL": self.r.random() < 0.5}
        if kind == "NULL":
            return {"NULL": True}
        if kind == "SS":
            return {"SS": list({self.text() for _ in some})}
        if kind == "NS":
            return {"NS": [str(n) for n in {self.r.randrange(-9, 10 ** 30) for _ in some}]}
        if kind == "BS":
            return {"BS": list({self.bytes() for _ in some})}
        if kind == "L":
            return {"L": [self.value(depth + 1) for _ in range(self.r.randrange(4))]}
        return {"M": {self.r.choice(["a", "$set", "$map", "$x", "_" + self.text()]): self.value(depth + 1)
                      for _ in range(self.r.randrange(4))}}

    def item(self, at):
        names = ["v", "w", "odd:name", 'com,ma "q"', "S", "Item", "$set", "é\n", "x:S", "\0nul", "a\r"]
        item = {self.r.choice(names): self.value() for _ in range(self.r.randrange(6))}
        return {**item, "id": {"S": "k%d" % (at // 3)}, "n": {"N": str(at % 3 - 1)}}


def dumps(item):
    return json.dumps(item, separators=(",", ":"))


def write(path, text):
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def md5(data):
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def aws_write(root, table, parts, prefix="exports/2026", **more):
    """A folder as DynamoDB's export to S3 documents it."""
    name = "01700000000000-0a1b2c3d"
    top = os.path.join(root, "AWSDynamoDB", name)
    os.makedirs(os.path.join(top, "data"))
    write(os.path.join(top, "_started"), "")
    arn = "arn:aws:dynamodb:us-east-1:111122223333:table/" + table
    lines = []
    for at, items in enumerate(parts):
        key = "%s/AWSDynamoDB/%s/data/%s.json.gz" % (prefix, name, "abcdefghijklmnopqrstuvwx%02d" % at)
        data = gzip.compress("".join('{"Item":%s}\n' % dumps(item) for item in items).encode())
        write(os.path.join(top, "data", os.path.basename(key)), data)
        lines.append(dumps({"itemCount": len(items), "md5Checksum": md5(data),
                            "etag": hashlib.md5(data).hexdigest() + "-1", "dataFileS3Key": key}))
    summary = {"version": "2020-06-30", "exportArn": arn + "/export/" + name, "startTime": "2023-11-14T22:13:20.000Z",
               "endTime": "2023-11-14T22:18:20.000Z", "tableArn": arn, "tableId": "12345a12-abcd-123a-ab12-1234abc12345",
               "exportTime": "2023-11-14T22:13:20.000Z", "s3Bucket": "shop-exports", "s3Prefix": prefix,
               "s3SseAlgorithm": "AES256", "s3SseKmsKeyId": None,
               "manifestFilesS3Key": "%s/AWSDynamoDB/%s/manifest-files.json" % (prefix, name), "billedSizeBytes": 0,
               "itemCount": sum(map(len, parts)), "outputFormat": "DYNAMODB_JSON", "exportType": "FULL_EXPORT", **more}
    for file, text in (("manifest-files", "\n".join(lines) + "\n"), ("manifest-summary", dumps(summary))):
        write(os.path.join(top, file + ".json"), text)
        write(os.path.join(top, file + ".md5"), md5(text.encode()))
    return top


def aws_read(root):
    """The items of such a folder, and its summary; everything that it says about itself is checked."""
    (top,) = glob.glob(os.path.join(root, "AWSDynamoDB", "*"))
    assert re.fullmatch(r"\d{14}-[0-9a-f]{8}", os.path.basename(top)), top
    for file in ("manifest-files", "manifest-summary"):
        assert read(os.path.join(top, file + ".md5")).decode() == md5(read(os.path.join(top, file + ".json"))), file
    summary = json.loads(read(os.path.join(top, "manifest-summary.json")))
    assert summary["outputFormat"] == "DYNAMODB_JSON" and summary["version"] == "2020-06-30", summary
    assert read(os.path.join(root, summary["manifestFilesS3Key"]))
    items, names = [], []
    for line in read(os.path.join(top, "manifest-files.json")).decode().splitlines():
        entry = json.loads(line)
        data = read(os.path.join(root, entry["dataFileS3Key"]))
        assert entry["md5Checksum"] == md5(data), entry
        part = [json.loads(text)["Item"] for text in gzip.decompress(data).decode().split("\n") if text]
        assert entry["itemCount"] == len(part), entry
        items += part
        names.append(os.path.basename(entry["dataFileS3Key"]))
    assert summary["itemCount"] == len(items), summary
    assert sorted(names) == sorted(os.listdir(os.path.join(top, "data")))
    return items, summary


class Transfers(Commands):
    """On a server in memory; other databases are other prefixes of it."""
    others = 0

    def prepare(self):
        self.other = self.another()

    def another(self):
        Transfers.others += 1
        return ("--prefix", "o%d-" % Transfers.others)

    def in_directory(self):
        self.env = dict(self.env, HOLDFAST_DB="embedded:" + self.path("a.db"))
        self.env.pop("HOLDFAST_PREFIX")

    def make(self, *more, table="things"):
        self.ok("table", "create", table, "--key", "id:S,n:N", "-q", *more)

    def fill(self, items, table="things"):
        path = write(self.path("fill.jsonl"), "".join(dumps(item) + "\n" for item in items))
        self.ok("import", path, "--table", table, "-q")
        os.unlink(path)

    def dump(self, where=(), table="things"):
        """The whole table by another command: sorted lines of DynamoDB's JSON."""
        return sorted(self.ok("scan", table, "--all", "--dynamodb", "--jsonl", *where).split("\n")[:-1])

    def rows(self, count):
        return [{"id": {"S": "k%07d" % i}, "n": {"N": "1"}, "pad": {"S": "%064d" % i}} for i in range(count)]


class RoundTrips(Transfers):
    def through(self, target, *options, more=(), table="things"):
        self.ok("export", table, "--to", self.path(target), "-q", *options)
        self.ok("import", self.path(target), *self.other, "-q", *more)
        self.assertEqual(self.dump(self.other, table), self.dump(table=table), target)
        self.assertEqual([name for name in os.listdir(self.dir) if name.endswith((".part", "-state"))], [])

    def test_random_items_through_every_format(self):
        dice = Dice(int(os.environ.get("HF_SEED", "19")))
        self.make("--index", "by_n=n:N/keys", "--stream", "new-and-old", "--ttl", "expires")
        self.fill([dice.item(at) for at in range(400)])
        self.assertEqual(len(self.dump()), 400)
        for target, *options in (
                ("x.jsonl",), ("x.jsonl.gz",), ("y.jsonl", "--format", "dynamodb"), ("z.csv",), ("z.csv.gz", "-p", "3"),
                ("aws", "--format", "aws", "-p", "3"), ("dir/",), ("many.jsonl", "--parallel", "64")):
            self.other = self.another()
            self.through(target, *options)
            shown = json.loads(self.ok("table", "show", "things", "--json", *self.other))
            self.assertEqual(shown["GlobalSecondaryIndexes"][0]["IndexName"], "by_n")
            self.assertEqual(shown["StreamSpecification"]["StreamViewType"], "NEW_AND_OLD_IMAGES")
        schema = json.loads(read(self.path("x.schema.json")))
        self.assertEqual(schema["TimeToLiveSpecification"], {"AttributeName": "expires", "Enabled": True})

    def test_pipes(self):
        dice = Dice(3)
        self.make()
        self.fill([dice.item(at) for at in range(50)])
        for options in ((), ("--format", "dynamodb"), ("--format", "csv"), ("--format", "csv", "--gzip")):
            out = subprocess.run([COMMAND, "export", "things", *options], env=self.env, check=True,
                                 capture_output=True).stdout
            into = subprocess.run([COMMAND, "import", "-", "--table", "things", "--key", "id:S,n:N", *self.other,
                                   "-q", *options[:2]], env=self.env, input=out, capture_output=True)
            self.assertEqual((into.returncode, into.stderr), (0, b""), options)
            self.assertEqual(self.dump(self.other), self.dump(), options)
            self.other = self.another()

    def test_named_pipes(self):
        """They are read once, from their beginning."""
        self.make()
        lines = "".join(dumps(item) + "\n" for item in self.rows(1000))
        done = subprocess.run([COMMAND, "import", "/dev/stdin", "-t", "things", "-f", "dynamodb", "-q"], env=self.env, input=lines.encode(),
                              capture_output=True)
        self.assertEqual((done.returncode, done.stderr, len(self.dump())), (0, b"", 1000))
        for name, options, text in (("p", ("-f", "dynamodb"), lines), ("p.csv", (), "id,n\n" + "a,1\n" * 3 + "b,2\n")):
            os.mkfifo(self.path(name))
            self.other = self.another()
            running = self.start("import", self.path(name), "-t", "things", "--key", "id:S,n:N", "-q", *options, *self.other)
            write(self.path(name), text)
            self.assertEqual((running.communicate(timeout=WAIT_S), running.returncode), (("", ""), 0))
            self.assertEqual(len(self.dump(self.other)), 1000 if name == "p" else 2)
        self.fails(USAGE, "give --table", "import", self.path("p"))
        self.fails(USAGE, "--resume needs a file", "import", self.path("p"), "-t", "things", "--resume")
        self.assertEqual(sorted(os.listdir(self.dir)), ["p", "p.csv"])  # no state

    def test_ctrl_c_while_a_pipe_has_no_writer(self):
        self.make()
        os.mkfifo(self.path("p"))
        running = self.start("import", self.path("p"), "-t", "things", "--progress")
        self.assertIn("0 items", running.stderr.readline())
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=WAIT_S)
        self.assertEqual(running.returncode, 128 + signal.SIGINT)

    def test_blanks_in_csv(self):
        """A key of blanks, in a table of one column."""
        self.ok("table", "create", "blanks", "--key", "id:S", "-q")
        keys = [" ", "\t", "  ", " a", "a ", "a b", "\r", "\n"]
        path = write(self.path("fill.jsonl"), "".join(dumps({"id": key}) + "\n" for key in keys))
        self.ok("import", path, "-t", "blanks", "-q")
        self.through("b.csv", table="blanks")
        self.assertEqual(len(self.dump(self.other, "blanks")), len(keys))
        self.assertIn(b'\n" "\n', read(self.path("b.csv")))
        self.assertIn(b"\na b\n", read(self.path("b.csv")))
        self.other = self.another()
        self.ok("import", write(self.path("c.csv"), "id\n \n\t\n\n"), "-t", "c", "--key", "id:S", "-q", *self.other)
        self.assertEqual(len(self.dump(self.other, "c")), 2)

    def test_tables_without_items(self):
        self.make()
        for target in ("e.csv", "e.csv.gz", "e.jsonl", "e.jsonl.gz", "aws"):
            self.other = self.another()
            self.through(target, *(("--format", "aws") if target == "aws" else ()))
            self.assertEqual(self.ok("table", "ls", *self.other), "things\n")
        self.assertEqual(read(self.path("e.csv")), b"id:S,n:N\n")
        self.ok("import", write(self.path("none.csv"), ""), "-t", "things", "-q")
        self.fails(USAGE, "none.csv:1: a column has no name", "import", write(self.path("none.csv"), "\n\n"), "-t", "things")

    def test_names_with_a_dot(self):
        for table in (".hidden", "...", "plain"):
            self.make(table=table)
            self.fill(self.rows(2), table=table)
        self.ok("export", "--all", "--to", self.path("all"), "-q")
        self.ok("import", self.path("all"), *self.other, "-q")
        self.assertEqual(self.ok("table", "ls", *self.other), self.ok("table", "ls"))
        self.assertEqual(self.dump(self.other, ".hidden"), self.dump(table=".hidden"))

    def test_csv_as_others_write_it(self):
        """Python's csv module reads ours; headings without types; quotes, ends of lines, a mark of UTF-8."""
        self.make()
        self.fill([{"id": {"S": 'a,"b"\n'}, "n": {"N": "1"}, "t": {"SS": ["x", "y"]}, "e": {"S": ""}},
                   {"id": {"S": "c"}, "n": {"N": "2"}, "t": {"N": "5"}, "ok": {"BOOL": True}}])
        self.ok("export", "things", "--to", self.path("t.csv"), "-q")
        with open(self.path("t.csv"), newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["id:S", "n:N", "e:S", "ok:BOOL", "t:N", "t:SS"])
        self.assertEqual(sorted(rows[1:]), [['a,"b"\n', "1", "", "", "", '["x","y"]'], ["c", "2", "", "true", "5", ""]])
        self.assertIn('1,"",,', read(self.path("t.csv")).decode())  # an empty string is no missing one
        write(self.path("u.csv"), b'\xef\xbb\xbfid,n,age,note\r\n"x ""y""",7,30,"two\r\nlines"\r\n\r\nz,8,,\r\n')
        self.ok("import", self.path("u.csv"), "--table", "people", "--key", "id:S,n:N", "--types", "age:N", "-q")
        self.assertEqual(sorted(self.ok("scan", "people", "--all").splitlines()),
                         ['{"age":30,"id":"x \\"y\\"","n":7,"note":"two\\u000d\\nlines"}', '{"id":"z","n":8}'])
        self.ok("export", "things", "--columns", "n:N,id:S", "--format", "csv", "--to", self.path("some.csv"), "-q")
        self.assertTrue(read(self.path("some.csv")).startswith(b"n:N,id:S\n"))
        self.fails(USAGE, "u.csv:2: column age: ", "import", write(self.path("u.csv"), "id,n,age:N\na,1,x\n"), "-t",
                   "people")
        self.fails(USAGE, "u.csv:3: 2 fields, and the header has 3", "import",
                   write(self.path("u.csv"), "id,n,age:N\na,1,2\nb,2\n"), "-t", "people")
        self.fails(USAGE, "u.csv:2: more fields", "import", write(self.path("u.csv"), "id,n\na,1,2\n"), "-t", "people")
        self.fails(USAGE, "no closing one", "import", write(self.path("u.csv"), 'id,n\n"a,1\n'), "-t", "people")
        self.fails(USAGE, "u.csv:1: a heading has a carriage return (CR) in it", "import",
                   write(self.path("u.csv"), "id,n\ra,1\rb,2\r"), "-t", "people")
        self.fails(USAGE, "u.csv:1: column id:S comes twice", "import", write(self.path("u.csv"), "id:S,id:S\n"), "-t",
                   "people")

    def test_last_line_of_a_key_wins(self):
        """In a directory, whatever the number of threads."""
        self.in_directory()
        lines = "".join('{"id":"k%d","n":1,"v":%d}\n' % (i % 100, i) for i in range(20000))
        self.ok("import", write(self.path("things.jsonl"), lines), "--key", "id:S,n:N", "-q", "-p", "8")
        values = sorted(json.loads(line)["v"] for line in self.ok("scan", "things", "--all").splitlines())
        self.assertEqual(values, list(range(19900, 20000)))

    def test_all_tables(self):
        for table in ("one", "two", "three"):
            self.make(table=table)
            self.fill(self.rows(5), table=table)
        out = json.loads(self.ok("export", "--all", "--to", self.path("all"), "-z", "--json"))
        self.assertEqual([(row["table"], row["items"]) for row in out["tables"]], [("one", 5), ("three", 5), ("two", 5)])
        self.assertEqual(sorted(os.listdir(self.path("all"))), sorted(
            t + end for t in ("one", "two", "three") for end in (".jsonl.gz", ".schema.json")))
        self.ok("import", self.path("all"), *self.other, "-q")
        for table in ("one", "two", "three"):
            self.assertEqual(self.dump(self.other, table), self.dump(table=table))
        self.ok("export", "--all", "--to", self.path("aws"), "--format", "aws", "-q")
        where = self.another()
        self.ok("import", self.path("aws"), "-q", *where)
        self.assertEqual(self.ok("table", "ls", *where), "one\nthree\ntwo\n")

    def test_server_and_directory(self):
        env = self.env
        self.in_directory()
        dice = Dice(5)
        write(self.path("things.jsonl"), "".join(dumps(dice.item(at)) + "\n" for at in range(300)))
        self.ok("import", self.path("things.jsonl"), "--key", "id:S,n:N", "-q", env=env)
        self.ok("export", "things", "--to", self.path("s.jsonl.gz"), "-p", "4", "-q", env=env)
        self.ok("import", self.path("s.jsonl.gz"), "-q")
        self.assertEqual(len(self.dump()), 300)
        self.assertEqual(self.dump(), sorted(self.ok("scan", "things", "--all", "--dynamodb", "--jsonl",
                                                     env=env).split("\n")[:-1]))
        began = time.monotonic()
        self.ok("import", write(self.path("slow.jsonl"), "".join(map(lambda i: dumps(i) + "\n", self.rows(3000)))),
                "-t", "things", "--rate", "2000", "-q", env=env)
        self.assertGreater(time.monotonic() - began, 0.4)


class Aws(Transfers):
    def test_import_of_an_export_that_aws_made(self):
        dice = Dice(11)
        items = [dice.item(at) for at in range(120)]
        top = aws_write(self.path("s3"), "things", [items[:50], [], items[50:]])
        self.fails(NOT_FOUND, "table things does not exist; give its key", "import", self.path("s3"))
        for source in (self.path("s3"), os.path.dirname(top), top, top + "/"):
            self.other = self.another()
            self.ok("import", source, "--key", "id:S,n:N", "-q", *self.other)
            self.assertEqual(len(self.dump(self.other)), 120)
        self.make()
        self.fill(items)
        self.assertEqual(self.dump(), self.dump(self.other))
        self.ok("import", top, "--table", "renamed", "--key", "id:S,n:N", "-q")
        self.assertEqual(self.dump(table="renamed"), self.dump())

    def test_ours_as_a_reader_of_aws_layout_sees_it(self):
        self.make()
        items = self.rows(1000)
        self.fill(items)
        self.ok("export", "things", "--to", self.path("out"), "--format", "aws", "--parallel", "3", "-q")
        got, summary = aws_read(self.path("out"))
        self.assertEqual(sorted(map(dumps, got)), sorted(map(dumps, items)))
        self.assertTrue(summary["tableArn"].endswith(":table/things"))

    def test_resume_leaves_complete_tables(self):
        """They are not exported again, unless the table is another one by now."""
        self.make()
        self.make(table="other")
        self.fill(self.rows(5))
        to = self.path("out")
        self.ok("export", "things", "--to", to, "--format", "aws", "-q")
        (first,) = os.listdir(os.path.join(to, "AWSDynamoDB"))
        err = self.run_("export", "things", "other", "--to", to, "--format", "aws", "--resume")[2]
        self.assertEqual(err, "holdfast export: %s/AWSDynamoDB/%s is complete\n" % (to, first))
        self.assertEqual(len(os.listdir(os.path.join(to, "AWSDynamoDB"))), 2)
        self.ok("export", "--all", "--to", to, "--format", "aws", "--resume", "-q")
        self.assertEqual(len(os.listdir(os.path.join(to, "AWSDynamoDB"))), 2)
        self.ok("import", to, "-q", *self.other)
        self.ok("table", "delete", "things", "--yes", "-q")
        self.make()
        os.mkdir(os.path.join(to, "AWSDynamoDB", "killed"))
        write(os.path.join(to, "AWSDynamoDB", "killed", "_started"), "")
        self.ok("export", "things", "--to", to, "--format", "aws", "--resume", "-q")
        self.assertEqual(len(os.listdir(os.path.join(to, "AWSDynamoDB"))), 4)

    def test_import_beside_an_export_that_was_killed(self):
        top = aws_write(self.path("s3"), "things", [self.rows(9)])
        killed = os.path.join(os.path.dirname(top), "01600000000000-0a1b2c3d")
        os.makedirs(os.path.join(killed, "data"))
        write(os.path.join(killed, "_started"), "")
        code, _, err = self.run_("import", self.path("s3"), "--key", "id:S,n:N")
        self.assertEqual((code, err), (0, "holdfast import: %s is left out: that export is not complete\n" % killed))
        self.assertEqual(len(self.dump()), 9)
        self.fails(NOT_FOUND, "manifest-summary.json is missing", "import", killed)

    def test_damage(self):
        self.in_directory()
        top = aws_write(self.path("s3"), "things", [self.rows(9)])
        data = glob.glob(os.path.join(top, "data", "*"))[0]
        whole = read(data)
        for broken, code, error in ((whole[:-9], CORRUPT, "its MD5 is "), (whole + b"x", CORRUPT, "its MD5 is ")):
            write(data, broken)
            self.fails(code, error, "import", top, "--key", "id:S,n:N")
        os.unlink(data)
        self.fails(FAILED, "No such file", "import", top, "--key", "id:S,n:N")
        write(data, whole)
        summary = read(os.path.join(top, "manifest-summary.json"))
        write(os.path.join(top, "manifest-summary.json"), summary.replace(b"things", b"thongs"))
        self.fails(CORRUPT, "manifest-summary.md5 says", "import", top, "--key", "id:S,n:N")
        os.unlink(os.path.join(top, "manifest-summary.json"))
        self.fails(NOT_FOUND, "manifest-summary.json is missing: the export is not complete", "import", top, "--key",
                   "id:S,n:N")
        self.assertFalse(os.path.exists(self.path("a.db")))  # nothing was stored, or made
        aws_write(self.path("ion"), "things", [], outputFormat="ION")
        self.fails(USAGE, "only DYNAMODB_JSON", "import", self.path("ion"))
        aws_write(self.path("inc"), "things", [], exportType="INCREMENTAL_EXPORT")
        self.fails(USAGE, "only FULL_EXPORT", "import", self.path("inc"))

    def test_names_in_a_manifest_stay_in_its_folder(self):
        top = aws_write(self.path("s3"), "things", [self.rows(1)])
        manifest = os.path.join(top, "manifest-files.json")
        for name in ("../../../etc/passwd", "..", "/", "a/.."):
            line = json.loads(read(manifest).decode())
            line["dataFileS3Key"] = name
            write(manifest, dumps(line))
            write(os.path.join(top, "manifest-files.md5"), md5(read(manifest)))
            code, _, err = self.run_("import", top, "--key", "id:S,n:N")
            self.assertIn(code, (FAILED, USAGE), err)
            self.assertNotIn("root:", err)


class Interrupted(Transfers):
    COUNT = 20000

    def file(self):
        path = self.path("things.jsonl")
        return write(path, "".join('{"id":"k%07d","n":1,"pad":"%064d"}\n' % (i, i) for i in range(self.COUNT)))

    def wait_for(self, done, running):
        until = time.monotonic() + WAIT_S
        while not done() and running.poll() is None and time.monotonic() < until:
            time.sleep(0.005)

    def wait_for_items(self, running):
        while not re.search(r" [1-9]\d* items", line := running.stderr.readline()):
            self.assertTrue(line)

    def items(self):
        return int(json.loads(self.ok("scan", "things", "--count", "--json"))["count"])

    def test_kill_in_an_import_to_a_server(self):
        self.kill_import()

    def test_kill_in_an_import_to_a_directory(self):
        self.in_directory()
        self.kill_import()
        self.ok("check", self.path("a.db"), "-q")

    def kill_import(self):
        path = self.file()
        kills = 0
        self.make()
        for _ in range(2):
            running = self.start("import", path, "--resume", "-q", "--rate", "2000")
            self.wait_for(lambda: os.path.exists(path + ".import-state"), running)
            time.sleep(0.3)
            kills += running.poll() is None
            self.end(running)
            if running.returncode == 0:
                break
            state = json.loads(read(path + ".import-state"))
            self.assertGreaterEqual(self.items(), state["line"])  # what it names is stored
        self.assertGreater(kills, 0)
        self.ok("import", path, "--resume", "-q")
        self.assertFalse(os.path.exists(path + ".import-state"))
        lines = self.ok("export", "things").splitlines()
        self.assertEqual(sorted(lines), read(path).decode().splitlines())

    def test_kill_in_an_export(self):
        path = self.file()
        self.make()
        self.ok("import", path, "-q")
        for target, kills, options in (("e.jsonl.gz", 2, ("-p", "3")), ("e.csv", 1, ()),
                                       ("aws", 1, ("--format", "aws", "-p", "3"))):
            to = self.path(target)
            for _ in range(kills):
                running = self.start("export", "things", "--to", to, "-q", "--rate", "2000", "--resume", *options)
                self.wait_for(lambda: glob.glob(to + "*-state") + glob.glob(to + "/*/*/*-state"), running)
                time.sleep(1.2)
                self.end(running)
                self.assertFalse(os.path.isfile(to))
                self.assertEqual(glob.glob(to + "/AWSDynamoDB/*/manifest-summary.json"), [])
            if target != "aws":
                self.fails(CONDITION, "was interrupted: --resume continues it", "export", "things", "--to", to)
            self.ok("export", "things", "--to", to, "-q", "--resume", *options)
            self.assertEqual(glob.glob(to + "*.part") + glob.glob(to + "*-state") + glob.glob(to + "/*/*/*-state"), [])
            self.other = self.another()
            self.ok("import", to, *self.other, "-q")
            self.assertEqual(sorted(self.ok("export", "things", *self.other).splitlines()),
                             read(path).decode().splitlines())
            if target == "aws":
                self.assertEqual(len(aws_read(to)[0]), self.COUNT)

    def test_ctrl_c_says_how_to_go_on(self):
        path = self.file()
        self.make()
        running = self.start("import", path, "--rate", "8000")
        self.wait_for(lambda: os.path.exists(path + ".import-state"), running)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=WAIT_S)
        self.assertEqual((running.returncode, out), (128 + signal.SIGINT, ""))
        self.assertRegex(err, r"^holdfast import: interrupted; \d+ items are stored; --resume continues\n$")
        self.assertIn("begins again, --resume would", self.run_("import", path)[2])
        to = self.path("out.jsonl")
        running = self.start("export", "things", "--to", to, "--rate", "8000", "--progress")
        self.wait_for_items(running)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=WAIT_S)
        self.assertEqual((running.returncode, out), (128 + signal.SIGINT, ""))
        self.assertRegex(err, r"interrupted; \d+ items are written; the same command with --resume continues\n$")
        self.assertFalse(os.path.exists(to))
        self.ok("export", "things", "--to", to, "--resume", "-q")
        self.assertEqual(sorted(read(to).decode().splitlines()), read(path).decode().splitlines())

    def test_ctrl_c_in_an_import_to_a_directory(self):
        """Everything that was stored is synced and named by the state."""
        self.in_directory()
        path = self.file()
        self.make()
        running = self.start("import", path, "--rate", "8000", "--progress")
        self.wait_for_items(running)
        running.send_signal(signal.SIGINT)
        err = running.communicate(timeout=WAIT_S)[1]
        self.assertEqual(running.returncode, 128 + signal.SIGINT)
        self.assertRegex(err, "interrupted; .* --resume")
        stored = int(re.search(r"interrupted; (\d+) items are stored; --resume continues", err).group(1))
        self.assertEqual((self.items(), json.loads(read(path + ".import-state"))["line"]), (stored, stored))

    def interrupted_export(self, to, *options):
        """An export that Ctrl-C has ended: NAME.part and its state are there."""
        running = self.start("export", "things", "--to", to, "--rate", "8000", "--progress", *options)
        self.wait_for_items(running)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=WAIT_S)
        self.assertEqual(running.returncode, 128 + signal.SIGINT)

    def test_resume_of_an_export_whose_part_was_cut(self):
        """It is refused however often one tries, and nothing is written to it."""
        self.make()
        self.fill(self.rows(15000))
        to = self.path("o.jsonl")
        self.interrupted_export(to)
        write(to + ".part", "")
        for _ in range(2):
            self.fails(CONDITION, "o.jsonl.part is shorter than", "export", "things", "--to", to, "--resume")
            self.assertEqual(read(to + ".part"), b"")
        os.unlink(to + ".part")
        for _ in range(2):
            self.fails(CONDITION, "o.jsonl.part is shorter than", "export", "things", "--to", to, "--resume")
        self.assertFalse(os.path.exists(to) or os.path.exists(to + ".part"))
        self.ok("export", "things", "--to", to, "--overwrite", "-q")
        self.assertEqual(len(set(read(to).splitlines())), 15000)

    def test_resume_writes_nowhere_else(self):
        """Whatever path the state has; and while another export writes the file, not at all."""
        self.make()
        self.fill(self.rows(15000))
        to = self.path("o.jsonl")
        self.interrupted_export(to)
        state = json.loads(read(to + ".export-state"))
        state["files"][0]["path"] = self.path("mine")
        write(to + ".export-state", json.dumps(state))
        write(self.path("mine.part"), b"m" * 10000000)
        with open(to + ".part", "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.fails(CONDITION, "another export is writing", "export", "things", "--to", to, "--resume")
        self.ok("export", "things", "--to", to, "--resume", "-q")
        self.assertEqual(len(read(self.path("mine.part"))), 10000000)
        self.assertEqual(len(set(read(to).splitlines())), 15000)

    def test_export_that_was_killed_behind_its_last_rename(self):
        """What is left is the state before unlink(), which says that all is done."""
        self.make()
        self.fill(self.rows(300))
        for target, options in (("o.jsonl", ()), ("o.csv.gz", ()), ("aws", ("--format", "aws", "-p", "3"))):
            to = self.path(target)
            if subprocess.run(["sh", "-c", "command -v strace"], capture_output=True).returncode != 0:
                self.skipTest("needs strace")
            done = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", "trace=unlink", "-e",
                                   "inject=unlink:signal=KILL:when=1", COMMAND, "export", "things", "--to", to, "-q",
                                   *options], env=self.env, capture_output=True, timeout=WAIT_S)
            states = glob.glob(to + ".export-state") + glob.glob(to + "/*/*/*-state")
            self.assertEqual((done.returncode, len(states)), (-signal.SIGKILL, 1), done.stderr)
            code, _, err = self.run_("export", "things", "--to", to, "--resume", *options)
            self.assertEqual((code, "is complete" in err), (0, True), err)
            self.assertEqual(glob.glob(to + "*-state") + glob.glob(to + "/*/*/*-state"), [])
            self.other = self.another()
            self.ok("import", to, *self.other, "-q")
            self.assertEqual(len(self.dump(self.other)), 300)

    def test_states_that_do_not_fit(self):
        path = write(self.path("things.jsonl"), "".join(dumps(i) + "\n" for i in self.rows(10)))
        self.make()
        running = self.start("import", write(self.path("bad.jsonl"), dumps(self.rows(1)[0]) + "\nbad\n"), "-t", "things")
        running.communicate(timeout=WAIT_S)
        made = json.loads(read(self.path("bad.jsonl.import-state")))
        self.assertEqual((made["table"], made["line"], made["arn"][-7:]), ("things", 1, "/things"))
        state = {**made, "source": path, "file": 0,
                 "line": 4, "items": 4, "rejected": 0, "rejects_bytes": 0, "bytes": os.stat(path).st_size,
                 "modified_us": os.stat(path).st_mtime_ns // 1000}
        for change, error in (({"bytes": 1}, "the source was changed since"), ({"table": "other"}, "belongs to"),
                              ({"format": 1}, "another version"), ({"line": "x"}, "not the state of an import"),
                              ({"file": 9}, "not the state of an import"), ({"arn": "arn:x"}, "the table was deleted since"),
                              ({"created_us": 7}, "the table was deleted since")):
            write(path + ".import-state", json.dumps({**state, **change}))
            self.fails(CONDITION, error, "import", path, "--resume")
        write(path + ".import-state", "{")
        self.fails(FAILED, "not the state of a transfer", "import", path, "--resume")
        write(path + ".import-state", json.dumps(state))
        out = json.loads(self.ok("import", path, "--resume", "--json"))
        self.assertEqual(out["tables"][0]["imported"], 10)
        self.assertEqual(len(self.dump()), 7)  # all but the first four, and one of before

    def test_resume_into_a_table_that_was_deleted(self):
        """What was stored is gone: it begins again, and does not leave out the first part."""
        path = write(self.path("things.jsonl"), "".join(dumps(i) + "\n" for i in self.rows(10)) + "bad\n")
        for make in (lambda: None, self.make):
            self.fails(USAGE, "10 items are stored", "import", path, "--key", "id:S,n:N")
            self.ok("table", "delete", "things", "--yes", "-q")
            make()
            self.fails(CONDITION, "the table was deleted since", "import", path, "--key", "id:S,n:N", "--resume")
            self.fails(CONDITION, "the table was deleted since", "import", path, "--key", "id:S,n:N", "--resume")
            self.assertEqual(self.run_("import", path, "--on-error", "skip", "-q")[0], FAILED)
            self.assertEqual(len(self.dump()), 10)
            self.ok("table", "delete", "things", "--yes", "-q")

    def test_resume_when_the_rejects_were_taken_away(self):
        """They are not filled up with NULs."""
        self.make()
        lines = [dumps(item) for item in self.rows(5)]
        path = self.path("things.jsonl")
        self.fails(USAGE, "things.jsonl:6: ", "import", write(path, "\n".join(lines + ["worse"])))
        state = json.loads(read(path + ".import-state"))
        write(path + ".import-state", json.dumps({**state, "rejected": 1, "rejects_bytes": 4}))
        self.assertEqual(self.run_("import", path, "--resume", "--on-error", "skip", "-q")[0], FAILED)
        self.assertEqual(read(path + ".rejected"), b"worse\n")


class Errors(Transfers):
    def setUp(self):
        super().setUp()
        self.make()

    def source(self, bad, at=7, count=10, name="things.jsonl"):
        lines = [dumps(item) for item in self.rows(count)]
        lines[at - 1] = bad
        return write(self.path(name), "\n".join(lines) + "\n")

    def test_a_bad_line(self):
        big = dumps({"id": {"S": "x"}, "n": {"N": "1"}, "v": {"S": "v" * (ITEM_MAX - 4)}})
        for bad, error in (('{"id":', "not well-formed JSON"), ("[]", ""), ('{"n":{"N":"1"}}', "key attribute id is missing"),
                           ('{"id":{"N":"1"},"n":{"N":"1"}}', "key attribute id has to be a string (S)"),
                           ('{"id":{"S":""},"n":{"N":"1"}}', "key attribute id is empty"),
                           ('{"id":{"S":"x"},"n":{"N":"zz"}}', ""),
                           (big, "at most 409600 are allowed")):
            path = self.source(bad)
            err = self.fails(USAGE, "things.jsonl:7: ", "import", path)
            self.assertIn(error, err)
            self.assertIn("6 items are stored; --resume continues", err)
            self.assertEqual(len(self.dump()), 6)
            self.fails(USAGE, "things.jsonl:7: ", "import", path, "--dry-run")
            os.unlink(path + ".import-state")
        exact = dumps({"id": {"S": "x"}, "n": {"N": "1"}, "v": {"S": "v" * (ITEM_MAX - 7)}})
        self.ok("import", self.source(exact), "-q")  # 2 + 1, 1 + 2 and 1 bytes are those of names, key and number

    def test_the_first_bad_line_is_reported(self):
        """Chunks are parsed at the same time: the first line of the second chunk is seen before the last ones of
        the first."""
        good, bad = 6000, 20000  # chunks have 256 KiB, which is about 7,300 of these
        lines = ['{"id":{"S":"%06d"},"n":{"N":"1"}}' % i for i in range(good)]
        path = write(self.path("things.jsonl"), "\n".join(lines + ["{]" + "x" * 30] * bad) + "\n")
        for parallel in ("8", "2", "1"):
            err = self.fails(USAGE, "things.jsonl:%d: " % (good + 1), "import", path, "--parallel", parallel, "-q")
            self.assertIn("%d items are stored" % good, err)
            os.unlink(path + ".import-state")

    def test_skip(self):
        path = self.source("nonsense")
        code, out, err = self.run_("import", path, "--on-error", "skip", "--json")
        self.assertEqual(code, FAILED)
        self.assertEqual(json.loads(out)["tables"][0], {"table": "things", "imported": 9, "rejected": 1, "from": path})
        self.assertIn("things.jsonl:7: skipped: ", json.loads(err)["notice"]["message"])
        self.assertEqual(read(path + ".rejected"), b"nonsense\n")
        self.assertEqual(len(self.dump()), 9)
        path = write(self.path("u.csv"), "id,n,x\na,1,2\nb\nc,2,3\n")
        self.assertEqual(self.run_("import", path, "-t", "things", "--on-error", "skip", "-q")[0], FAILED)
        self.assertEqual(read(path + ".rejected"), b"id,n,x\nb\n")  # with its header, to be corrected and imported
        many = write(self.path("many.jsonl"), "x\n" * 50 + '{"id":"a","n":1}\n')
        code, out, err = self.run_("import", many, "-t", "things", "--on-error", "skip", "--rejects", self.path("r"))
        self.assertEqual((code, len(err.splitlines())), (FAILED, 21))
        self.assertIn("30 more lines were skipped", err)
        self.assertEqual(read(self.path("r")), b"x\n" * 50)
        self.fails(USAGE, "--on-error skip needs --rejects FILE", "import", "-", "-t", "things", "--on-error", "skip")

    def test_resume_behind_a_bad_line(self):
        """Nothing is counted, stored or rejected twice, however the threads are scheduled."""
        good = '{"id":"k%07d","n":1,"pad":"' + "p" * 200 + '"}'
        lines = [good % i for i in range(6000)]
        lines[1500] = lines[4500] = "bad"
        path = write(self.path("things.jsonl"), "\n".join(lines))
        self.assertIn("things.jsonl:1501: ", self.fails(USAGE, "1500 items are stored", "import", path))
        err = self.fails(USAGE, "1500 items are stored; --resume continues", "import", path, "--resume")
        self.assertIn("things.jsonl:1501: ", err)
        code, out, err = self.run_("import", path, "--resume", "--on-error", "skip", "--json")
        self.assertEqual((code, json.loads(out)["tables"][0]["imported"]), (FAILED, 5998), err)
        self.assertEqual(read(path + ".rejected"), b"bad\nbad\n")
        self.assertEqual(len(self.dump()), 5998)

    def test_what_only_the_database_refuses(self):
        """A key of an index that has another type."""
        self.make("--index", "by_v=v:S", table="indexed")
        bad = dumps({"id": {"S": "x"}, "n": {"N": "1"}, "v": {"N": "5"}})
        err = self.fails(USAGE, "things.jsonl:7: ", "import", self.source(bad), "-t", "indexed")
        self.assertIn("Type mismatch for Index Key v", err)
        self.assertEqual(len(self.dump(table="indexed")), 6)
        os.unlink(self.path("things.jsonl.import-state"))
        self.assertEqual(self.run_("import", self.source(bad), "-t", "indexed", "--on-error", "skip", "-q")[0], FAILED)
        self.assertEqual(len(self.dump(table="indexed")), 9)
        self.assertEqual(read(self.path("things.jsonl.rejected")).decode(), bad + "\n")

    def test_damaged_gzip(self):
        whole = gzip.compress("".join(dumps(item) + "\n" for item in self.rows(5000)).encode())
        for name, data, error in (("cut.jsonl.gz", whole[:-20], "ends too early"), ("one.jsonl.gz", whole[:1], "one.jsonl.gz:1:"),
                                  ("bad.jsonl.gz", whole[:300] + b"\xff" * 40 + whole[340:], "damaged compressed data"),
                                  ("tail.jsonl.gz", whole + b"tail", "damaged compressed data")):
            code, _, err = self.run_("import", write(self.path(name), data), "-t", "things")
            self.assertIn(code, (CORRUPT, USAGE), err)
            self.assertIn(error, err)
        self.ok("import", write(self.path("two.jsonl.gz"), whole + whole), "-t", "things", "-q")  # members

    def test_line_limit(self):
        path = write(self.path("long.jsonl"), b'{"id":"x","n":1}\n' + b" " * (17 * 1024 * 1024))
        self.fails(4, "long.jsonl:2: the line is longer than 16777216 bytes", "import", path, "-t", "things")

    def test_things_that_are_not_there(self):
        self.fails(NOT_FOUND, "nowhere.jsonl: No such file", "import", self.path("nowhere.jsonl"))
        self.fails(NOT_FOUND, "nothing not found", "export", "nothing", "--to", self.path("x.jsonl"))
        self.fails(NOT_FOUND, "table things2 does not exist", "import", write(self.path("things2.jsonl"), ""))
        self.fails(UNAVAILABLE, "holdfast serve", "export", "things", "--db", NOBODY)
        self.fails(UNAVAILABLE, "holdfast serve", "import", self.source("{}"), "--db", NOBODY)
        self.fails(NOT_FOUND, "", "export", "things", "--db", "embedded:" + self.path("typo.db"))
        os.mkdir(self.path("empty"))
        self.fails(NOT_FOUND, "has neither the export of a table nor files", "import", self.path("empty"))
        self.assertFalse(os.path.exists(self.path("typo.db")) or os.path.exists(self.path("x.jsonl")))

    def test_options_for_one_table(self):
        os.mkdir(self.path("d"))
        for name in ("one", "two"):
            write(self.path("d/%s.jsonl" % name), "bad\n")
        for option in ("table", "schema", "rejects", "state"):
            self.fails(USAGE, "has 2 tables: --%s is for one" % option, "import", self.path("d"), "--" + option,
                       self.path("x"), "--key", "id:S")
        self.assertFalse(os.path.exists(self.path("x")))

    def test_files_that_would_be_destroyed(self):
        path = self.source("bad")
        before = read(path)
        os.link(path, self.path("link"))
        os.symlink(path, self.path("symlink"))
        for option in ("state", "rejects"):
            for name in (path, self.path("link"), self.path("symlink")):
                self.fails(USAGE, "--%s names %s, which is imported" % (option, path), "import", path, "--" + option, name,
                           "--on-error", "skip")
        self.fails(USAGE, "name the same file", "import", path, "--state", self.path("x"), "--rejects", self.path("x"))
        os.mkfifo(self.path("fifo"))
        for name in (write(self.path("mine"), "mine"), write(self.path("mine.json"), "{}"), self.path("fifo")):
            self.fails(USAGE, "exists and is not the state of an import", "import", path, "--state", name)
        self.assertEqual((read(path), read(self.path("mine")), self.dump()), (before, b"mine", []))
        for _ in range(2):
            self.fails(USAGE, "things.jsonl:7: ", "import", path, "--state", self.path("state"))

    def test_existing_files(self):
        self.fill(self.rows(3))
        path = write(self.path("x.jsonl"), "mine")
        self.fails(CONDITION, "x.jsonl exists: --overwrite replaces it", "export", "things", "--to", path)
        self.assertEqual(read(path), b"mine")
        self.ok("export", "things", "--to", path, "--overwrite", "-q")
        self.assertEqual(len(read(path).splitlines()), 3)
        self.assertIn("is complete", self.run_("export", "things", "--to", path, "--resume")[2])

    def test_definitions_of_other_tables(self):
        """x.jsonl and x.csv have one x.schema.json."""
        self.make(table="others")
        self.ok("export", "things", "--to", self.path("x.jsonl"), "-q")
        before = read(self.path("x.schema.json"))
        for more in ((), ("--resume",)):
            self.fails(CONDITION, "x.schema.json exists and is not the definition of the table others", "export", "others",
                       "--to", self.path("x.csv"), *more)
        self.assertEqual((read(self.path("x.schema.json")), os.path.exists(self.path("x.csv"))), (before, False))
        self.ok("export", "others", "--to", self.path("x.csv"), "-q", "--no-schema")
        self.ok("export", "things", "--to", self.path("x.jsonl.gz"), "-q")
        self.ok("export", "others", "--to", self.path("x.csv"), "-q", "--overwrite")
        self.assertEqual(json.loads(read(self.path("x.schema.json")))["TableName"], "others")

    def test_export_to_what_is_no_file(self):
        os.mkfifo(self.path("p"))
        for more in ((), ("--overwrite",), ("--resume",)):
            self.fails(USAGE, "p is not a file; use --to - and a redirection", "export", "things", "--to", self.path("p"),
                       *more)
        self.assertEqual(os.listdir(self.dir), ["p"])

    def test_arguments(self):
        for error, *args in (("name a table, or give --all", "export"), ("or --all", "export", "things", "--all"),
                             ("needs a directory", "export", "--all"), ("needs a directory", "export", "a", "-f", "aws"),
                             ("--resume needs a file", "export", "things", "--resume"),
                             ("--columns needs --format csv", "export", "things", "--columns", "a:S"),
                             ("a column is NAME:TYPE", "export", "things", "-f", "csv", "--columns", "a"),
                             ("give --table", "import", "-"), ("--resume needs a file", "import", "-", "-t", "x", "--resume"),
                             ("--types: a: a column", "import", self.source("{}"), "--types", "a")):
            self.fails(USAGE, error, *args)

    def test_dry_run(self):
        path = write(self.path("new.jsonl"), "".join(dumps(item) + "\n" for item in self.rows(10)))
        out = json.loads(self.ok("import", path, "--dry-run", "--key", "id:S,n:N", "--json"))
        self.assertEqual(out["tables"][0]["valid"], 10)
        self.ok("import", path, "--dry-run", "--key", "id:S,n:N", "-q", "--db", "embedded:" + self.path("b.db"))
        self.assertFalse(os.path.exists(self.path("b.db")))
        self.assertEqual(self.ok("table", "ls"), "things\n")
        self.fill(self.rows(2))
        out = json.loads(self.ok("export", "things", "--to", self.path("no/"), "--dry-run", "--json"))
        self.assertEqual((out["tables"][0]["items"], os.path.exists(self.path("no"))), (2, False))

    def test_closed_pipe(self):
        self.fill(self.rows(15000))
        done = subprocess.run(["sh", "-c", '"$0" export things 2>err | head -n 1', COMMAND], env=self.env, cwd=self.dir,
                              capture_output=True, text=True, timeout=WAIT_S)
        self.assertTrue(done.stdout.startswith('{"id":"k0'))
        self.assertEqual(read(self.path("err")), b"")

    def test_full_disk(self):
        """No file may become longer than this, as if the disk were full."""
        self.fill(self.rows(15000))
        limit = lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                         resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
        path = self.path("x.jsonl")
        err = self.fails(UNAVAILABLE, "File too large", "export", "things", "--to", path, preexec_fn=limit)
        self.assertIn("--resume continues", err)
        self.assertFalse(os.path.exists(path))
        self.ok("export", "things", "--to", path, "--resume", "-q")
        self.assertEqual(len(set(read(path).splitlines())), 15000)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_read_only_directory(self):
        os.mkdir(self.path("ro"), 0o555)
        self.fails(FAILED, "Permission denied", "export", "things", "--to", self.path("ro/x.jsonl"))

    def test_no_such_directory(self):
        self.fails(FAILED, "No such file or directory", "export", "things", "--to", self.path("no/x.jsonl"))

    def test_source_that_cannot_have_a_state_beside_it(self):
        path = self.source("{}", at=10)
        err = self.fails(USAGE, "things.jsonl:10:", "import", path, "--state", "/proc/nothing")
        self.assertIn("goes on, but cannot be resumed", err)
        self.assertEqual(len(self.dump()), 9)
        write(path, "".join('{"id":"k%d","n":1}\n' % i for i in range(3000)))
        code, out, err = self.run_("import", path, "--rate", "2000", "--state", "/proc/nothing")
        self.assertEqual((code, len(err.splitlines())), (0, 1), err)

    def test_hidden_files_of_a_directory(self):
        os.mkdir(self.path("files"))
        for name in ("orders.jsonl", ".hidden.jsonl", "._orders.jsonl", ".DS_Store", "._orders.schema.json"):
            with open(self.path("files/" + name), "w") as file:
                file.write('{"id":"a"}\n' if name in ("orders.jsonl", ".hidden.jsonl") else "\x00\x05\x16\x07\n")
        self.ok("table", "create", "orders", "-k", "id", "-q")
        code, out, err = self.run_("import", self.path("files"))
        self.assertEqual(code, 0, err)
        self.assertIn(".hidden.jsonl is left out, as its name begins with a dot", err)
        self.assertNotIn("._", err)
        self.assertEqual(self.ok("table", "ls"), "orders\nthings\n")
        self.assertEqual(self.ok("scan", "orders"), '{"id":"a"}\n')

    def test_directory_with_an_export_that_is_not_complete(self):
        os.mkdir(self.path("d"))
        write(self.path("d/one.jsonl"), "")
        write(self.path("d/two.jsonl.export-state"), "{}")
        self.fails(CONDITION, "an export to it was interrupted", "import", self.path("d"), "--key", "id:S")


class Terminal(Transfers):
    def test_progress(self):
        self.make()
        self.fill(self.rows(9000))
        for args in (("export", "things", "--to", self.path("x.jsonl"), "--rate", "6000"),
                     ("import", self.path("x.jsonl"), "--rate", "6000")):
            ours, theirs = pty.openpty()
            running = subprocess.Popen([COMMAND, *args], stdout=subprocess.DEVNULL, stderr=theirs, env=self.env)
            os.close(theirs)
            shown = b""
            try:
                while part := os.read(ours, 65536):
                    shown += part
            except OSError:
                pass
            os.close(ours)
            self.assertEqual(running.wait(timeout=WAIT_S), 0)
            self.assertRegex(shown.decode(), r"\rthings: \d+%, \d+ items, \d+/s, [\d.]+ \w+, \d+s left")
            self.assertRegex(shown.decode(), r"\rthings: 100%, 9000 items")

    def test_stored_text_does_not_control_the_terminal(self):
        self.make()
        self.fill([{"id": {"S": "\x1b[31mred\x9b1m"}, "n": {"N": "1"}}])
        for format_ in ("jsonl", "dynamodb", "csv"):
            for line in self.on_terminal("export", "things", "--format", format_):
                self.assertNotRegex(line, "[\x00-\x1f\x7f-\x9f]")

    def test_summary(self):
        self.make()
        self.fill(self.rows(3))
        lines = self.on_terminal("export", "things", "--to", self.path("x.jsonl"), columns=200)
        self.assertEqual(lines[0].split(), ["table", "items", "bytes", "to"])
        self.assertEqual(lines[1].split()[:2], ["things", "3"])


if __name__ == "__main__":
    main()
