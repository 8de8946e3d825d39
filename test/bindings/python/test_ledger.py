"""Several processes, some of which are killed at work: nothing is lost, and nothing is counted twice."""
import subprocess
import sys
import time
import unittest

import holdfast

LONG_S = 120

HANDLER = """if True:
    import holdfast, os, signal, sys, threading
    from holdfast import missing
    url, die_at = sys.argv[1], int(sys.argv[2])
    runs, gate = 0, threading.Lock()

    def handle(event):
        global runs
        with gate:
            runs += 1
            if runs == die_at:
                os.kill(os.getpid(), signal.SIGKILL)  # it was delivered, and nothing was done
        try:
            with db.transaction() as tx:
                tx.put("entries", {"id": event.payload}, condition={"id": missing()})
                tx.update("ledger", {"name": "total"}, add={"times": 1})
        except holdfast.HoldfastError as error:
            if error.code != "HF_TX_CANCELED" or error.reasons[0]["code"] != "ConditionalCheckFailed":
                raise  # otherwise it was done before, and its process was killed then
        print(event.payload, flush=True)

    with holdfast.open(url) as db:
        bus = db.outbox().bus().on("*", handle)
        with bus.start(poll_ms=10, backoff_ms=5, lease_ms=1000, heartbeat_ms=100, max_crashes=100):
            sys.stdin.read()
"""

WORKER = """if True:
    import holdfast, os, signal, sys
    url, die_at, jobs = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    with holdfast.open(url) as db:
        for number, job in enumerate(jobs, 1):
            def work():
                if number >= die_at:
                    os.kill(os.getpid(), signal.SIGKILL)  # it was begun, and nothing was done
                return db.update("ledger", {"name": job}, add={"times": 1}, returns="new")["times"]
            print(job, db.do_once(job, work, attempt_ms=3000, heartbeat_ms=200, poll_ms=20), flush=True)
"""


class Ledger(unittest.TestCase):
    def setUp(self):
        self.server = holdfast.start_server()
        self.addCleanup(self.server.stop)
        self.db = holdfast.open(self.server.endpoint)
        self.addCleanup(self.db.close)
        self.db.create_table("entries", {"id": "string"})
        self.db.create_table("ledger", {"name": "string"})

    def start(self, text, *args):
        child = subprocess.Popen([sys.executable, "-c", text, self.server.endpoint, *map(str, args)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.stdin.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def wait_until(self, reached):
        end = time.monotonic() + LONG_S
        while not reached():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_handlers_of_an_outbox_are_killed(self):
        box = self.db.outbox()
        ids = [f"e{n}" for n in range(90)]
        victims = [self.start(HANDLER, 5), self.start(HANDLER, 9), self.start(HANDLER, 0)]
        for at in range(0, len(ids), 10):
            box.emit_all([{"type": "made", "payload": each, "key": f"k{n}"} for n, each in enumerate(ids[at:at + 10])])
        # Two kill themselves as they get an event; the third is killed wherever it is.
        for victim in victims[:2]:
            self.wait_until(lambda: victim.poll() is not None or self.total() == len(ids))
        self.assertEqual(victims[2].stdout.readline()[:1], "e")
        victims[2].kill()
        last = self.start(HANDLER, 0)
        self.wait_until(lambda: int(box.stats().pending or 0) == 0)
        last.stdin.close()
        self.assertEqual(last.wait(LONG_S), 0)
        self.assertEqual(sorted(item["id"] for item in self.db.scan("entries")), sorted(ids))
        self.assertEqual(self.total(), len(ids))
        self.assertEqual(list(box.failed()), [])

    def total(self):
        return (self.db.get("ledger", {"name": "total"}) or {"times": 0})["times"]

    def test_who_does_it_once_is_killed(self):
        jobs = [f"j{n}" for n in range(12)]
        victims = [self.start(WORKER, 4, *jobs), self.start(WORKER, 6, *reversed(jobs))]
        for victim in victims:
            self.assertEqual(victim.wait(LONG_S), -9)
        lasts = [self.start(WORKER, 100, *jobs), self.start(WORKER, 100, *reversed(jobs))]
        for last in lasts:
            out = last.stdout.read()
            self.assertEqual(last.wait(LONG_S), 0)
            self.assertEqual(sorted(out.splitlines()), sorted(f"{job} 1" for job in jobs))
        self.assertEqual({item["name"]: item["times"] for item in self.db.scan("ledger")}, {job: 1 for job in jobs})
