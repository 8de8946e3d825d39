"""Locks, do-once, limits, counters, keys, sets, outbox, events, records, streams; asyncio."""
import asyncio
import threading
import unittest

import holdfast
from holdfast import HoldfastError, PermanentError

LONG_S = 60  # for what has to happen: it takes milliseconds


class Waiter:
    """Collects what handlers get, and waits for so many."""

    def __init__(self):
        self.got = []
        self._changed = threading.Condition()

    def __call__(self, each):
        with self._changed:
            self.got.append(each)
            self._changed.notify_all()

    def wait(self, count):
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.got) >= count, LONG_S):
                raise AssertionError(f"{len(self.got)} of {count}: {self.got}")
        return self.got


class Patterns(unittest.TestCase):
    def setUp(self):
        self.db = holdfast.open("memory:")
        self.addCleanup(self.db.close)

    def fails(self, code, work, *args, **options):
        with self.assertRaises(HoldfastError) as caught:
            work(*args, **options)
        self.assertEqual(caught.exception.code, code, str(caught.exception))
        return caught.exception

    def test_locks(self):
        db = self.db
        db.create_table("orders", {"id": "string"})
        with db.lock("nightly", timeout=LONG_S, data={"host": "a"}) as held:
            self.assertFalse(held.lost)
            self.assertIsNone(db.try_lock("nightly"))
            self.fails("HF_TIMEOUT", db.lock, "nightly", timeout=0.01)
            held.extend()
            with db.transaction() as tx:
                tx.put("orders", {"id": "1"})
                held.guard(tx)
        self.assertTrue(held.lost)
        again = db.try_lock("nightly")
        self.assertGreater(again.fence, held.fence)
        db.method("lock.break", name="nightly")
        with self.assertRaises(HoldfastError), db.transaction() as tx:
            tx.put("orders", {"id": "2"})
            again.guard(tx)
        self.assertIsNone(db.get("orders", {"id": "2"}))
        with self.assertRaises(ZeroDivisionError), db.lock("other"):
            1 / 0
        self.assertIsNotNone(db.try_lock("other"))
        self.fails("HF_INVALID", db.lock, "x", lease=1)
        self.fails("HF_INVALID", db.lock, "x", timeout=-1)

    def test_once(self):
        calls = []

        @self.db.once(key=lambda number: f"invoice-{number}")
        def pay(number):
            """Pays."""
            calls.append(number)
            if len(calls) == 1:
                raise ValueError("try again")
            if number == 13:
                raise PermanentError("never")
            return {"paid": number}

        self.assertRaises(ValueError, pay, 7)
        self.assertEqual([pay(7), pay(7), pay(8)], [{"paid": 7}, {"paid": 7}, {"paid": 8}])
        self.assertEqual(calls, [7, 7, 8])
        self.assertRaises(PermanentError, pay, 13)
        self.assertIn("never", str(self.fails("HF_INVALID", pay, 13)))
        self.assertEqual(calls, [7, 7, 8, 13])
        self.assertTrue(self.db.once_clear("invoice-7"))
        self.assertEqual((pay(7), pay.__doc__, len(calls)), ({"paid": 7}, "Pays.", 5))
        self.assertIsNone(self.db.do_once("nothing", lambda: None))
        self.assertIsNone(self.db.do_once("nothing", lambda: 1 / 0))

    def test_two_threads_do_it_once(self):
        begun, go, results = threading.Event(), threading.Event(), Waiter()

        def work():
            begun.set()
            go.wait(LONG_S)
            return "done"
        first = threading.Thread(target=lambda: results(self.db.do_once("k", work)))
        first.start()
        self.assertTrue(begun.wait(LONG_S))
        second = threading.Thread(target=lambda: results(self.db.do_once("k", lambda: "twice")))
        second.start()
        go.set()
        self.assertEqual(results.wait(2), ["done", "done"])
        first.join()
        second.join()

    def test_limits_counters_keys_sets(self):
        db = self.db
        limit = db.limit("login/ann", limit=2, window_ms=3_600_000, kind="sliding")
        first, second, third = limit.take(), limit.take(), limit.take()
        self.assertEqual([bool(first), bool(second), bool(third)], [True, True, False])
        self.assertGreater(third.retry_ms, 0)
        limit.refund(second)
        self.assertTrue(limit.peek())
        visits = db.counter("visits")
        self.assertEqual([visits.get(), visits.add(), visits.add(5, request="r"), visits.add(5, request="r")],
                         [0, 1, 6, 6])
        with db.transaction() as tx:
            visits.add(2 ** 60, tx=tx)
        self.assertEqual([visits.set(3), visits.get()], [2 ** 60 + 6, 3])
        self.assertEqual([db.counter("numbers").take(3), db.counter("numbers").take()], [1, 4])
        keys = db.kv(space="session")
        self.assertEqual((keys.get("ann"), keys.get("ann", 7), list(keys.list())), (None, 7, []))
        entry = keys.set("ann", {"cart": ["book"]}, ttl_s=3600)
        self.assertEqual(keys.get("ann"), {"cart": ["book"]})
        self.assertGreater(entry.expires_s, 0)
        self.fails("HF_CONDITION", keys.set, "ann", 1, if_version="of another")
        with db.transaction() as tx:
            keys.set("ben", None, tx=tx)
        self.assertEqual([each.id for each in keys.list()], ["ann", "ben"])
        self.assertTrue(keys.entry("ben").found)
        self.assertEqual(keys.delete("ann").value, {"cart": ["book"]})
        online = db.set("online")
        self.assertEqual((online.values(), online.add("a", "b"), online.add("b", "c")), (set(), 2, 1))
        self.assertEqual((online.values(), online.has("a"), online.remove("a", "x")), ({"a", "b", "c"}, True, 1))

    def test_outbox_and_bus(self):
        db, box, handled, errors = self.db, self.db.outbox(), Waiter(), Waiter()
        db.create_table("orders", {"id": "string"})
        bus = box.bus()
        tries = []

        @bus.on("order.placed")
        def placed(event):
            tries.append(event.id)
            if len(tries) == 1:
                raise ValueError("later")
            handled(event)

        @bus.on("order.*")
        def order(event):
            handled(event)

        @bus.on("*")
        def other(event):
            raise PermanentError(f"what is {event.type}?")

        with self.assertRaises(ZeroDivisionError), db.transaction() as tx:
            box.emit("order.placed", {"id": "0"}, tx=tx)
            1 / 0
        with db.transaction() as tx:
            tx.put("orders", {"id": "7"})
            box.emit("order.placed", {"id": "7", "half": 0.5}, key="7", tx=tx, headers={"by": "ann"})
        self.assertEqual([event.payload["id"] for event in box.pending()], ["7"])
        with bus.start(workers=4, backoff_ms=1, poll_ms=10, on_error=errors):
            box.emit("order.sent", b"\x00\xff")
            box.emit("unknown", "x")
            events = {event.type: event for event in handled.wait(2)}
            errors.wait(1)
        placed_event = events["order.placed"]
        self.assertEqual((placed_event.payload, placed_event.headers, placed_event.key, len(tries)),
                         ({"id": "7", "half": 0.5}, {"by": "ann"}, "7", 2))
        self.assertEqual(placed_event.time.tzinfo.utcoffset(None).total_seconds(), 0)
        self.assertEqual(events["order.sent"].payload, b"\x00\xff")
        [dead] = box.failed()
        self.assertEqual((dead.type, dead.payload, dead.error_text), ("unknown", "x", "what is unknown?"))
        self.assertEqual((box.stats().failed, box.stats().pending), (1, 0))
        self.assertEqual((box.retry(dead.id), box.stats().pending), (1, 1))
        with box.relay(handled, poll_ms=10):
            self.assertEqual(handled.wait(3)[2].id, dead.id)
        self.fails("HF_INVALID", box.emit, "x", object())
        self.fails("HF_INVALID", box.emit, "x", colour="red")
        self.fails("HF_INVALID", bus.on, "*", print)

    def test_event_store(self):
        db, store = self.db, self.db.events()
        self.assertEqual((store.version("order/7"), list(store.read("order/7"))), (0, []))
        self.assertEqual(store.append("order/7", [{"type": "added", "data": n} for n in range(3)], expect=0), 3)
        self.fails("HF_CONDITION", store.append, "order/7", {"type": "added"}, expect=2)
        with db.transaction() as tx:
            self.assertEqual(store.append("order/8", {"type": "added", "data": {"n": 8}}, tx=tx), 1)
        self.assertEqual([(event.stream, event.version, event.data) for event in store.read("order/7", first=2)],
                         [("order/7", 2, 1), ("order/7", 3, 2)])
        self.assertEqual([event.version for event in store.read("order/7", backward=True, limit=2)], [3, 2])
        self.assertEqual([event.data for event in store.all()], [0, 1, 2, {"n": 8}])
        seen, tries = Waiter(), []

        def handle(event):
            tries.append(event)
            if len(tries) == 1:
                raise ValueError("again")
            seen(event.data)
        with store.subscribe("mailer", handle, poll_ms=10, backoff_ms=1):
            self.assertEqual(seen.wait(4), [0, 1, 2, {"n": 8}])
        store.append("order/7", {"type": "added", "data": "later"})
        with store.subscribe("mailer", handle, poll_ms=10):
            self.assertEqual(seen.wait(5)[4:], ["later"])
        with store.consume("group", seen, poll_ms=10):
            self.assertEqual(len(seen.wait(10)), 10)

    def test_records_and_changes(self):
        db, records, done, changed = self.db, self.db.records(), Waiter(), Waiter()
        for day in range(5):
            records.put({"AccountId": "ann", "RunTime": f"2024-01-0{day + 1}", "n": day})
        self.assertEqual(records.count(), 5)
        handling = records.process(done, poll_ms=10)
        self.assertTrue(handling.wait(LONG_S))
        self.assertEqual(sorted(record.item["n"] for record in done.got), [0, 1, 2, 3, 4])
        self.assertIsNone(records.get("ann", "2000-01-01"))
        db.create_table("orders", {"id": "string"}, stream="both")
        db.put("orders", {"id": "1", "n": 1})
        db.put("orders", {"id": "1", "n": 2})
        with db.changes("orders", lambda changes: [changed(each) for each in changes], name="view", start="first",
                        poll_ms=10):
            changes = changed.wait(2)
        self.assertEqual([(change.old and change.old["n"], change.new["n"]) for change in changes], [(None, 1), (1, 2)])

    def test_asyncio(self):
        async def program():
            async with await holdfast.aio.open("memory:") as db:
                await db.create_table("orders", {"id": "string"})
                await db.put("orders", {"id": "1"})
                async with db.transaction() as tx:
                    tx.put("orders", {"id": "2"})
                found = sorted([item["id"] async for item in db.scan("orders")])
                async with db.lock("nightly", timeout=LONG_S) as held:
                    waiting = asyncio.ensure_future(_lock(db))
                    await asyncio.sleep(0)
                    waiting.cancel()
                    fence = held.fence
                async with db.lock("nightly", timeout=LONG_S) as again:
                    self.assertGreater(again.fence, fence)
                handled = asyncio.get_running_loop().create_future()
                bus = (await db.outbox()).bus()

                @bus.on("hello")
                async def hello(event):
                    handled.set_result(event.payload)
                async with bus.start():
                    await (await db.outbox()).emit("hello", {"n": 1})
                    got = await asyncio.wait_for(handled, LONG_S)
                with self.assertRaises(HoldfastError):
                    await db.get("nothing", {"id": "1"})
                values = await asyncio.gather(*(db.counter("c").add() for _ in range(20)))
                return found, got, sorted(values)

        async def _lock(db):
            return await db.lock("nightly")
        self.assertEqual(asyncio.run(program()), (["1", "2"], {"n": 1}, list(range(1, 21))))
