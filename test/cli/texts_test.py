#!/usr/bin/env python3
"""What the command says about itself: texts_test.py COMMAND SOURCE [unittest arguments]. Help, the manual pages of
section 1, completion in the shells that are installed.
"""
import http.server
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import process
from process import (COMMAND, FAILED, SOURCE, USAGE, WAIT_S, Commands, commands, main, setUpModule,
                     tearDownModule)  # noqa: F401

TRIES = 10
PROGRAMS = ("lock run", "once run", "streams tail", "events subscribe", "events consume", "blobs get")


def nouns():
    return sorted({words.split()[0] for words in commands() if " " in words})


class Help(Commands):
    def test_every_command_has_help_with_an_example(self):
        self.assertGreater(len(commands()), 90)
        for words in commands():
            with self.subTest(words):
                text = self.ok(*words.split(), "--help")
                self.assertTrue(text.startswith("Usage: holdfast " + words))
                self.assertIn("\nExamples:\n", text)
                self.assertLessEqual(max(map(len, text.split("\nExamples:")[0].splitlines())), 80)
                self.assertEqual(text, self.ok("help", *words.split()))

    def test_all_but_programs_can_answer_in_json(self):
        for words in commands():
            if " " in words and words.split()[0] not in ("iam", "config") and words not in PROGRAMS:
                self.assertIn("--json ", self.ok(*words.split(), "--help"), words)
        self.ok("once", "run", "k", "--", "true")
        self.assertEqual(json.loads(self.ok("once", "clear", "k", "--json")),
                         {"user": "global", "key": "k", "cleared": True})
        self.ok("limit", "check", "n", "-l", "1")
        self.assertEqual(json.loads(self.ok("limit", "reset", "n", "--json")), {"name": "n"})
        self.assertEqual(json.loads(self.ok("table", "delete", "limits", "--yes", "--json")),
                         {"name": "limits"})

    def test_nouns_have_help(self):
        for noun in nouns():
            text = self.ok(noun, "--help")
            self.assertIn("holdfast %s COMMAND" % noun, text)
            self.assertEqual(self.ok("help", noun), text)
            self.assertEqual(self.run_(noun), (USAGE, text, ""))
            for words in commands():
                if words.startswith(noun + " "):
                    self.assertIn("\n  %s  " % words, text)
            code, _, err = self.run_(noun, "nonsense")
            self.assertEqual(code, USAGE)
            self.assertIn("unknown command '%s nonsense'" % noun, err)

    def test_the_list_has_every_noun_once(self):
        listed = re.findall(r"(?m)^  ([a-z]+)  ", self.ok("--help"))
        self.assertEqual(sorted(listed), sorted({words.split()[0] for words in commands()} | {"version"}))

    def test_topics(self):
        listed = re.findall(r"(?m)^  help ([a-z-]+)  ", self.ok("--help"))
        self.assertLess({"commands", "options", "database", "output", "exit-codes", "files"}, set(listed))
        for topic in listed:
            text = self.ok("help", topic)
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
            self.assertGreater(len(text), 150)
        self.assertEqual(self.run_("help", "nothing-like-it")[0], USAGE)
        for words in (["help"], ["help", "help"], ["help", "--help"], ["help", "version"]):
            self.assertEqual(self.ok(*words), self.ok("--help"))

    def test_exit_codes_are_those_of_the_code(self):
        with open(os.path.join(SOURCE, "src/cli/frame/cli.h"), encoding="ascii") as file:
            code = re.findall(r"CLI_\w+ = (\d+)[, ]", file.read().split("enum { CLI_SIGNAL")[0])
        self.assertEqual(re.findall(r"(?m)^  (\d+)  ", self.ok("help", "exit-codes")), code)

    def test_a_full_device_is_no_success(self):
        done = subprocess.run(["sh", "-c", '"$0" --help >/dev/full', COMMAND], capture_output=True, text=True,
                              timeout=WAIT_S)
        self.assertEqual((done.returncode, done.stderr),
                         (FAILED, "holdfast: cannot write to standard output: No space left on device\n"))


