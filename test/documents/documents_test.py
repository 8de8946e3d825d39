#!/usr/bin/env python3
"""The documents that readers follow step by step: every step runs as it is written, and prints what is written.

    documents_test.py COMMAND SOURCE BUILD [--write] [DOCUMENT...]

A document is read from top to bottom, in an empty directory:

- A block ```console has commands behind "$ ", with further lines of one behind "> ", and below each what it prints.
  One shell runs them all, so variables and background jobs stay. A command that fails is followed by "$ echo $?".
- If the text before such a block says "in another terminal", a shell of its own runs it, and goes on with the next
  block as soon as what is written was printed. It is ended at the end of the document.
- A block of any kind behind "Save this as `NAME`:" is written to that file, or added to it: "Add this to `NAME`:".
- Other blocks are not run: ```sh is for commands that need what a test has not, such as a broker. Still, each command
  and option of holdfast in them has to exist.

In what is printed "..." stands for any text, in a line of its own for any lines. A time, an id, a number of a process
and a size in bytes stand for any other. The port 8000 is another one in a test. NO_COLOR is set, and the output is no terminal.

--write puts what was printed into the documents, where that differs; read it before you commit it.

Documents: README.md, docs/tutorial.md, docs/security.md and docs/cookbook/*.md. BUILD is for `cc ... $(pkg-config --libs holdfast-engine)`.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

WAIT_S = float(os.environ.get("DOCUMENT_WAIT_S", "60"))
MARK = "--- end of step"
FENCE = re.compile(r"^( *)```(\w*)$")
SAVE = re.compile(r"(Save|Add) this (as|to) `([^`]+)`:$")
SAMPLES = (  # what is never the same again, and the form that it has
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
    (r"\b[0-9A-HJKMNP-TV-Z]{26}\b", r"[0-9A-HJKMNP-TV-Z]{26}"),
    (r"\b[0-9a-hjkmnp-tv-z]{26}\b", r"[0-9a-hjkmnp-tv-z]{26}"),
    (r"(?<=process )\d+", r"\d+"),
    (r'(?<="bytes":)\d+', r"\d+"),  # of a snapshot: with times, whose numbers have more digits or fewer
)


class Wrong(Exception):
    """A document that does not hold."""


# ---- reading ----------------------------------------------------------------------------------


class Block:
    def __init__(self, line, kind, before):
        self.line, self.kind, self.before, self.text = line, kind, before, []


def blocks_of(path):
    """The fenced blocks, each with the last paragraph before it."""
    paragraph, block, fence = [], None, ""
    for number, line in enumerate(open(path, encoding="utf-8").read().split("\n"), 1):
        match = FENCE.match(line)
        if block is not None:
            if line == fence + "```":
                yield block
                block, paragraph = None, []
            else:
                block.text.append(line[len(fence):])
        elif match:
            fence = match.group(1)
            block = Block(number + 1, match.group(2), " ".join(paragraph))
        elif line.strip():
            if paragraph and paragraph[-1] == "":
                paragraph = []
            paragraph.append(line.strip())
        elif paragraph and paragraph[-1] != "":
            paragraph.append("")
            paragraph = paragraph[-20:]
    if block is not None:
        raise Wrong(f"{path}:{block.line}: the block does not end")


def steps_of(block):
    """(line, command, expected lines) of a block of a console."""
    steps = []
    for number, line in enumerate(block.text, block.line):
        if line.startswith("$ "):
            steps.append((number, [line[2:]], []))
        elif not steps:
            raise Wrong(f"line {number}: output before any command")
        elif not steps[-1][2] and (line.startswith("> ") or steps[-1][1][-1].endswith("\\")):
            steps[-1][1].append(line[2:] if line.startswith("> ") else line)
        else:
            steps[-1][2].append(line)
    return [(number, "\n".join(command), expected) for number, command, expected in steps]


def pattern_of(expected):
    """A regular expression for the lines that are written."""
    lines = []
    for line in expected:
        if line == "...":
            lines.append(r"(?:.*\n)*?")
            continue
        made, at = "", 0
        while at < len(line):
            for sample, form in (("\\.\\.\\.", ".*"),) + SAMPLES:
                match = re.compile(sample).match(line, at)  # with a place, so that (?<= ) and \b see what is before it
                if match:
                    made, at = made + form, match.end()
                    break
            else:
                made, at = made + re.escape(line[at]), at + 1
        lines.append(made + r"\n")
    return "".join(lines)


# ---- running ----------------------------------------------------------------------------------


class Shell:
    """A bash that runs one command after the other."""

    def __init__(self, directory, env):
        self.process = subprocess.Popen(["bash", "--norc", "--noprofile"], cwd=directory, env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        start_new_session=True)
        self.lines, self.more = [], threading.Condition()
        self.code = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.more:
                self.lines.append(line)
                self.more.notify_all()
        with self.more:
            self.lines.append(None)
            self.more.notify_all()

    def wait(self, ready):
        """Wait until ready(lines); returns its result. None: it took too long."""
        end = time.monotonic() + WAIT_S
        with self.more:
            while True:
                found = ready(self.lines)
                if found is not None:
                    return found
                if not self.more.wait(end - time.monotonic()):
                    return None

    def begin(self, command):
        self.lines.clear()
        self.process.stdin.write(f"(exit {self.code})\n{{ {command}\n}} </dev/null; printf '%s %d\\n' '\n{MARK}' $?\n")
        self.process.stdin.flush()

    def run(self, command):
        """(exit code, what was printed)"""
        def ended(lines):
            for at, line in enumerate(lines):
                if line is None:
                    return at, None
                if line.startswith(MARK):
                    return at, int(line[len(MARK):])
            return None

        self.begin(command)
        found = self.wait(ended)
        text = "".join(line for line in self.lines[:found[0] if found else None] if line)
        if found is None or found[1] is None:
            raise Wrong(f"it does not end; so far it printed:\n{text}")
        self.code = found[1]
        return self.code, text[:-1]  # the newline in front of the mark

    def stays(self, command, pattern):
        """Run what goes on, until it has printed that."""
        self.begin(command)
        if self.wait(lambda lines: re.match(pattern, "".join(x for x in lines if x)) or
                     (False if None in lines else None)):
            return
        raise Wrong("it does not print what is written, but:\n" + "".join(x for x in self.lines if x))

    def end(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            try:
                self.process.wait(5)
                if number == signal.SIGTERM:
                    time.sleep(0.1)  # for its children to end in order
            except subprocess.TimeoutExpired:
                pass
        self.process.stdin.close()


class Document:
    def __init__(self, path, setting):
        self.path, self.setting = path, setting
        self.name = os.path.relpath(path, setting.source)
        self.directory = tempfile.mkdtemp(prefix="holdfast-doc-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        self.env = dict(setting.env, HOME=self.directory, HOLDFAST_PORT=self.port,
                        HOLDFAST_DB=self.here("http://127.0.0.1:8000"))  # as the defaults are
        self.shells, self.ran, self.changed = [], 0, {}

    def here(self, text):
        return re.sub(r"\b8000\b", self.port, text)

    def step(self, shell, line, command, expected, followed, stays):
        if stays:
            shell.stays(self.here(command), pattern_of([self.here(text) for text in expected]))
            return
        code, printed = shell.run(self.here(command))
        if code != 0 and not followed.startswith("echo $?"):
            raise Wrong(f"it ends with code {code}:\n{printed}")
        if not re.fullmatch(pattern_of([self.here(text) for text in expected]), printed):
            if self.setting.write:
                self.changed[line] = (len(command.split("\n")), len(expected), printed.replace(self.port, "8000"))
                return
            raise Wrong("it prints\n{}and not\n{}".format(printed, "".join(text + "\n" for text in expected)))

    def console(self, main, block):
        stays = "n another terminal" in block.before
        shell = main
        if stays:
            shell = Shell(self.directory, self.env)
            self.shells.append(shell)
        steps = steps_of(block)
        while steps and steps[-1][2] and steps[-1][2][-1] == "":
            steps[-1][2].pop()
        for at, (line, command, expected) in enumerate(steps):
            followed = steps[at + 1][1] if at + 1 < len(steps) else ""
            try:
                self.step(shell, line, command, expected, followed, stays and at + 1 == len(steps))
            except Wrong as wrong:
                raise Wrong(f"{self.name}:{line}: $ {command}\n{wrong}") from None
            self.ran += 1

    def save(self, block, match):
        path = os.path.join(self.directory, match.group(3))
        with open(path, "a" if match.group(1) == "Add" else "w", encoding="utf-8") as file:
            file.write(self.here("\n".join(block.text) + "\n"))

    def rewrite(self):
        with open(self.path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        for line, (command, expected, printed) in sorted(self.changed.items(), reverse=True):
            at = line - 1 + command
            lines[at:at + expected] = printed.split("\n")[:-1]
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))

    def run(self):
        try:
            main = Shell(self.directory, self.env)
            self.shells.append(main)
            for block in blocks_of(self.path):
                match = SAVE.search(block.before.strip())
                if match:
                    self.save(block, match)
                elif block.kind == "console":
                    self.console(main, block)
                elif block.kind == "sh":
                    self.setting.known(self.name, block)
            return None
        except Wrong as wrong:
            return str(wrong)
        finally:
            if self.changed:
                self.rewrite()
            for shell in reversed(self.shells):
                shell.end()
            shutil.rmtree(self.directory, ignore_errors=True)


class Setting:
    """What the documents take for granted: the command in the path, and the library where pkg-config finds it."""

    def __init__(self, command, source, build, scratch, write):
        self.command, self.source, self.write, self.helps = command, source, write, {}
        os.symlink(command, os.path.join(scratch, "holdfast"))
        for name, needs in (("holdfast", "-lholdfast"), ("holdfast-engine", "-lholdfast-engine -lholdfast")):
            with open(os.path.join(scratch, name + ".pc"), "w", encoding="utf-8") as file:
                file.write(f"Name: {name}\nDescription: as built\nVersion: 0\nCflags: -I{source}/include\n"
                           f"Libs: -L{build} {needs} -Wl,-rpath,{build}\n")
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("HOLDFAST_", "AWS_")) and not name.lower().endswith("_proxy")}
        self.env.update(PATH=scratch + ":" + os.environ["PATH"], PKG_CONFIG_PATH=scratch, NO_COLOR="1", TZ="UTC",
                        LC_ALL="C.UTF-8", AWS_EC2_METADATA_DISABLED="true")

    def help(self, words):
        if words not in self.helps:
            done = subprocess.run([self.command, *words.split(), "--help"], capture_output=True, text=True, env=self.env,
                                  check=False)
            self.helps[words] = done.stdout if done.returncode == 0 else None
        return self.helps[words]

    def known(self, name, block):
        """Each `holdfast ...` of the block is a command, and its options are options of it."""
        text = "\n".join(block.text).replace("\\\n", " ")
        for call in re.finditer(r"(?:^|[\s(;&|])holdfast ((?:[^|;&\n#'\"]|'[^']*'|\"[^\"]*\")+)", text):
            words = re.sub(r"'[^']*'|\"[^\"]*\"", "x", call.group(1)).split(" -- ")[0].split()
            if not words or words[0].startswith("-"):
                continue
            noun = words[0] if self.help(words[0]) else None
            both = " ".join(words[:2])
            if len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]) and self.help(both):
                noun = both
            if noun is None:
                raise Wrong(f"{name}:{block.line}: there is no command {both}")
            for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", " ".join(words)):
                if option not in self.help(noun):
                    raise Wrong(f"{name}:{block.line}: holdfast {noun} has no option {option}")


def main():
    command, source, build = (os.path.abspath(path) for path in sys.argv[1:4])
    write = "--write" in sys.argv[4:]
    paths = [os.path.abspath(path) for path in sys.argv[4:] if path != "--write"] or [
        path for path in [os.path.join(source, name) for name in ("README.md", "docs/tutorial.md", "docs/security.md")] +
        sorted(glob.glob(os.path.join(source, "docs", "cookbook", "*.md"))) if os.path.exists(path)]
    scratch = tempfile.mkdtemp(prefix="holdfast-doc-")
    try:
        setting = Setting(command, source, build, scratch, write)
        documents = [Document(path, setting) for path in paths]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            wrong = [text for text in pool.map(Document.run, documents) if text]
        for text in wrong:
            print(text)
        print(f"{len(documents)} documents, {sum(one.ran for one in documents)} steps")
        return 1 if wrong or not any(one.ran for one in documents) else 0
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
