#!/usr/bin/env python3
"""holdfast copy and holdfast cutover as a process: what is printed, exit codes, refusals, a signal, a server that
honours the fence."""
import json
import signal
import subprocess
import time
import unittest

from process import COMMAND, FAILED, DENIED, NOT_FOUND, OK, USAGE, WAIT_S, Commands, serve, setUpModule, \
    tearDownModule  # noqa: F401


class Copy(Commands):
    def prepare(self):
        self.source, self.target = "embedded:" + self.path("a.db"), "embedded:" + self.path("b.db")
        self.env.pop("HOLDFAST_PREFIX")
        self.env["HOLDFAST_DB"] = self.source

    def fill(self, *tables, items=3, db=None):
        for table in tables:
            self.ok("table", "create", table, "--key", "id:S", "--quiet", "--db", db or self.source)
            for i in range(items):
                self.ok("item", "put", table, json.dumps({"id": "i%d" % i, "n": i}), "--quiet", "--db",
                        db or self.source)

    def copy(self, *args, source=None, target=None):
        return self.run_("copy", source or self.source, target or self.target, *args)

    def test_all_tables_and_again(self):
        self.fill("orders", "carts")
        code, out, err = self.copy("--verify", "--json")
        self.assertEqual((code, err), (OK, ""))
        result = json.loads(out)
        self.assertEqual((result["tables"], result["items"], result["compared"], result["missing"]), (2, 6, 6, 0))
        code, out, err = self.copy("--json")
        self.assertEqual((code, json.loads(out)["items"]), (OK, 6), err)
        self.assertEqual(self.copy("--quiet"), (OK, "", ""))

    def test_dry_run_makes_nothing(self):
        self.fill("orders")
        code, out, err = self.copy("--dry-run", "--json")
        self.assertEqual((code, err), (OK, ""))
        table = json.loads(out)["tables"][0]
        self.assertEqual((table["table"], table["create"], table["items"], table["state"]), ("orders", True, 3, "new"))
        self.assertNotEqual(self.run_("table", "ls", "--db", self.target)[0], OK)

    def test_names(self):
        self.fill("orders", "carts", "other")
        code, _, err = self.copy("--tables", "orders,carts", "--map", "carts=carts-2", "--quiet")
        self.assertEqual((code, err), (OK, ""))
        names = self.ok("table", "ls", "--db", self.target).split()
        self.assertIn("orders", names)
        self.assertIn("carts-2", names)
        self.assertNotIn("other", names)

    def test_mistakes(self):
        self.fill("orders")
        for args in (["--map", "orders"], ["--until-caught-up"], ["--eventual", "--follow"],
                     ["--restart", "--verify-only"], ["--segments", "65"]):
            code, out, err = self.copy(*args)
            self.assertEqual((code, out), (USAGE, ""), args)
            self.assertIn("--", err)
        code, _, err = self.copy(target=self.source)
        self.assertEqual(code, USAGE)
        self.assertIn("same database", err)
        code, _, err = self.copy("--tables", "missing")
        self.assertEqual(code, NOT_FOUND)
        self.assertIn("missing", err)
        code, _, err = self.copy(source="embedded:" + self.path("nothing.db"))
        self.assertNotEqual(code, OK)
        code, _, err = self.run_("cutover", self.source, self.target)
        self.assertNotEqual(code, OK)

    def test_a_target_with_items_or_another_key(self):
        self.fill("orders")
        self.fill("orders", items=1, db=self.target)
        code, _, err = self.copy()
        self.assertEqual(code, USAGE)
        self.assertIn("table orders of the target has items", err)
        self.assertEqual(self.copy("--overwrite", "--quiet")[0], OK)
        other = "embedded:" + self.path("c.db")
        self.ok("table", "create", "orders", "--key", "name:S", "--quiet", "--db", other)
        code, _, err = self.copy(target=other)
        self.assertEqual(code, USAGE)
        self.assertIn("table orders", err)

    def test_differences_are_printed(self):
        self.fill("orders")
        self.assertEqual(self.copy("--quiet")[0], OK)
        self.ok("item", "delete", "orders", "i0", "--quiet", "--db", self.target)
        self.ok("item", "put", "orders", '{"id":"i1","n":9}', "--quiet", "--db", self.target)
        self.ok("item", "put", "orders", '{"id":"x","n":9}', "--quiet", "--db", self.target)
        code, out, err = self.copy("--verify-only", "--quiet")
        self.assertEqual((code, err), (FAILED, ""))
        self.assertEqual(sorted(line.split("\t")[:2] for line in out.splitlines()),
                         [["different", "orders"], ["extra", "orders"], ["missing", "orders"]])
        self.assertIn('{"id":{"S":"i0"}}', out)

    def test_following_until_a_signal_and_a_cutover_of_servers(self):
        source, target = serve("--in-memory"), serve("--in-memory")
        try:
            self.fill("orders", db=source.url)
            process = subprocess.Popen([COMMAND, "copy", source.url, target.url, "--follow"], env=self.env,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            end = time.monotonic() + WAIT_S
            number = 3
            while time.monotonic() < end:  # changes come while it runs
                self.ok("item", "put", "orders", '{"id":"i%d","n":1}' % number, "--quiet", "--db", source.url)
                if self.run_("item", "get", "orders", "i%d" % (number - 1), "--db", target.url)[0] == OK and \
                        number > 6:
                    break
                number += 1
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=WAIT_S)
            self.assertEqual(process.returncode, OK, err)
            self.assertIn("stream was switched on", err)
            self.assertRegex(out, r"changes +\d")
            code, out, err = self.run_("cutover", source.url, target.url, "--settle", "1ms", "--json")
            self.assertEqual((code, err), (OK, ""))
            self.assertEqual(json.loads(out)["compared"], number + 1)
            code, _, err = self.run_("item", "put", "orders", '{"id":"late"}', "--db", source.url)
            self.assertEqual(code, DENIED)
            self.assertIn(target.url, err)
            self.ok("item", "put", "orders", '{"id":"new"}', "--quiet", "--db", target.url)
            code, _, err = self.run_("cutover", source.url, target.url, "--abort", "--quiet")
            self.assertEqual((code, err), (OK, ""))
            self.ok("item", "put", "orders", '{"id":"late"}', "--quiet", "--db", source.url)
        finally:
            for server in (source, target):
                server.terminate()
                server.communicate(timeout=WAIT_S)


if __name__ == "__main__":
    unittest.main(argv=["copy_test.py"])
