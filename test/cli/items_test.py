#!/usr/bin/env python3
"""Items from the command line: items_test.py COMMAND SOURCE [unittest arguments]. Reading, writing, queries,
scans and statements, on a server in memory and on a directory; in pipes and in a pseudo-terminal.
"""
import json
import os
import subprocess
import sys
import unittest

from process import (COMMAND, CONDITION, DENIED, NOT_FOUND, UNAVAILABLE, USAGE, NOBODY, Commands, WAIT_S, main, setUpModule,  # noqa: F401
                     tearDownModule)

EVERY = ('{"b":{"$binary":"aGk="},"bs":{"$set":[{"$binary":"AA=="}]},"customer":"ann","day":2,'
         '"l":[1,"x",null,[],{}],"m":{"k":{"$map":{"$set":1}}},"n":12345678901234567890123456789012345678,'
         '"no":false,"ns":{"$set":[1,2.5]},"nul":null,"s":"\\u0001\\"é","ss":{"$set":["a","b"]},"t":true}')


class Items(Commands):
    def setUp(self):
        super().setUp()
        self.ok("table", "create", "orders", "--key", "customer:S,day:N", "--index", "by_day=day:N/keys", "-q")

    def put(self, **item):
        self.ok("item", "put", "orders", json.dumps(item))

    def test_every_type_there_and_back(self):
        self.ok("item", "put", "orders", EVERY)
        text = self.ok("item", "get", "orders", "ann", "2")
        self.assertEqual(text, EVERY + "\n")
        self.assertEqual(self.ok("item", "get", "orders", "ann", "2", "--json"), text)
        self.assertEqual(self.ok("item", "get", "orders", "ann", "2.0", "--consistent"), text)
        dynamodb = self.ok("item", "get", "orders", "ann", "2", "--dynamodb")
        self.assertEqual(json.loads(dynamodb)["n"], {"N": "12345678901234567890123456789012345678"})
        self.ok("item", "delete", "orders", "ann", "2")
        self.fails(NOT_FOUND, "orders has no item with that key", "item", "get", "orders", "ann", "2")
        self.ok("item", "put", "orders", "--dynamodb", "-f", "-", input=dynamodb)
        self.assertEqual(self.ok("item", "get", "orders", "ann", "2"), text)

    def test_keys_are_words(self):
        self.ok("table", "create", "bytes", "-k", "id:B", "-q")
        self.ok("item", "put", "bytes", '{"id":{"$binary":"AAE="},"v":1}')
        self.assertEqual(json.loads(self.ok("item", "get", "bytes", "AAE="))["v"], 1)
        self.fails(USAGE, "id is binary: 'x' is not base64", "item", "get", "bytes", "x")
        self.fails(USAGE, "day is a number: 'two' is none", "item", "get", "orders", "ann", "two")
        self.fails(USAGE, "the key has two parts: customer and day", "item", "get", "orders", "ann")
        self.fails(USAGE, "the key has one part: id", "item", "get", "bytes", "AAE=", "2")
        self.put(customer="-5", day=-1)  # a number is no option
        self.assertIn('"day":-1', self.ok("item", "get", "orders", "--", "-5", "-1"))
        self.fails(NOT_FOUND, "not found", "item", "get", "nothing", "x")
        self.fails(NOT_FOUND, "nothing", "item", "put", "nothing", '{"a":1}')  # which table it is

    def test_conditions(self):
        self.put(customer="ann", day=1, v=1)
        self.fails(CONDITION, "condition", "item", "put", "orders", "--if-missing", '{"customer":"ann","day":1}')
        self.ok("item", "put", "orders", "--if-missing", '{"customer":"ann","day":2}')
        self.fails(CONDITION, "condition", "item", "put", "orders", "--if", "v = :v", "--values", '{":v":2}',
                   '{"customer":"ann","day":1}')
        self.fails(CONDITION, "condition", "item", "update", "orders", "ann", "9", "--if-there", "--set", "v=1")
        self.fails(CONDITION, "condition", "item", "delete", "orders", "ann", "9", "--if-there")
        self.ok("item", "delete", "orders", "ann", "9")
        old = self.ok("item", "delete", "orders", "ann", "1", "--if", "#v = :v", "--values", '{":v":1}',
                      "--names", '{"#v":"v"}', "--return", "old")
        self.assertEqual(json.loads(old), {"customer": "ann", "day": 1, "v": 1})
        self.assertEqual(self.ok("item", "put", "orders", '{"customer":"ann","day":2,"x":1}', "--return", "old"),
                         '{"customer":"ann","day":2}\n')

    def test_updates(self):
        """Reserved words and paths need no placeholders."""
        new = self.ok("item", "update", "orders", "ann", "1", "--set", "status=paid", "--set", "count=3", "--set",
                      'm={"list":[1,2]}', "--add", "size=-2", "--add", 'tags={"$set":["a"]}')
        self.assertEqual(json.loads(new), {"customer": "ann", "day": 1, "status": "paid", "count": 3, "size": -2,
                                           "m": {"list": [1, 2]}, "tags": {"$set": ["a"]}})
        new = self.ok("item", "update", "orders", "ann", "1", "--remove", "status", "--remove", "m.list[0]", "--set",
                      "m.name=x=y")
        self.assertEqual(json.loads(new)["m"], {"list": [2], "name": "x=y"})
        self.assertNotIn("status", new)
        self.assertEqual(self.ok("item", "update", "orders", "ann", "1", "--update", "SET v = :v", "--values",
                                 '{":v":"12"}', "--return", "none"), "")
        self.assertIn('"v":"12"', self.ok("item", "update", "orders", "ann", "1", "--remove", "v", "--return", "old"))
        self.fails(USAGE, "--set x: has to be NAME=VALUE", "item", "update", "orders", "ann", "1", "--set", "x")
        self.fails(USAGE, "give what to change", "item", "update", "orders", "ann", "1")
        self.fails(USAGE, "in place of --set", "item", "update", "orders", "ann", "1", "--set", "a=1", "--update", "x")

    def test_projections(self):
        self.ok("item", "put", "orders", EVERY)
        self.assertEqual(self.ok("item", "get", "orders", "ann", "2", "-a", "l[1],m.k, day"),
                         '{"day":2,"l":["x"],"m":{"k":{"$map":{"$set":1}}}}\n')

    def lines(self, *args):
        return [json.loads(line) for line in self.ok(*args).splitlines()]

    def test_queries(self):
        for day in range(1, 8):
            self.put(customer="ann", day=day, total=day * 10)
        self.put(customer="ben", day=1)
        days = lambda *args: [item["day"] for item in self.lines("query", "orders", "ann", *args)]
        self.assertEqual(days(), [1, 2, 3, 4, 5, 6, 7])
        self.assertEqual(days("3"), [3])
        self.assertEqual(days("=3"), [3])
        self.assertEqual(days("=3.0"), [3])
        self.fails(USAGE, "day is a number: '2..4' is none", "query", "orders", "ann", "=2..4")
        self.assertEqual(days("<3"), [1, 2])
        self.assertEqual(days("<=3"), [1, 2, 3])
        self.assertEqual(days(">6"), [7])
        self.assertEqual(days(">=6"), [6, 7])
        self.assertEqual(days("2..4", "--reverse"), [4, 3, 2])
        self.assertEqual(days("--filter", "#t > :t", "--names", '{"#t":"total"}', "--values", '{":t":50}'), [6, 7])
        self.assertEqual(self.lines("query", "orders", "ann", "1", "-a", "total"), [{"total": 10}])
        self.assertEqual(self.lines("query", "orders", "1", "-i", "by_day"),
                         [{"customer": "ann", "day": 1}, {"customer": "ben", "day": 1}])
        self.assertEqual(self.lines("query", "orders", "--where", "customer = :c AND #d < :d", "--values",
                                    '{":c":"ann",":d":2}', "--names", '{"#d":"day"}'), [{"customer": "ann", "day": 1, "total": 10}])
        self.assertEqual(json.loads(self.ok("query", "orders", "ann", "--count", "--json")), {"count": 7})
        self.assertEqual(self.lines("query", "orders", "nobody"), [])
        self.fails(USAGE, """keyword: day; write #day, and add --names '{"#day":"day"}'""", "scan", "orders", "--filter",
                   "day > :d", "--values", '{":d":1}')
        self.fails(NOT_FOUND, "orders has no index none", "query", "orders", "x", "-i", "none")
        self.fails(USAGE, "holdfast scan", "query", "orders")
        self.fails(USAGE, "there is no range key", "query", "orders", "1", "2", "-i", "by_day")

    def test_strings_that_look_like_ranges(self):
        self.ok("table", "create", "names", "--key", "a,b", "-q")
        for b in ("x*", "xy", "a..b", "aa", "=x", "<x"):
            self.ok("item", "put", "names", json.dumps({"a": "k", "b": b}))
        names = lambda word: [item["b"] for item in self.lines("query", "names", "k", word)]
        for word in ("x*", "a..b", "=x", "<x"):
            self.assertEqual(names("=" + word), [word])
        self.assertEqual(names("a..b"), ["a..b", "aa"])
        self.assertEqual(names("x*"), ["x*", "xy"])
        self.assertEqual(names(">=a..b"), ["a..b", "aa", "x*", "xy"])
        self.assertEqual(names("<=a..b"), ["<x", "=x", "a..b"])

    def test_strings_by_prefix(self):
        self.ok("table", "create", "names", "--key", "a,b", "-q")
        for b in ("x1", "x2", "y1"):
            self.ok("item", "put", "names", json.dumps({"a": "k", "b": b}))
        self.assertEqual([item["b"] for item in self.lines("query", "names", "k", "x*")], ["x1", "x2"])

    def test_limits_and_where_to_go_on(self):
        for day in range(1, 6):
            self.put(customer="ann", day=day)
        code, out, err = self.run_("query", "orders", "ann", "-n", "2")
        self.assertEqual((code, len(out.splitlines())), (0, 2))
        self.assertIn("""there may be more items: use --all, or --start '{"customer":"ann","day":2}'""", err)
        self.assertEqual([item["day"] for item in self.lines("query", "orders", "ann", "--start",
                                                             '{"customer":"ann","day":2}')], [3, 4, 5])
        first = json.loads(self.ok("query", "orders", "ann", "-n", "3", "--json"))
        self.assertEqual([item["day"] for item in first["items"]], [1, 2, 3])
        rest = json.loads(self.ok("query", "orders", "ann", "--start", first["next"], "--json"))
        self.assertEqual([item["day"] for item in rest["items"]], [4, 5])
        self.assertIsNone(rest.get("next"))
        self.assertEqual(len(self.lines("scan", "orders", "--all")), 5)

    def test_capacity(self):
        code, out, err = self.run_("item", "put", "orders", '{"customer":"a","day":1}', "--capacity")
        self.assertEqual((code, out), (0, ""))
        self.assertIn("consumed 0 read units and 2 write units in 1 calls", err)  # one for the index
        self.assertIn("0.5 read units", self.run_("query", "orders", "a", "--capacity")[2])
        self.assertIn("0.5 read units", self.run_("sql", "SELECT * FROM orders WHERE customer = 'a'", "--capacity")[2])

    def test_a_limit_is_what_is_read(self):
        for day in range(10):
            self.ok("item", "put", "orders", json.dumps({"customer": "a", "day": day, "text": "x" * 4000, "odd": day % 2}))
        code, out, err = self.run_("sql", " select day FROM orders WHERE customer = 'a'", "-n", "1", "--capacity")
        self.assertEqual((code, out), (0, '{"day":0}\n'))
        self.assertIn("consumed 1 read units", err)  # two items of half a unit each, of ten
        self.assertIn("there are more items", err)
        where = "SELECT day FROM orders WHERE customer = 'a' AND odd = 1"
        for limit, count in (("1", 1), ("3", 3), ("4", 4), ("5", 5), ("6", 5)):
            code, out, err = self.run_("sql", where, "-n", limit)
            self.assertEqual((code, len(out.splitlines()), "more items" in err), (0, count, int(limit) < 5), limit)

    def test_statements(self):
        self.assertEqual(self.ok("sql", "INSERT INTO orders VALUE {'customer': 'ann', 'day': 1, 's': <<'a'>>}"), "")
        self.assertEqual(self.lines("sql", "SELECT * FROM orders WHERE customer = ? AND day = ?", "ann", "1"),
                         [{"customer": "ann", "day": 1, "s": {"$set": ["a"]}}])
        self.ok("sql", "UPDATE orders SET v = ? WHERE customer = 'ann' AND day = 1", '{"deep":[1]}')
        self.assertEqual(self.lines("sql", "SELECT v FROM orders"), [{"v": {"deep": [1]}}])
        self.assertEqual(json.loads(self.ok("sql", "SELECT day FROM orders", "--json"))["items"], [{"day": 1}])
        self.ok("sql", "DELETE FROM orders WHERE customer = 'ann' AND day = 1")
        self.assertEqual(self.lines("sql", "SELECT * FROM orders"), [])
        self.fails(USAGE, "well formed", "sql", "SELEC * FROM orders")
        for statement in ("SELECT * FROM nope", "UPDATE \"nope\" SET a = 1 WHERE id = 'x'", "INSERT INTO nope VALUE {'a': 1}",
                          "SELECT * FROM \"nope\".\"by\" WHERE a = 1"):
            err = self.fails(NOT_FOUND, "Requested resource not found: table nope\n", "sql", statement)
            self.assertEqual(err.count("nope"), 1)
        self.fails(CONDITION, "statement 2: Requested resource not found: table nope", "sql", "--transaction",
                   "DELETE FROM orders WHERE customer = 'x' AND day = 1", "DELETE FROM nope WHERE id = 'x'")

    def test_parameters_have_to_be_used(self):
        select = "SELECT * FROM orders /* ? */ WHERE customer = ? AND day = 1 AND note <> '?''?' AND \"a?\" = 1 -- ?"
        self.assertEqual(self.lines("sql", select, "ann"), [])
        self.fails(USAGE, "'1' is too much: the statement has 1 parameter (?)\n", "sql", select, "ann", "1")
        self.fails(USAGE, "don't match", "sql", select)
        self.fails(USAGE, "the statement has 0 parameters (?); for several statements use --transaction", "sql",
                   "DELETE FROM orders WHERE customer = 'a' AND day = 1", "DELETE FROM orders WHERE customer = 'a' AND day = 2")

    def test_errors_of_numbers_name_the_attribute(self):
        for bad, where, why in (("1e200", "price", "out of range"), ('{"a":[0,{"b":%s}]}' % ("1" * 39), "price.a[1].b", "38 digits"),
                                ('{"$set":[1,1e-400]}', "price[1]", "out of range"),
                                ('{"$map":{"$set":1e999}}', "price", "out of range")):
            err = self.fails(USAGE, 'Attribute "%s": a number' % where, "item", "put", "orders",
                             '{"customer":"a","day":1,"fine":1,"price":%s}' % bad)
            self.assertIn(why, err)
        self.fails(USAGE, "--set price=1e200: a number out of range", "item", "update", "orders", "a", "1", "--set", "price=1e200")
        self.fails(USAGE, '--add m={"x":1e200}: Attribute "x": a number', "item", "update", "orders", "a", "1", "--add",
                   'm={"x":1e200}')
        self.fails(USAGE, 'numeric value: abc: attribute "price"', "item", "put", "orders", "--dynamodb",
                   '{"customer":{"S":"a"},"day":{"N":"1"},"price":{"N":"abc"}}')
        self.fails(USAGE, "x.jsonl:2: Attribute \"price\"", "import", "--table", "orders", self.file("x.jsonl", '{"customer":"a","day":1}\n'
                   '{"customer":"a","day":2,"price":1e200}\n'))

    def file(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def test_statements_with_many_pages(self):
        text = "x" * 200000
        for day in range(12):
            self.ok("item", "put", "orders", "-f", "-",
                    input=json.dumps({"customer": "ann", "day": day, "text": text}))
        self.assertEqual(len(self.lines("sql", "SELECT day FROM orders", "--all")), 12)
        code, out, err = self.run_("sql", "SELECT day FROM orders", "-n", "7")
        self.assertEqual((code, len(out.splitlines())), (0, 7))
        self.assertIn("there are more items", err)

    def test_bad_items_change_nothing(self):
        for bad, error in [("{", "line 1"), ("[]", "has to be a JSON object"), ('{"a":{"$set":[]}}', "$set"),
                           ('{"customer":"a","day":1e400}', "number"), ('{"customer":"a"}', "key"),
                           ('{"customer":1,"day":1}', "mismatch")]:
            self.fails(USAGE, error, "item", "put", "orders", bad)
        self.fails(USAGE, "not both", "item", "put", "orders", "{}", "-f", "x")
        self.fails(USAGE, "give the item", "item", "put", "orders")
        self.fails(USAGE, "x.json", "item", "put", "orders", "-f", self.path("x.json"))
        self.fails(USAGE, "--names: #a has to be a string", "scan", "orders", "--names", '{"#a":1}')
        self.assertEqual(self.lines("scan", "orders"), [])

    def test_on_a_terminal(self):
        self.ok("item", "put", "orders", '{"customer":"ann","day":1,"note":"a\\u001bb","tags":{"$set":["x"]}}')
        self.ok("item", "put", "orders", '{"customer":"ben","day":2,"total":5}')
        lines = self.on_terminal("scan", "orders", columns=100)
        self.assertEqual(lines[0].split()[:2], ["customer", "day"])
        self.assertIn("\\x1bb", "\n".join(lines))
        self.assertEqual(len(lines), 3)
        self.assertEqual(self.on_terminal("item", "get", "orders", "ben", "2", columns=80),
                         ["customer  ben", "day       2", "total     5"])
        many = {"customer": "c", "day": 3, **{"attribute%02d" % n: n for n in range(30)}}
        self.put(**many)
        self.assertIn("others", "\n".join(self.on_terminal("scan", "orders", columns=400)))

    def test_nothing_is_made_by_reading(self):
        self.env["HOLDFAST_DB"] = "embedded:" + self.path("none.db")
        for args in (["item", "get", "orders", "a", "1"], ["scan", "orders"], ["query", "orders", "a"],
                     ["sql", "SELECT * FROM orders"]):
            code, out, _ = self.run_(*args)
            self.assertEqual((code, out), (NOT_FOUND, ""), args)
        with self.assertRaises(FileNotFoundError):
            open(self.path("none.db"))
        self.env["HOLDFAST_DB"] = NOBODY
        self.fails(UNAVAILABLE, "holdfast serve", "scan", "orders")


    def test_names_of_keys_with_odd_characters(self):
        """They are names, not paths."""
        for key in ("a.b", "a[0]", "#x"):
            with self.subTest(key):
                self.ok("table", "create", "odd", "-k", key, "-q")
                self.ok("item", "put", "odd", json.dumps({key: "k", "v": 1}))
                self.fails(CONDITION, "condition", "item", "put", "odd", json.dumps({key: "k"}), "--if-missing")
                self.assertEqual(self.lines("query", "odd", "k"), [{key: "k", "v": 1}])
                self.ok("item", "delete", "odd", "k", "--if-there")
                self.ok("table", "delete", "odd", "--yes")

    def test_words_that_are_no_values(self):
        self.put(customer="a", day=1)
        for bad, error in [('m={"a":1,}', "expected a name"), ("m=[1", "expected"), ('m="x', "a string has no end"),
                           ('s={"$set":[1,1.0]}', "a $set has an element twice"), (".a=1", "is missing")]:
            self.fails(USAGE, error, "item", "update", "orders", "a", "1", "--set", bad)
        self.fails(USAGE, "is missing", "item", "get", "orders", "a", "1", "-a", "x,,y")
        self.fails(USAGE, "reserved", "scan", "orders", "--names", '{"#hf1":"x"}', "--filter", "#hf1 = :v")
        self.fails(USAGE, "reserved", "scan", "orders", "--values", '{":hf1":1}', "--filter", "x = :hf1")
        new = self.ok("item", "update", "orders", "a", "1", "--dynamodb", "--set", 'x={"SS":["q"]}', "--set", "y=5")
        self.assertEqual(json.loads(new)["x"], {"SS": ["q"]})
        self.assertEqual(json.loads(new)["y"], {"N": "5"})
        self.assertEqual(self.lines("item", "get", "orders", "a", "1", "-a", " #y , customer", "--names", '{"#y":"y"}'),
                         [{"customer": "a", "y": 5}])

    def test_a_statement_that_is_cut_says_so(self):
        for day in range(5):
            self.put(customer="ann", day=day)
        code, out, err = self.run_("sql", "SELECT day FROM orders", "-n", "4")
        self.assertEqual((code, len(out.splitlines())), (0, 4))
        self.assertIn("there are more items", err)
        self.assertEqual(self.run_("sql", "SELECT day FROM orders", "-n", "5")[2], "")
        self.assertEqual(self.run_("sql", "SELECT day FROM orders", "-n", "4", "-q")[2], "")

    def test_what_is_false_is_shown(self):
        self.put(customer="ann", day=1, paid=False, left=0, note="-")
        self.put(customer="ann", day=2)
        lines = self.on_terminal("query", "orders", "ann", columns=100)
        self.assertEqual(lines[0].split(), ["customer", "day", "left", "note", "paid"])
        self.assertEqual(lines[1].split(), ["ann", "1", "0", "-", "false"])

    def test_what_is_stored_does_not_reach_the_terminal(self):
        self.ok("table", "create", "esc", "-k", "\x1b[31mk", "-q")
        err = self.fails(USAGE, "the key has one part", "item", "get", "esc", "1", "2")
        self.assertNotIn("\x1b", err)
        self.put(customer="a\u009bb", day=1)
        self.assertIn("\\u009b", self.ok("scan", "orders"))

    def test_keys_in_a_notice_can_be_pasted(self):
        for day in (1, 2):
            self.put(customer="it's", day=day)
        err = self.run_("query", "orders", "it's", "-n", "1")[2]
        start = err.split("--start '")[1].rstrip("\n")[:-1]
        self.assertNotIn("'", start)
        self.assertEqual([i["day"] for i in self.lines("query", "orders", "it's", "--start", start)], [2])


class Directory(Items):
    """The same on a directory."""
    def prepare(self):
        self.env["HOLDFAST_DB"] = "embedded:" + self.path("shop.db")

    def digest(self):
        """Names, times and bytes of all files."""
        found = {}
        for folder, _, names in os.walk(self.path("shop.db")):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found[path] = (os.stat(path).st_mtime_ns, hash(file.read()))
        return found

    def only_read(self, why, run):
        """`run` runs a command where the directory cannot be written."""
        before = self.digest()
        for args, shown in ((("scan", "orders"), '{"customer":"ann","day":1}\n'), (("table", "ls"), "orders\n"),
                            (("sql", "SELECT day FROM orders"), '{"day":1}\n'), (("lock", "ls"), ""),
                            (("item", "get", "orders", "ann", "1"), '{"customer":"ann","day":1}\n')):
            done = run(*args)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, shown, ""), args)
        for args in (("item", "put", "orders", '{"customer":"ben","day":1}'), ("kv", "set", "a", "b"),
                     ("sql", "DELETE FROM orders WHERE customer = 'ann' AND day = 1"),
                     ("shell", "-c", "table ls -q", "-c", "item delete orders ann 1")):
            done = run(*args)
            self.assertEqual((done.returncode, done.stdout), (DENIED, ""), args)
            self.assertIn("was opened read-only: ", done.stderr)
            self.assertIn(" is refused, as " + why, done.stderr)
        self.assertEqual(self.digest(), before)

    def test_of_another_user(self):
        self.put(customer="ann", day=1)
        if os.geteuid() != 0:
            self.addCleanup(subprocess.run, ["chmod", "-R", "u+w", self.path("shop.db")], check=True)
        subprocess.run(["chmod", "-R", "a-w,a+rX", self.dir], check=True)
        command = os.open(COMMAND, os.O_PATH)  # nobody may not even see the folder that it is in
        self.addCleanup(os.close, command)
        become = ("import os, sys\n"
                  "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
                  "os.execve(int(sys.argv[1]), ['holdfast'] + sys.argv[2:], os.environ)")
        self.only_read("this user has no permission to write it", lambda *args: subprocess.run(
            [sys.executable, "-c", become, str(command), *args], pass_fds=[command], env=self.env, capture_output=True,
            text=True, timeout=WAIT_S))

    def test_on_a_file_system_that_is_mounted_read_only(self):
        self.put(customer="ann", day=1)
        mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 99; exec "$@"'
        run = lambda *args: subprocess.run(["unshare", "-m", "sh", "-c", mount, self.dir, *args], env=self.env,
                                           capture_output=True, text=True, timeout=WAIT_S)
        if run("true").returncode:
            self.skipTest("mounting is not allowed here")
        self.only_read("its file system is mounted read-only", lambda *args: run(COMMAND, *args))


