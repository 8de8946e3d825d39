"""The command as a process, for tests of it: a server in memory that is started once, a directory and a prefix
for each test, pipes and pseudo-terminals. The first two arguments of a test are COMMAND and SOURCE.
"""
import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

COMMAND, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WAIT_S = 60
OK, FAILED, USAGE, NOT_FOUND, CONDITION, DENIED, UNAVAILABLE, TIMEOUT, CORRUPT = range(9)
NOBODY = "http://127.0.0.1:1"

SERVER = None


def clean_env(**more):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("HOLDFAST_", "AWS_", "LISTEN_", "NOTIFY_", "XDG_CONFIG_"))
           and not k.lower().endswith("_proxy")}
    env.update(more)
    return env


def serve(*args):
    server = subprocess.Popen([COMMAND, "serve", "--port", "0", *args], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_env())
    server.url = re.search(r"https?://\S+", server.stdout.readline()).group(0)
    return server


def commands():
    """Every command, as the help has them."""
    out = subprocess.run([COMMAND, "help", "commands"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(?m)^  ([a-z]+(?: [a-z-]+)?)  +\w", out)


def setUpModule():
    global SERVER
    SERVER = serve("--in-memory")


def tearDownModule():
    SERVER.terminate()
    SERVER.communicate(timeout=WAIT_S)


class Commands(unittest.TestCase):
    count = 0

    def setUp(self):
        Commands.count += 1
        self.dir = tempfile.mkdtemp(prefix="holdfast-cli-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.env = clean_env(HOLDFAST_DB=SERVER.url, HOLDFAST_PREFIX="t%d-" % Commands.count,
                             HOME=self.dir, TZ="XYZ-05:30")
        self.prepare()

    def prepare(self):
        """For classes that need another environment."""

    def path(self, name):
        return os.path.join(self.dir, name)

    def run_(self, *args, env=None, **more):
        done = subprocess.run([COMMAND, *args], capture_output=True, text=True, timeout=WAIT_S,
                              env=env or self.env, **more)
        return done.returncode, done.stdout, done.stderr

    def ok(self, *args, **more):
        code, out, err = self.run_(*args, **more)
        self.assertEqual((code, err), (0, ""), args)
        return out

    def fails(self, code, error, *args, **more):
        got, out, err = self.run_(*args, **more)
        self.assertEqual((got, out), (code, ""), (args, err))
        self.assertIn(error, err)
        return err

    def start(self, *args, **more):
        process = subprocess.Popen([COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=self.env, start_new_session=True, **more)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        """With the program that it may have started, which outlives a SIGKILL."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if process.stdout.closed:
            process.wait(WAIT_S)
        else:
            process.communicate(timeout=WAIT_S)

    def until_it_handles(self, process, number):
        """Wait until a signal does not just end it: from then on it knows what to do."""
        time_over = time.monotonic() + WAIT_S
        while True:
            self.assertIsNone(process.poll(), f"it ended before it handled signal {number}")
            with open(f"/proc/{process.pid}/status", encoding="ascii", errors="replace") as file:
                caught = re.findall(r"(?m)^Sig(?:Cgt|Blk):\s*(\w+)", file.read())  # blocked: a thread waits for it
            if any(int(mask, 16) >> (number - 1) & 1 for mask in caught):
                return
            self.assertLess(time.monotonic(), time_over, f"it does not handle signal {number}")
            time.sleep(0.01)

    def on_terminal(self, *args, columns=0, code=0):
        """What a command writes to an output that is a terminal, as lines."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        process = subprocess.Popen([COMMAND, *args], stdout=theirs, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, env=self.env)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the end of what a terminal has, on Linux
            pass
        os.close(ours)
        err = process.communicate(timeout=WAIT_S)[1].decode()
        self.assertEqual((process.returncode, err), (code, ""), args)
        text = shown.decode().replace("\r\n", "\n")
        self.assertNotIn("\\x00", text, args)
        self.assertNotIn("\0", text, args)
        return text.splitlines()


def main():
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
