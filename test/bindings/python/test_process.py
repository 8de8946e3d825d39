"""Processes: fork, Ctrl-C, kill, the end of the program; threads; the wheel itself."""
import asyncio
import importlib.metadata
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import holdfast
from holdfast import HoldfastError

LONG_S = 60


def program(text, *args):
    return subprocess.Popen([sys.executable, "-W", "ignore::DeprecationWarning", "-c", text, *args], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


class Process(unittest.TestCase):
    def end(self, child):
        out, errors = child.communicate(timeout=LONG_S)
        return child.returncode, out, errors

    def run_to_the_end(self, text, *args):
        code, out, errors = self.end(program(text, *args))
        self.assertEqual((code, errors), (0, ""), out)
        return out

    def test_a_child_of_fork_gets_an_error(self):
        self.assertEqual(self.run_to_the_end("""if True:
            import holdfast, os, sys
            db = holdfast.open("memory:")
            db.create_table("things", {"id": "string"})
            child = os.fork()
            if child == 0:
                try:
                    db.put("things", {"id": "1"})
                except holdfast.HoldfastError as error:
                    assert "fork" in error.message, error
                    print(error.code, flush=True)
                db.close()
                with holdfast.open("memory:") as own:
                    own.create_table("things", {"id": "string"})
                sys.exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            db.put("things", {"id": "1"})
        """), "HF_INVALID\n7\n")

    def test_ctrl_c_ends_a_wait_and_leaves_nothing_behind(self):
        child = program("""if True:
            import holdfast
            db = holdfast.open("memory:")
            held = db.lock("nightly")
            try:
                print("waiting", flush=True)
                db.lock("nightly")
            except KeyboardInterrupt:
                held.release()
                db.lock("nightly", timeout=60).release()
                print("interrupted")
        """)
        self.assertEqual(child.stdout.readline(), "waiting\n")
        child.send_signal(signal.SIGINT)
        self.assertEqual(self.end(child), (0, "interrupted\n", ""))

    def test_ctrl_c_that_does_not_wake_who_waits(self):
        """Another thread is given the signal, as when it comes just before the wait: it ends all the same."""
        child = program("""if True:
            import holdfast, os, signal, threading, time
            db = holdfast.open("memory:")
            held = db.lock("nightly")
            def press():
                while not any(thread.name == "holdfast call" for thread in threading.enumerate()):
                    time.sleep(0.01)
                time.sleep(0.2)  # so that it is asleep
                os.kill(os.getpid(), signal.SIGINT)
                threading.Event().wait()
            threading.Thread(target=press, daemon=True).start()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                db.lock("nightly")
            except KeyboardInterrupt:
                print("interrupted")
        """)
        self.assertEqual(self.end(child), (0, "interrupted\n", ""))

    def silent(self):
        """A server that takes connections and never answers."""
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def test_timeouts_of_calls(self):
        with holdfast.open(self.silent()) as db:
            for work in (lambda: db.get("things", {"id": "1"}), lambda: db.put("things", {"id": "1"}),
                         lambda: db.counter("visits").add(1), lambda: db.lock("nightly", timeout=LONG_S)):
                with self.assertRaises(HoldfastError) as raised, holdfast.timeout(0.05):
                    work()
                self.assertEqual(raised.exception.code, "HF_TIMEOUT")

            async def late():
                async with await holdfast.aio.open(db.url) as other:
                    with holdfast.timeout(LONG_S), holdfast.timeout(0.05), holdfast.timeout(LONG_S):
                        await other.get("things", {"id": "1"})
            with self.assertRaises(HoldfastError) as raised:
                asyncio.run(late())
            self.assertEqual(raised.exception.code, "HF_TIMEOUT")
        with holdfast.open("memory:") as db, holdfast.timeout(LONG_S):
            db.create_table("things", {"id": "string"})
            db.put("things", {"id": "1"})
            self.assertEqual(db.scan("things").all(), [{"id": "1"}])
            self.assertEqual(list(db.tables()), ["things"])
            with db.transaction() as tx:
                tx.put("things", {"id": "2"})
            with db.lock("nightly"):
                self.assertIsNone(db.try_lock("nightly"))
        for wrong in (None, "1", -1, True):
            with self.assertRaises(HoldfastError), holdfast.timeout(wrong):
                pass

    def test_ctrl_c_ends_a_call_of_a_service(self):
        child = program("""if True:
            import holdfast, sys
            db = holdfast.open(sys.argv[1])
            try:
                print("calling", flush=True)
                db.get("things", {"id": "1"})
            except KeyboardInterrupt:
                db.close()
                print("interrupted")
        """, self.silent())
        self.assertEqual(child.stdout.readline(), "calling\n")
        child.send_signal(signal.SIGINT)
        self.assertEqual(self.end(child), (0, "interrupted\n", ""))

    def test_close_ends_waits_of_other_threads(self):
        db = holdfast.open("memory:")
        held = db.lock("nightly")
        codes, begun = [], threading.Barrier(5)

        def wait():
            begun.wait(LONG_S)
            try:
                while True:
                    db.lock("nightly", timeout=LONG_S).release()
            except HoldfastError as error:
                codes.append(error.code)
        threads = [threading.Thread(target=wait) for _ in range(4)]
        for thread in threads:
            thread.start()
        begun.wait(LONG_S)
        db.close()
        for thread in threads:
            thread.join(LONG_S)
        self.assertTrue(set(codes) <= {"HF_CANCELED", "HF_STOPPED"}, codes)
        self.assertEqual(len(codes), 4)
        self.assertRaises(HoldfastError, held.release)

    def test_close_while_threads_call(self):
        for _ in range(5):
            db = holdfast.open("memory:")
            db.create_table("things", {"id": "string"})
            codes, begun = [], threading.Barrier(5)

            def call(number):
                begun.wait(LONG_S)
                try:
                    while True:
                        db.put("things", {"id": str(number)})
                except HoldfastError as error:
                    codes.append(error.code)
            threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            begun.wait(LONG_S)
            db.close()
            for thread in threads:
                thread.join(LONG_S)
            self.assertEqual(codes, ["HF_STOPPED"] * 4)

    def test_a_program_ends_with_everything_running(self):
        self.assertEqual(self.run_to_the_end("""if True:
            import holdfast, threading
            db = holdfast.open("memory:")
            held = db.lock("nightly")
            handled = threading.Event()
            bus = db.outbox().bus().on("*", lambda event: handled.set()).start()
            db.outbox().emit("hello", 1)
            assert handled.wait(60)
            print("end")
        """), "end\n")

    def test_nothing_acknowledged_is_lost_by_a_kill(self):
        with tempfile.TemporaryDirectory() as folder:
            url = f"embedded:{folder}/shop.db"
            child = program("""if True:
                import holdfast, itertools, sys
                db = holdfast.open(sys.argv[1])
                db.create_table("things", {"n": "number"})
                box = db.outbox()
                for n in itertools.count():
                    with db.transaction() as tx:
                        tx.put("things", {"n": n})
                        box.emit("made", n, tx=tx)
                    print(n, flush=True)
            """, url)
            acknowledged = -1
            for line in child.stdout:
                acknowledged = int(line)
                if acknowledged >= 20:
                    break
            child.kill()
            for line in child.stdout:
                acknowledged = int(line) if line.endswith("\n") else acknowledged
            self.end(child)
            with holdfast.open(url) as db:
                stored = {item["n"] for item in db.scan("things")}
                emitted = {event.payload for event in db.outbox().pending()}
            self.assertTrue(stored >= set(range(acknowledged + 1)), (acknowledged, stored))
            self.assertEqual(stored, emitted)

    def test_the_wheel(self):
        files = {str(file) for file in importlib.metadata.files("holdfast")}
        self.assertIn("holdfast/py.typed", files)
        self.assertEqual(importlib.metadata.version("holdfast"), holdfast.__version__)
        plugins = importlib.metadata.distribution("holdfast").entry_points
        self.assertEqual({entry.group for entry in plugins}, {"console_scripts", "pytest11"})
        shown = subprocess.run([sys.executable, "-m", "holdfast", "version"], stdout=subprocess.PIPE, text=True,
                               timeout=LONG_S, check=True).stdout
        self.assertIn(holdfast.__version__, shown)
        with open("/proc/self/maps", encoding="utf-8") as maps:
            mapped = {line.split()[-1] for line in maps if "librocksdb" in line}
        folder = os.path.dirname(os.path.realpath(holdfast.__file__))
        self.assertTrue(mapped and all(path.startswith(folder) for path in mapped), mapped)

    def test_fixtures_of_pytest(self):
        try:
            import pytest  # noqa: F401
        except ImportError:
            self.skipTest("pytest is not installed")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "test_shop.py"), "w", encoding="utf-8") as file:
                file.write("""if True:
            import os
            import holdfast
            import pytest

            @pytest.fixture(scope="session")
            def holdfast_setup(holdfast_server):
                with holdfast.open(holdfast_server.endpoint) as db:
                    db.create_table("things", {"id": "string"})

            def test_memory(holdfast_db):
                holdfast_db.create_table("things", {"id": "string"})

            @pytest.mark.parametrize("n", [1, 2])
            def test_server(holdfast_endpoint, n):
                assert os.environ["AWS_ENDPOINT_URL_DYNAMODB"] == holdfast_endpoint
                with holdfast.open(holdfast_endpoint) as db:
                    assert db.scan("things").all() == []
                    db.put("things", {"id": str(n)})
                """)
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONG_S,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("3 passed", done.stdout)