class TableWords(Commands):
    def test_a_table_without_a_file(self):
        out = self.ok("table", "create", "orders", "--key", "customer:S,day:N", "--index", "by_day=day:N", "--index",
                      "by_status=status,day:N/keys", "--local-index", "by_total=total:N/note,more", "--stream",
                      "new-and-old", "--ttl", "expires", "--protect", "--json")
        table = json.loads(out)
        self.assertEqual(table["KeySchema"], [{"AttributeName": "customer", "KeyType": "HASH"},
                                              {"AttributeName": "day", "KeyType": "RANGE"}])
        self.assertEqual({i["IndexName"]: i["Projection"]["ProjectionType"] for i in table["GlobalSecondaryIndexes"]},
                         {"by_day": "ALL", "by_status": "KEYS_ONLY"})
        self.assertEqual(table["LocalSecondaryIndexes"][0]["Projection"],
                         {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["note", "more"]})
        self.assertEqual(table["StreamSpecification"], {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
        self.fails(USAGE, "protect", "table", "delete", "orders", "--yes")
        self.ok("table", "create", "free", "-k", "a", "-q")
        self.fails(CONDITION, "not protected", "table", "create", "free", "-k", "a", "--if-missing", "--protect")

    def test_words_that_are_wrong(self):
        for error, *args in [("give a name and --key", "orders"), ("a type is S, N or B", "orders", "-k", "a:X"),
                             ("one attribute or two", "orders", "-k", "a,b,c"),
                             ("the name of an attribute is missing", "orders", "-k", ":S"),
                             ("attribute a has two types", "orders", "-k", "a", "-i", "x=a:N"),
                             ("an index is NAME=KEY", "orders", "-k", "a", "-i", "x"),
                             ("a local index has one key", "orders", "-k", "a,b", "--local-index", "x=c,d"),
                             ("--file says all", "orders", "-k", "a", "-f", "x.json")]:
            self.fails(USAGE, error, "table", "create", *args)
        self.assertEqual(self.ok("table", "ls"), "")


if __name__ == "__main__":
    main()