class Errors(Commands):
    """With --json every error is a line of JSON: of every command."""

    def parsed(self, words, *more):
        code, _, err = self.run_(*words, *more, stdin=subprocess.DEVNULL)
        lines = [json.loads(line) for line in err.splitlines()]
        self.assertTrue(all(set(line) <= {"error", "notice"} for line in lines), err)
        if code and words != ["doctor"]:  # whose findings are its output
            self.assertEqual(lines[-1]["error"]["command"], " ".join(words))
            self.assertTrue(lines[-1]["error"]["code"])
        return code

    def test_of_options_and_operands_that_are_none(self):
        for name in commands():
            words = name.split()
            with self.subTest(name):
                self.assertEqual(self.parsed(words, "--json", "--no-such-option"), USAGE)
                self.assertEqual(self.parsed(words, "--no-such-option", "--json"), USAGE)
                if "..." not in self.ok(*words, "--help").splitlines()[0]:
                    self.assertEqual(self.parsed(words, "--json", *["x"] * 9), USAGE)

    def without(self, db):
        for name in commands():
            words = name.split()
            text = self.ok(*words, "--help")
            needed = [word for word in re.sub(r"\[.*?\]", "", text.splitlines()[0]).split()[2 + len(words):] if word.isupper()]
            if "--db URL" in text:
                with self.subTest(name):
                    self.parsed(words, "--json", "--db", db, *["x"] * len(needed))

    def test_of_a_server_that_is_not_there(self):
        self.without(process.NOBODY)

    def test_of_a_directory_that_is_not_there(self):
        self.without("embedded:" + self.path("none/at/all"))


class Manual(Commands):
    """The pages, as the build makes them."""
    pages = None

    def prepare(self):
        if not Manual.pages:
            self.ok("manual", self.path("man1"))
            Manual.pages = {}
            for name in os.listdir(self.path("man1")):
                with open(os.path.join(self.path("man1"), name), encoding="ascii") as file:
                    Manual.pages[name] = file.read()
        self.folder = self.path("man1")
        os.makedirs(self.folder, exist_ok=True)
        for name, text in self.pages.items():
            with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
                file.write(text)

    def shown(self, name, width=100):
        """A page as people see it, in one line; "" where groff is not installed."""
        done = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "-rLL=%dn" % width, "-ww",
                               os.path.join(self.folder, name)], capture_output=True, text=True, timeout=WAIT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""), name)
        return re.sub(r"-\n +", "-", done.stdout)

    def test_every_command_has_a_page(self):
        self.assertEqual(set(self.pages), {"holdfast.1"} | {"holdfast-%s.1" % words.split()[0]
                                                            for words in commands()})
        for words in commands():
            page = self.pages["holdfast-%s.1" % words.split()[0]].replace("\\-", "-")
            self.assertIn("\\fBholdfast %s\\fP" % words, page)
            for option in re.findall(r"(?m)^  (?:-\w, |    )(--?[A-Za-z-]+)", self.ok(*words.split(), "--help")):
                if option != "--help":
                    self.assertIn("\\fB%s\\fP" % option, page, words)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_pages_are_valid_and_show_all(self):
        for name, page in sorted(self.pages.items()):
            text = self.shown(name)
            self.assertNotRegex(text, r"\\[-&f(*e]", name)  # what groff should have taken
            self.assertRegex(text, r"(?m)^NAME\n +holdfast[a-z-]* - \w")
            self.assertRegex(text, r"(?m)^SEE ALSO\n +holdfast")
            for line in page.splitlines():
                self.assertLess(len(line), 400, name)
        text = " ".join(self.shown("holdfast-item.1").split())
        for part in ("""'{":min":5}'""", '{"a":{"S":"x"}}', "--return none|old", "holdfast item get orders ann 2",
                     "HOLDFAST_DB The same as --db, which overrides it."):
            self.assertIn(part, text)
        text = " ".join(self.shown("holdfast-serve.1").split())
        for part in ("--sync full|batch|none", "Default: full.", "-dbPath DIR", "Also -inMemory.",
                     "SIGTERM, SIGINT Refuse new connections", "root:holdfast and mode 640"):
            self.assertIn(part, text)
        text = " ".join(self.shown("holdfast.1").split())
        for part in ("Patterns lock run, ls, show", "124 The program took too long", "--env-file FILE",
                     r"""{"error":{"code":"not_found","message":"key 'x' does not exist",""", r"\n, \t, \\, \x1b",
                     "holdfast-lock(1)", "--timeout TIME Time limit for the database"):
            self.assertIn(part, text)

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc")
    def test_mandoc_accepts_them(self):
        for name in self.pages:
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "error", os.path.join(self.folder, name)],
                                  capture_output=True, text=True, timeout=WAIT_S)
            self.assertEqual((done.returncode, done.stdout), (0, ""), name)

    @unittest.skipUnless(shutil.which("lexgrog"), "no man-db")
    def test_names_are_found_by_man_k(self):
        for name in self.pages:
            done = subprocess.run(["lexgrog", os.path.join(self.folder, name)], capture_output=True, text=True,
                                  timeout=WAIT_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r': "%s - [A-Za-z].*"\n$' % name[:-2])

    def test_common_options_are_written_once(self):
        for name in ("holdfast-lock.1", "holdfast-item.1", "holdfast-events.1"):
            page = self.pages[name]
            self.assertEqual(page.count(".TP\n\\fB\\-\\-db\\fP"), 1, name)
            self.assertLess(page.index(".SS Common options"), page.index("\\fB\\-\\-db\\fP"))

    def test_pages_refer_to_pages(self):
        for name, page in self.pages.items():
            for other in re.findall(r"\\fB(holdfast[a-z\\-]*)\\fP\(1\)", page):
                self.assertIn(other.replace("\\", "") + ".1", self.pages, name)

    def test_bad_places(self):
        self.assertEqual(self.run_("manual")[0], USAGE)
        self.assertEqual(self.run_("manual", self.path("not/there"))[0], FAILED)
        with open(self.path("file"), "w", encoding="ascii"):
            pass
        self.assertIn("cannot write", self.fails(FAILED, self.path("file"), "manual", self.path("file")))


