#!/usr/bin/env python3
"""`holdfast doctor`: doctor_test.py COMMAND SOURCE [unittest arguments]. Servers, directories that are good,
missing, damaged or in use, services that do not answer, environment variables; in pipes, as JSON and in a
pseudo-terminal.
"""
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import threading
import unittest

import process
from process import (COMMAND, CONDITION, FAILED, NOBODY, OK, SOURCE, USAGE, WAIT_S, Commands, main, serve,
                     setUpModule, tearDownModule)  # noqa: F401

STATES = {"ok", "skipped", "warning", "problem"}
MACHINE = {"clock"}  # what depends on the machine that runs the test


class Doctor(Commands):
    def look(self, *args, **more):
        """The findings, by check, and the exit code; with what always holds of the output."""
        code, out, err = self.run_("doctor", "--json", *args, **more)
        self.assertEqual(err, "", args)
        report = json.loads(out)
        self.assertEqual(set(report), {"database", "checks", "state", "warnings", "problems"})
        states = [check["state"] for check in report["checks"]]
        self.assertLessEqual(set(states), STATES)
        self.assertEqual(report["warnings"], states.count("warning"))
        self.assertEqual(report["problems"], states.count("problem"))
        self.assertEqual(code, FAILED if report["problems"] else CONDITION if report["warnings"] else OK)
        for check in report["checks"]:
            self.assertTrue(check["found"], check)
            if check["state"] in ("warning", "problem"):
                self.assertTrue(check["advice"], check)
        return {check["check"]: check for check in report["checks"]}

    def states(self, found, state):
        return {name for name, check in found.items() if check["state"] == state} - MACHINE

    def directory(self, name="db"):
        path = self.path(name)
        self.ok("table", "create", "orders", "-k", "id:S", "-q", "--db", "embedded:" + path)
        return path


