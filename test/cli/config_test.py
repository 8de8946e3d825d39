#!/usr/bin/env python3
"""Named databases: config_test.py COMMAND SOURCE [unittest arguments]. The file, how it is changed, and what commands
make of it.
"""
import json
import os
import subprocess
import unittest

from process import (COMMAND, NOBODY, NOT_FOUND, OK, USAGE, Commands, main, setUpModule, tearDownModule)  # noqa: F401


class Config(Commands):
    def prepare(self):
        self.url = self.env.pop("HOLDFAST_DB")
        self.prefix = self.env.pop("HOLDFAST_PREFIX")
        self.file = self.path(".config/holdfast/config")

    def write(self, text, mode=0o600, path=None):
        path = path or self.file
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def text(self):
        with open(self.file, encoding="utf-8") as file:
            return file.read()

    def shop(self):
        self.ok("config", "set", "shop", "db=" + self.url, "prefix=" + self.prefix)

    def test_names_work_everywhere(self):
        self.shop()
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(os.path.dirname(self.file)).st_mode & 0o777, 0o700)
        self.ok("--db", "@shop", "table", "create", "orders", "--key", "id", "-q")
        self.assertEqual(self.ok("table", "ls", "--db", "@shop"), "orders\n")
        self.assertEqual(self.ok("table", "ls", "--db", self.url, "--prefix", self.prefix), "orders\n")
        self.assertEqual(self.ok("table", "ls", env=dict(self.env, HOLDFAST_DB="@shop")), "orders\n")
        self.ok("healthcheck", "--db", "@shop")
        self.ok("lock", "run", "job", "--db", "@shop", "--", "true")
        db = "embedded:" + self.path("db")
        self.ok("table", "copy-schema", "orders", "copy", "--from-db", "@shop", "--db", db, "-q")
        self.assertEqual(self.ok("table", "ls", "--db", db), "copy\n")

    def test_option_then_variable_then_file(self):
        self.shop()
        self.ok("config", "set", "shop", "--default")
        self.ok("table", "create", "orders", "--key", "id", "-q")
        self.assertEqual(self.ok("table", "ls"), "orders\n")
        self.assertEqual(self.ok("table", "ls", env=dict(self.env, HOLDFAST_PREFIX="none-")), "")
        self.assertEqual(self.ok("table", "ls", "--prefix", "none-"), "")
        self.fails(6, "127.0.0.1:1", "table", "ls", env=dict(self.env, HOLDFAST_DB=NOBODY))
        self.assertEqual(self.ok("table", "ls", "--db", "@shop", env=dict(self.env, HOLDFAST_DB=NOBODY)), "orders\n")
        self.ok("config", "unset", "--default")
        self.assertNotIn("default", self.text())

    def test_other_options(self):
        self.write("[shop]\ndb = %s\nprefix = %s\ntimeout = 9s\nblobs = %s\nenv-file = keys.env\n" %
                   (self.url, self.prefix, "dir:" + self.path("blobs")))
        self.fails(USAGE, "keys.env", "table", "ls", "--db", "@shop")
        with open(self.path(".config/holdfast/keys.env"), "w", encoding="ascii") as file:
            file.write("HOLDFAST_OWNER=me\nAWS_ACCESS_KEY_ID=x\nAWS_SECRET_ACCESS_KEY=y\n")
        self.assertIn("me", self.ok("lock", "run", "a", "--db", "@shop", "--", "sh", "-c", "echo $HOLDFAST_OWNER"))
        self.ok("kv", "set", "big", "-f", "-", "--db", "@shop", input="x" * 500000)
        self.assertTrue(os.path.isdir(self.path("blobs")))
        self.assertEqual(len(self.ok("kv", "get", "big", "--db", "@shop")), 500000 + 1)

    def test_comments_survive(self):
        text = ("# mine\n\n; which one\ndefault = b\n\n# first\n[a]\n  db=http://a:1  \n# last of a\n\n# about b\n[b]\n"
                "db = http://b:1\nregion = eu-west-1")
        self.write(text)
        self.ok("config", "set", "a", "prefix=x-")
        self.assertEqual(self.text(), text.replace("db=http://a:1  \n", "db=http://a:1  \nprefix = x-\n"))
        self.ok("config", "unset", "a", "prefix")
        self.assertEqual(self.text(), text)
        self.ok("config", "set", "b", "region=eu-east-1", "profile=p", "--default")
        self.assertEqual(self.text(), text.replace("region = eu-west-1", "region = eu-east-1\nprofile = p\n"))
        self.ok("config", "unset", "b", "profile")
        self.ok("config", "set", "c", "db=http://c:1")
        self.assertTrue(self.text().endswith("region = eu-east-1\n\n[c]\ndb = http://c:1\n"), self.text())
        self.ok("config", "unset", "b")
        self.assertEqual(self.text(), "# mine\n\n; which one\n\n# first\n[a]\n  db=http://a:1  \n# last of a\n\n"
                                      "# about b\n[c]\ndb = http://c:1\n")
        self.ok("config", "set", "c", "--default")
        self.assertIn("default = c\n", self.text())
        self.assertEqual(json.loads(self.ok("config", "ls", "--json")), {"databases": [
            {"name": "a", "db": "http://a:1", "prefix": None, "default": False},
            {"name": "c", "db": "http://c:1", "prefix": None, "default": True}]})
        self.assertEqual(json.loads(self.ok("config", "show", "--json"))["name"], "c")
        self.assertEqual(json.loads(self.ok("config", "show", "@a", "--json"))["db"], "http://a:1")
        self.assertEqual(os.listdir(os.path.dirname(self.file)), ["config"])

    def test_where_it_is(self):
        self.assertEqual(self.ok("config", "path"), self.file + "\n")
        xdg = dict(self.env, XDG_CONFIG_HOME=self.path("x"))
        self.assertEqual(self.ok("config", "path", env=xdg), self.path("x/holdfast/config\n"))
        self.assertEqual(self.ok("config", "path", env=dict(self.env, XDG_CONFIG_HOME="rel")), self.file + "\n")
        named = dict(xdg, HOLDFAST_CONFIG=self.path("mine"))
        self.assertEqual(json.loads(self.ok("config", "path", "--json", env=named)),
                         {"path": self.path("mine"), "exists": False})
        self.ok("config", "set", "a", "db=http://a:1", env=named)
        self.assertEqual(self.ok("config", "ls", env=named), "a\thttp://a:1\t-\tfalse\n")
        homeless = {k: v for k, v in self.env.items() if k != "HOME"}
        self.fails(USAGE, "HOME is not set", "table", "ls", "--db", "@a", env=homeless)
        self.fails(USAGE, "HOME is not set", "config", "set", "a", "db=http://a:1", env=homeless)
        self.fails(1, "HOME is not set", "config", "path", env=homeless)
        self.assertEqual(self.ok("config", "ls"), "")
        self.fails(NOT_FOUND, "no database '@nope'", "config", "unset", "nope")
        self.ok("config", "unset", "--default")
        self.assertFalse(os.path.exists(os.path.dirname(self.file)))  # reading made nothing

    def test_output(self):
        self.assertEqual(json.loads(self.ok("config", "set", "a", "db=http://a:1", "--default", "--json")),
                         {"name": "a", "path": self.file, "default": "a"})
        self.ok("config", "set", "long-name", "db=http://127.0.0.1:8000", "prefix=p-", "-q")
        self.assertEqual(self.on_terminal("config", "ls", columns=80),
                         ["name       db                     prefix  default", "a          http://a:1             -       true",
                          "long-name  http://127.0.0.1:8000  p-      false"])
        self.assertEqual(json.loads(self.ok("config", "unset", "--default", "--json")),
                         {"name": None, "path": self.file, "default": None})

    def test_a_link_stays_one(self):
        self.write("[a]\ndb = http://a:1\n", path=self.path("dotfiles/holdfast"))
        os.makedirs(os.path.dirname(self.file))
        os.symlink(self.path("dotfiles/holdfast"), self.file)
        self.ok("config", "set", "a", "prefix=p")
        self.assertTrue(os.path.islink(self.file))
        self.assertIn("prefix = p", self.text())

    def test_directories_are_stored_whole(self):
        self.ok("config", "set", "here", "db=embedded:data", cwd=self.dir)
        self.assertEqual(json.loads(self.ok("config", "show", "here", "--json"))["db"], "embedded:" + self.path("data"))
        self.ok("--db", "@here", "kv", "set", "a", "1", cwd="/")
        self.assertTrue(os.path.isdir(self.path("data")))
        with open(self.path("keys.env"), "w", encoding="ascii") as file:
            file.write("HOLDFAST_OWNER=me\n")
        self.ok("config", "set", "here", "env-file=keys.env", "blobs=dir:blobs", cwd=self.dir)
        shown = json.loads(self.ok("config", "show", "here", "--json"))
        self.assertEqual((shown["env-file"], shown["blobs"]), (self.path("keys.env"), "dir:" + self.path("blobs")))
        self.assertIn("me", self.ok("lock", "run", "a", "--db", "@here", "--", "sh", "-c", "echo $HOLDFAST_OWNER"))
        for value in ("env-file=~/keys.env", "env-file=/keys.env", "blobs=s3://bucket", "blobs=dir:/blobs"):
            self.ok("config", "set", "here", value, cwd=self.dir)
            key, _, rest = value.partition("=")
            self.assertEqual(json.loads(self.ok("config", "show", "here", "--json"))[key], rest)

    def test_bad_files(self):
        for text, error in [
                ("[a\n", ":1: expected [NAME]"), ("\n[a b]\ndb = http://a", ":2: name 'a b': use letters"),
                ("[a]\n\n[b]\ndb = http://b", ":1: [a] has no 'db'"), ("[a]\ndb", ":2: expected [NAME] or KEY = VALUE"),
                ("[a]\nbd = http://a", ":2: unknown key 'bd'; did you mean 'db'?"),
                ("[a]\npassword = x", ":2: unknown key 'password'; there are db"),
                ("[a]\ndb = http://a\ndb = http://b", ":3: 'db' is there twice"),
                ("[a]\ndb = http://a\n[a]\ndb = http://b", ":3: [a] is there twice, first in line 1"),
                ("db = http://a", ":1: only 'default' can be before"), ("default=a\ndefault=b", ":2: 'default' is there twice"),
                ("default = a", ":1: default: there is no [a]"), ("[a]\ndb =", ":2: db: the value is empty"),
                ("[a]\ndb = ftp://x", ":2: db: 'ftp://x' is none of"),
                ("[a]\ndb = http://a\ntimeout = soon", ":3: timeout: 'soon' is not a time"),
                ("[%s]" % ("n" * 65), ":1: a name has 1 to 64 characters"), ("[]", "a name has 1 to 64"),
                ("[a]\ndb = http://a\x1b[31m", "control character"),
                ("x" * (256 * 1024 + 1), "larger than 262144 bytes"),
                ("".join("[n%d]\ndb=http://a\n" % i for i in range(1001)), "more than 1000 databases")]:
            with self.subTest(text[:40]):
                self.write(text)
                err = self.fails(USAGE, error, "table", "ls")
                self.assertIn(self.file, err)
                self.assertNotIn("\x1b", err)
                if "there is no [a]" not in error:
                    self.fails(USAGE, error, "config", "set", "zz", "db=http://z")
                    self.assertEqual(self.text(), text)
        self.ok("table", "ls", "--db", self.url)  # a file that is not needed is not read
        self.write("".join("[n%d]\ndb=http://a\n" % i for i in range(1000)).ljust(256 * 1024, "\n"))
        self.assertEqual(len(self.ok("config", "ls").splitlines()), 1000)
        self.write("[%s]\ndb = %s\n" % ("n" * 64, self.url))
        self.ok("table", "ls", "--db", "@" + "n" * 64)

    def test_modes(self):
        for mode, error in [(0o644, "other users can read this file (mode 644); run chmod 600"), (0o640, "can read"),
                            (0o620, "other users can change this file"), (0o602, "can change")]:
            self.write("[a]\ndb = http://u:secret@a:1\n", mode)
            err = self.fails(USAGE, error, "table", "ls", "--db", "@a")
            self.assertNotIn("secret", err)
        os.chmod(self.file, 0o600)
        self.assertEqual(json.loads(self.ok("config", "show", "a", "--json"))["db"], "http://***@a:1")
        self.assertNotIn("secret", self.ok("config", "ls"))
        os.remove(self.file)
        os.mkdir(self.file)
        self.fails(USAGE, "is not a regular file", "table", "ls", "--db", "@a")

    def test_a_file_that_this_user_may_not_read(self):
        """In the usual place it is that of another user; one that is named has to be read."""
        os.chmod(self.dir, 0o755)
        self.write("[a]\ndb = http://a:1\n", 0o600)
        os.chmod(os.path.dirname(self.file), 0)
        self.addCleanup(os.chmod, os.path.dirname(self.file), 0o700)
        other = {"preexec_fn": lambda: os.setuid(65534)} if os.geteuid() == 0 else {}
        try:
            self.fails(6, "127.0.0.1", "table", "ls", **other)
        except PermissionError:
            self.skipTest("the command is where other users cannot run it")
        self.fails(USAGE, "Permission denied", "table", "ls", "--db", "@a", **other)
        self.fails(USAGE, "Permission denied", "config", "ls", **other)
        self.fails(USAGE, "Permission denied", "table", "ls", env=dict(self.env, HOLDFAST_CONFIG=self.file), **other)

    def test_slips(self):
        self.shop()
        self.fails(USAGE, "no database '@shpo' in %s; did you mean '@shop'?" % self.file, "table", "ls", "--db", "@shpo")
        self.fails(USAGE, "'holdfast config set other db=URL' adds it", "table", "ls", "--db", "@other")
        self.fails(NOT_FOUND, "no database '@other'", "config", "show", "other")
        self.fails(NOT_FOUND, "there is no default", "config", "show")
        self.fails(NOT_FOUND, "no database '@other'", "config", "unset", "other")
        self.fails(USAGE, "give a name, or --default", "config", "unset")
        self.fails(USAGE, "[shop] has no 'db'", "config", "unset", "shop", "db")
        self.fails(USAGE, "[new] has no 'db'", "config", "set", "new", "prefix=x")
        self.fails(USAGE, "no database '@new'", "config", "set", "new", "--default")
        self.fails(USAGE, "give what to set", "config", "set", "new")
        self.fails(USAGE, "'x' is not KEY=VALUE", "config", "set", "new", "x")
        self.fails(USAGE, "did you mean 'region'?", "config", "set", "new", "regon=x")
        self.fails(USAGE, "control character", "config", "set", "new", "db=http://a\n[x]")
        self.fails(USAGE, "use letters, digits", "config", "set", "a/b", "db=http://a")

    def test_changes_at_once(self):
        """Ten programs add a name each: none is lost."""
        running = [subprocess.Popen([COMMAND, "config", "set", "n%d" % i, "db=http://a:%d" % (i + 1)], env=self.env)
                   for i in range(10)]
        self.assertEqual({process.wait() for process in running}, {OK})
        self.assertEqual(len(self.ok("config", "ls").splitlines()), 10)


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    main()