class Answers(http.server.BaseHTTPRequestHandler):
    """A server whose tables have names that are none."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"TableNames": ["fine", "$(touch x)", "a\nb", "\033[31m", "x y", ""]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Completion(Commands):
    def complete(self, *words, **more):
        return set(self.ok("complete", *words, **more).split("\n")) - {""}

    def answers(self, expected, ask):
        """What needs the database has little time for it; on a busy machine too little, now and then."""
        for _ in range(TRIES):
            found = ask()
            if found == expected:
                break
        self.assertEqual(found, expected)

    def make_tables(self, *names):
        for name in names:
            self.ok("table", "create", name, "--key", "id:S", "-q")

    def test_words(self):
        complete = self.complete
        self.assertEqual(complete("lo"), {"lock"})
        self.assertLessEqual({"serve", "help", "version", "lock"}, complete(""))
        self.assertEqual(complete("lock", ""), {"run", "ls", "show", "break", "import"})
        self.assertEqual(complete("lock", "run", "--w"), {"--wait"})
        self.assertEqual(complete("kv", "set", "a", "--type", "j"), {"json"})
        self.assertEqual(complete("kv", "set", "a", "-f", ""), {":file"})
        self.assertEqual(complete("lock", "show", ""), set())
        self.assertEqual(complete("lock", "run", "a", "--", ""), {":file"})
        self.assertEqual(complete("outbox", "import", ""), {":file"})
        self.assertEqual(complete("outbox", "import", "x", ""), set())
        self.assertEqual(complete("check", ""), {":dir"})
        self.assertEqual(complete("completion", ""), {"bash", "zsh", "fish"})
        self.assertEqual(complete("help", "lo"), {"lock"})
        self.assertEqual(complete("help", "exit"), {"exit-codes"})
        self.assertEqual(complete("help", "lock", "s"), {"show"})
        self.assertEqual(complete("--db", "http://localhost:1", "lock", "s"), {"show"})
        self.assertEqual(complete("--env"), {"--env-file"})
        self.assertEqual(complete("serve", "--sync", ""), {"full", "batch", "none"})
        self.assertEqual(complete("serve", "--sync=b"), {"batch"})
        self.assertEqual(complete("serve", "-dbP"), {"-dbPath"})
        self.assertEqual(complete(), complete(""))

    def test_tables(self):
        self.make_tables("orders", "users", "others")
        complete = self.complete
        for words in (["item", "get"], ["query"], ["table", "show"], ["table", "delete", "--yes"], ["scan", "-n", "5"],
                      ["streams", "tail", "--from", "15m"], ["kv", "get", "--table"]):
            self.answers({"orders", "users", "others"}, lambda words=words: complete(*words, ""))
        self.answers({"orders", "others"}, lambda: complete("item", "get", "o"))
        self.answers({"users"}, lambda: complete("kv", "get", "--table=u"))
        self.assertEqual(complete("item", "get", "orders", ""), set())
        bare = process.clean_env(HOME=self.dir)
        prefix = self.env["HOLDFAST_PREFIX"]
        for words in (["item", "get", "--db", process.SERVER.url, "--prefix", prefix],
                      ["--db", process.SERVER.url, "--prefix", prefix, "item", "get"],
                      ["item", "get", "--db=" + process.SERVER.url, "--prefix=" + prefix]):
            self.answers({"users"}, lambda words=words: complete(*words, "us", env=bare))
        self.ok("config", "set", "shop", "db=" + process.SERVER.url, "prefix=" + prefix, env=bare)
        self.answers({"users"}, lambda: complete("item", "get", "--db", "@shop", "us", env=bare))
        self.ok("config", "set", "shop", "--default", env=bare)
        self.answers({"users"}, lambda: complete("item", "get", "us", env=bare))

    def test_nothing_is_made_opened_or_waited_for(self):
        self.assertEqual(self.complete("item", "get", "--db", "embedded:" + self.path("new.db"), ""), set())
        self.assertEqual(os.listdir(self.dir), [])
        self.env["HOLDFAST_PREFIX"] = ""
        with socket.create_server(("127.0.0.1", 0)) as silent:  # which never answers
            url = "http://127.0.0.1:%d" % silent.getsockname()[1]
            self.assertEqual(self.run_("complete", "item", "get", "--db", url, "")[1], "")
        self.assertEqual(self.complete("item", "get", "--db", "nonsense", ""), set())
        self.assertEqual(self.complete("item", "get", "--db", "http://127.0.0.1:1", ""), set())
        self.assertEqual(self.complete("item", "get", "--nonsense", "--more", ""), set())

    def test_names_of_a_hostile_server(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        env = process.clean_env(HOME=self.dir, AWS_ACCESS_KEY_ID="any", AWS_SECRET_ACCESS_KEY="any",
                                AWS_REGION="us-east-1")
        self.answers({"fine"}, lambda: self.complete(
            "item", "get", "--db", "http://127.0.0.1:%d" % server.server_port, "", env=env))

    def test_unknown_shells(self):
        self.fails(USAGE, "unknown shell 'tcsh'; use bash, zsh or fish", "completion", "tcsh")
        self.fails(USAGE, "missing argument", "completion")

    def typed(self, argv, keys, wanted, env):
        """Type keys into a shell in a pseudo-terminal until `wanted` is shown."""
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execvpe(argv[0], argv, env)
        shown, rest, end = b"", keys, time.monotonic() + WAIT_S
        try:
            while wanted not in shown.decode(errors="replace") and time.monotonic() < end:
                if select.select([fd], [], [], 0.3)[0]:
                    try:
                        shown += os.read(fd, 65536)
                    except OSError:
                        break
                elif rest:
                    os.write(fd, rest[0].encode())
                    rest = rest[1:]
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(fd)
        return shown.decode(errors="replace")

    def shell_env(self):
        bin_ = self.path("bin")
        os.mkdir(bin_)
        os.symlink(COMMAND, os.path.join(bin_, "holdfast"))
        return {**self.env, "PATH": bin_ + ":" + os.environ["PATH"], "TERM": "dumb", "PS1": "ready> ", "HISTFILE": ""}

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_typed_into_bash(self):
        self.make_tables("orders")
        with open(self.path("rc"), "w", encoding="ascii") as file:
            file.write("source <(holdfast completion bash)\nPS1='ready> '\n")
        env, wanted = self.shell_env(), "holdfast item get --db %s --consistent orders " % process.SERVER.url
        keys = ["holdfast it\t", "ge\t", "--db %s --consi\t" % process.SERVER.url, "ord\t",
                "\nx=done-$((1+1))\necho $x\n"]
        self.answers(True, lambda: wanted in self.typed(["bash", "--noprofile", "--rcfile", "rc", "-i"], keys,
                                                        "done-2", env))

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_completion_in_bash(self):
        os.mkdir(self.path("folder"))
        with open(self.path("file.pem"), "w", encoding="ascii"):
            pass
        with open(self.path("script"), "w", encoding="ascii") as file:
            file.write(self.ok("completion", "bash"))

        def complete(line, *words):
            script = ('compopt() { :; }; . ./script; COMP_LINE=$1; COMP_POINT=${#1}; shift; COMP_WORDS=("$@"); '
                      'COMP_CWORD=$(($# - 1)); _holdfast; printf "%s\\n" "${COMPREPLY[@]}"')
            line = COMMAND + " " + line
            done = subprocess.run(["bash", "-uc", script, "bash", line, COMMAND, *words], capture_output=True,
                                  text=True, timeout=WAIT_S, cwd=self.dir, env=self.env)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return set(done.stdout.split())

        self.assertEqual(complete("ser", "ser"), {"serve"})
        self.assertEqual(complete("serve --sync ", "serve", "--sync", ""), {"full", "batch", "none"})
        self.assertEqual(complete("serve --sync=b", "serve", "--sync", "=", "b"), {"batch"})
        self.assertEqual(complete("serve --sync=", "serve", "--sync", "="), {"full", "batch", "none"})
        self.assertEqual(complete("serve --in", "serve", "--in"), {"--in-memory", "--init", "--input", "--insecure-any-key"})
        self.assertEqual(complete("serve --db-path f", "serve", "--db-path", "f"), {"folder"})
        self.assertEqual(complete("serve --tls-cert f", "serve", "--tls-cert", "f"), {"folder", "file.pem"})
        self.assertEqual(complete("serve --tls-cert=f", "serve", "--tls-cert", "=", "f"), {"folder", "file.pem"})
        self.make_tables("orders")
        host, _, port = process.SERVER.url[len("http:"):].rpartition(":")
        self.answers({"orders"}, lambda: complete("item get --db %s o" % process.SERVER.url, "item", "get", "--db",
                                                  "http", ":", host, ":", port, "o"))

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_typed_into_zsh(self):
        self.make_tables("orders")
        with open(self.path(".zshrc"), "w", encoding="ascii") as file:
            file.write("source <(holdfast completion zsh)\nPS1='ready> '\n")
        env = {**self.shell_env(), "ZDOTDIR": self.dir}
        keys = ["holdfast it\t", "ge\t", "ord\t", "\nx=done-$((1+1))\necho $x\n"]

        def is_completed():
            shown = re.sub(r"\x08|\x1b\[[0-9;?]*[A-Za-z]", "", self.typed(["zsh", "-i"], keys, "done-2", env))
            return bool(re.search(r"holdfast item ?\s*get ?\s*orders", shown))
        self.answers(True, is_completed)

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_completion_in_zsh(self):
        with open(self.path("_holdfast"), "w", encoding="ascii") as file:
            file.write(self.ok("completion", "zsh"))
        script = ('compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -l -- "$@"; }; '
                  '_files() { print -l FILES "$@"; }; compdef() { :; }; '
                  'words=("$@[2,-1]"); CURRENT=$#words; PREFIX=$words[-1]; . "$1"; _holdfast')
        for words, expected in [(["lo"], {"lock"}), (["kv", "set", "a", "--type", "j"], {"json"}),
                                (["kv", "set", "-f", ""], {"FILES"})]:
            done = subprocess.run(["zsh", "-fc", script, "zsh", self.path("_holdfast"), COMMAND, *words],
                                  capture_output=True, text=True, timeout=WAIT_S, env=self.env)
            self.assertEqual((done.stderr, set(done.stdout.split())), ("", expected))

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_completion_in_fish(self):
        self.make_tables("orders")
        env = self.shell_env()
        for line, expected in [("holdfast lo", {"lock"}), ("holdfast lock run --w", {"--wait"}),
                               ("holdfast serve --sync=b", {"--sync=batch"}), ("holdfast item get o", {"orders"})]:
            self.answers(expected, lambda line=line: set(subprocess.run(
                ["fish", "-c", 'holdfast completion fish | source; complete -C "$argv[1]"', line],
                capture_output=True, text=True, timeout=WAIT_S, env=env).stdout.split()))


if __name__ == "__main__":
    main()