class Services(Doctor):
    def test_a_server(self):
        found = self.look()
        self.assertEqual(self.states(found, "problem"), set())
        self.assertEqual(found["server"]["found"], "holdfast serve: ready")
        self.assertIn("median", found["requests"]["found"])
        self.assertIn("placeholders", found["credentials"]["found"])
        self.assertIn("same as here", found["server clock"]["found"])
        for name in ("holdfast", "kernel", "OpenSSL", "libcurl", "open files", "memory", "endpoint", "connection"):
            self.assertEqual(found[name]["state"], "ok", name)

    def test_nobody_answers(self):
        found = self.look("--db", NOBODY)
        self.assertEqual(found["connection"]["state"], "problem")
        self.assertIn("holdfast serve", found["connection"]["advice"])
        self.assertNotIn("requests", found)
        found = self.look("--db", "http://no.such.host.invalid:8000",
                          env=dict(self.env, AWS_ACCESS_KEY_ID="A" * 20, AWS_SECRET_ACCESS_KEY="secret"))
        self.assertEqual(found["name"]["state"], "problem")

    def test_something_else_answers(self):
        """Bytes that are no HTTP, and would move the cursor of a terminal."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def answer():
            while True:
                try:
                    connection = listener.accept()[0]
                except OSError:
                    return
                with connection:
                    connection.settimeout(1)
                    try:
                        connection.recv(65536)
                        connection.sendall(b"\x1b[2J220 mail\r\n\r\n")
                    except OSError:
                        pass

        threading.Thread(target=answer, daemon=True).start()
        url = "http://127.0.0.1:%d" % listener.getsockname()[1]
        found = self.look("--db", url)
        self.assertEqual(found["HTTP"]["state"], "problem")
        code, out, _ = self.run_("doctor", "--db", url)
        self.assertEqual(code, FAILED)
        self.assertNotIn("\x1b", out)

    def test_a_proxy_that_is_down(self):
        server = process.SERVER.url
        found = self.look("--db", server, env=dict(self.env, http_proxy=NOBODY))
        self.assertEqual(found["HTTP"]["advice"], "Check the proxy of http_proxy, or add the host to no_proxy.")
        found = self.look("--db", server + "?proxy=" + NOBODY)
        self.assertIn("?proxy=", found["connection"]["found"])
        self.assertIn("Check the proxy in the URL", found["HTTP"]["advice"])
        for without in ("127.0.0.1", "*", "other, .127.0.0.1"):
            found = self.look("--db", server, env=dict(self.env, http_proxy=NOBODY, no_proxy=without))
            self.assertEqual(found["connection"]["state"], "ok", without)
        found = self.look("--db", server + "?proxy=none", env=dict(self.env, http_proxy=NOBODY))
        self.assertEqual(found["connection"]["state"], "ok")
        found = self.look("--db", server, env=dict(self.env, http_proxy=NOBODY, no_proxy="7.0.0.1,127.0.0"))
        self.assertEqual(found["connection"]["state"], "skipped")

    def test_invalid_urls(self):
        for url in ("ftp://x", "http://", "dynamodb://no_such region"):
            found = self.look("--db", url)
            self.assertEqual(found["URL"]["state"], "problem", url)
            self.assertIn("http://HOST:PORT", found["URL"]["advice"])

    def ends_at(self, when):
        """A profile whose keys come from a program and expire then."""
        keys = {"Version": 1, "AccessKeyId": "AKIAIOSFODNN7EXAMPLE", "SecretAccessKey": "s" * 40,
                "SessionToken": "t", "Expiration": when}
        with open(self.path("keys.json"), "w", encoding="ascii") as file:
            json.dump(keys, file)
        os.makedirs(self.path(".aws"), exist_ok=True)
        with open(self.path(".aws/config"), "w", encoding="ascii") as file:
            file.write("[profile shop]\ncredential_process = cat %s\n" % self.path("keys.json"))

    def test_credentials_are_named_and_never_shown(self):
        secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
        env = dict(self.env, AWS_ACCESS_KEY_ID="AKIAIOSFODNN7EXAMPLE", AWS_SECRET_ACCESS_KEY=secret)
        found = self.look(env=env)
        self.assertEqual(found["credentials"]["found"], "access key AKIA...MPLE from the variable AWS_ACCESS_KEY_ID")
        self.assertNotIn(secret, json.dumps(found))
        self.assertNotIn("AKIAIOSFODNN7EXAMPLE", json.dumps(found))
        expired = dict(env, AWS_SESSION_TOKEN="token", AWS_CREDENTIAL_EXPIRATION="2020-01-01T00:00:00Z")
        found = self.look(env=expired)
        self.assertEqual(found["variable"]["state"], "problem")
        self.assertIn("expired", found["variable"]["found"])
        self.ends_at("2020-01-01T00:00:00Z")
        found = self.look("--profile", "shop")
        self.assertEqual(found["credentials"]["state"], "problem")
        self.assertIn("expired", found["credentials"]["found"])
        self.ends_at("2099-01-01T00:00:00Z")
        found = self.look("--profile", "shop")
        self.assertRegex(found["credentials"]["found"], r"AKIA\.\.\.MPLE from credential_process, valid for \d+d")
        found = self.look("--profile", "nobody")
        self.assertIn("nobody", found["URL"]["found"])

    def test_a_server_with_other_keys(self):
        keys = self.path("keys.ini")
        with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("[a]\naws_access_key_id = AKIDEXAMPLEEXAMPLE00\naws_secret_access_key = right\n")
        server = serve("--in-memory", "--credentials", keys)
        try:
            found = self.look("--db", server.url, env=dict(self.env, AWS_ACCESS_KEY_ID="AKIDEXAMPLEEXAMPLE00",
                                                           AWS_SECRET_ACCESS_KEY="wrong"))
            self.assertEqual(found["requests"]["state"], "problem")
            found = self.look("--db", server.url, env=dict(self.env, AWS_ACCESS_KEY_ID="AKIDEXAMPLEEXAMPLE00",
                                                           AWS_SECRET_ACCESS_KEY="right"))
            self.assertEqual(found["requests"]["state"], "ok")
        finally:
            server.terminate()
            server.communicate(timeout=WAIT_S)


class Directories(Doctor):
    def tree(self, path):
        return sorted((os.path.join(at, name), os.lstat(os.path.join(at, name)).st_mtime_ns)
                      for at, folders, files in os.walk(path) for name in folders + files)

    def test_a_good_one_is_not_touched(self):
        path = self.directory()
        before = self.tree(path)
        found = self.look("--db", "embedded:" + path)
        self.assertEqual(self.tree(path), before)
        self.assertEqual(self.states(found, "problem"), set())
        self.assertIn("; 1 table, ", found["state"]["found"])
        for name in ("directory", "modes", "disk space", "in use", "state"):
            self.assertEqual(found[name]["state"], "ok", name)
        self.assertRegex(found["sync"]["found"], r"^[0-9.]+ (us|ms|s) for a write with its sync \(median of 16\)")
        self.assertRegex(found["disk space"]["found"], r"free, and the reserve is about \d+ MB$")

    def test_a_missing_one_is_not_made(self):
        found = self.look("--db", "embedded:" + self.path("none"))
        self.assertEqual(found["directory"]["state"], "warning")
        self.assertIn("sync", found)  # of the disk that it would be on
        self.assertEqual(os.listdir(self.dir), [])
        found = self.look("--db", "embedded:" + self.path("none/below"))
        self.assertEqual(found["directory"]["state"], "problem")
        open(self.path("file"), "w").close()
        found = self.look("--db", "embedded:" + self.path("file"))
        self.assertIn("is a file", found["directory"]["found"])
        os.mkdir(self.path("empty"))
        found = self.look("--db", "embedded:" + self.path("empty"))
        self.assertIn("no database in it", found["directory"]["found"])
        self.assertEqual(os.listdir(self.path("empty")), [])

    def test_a_damaged_one(self):
        path = self.directory()
        with open(os.path.join(path, "durable"), "r+b") as file:
            file.write(b"\0" * 1024)
        found = self.look("--db", "embedded:" + path)
        self.assertEqual(found["state"]["state"], "problem")
        self.assertIn("copy", found["state"]["advice"])
        with open(os.path.join(path, "HOLDFAST"), "w") as file:
            file.write("holdfast store format 99\n")
        found = self.look("--db", "embedded:" + path)
        self.assertIn("version", found["state"]["advice"])

    def test_one_that_a_server_has_open(self):
        server = serve("--db-path", self.path("db"))
        try:
            found = self.look("--db", "embedded:" + self.path("db"))
            self.assertIn("process %d (holdfast serve)" % server.pid, found["in use"]["found"])
            self.assertIn(server.url, found["in use"]["found"])
            self.assertEqual(found["state"]["state"], "skipped")
            self.assertEqual(self.states(found, "problem"), set())
        finally:
            server.terminate()
            server.communicate(timeout=WAIT_S)

    def test_one_that_is_not_finished(self):
        os.mkdir(self.path("db"))
        open(self.path("db/HOLDFAST.new"), "w").close()
        found = self.look("--db", "embedded:" + self.path("db"))
        self.assertEqual(found["directory"]["state"], "warning")
        self.assertIn("the next write finishes it", found["directory"]["advice"])

    def test_a_full_disk(self):
        """It is no fault of the disk: only its space is a problem."""
        os.mkdir(self.path("full"))
        script = ("mount -t tmpfs -o size=64k none '%s' || exit 77; head -c 1M /dev/zero > '%s/x' 2>/dev/null; "
                  "exec '%s' doctor --json --db embedded:'%s/db'" % (self.path("full"), self.path("full"), COMMAND,
                                                                   self.path("full")))
        try:
            done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, env=self.env,
                                  timeout=WAIT_S, check=False)
        except FileNotFoundError:
            self.skipTest("needs unshare")
        if not done.stdout.startswith("{"):
            self.skipTest("needs a mount of its own")
        found = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual((found["sync"]["state"], found["disk space"]["state"]), ("skipped", "problem"))
        self.assertIn("see disk space", found["sync"]["found"])

    def test_modes(self):
        path = self.directory()
        os.chmod(os.path.join(path, "durable"), 0o666)
        found = self.look("--db", "embedded:" + path)
        self.assertEqual(found["modes"]["state"], "warning")
        self.assertIn("durable", found["modes"]["found"])

    def test_one_of_another_user(self):
        path = self.directory()
        os.chmod(self.dir, 0o755)
        if os.geteuid() == 0:
            try:
                found = self.look("--db", "embedded:" + path, preexec_fn=lambda: os.setuid(65534))
            except PermissionError:
                self.skipTest("the command is where other users cannot run it")
        else:
            os.chmod(path, 0)
            self.addCleanup(os.chmod, path, 0o700)
            found = self.look("--db", "embedded:" + path)
        self.assertIn("Permission denied", found["directory"]["found"])
        self.assertIn("as the user of the database", found["directory"]["advice"])

    @unittest.skipUnless(os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK), "needs a tmpfs")
    def test_a_directory_in_memory(self):
        path = "/dev/shm/holdfast-doctor-%d" % os.getpid()
        self.addCleanup(shutil.rmtree, path, ignore_errors=True)
        self.ok("table", "create", "orders", "-k", "id:S", "-q", "--db", "embedded:" + path)
        found = self.look("--db", "embedded:" + path)
        self.assertEqual((found["file system"]["found"], found["file system"]["state"]), ("tmpfs", "warning"))
        self.assertIn("restarts", found["file system"]["advice"])


class Machine(Doctor):
    def test_limits(self):
        def low():
            resource.setrlimit(resource.RLIMIT_NOFILE, (700, 700))
            resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 20, 100 << 20))

        found = self.look("--db", NOBODY, preexec_fn=low)
        self.assertEqual(found["open files"]["state"], "problem")
        self.assertEqual(found["file size"]["state"], "problem")

        def limit(files):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

        for files, state in ((703, "problem"), (704, "warning"), (10639, "warning"), (10640, "ok")):
            found = self.look("--db", NOBODY, preexec_fn=limit(files))
            self.assertEqual(found["open files"]["state"], state, files)

    def test_variables(self):
        found = self.look(env=dict(self.env, HOLDFAST_BD="x"))
        self.assertEqual(found["variable"]["found"], "HOLDFAST_BD is set and has no effect")
        self.assertEqual(found["variable"]["advice"], "Did you mean HOLDFAST_DB?")
        found = self.look(env=dict(self.env, AWS_ACESS_KEY_ID="x"))
        self.assertIn("AWS_ACCESS_KEY_ID", found["variable"]["advice"])
        found = self.look(env=dict(self.env, AWS_REGION="eu-west-1", AWS_DEFAULT_REGION="eu-west-2"))
        self.assertIn("AWS_REGION is used", found["variable"]["advice"])
        found = self.look(env=dict(self.env, AWS_PAGER="", AWS_VAULT="shop", HOLDFAST_LOCK_TOKEN="7"))
        self.assertEqual(found["variables"]["state"], "ok")  # other tools', and our own
        found = self.look(env=dict(self.env, HOLDFAST_CONFIG=self.path("none")))
        self.assertEqual(found["variables"]["state"], "ok")
        found = self.look(env=dict(self.env, HOLDFAST_CONFG="x"))
        self.assertEqual(found["variable"]["advice"], "Did you mean HOLDFAST_CONFIG?")
        found = self.look(env=dict(self.env, HOLDFAST_SOMETHING_ELSE="x"))
        self.assertIn("Remove it", found["variable"]["advice"])

    def config(self, text):
        os.makedirs(self.path(".config/holdfast"))
        with open(os.open(self.path(".config/holdfast/config"), os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(text)

    def test_a_bad_config_file_is_a_finding(self):
        self.config("[shop]\nbd = http://a\n")
        del self.env["HOLDFAST_DB"]
        found = self.look()
        self.assertIn("unknown key 'bd'", found["config"]["found"])
        self.assertIn("endpoint", found)
        found = self.look("--db", "@shop")
        self.assertEqual(found["config"]["state"], "problem")
        self.assertNotIn("URL", found)
        self.assertNotIn("config", self.look("--db", NOBODY))

    def test_secrets_of_urls_are_not_shown(self):
        for url in ("http://ann:secr/et@127.0.0.1:1", "http://127.0.0.1:1?proxy=http://ann:secr/et@127.0.0.1:2",
                    "http://127.0.0.1:1?proxy=http%3A%2f%2Fann%3Asecr%2Fet%40127.0.0.1:2", "ftp://ann:secr/et@host"):
            for args in (("--json",), ()):
                _, out, err = self.run_("doctor", "--db", url, *args)
                self.assertNotIn("et@", out + err)
                self.assertNotIn("secr", out + err)
                self.assertTrue("***@" in out or "***%40" in out or not args)
            self.assertNotIn("secr", "".join(self.on_terminal("doctor", "--db", url, columns=80, code=FAILED)))
            for args in (("scan", "orders"), ("top",), ("bench", "--json"), ("shell", "-c", "table ls"), ("healthcheck",)):
                code, out, err = self.run_(*args, "--db", url)
                self.assertNotEqual(code, 0)
                self.assertNotIn("secr", out + err, args)

    def test_usage(self):
        self.fails(USAGE, "unexpected argument", "doctor", "x")
        self.fails(USAGE, "timeout", "doctor", "--timeout", "0")


class Output(Doctor):
    def test_pipes(self):
        code, out, _ = self.run_("doctor", "--db", NOBODY)
        lines = [line.split("\t") for line in out.splitlines()]
        self.assertEqual(code, FAILED)
        self.assertEqual({len(line) for line in lines}, {4})
        self.assertLessEqual({line[0] for line in lines}, STATES)
        self.assertNotIn("\x1b", out)
        code, out, _ = self.run_("doctor", "--db", NOBODY, "--quiet")
        self.assertEqual(code, FAILED)
        self.assertLessEqual({line.split("\t")[0] for line in out.splitlines()}, {"warning", "problem"})

    def test_terminals(self):
        self.env.update(LANG="C", TERM="xterm")
        for columns in (120, 80, 40):
            lines = self.on_terminal("doctor", "--db", NOBODY, columns=columns, code=FAILED)
            plain = [re.sub(r"\x1b\[\d*m", "", line) for line in lines]
            self.assertIn("\x1b[31m", "\n".join(lines))
            self.assertEqual(plain[0], NOBODY)
            self.assertRegex(plain[-1], r"^1 problem, \d warnings?$")
            words = [word for line in plain for word in line.split()]
            longest = max(len(line) for line in plain if len(line.split()) > 3)
            self.assertLessEqual(longest, max(columns, max(map(len, words))), (columns, plain))
        for env in ({"NO_COLOR": "1"}, {"NO_COLOR": "", "TERM": "dumb"}, {"TERM": ""}):
            self.env.update(env)
            self.assertNotIn("\x1b", "\n".join(self.on_terminal("doctor", "--db", NOBODY, columns=80, code=FAILED)))
            self.assertNotIn("\x1b", "\n".join(self.on_terminal("help", columns=80)))
        self.env.update(NO_COLOR="", TERM="xterm")
        self.assertIn("\x1b[1m", "\n".join(self.on_terminal("help", columns=80)))

    def test_output_that_is_lost(self):
        with open("/dev/full", "w") as full:
            for args in ((), ("--json",)):
                done = subprocess.run([COMMAND, "doctor", *args], stdout=full, stderr=subprocess.PIPE, text=True,
                                      env=self.env, timeout=WAIT_S, check=False)
                self.assertEqual(done.returncode, FAILED)
                self.assertIn("cannot write to standard output", done.stderr)

    def test_a_closed_pipe(self):
        shell = subprocess.run("'%s' doctor --db %s | head -1" % (COMMAND, process.SERVER.url), shell=True,
                               capture_output=True, text=True, timeout=WAIT_S, env=self.env)
        self.assertEqual(len(shell.stdout.splitlines()), 1)


if __name__ == "__main__":
    main()
