"""The memory of the process does not grow with the number of calls. HF_LEAK_CALLS=1000000 for a long look."""
import os
import threading
import unittest

import holdfast

CALLS = int(os.environ.get("HF_LEAK_CALLS", "6000"))
WARM = max(3000, CALLS // 4)  # calls until caches, pools and arenas are as large as they get
GROWTH_BYTES = 12 << 20  # it is 20 MB in the short run when the answers of one kind of call are not freed


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Leak(unittest.TestCase):
    def grows_by(self, call):
        def calls(count):
            for number in range(count):
                call(number)
        calls(WARM)
        before = resident_bytes()
        calls(CALLS)
        return resident_bytes() - before

    def test_calls_of_all_kinds(self):
        payload = "x" * 20000

        def call(number):
            kind = number % 6
            if kind == 0:
                db.put("things", {"id": str(number % 10), "payload": payload})
            elif kind == 1:
                db.get("things", {"id": str(number % 10)})
            elif kind == 2:
                db.query("things", {"id": "1"}).all()
            elif kind == 3:
                with self.assertRaises(holdfast.HoldfastError):
                    db.get("nothing-of-that-name", {"id": payload[:2000]})
            elif kind == 4:
                db.counter("visits").add(1)
            else:
                with db.lock("nightly"):
                    pass
        with holdfast.open("memory:") as db:
            db.create_table("things", {"id": "string"})
            self.assertLess(self.grows_by(call), GROWTH_BYTES)

    def test_threads_of_the_caller(self):
        with holdfast.open("memory:") as db:
            db.create_table("things", {"id": "string"})

            def call(number):
                if number % 5 == 0:  # a thread each would be most of the time
                    thread = threading.Thread(target=lambda: db.put("things", {"id": "1", "payload": "x" * 20000}))
                    thread.start()
                    thread.join()
            self.assertLess(self.grows_by(call), GROWTH_BYTES)

    def test_databases_are_closed(self):
        def call(number):
            if number % 100 == 0:
                with holdfast.open("memory:") as db:
                    db.create_table("things", {"id": "string"})
                    db.put("things", {"id": "1", "payload": "x" * 100000})
        self.assertLess(self.grows_by(call), GROWTH_BYTES)
