"""The emitter of docs/emitting.md, as it stands there: what it emits is delivered by a real relay,
whole and in order, and mistakes are put aside."""
import base64
import json
import os
import re
import signal
import subprocess
import time

from support import HERE, HOLDFAST, WAIT_S, Case, N, S, endpoint, fresh_name, needs_server

DOCUMENT = os.path.join(HERE, "../../../docs/emitting.md")


def emitter():
    with open(DOCUMENT, encoding="utf-8") as file:
        block = re.search(r"```python\n(.*?)```", file.read(), re.S).group(1)
    names = {}
    exec(compile(block, DOCUMENT, "exec"), names)  # what readers copy is what runs
    return names["Outbox"]


@needs_server
class Emitting(Case):
    def setUp(self):
        self.name = fresh_name()
        self.holdfast("outbox", "emit", "first", "{}")
        self.addCleanup(self.drop, self.name)
        self.outbox = emitter()(self.db, self.name)

    def words(self, *args):
        return [HOLDFAST, *args, "--db", endpoint(), "--table", self.name]

    def holdfast(self, *args):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        done = subprocess.run(self.words(*args), capture_output=True, text=True, timeout=WAIT_S,
                              env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def failed(self):
        return json.loads(self.holdfast("outbox", "failed", "--json"))["events"]

    def delivered(self, count, failed=0):
        """What a relay writes into a file until there are so many, without the first, and until so
        many were put aside."""
        path = os.path.join(self.directory(), "events.jsonl")
        relay = subprocess.Popen(self.words("relay", "--to", "file:" + path, "--poll", "50ms",
                                            "--quiet"))
        try:
            until = time.monotonic() + WAIT_S
            lines = []
            while len(lines) < count + 1 and time.monotonic() < until:
                time.sleep(0.02)
                if os.path.exists(path):
                    with open(path, encoding="utf-8") as file:
                        lines = file.read().splitlines()
            while len(self.failed()) < failed and time.monotonic() < until:
                time.sleep(0.1)
        finally:
            relay.send_signal(signal.SIGTERM)
            self.assertEqual(relay.wait(WAIT_S), 0)
        return [event for event in map(json.loads, lines) if event["type"] != "first"]

    def test_payloads_and_headers_arrive_as_they_were_emitted(self):
        document = self.outbox.put("document", "", key="k1")
        document["Put"]["Item"]["payload"] = {"M": {"a": N(1), "b": {"L": [S("ü"), {"NULL": True}]}}}
        self.outbox.emit("text", json.dumps({"id": 7, "name": "ann"}), key="order-7")
        self.outbox.emit("bytes", b"\x00\xff", content_type=S("application/octet-stream"))
        self.db.put_item(**document["Put"])
        self.outbox.emit("headers", "{}", headers={"S": '{"colour": "blue", "count": 3}'},
                         id=S("my-id"), source=S("shop"))
        self.outbox.emit("map", "{}", headers={"M": {"colour": S("blue")}})
        events = {event["type"]: event for event in self.delivered(5)}
        self.assertEqual(set(events), {"text", "bytes", "document", "headers", "map"})
        self.assertEqual(events["text"]["data"], {"id": 7, "name": "ann"})
        self.assertEqual(events["text"]["partitionkey"], "order-7")
        self.assertLess(abs(time.time() - self.when(events["text"])), 3600)
        self.assertEqual(base64.b64decode(events["bytes"]["data_base64"]), b"\x00\xff")
        self.assertEqual(events["document"]["data"], {"a": 1, "b": ["ü", None]})
        self.assertEqual((events["headers"]["colour"], events["headers"]["count"]), ("blue", 3))
        self.assertEqual((events["headers"]["id"], events["headers"]["source"]), ("my-id", "shop"))
        self.assertEqual(events["map"]["colour"], "blue")

    @staticmethod
    def when(event):
        return time.mktime(time.strptime(event["time"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone

    def test_events_of_a_key_arrive_in_order(self):
        keys = ["ann", "ben", "ü", "order-7"]
        for i in range(100):
            self.outbox.emit("count", json.dumps(i), key=keys[i % len(keys)])
        events = self.delivered(100)
        self.assertEqual(len(events), 100)
        for number, key in enumerate(keys):
            self.assertEqual([e["data"] for e in events if e["partitionkey"] == key],
                             list(range(number, 100, len(keys))))

    def test_urgent_events_are_first(self):
        for i in range(50):
            self.outbox.emit("usual", json.dumps(i), key="ann")
        for i in range(3):
            self.outbox.emit("urgent", json.dumps(i), key="ann", urgent=True)
        events = self.delivered(53)
        self.assertEqual([e["data"] for e in events], [*range(3), *range(50)])
        self.assertEqual([e.get("urgent") for e in events], 3 * [True] + 50 * [None])
        self.assertLess(abs(time.time() - self.when(events[0])), 3600)

    def test_in_one_transaction_with_what_it_tells_of(self):
        orders = self.table()
        order = {"Put": {"TableName": orders, "Item": {"pk": S("7")},
                         "ConditionExpression": "attribute_not_exists(pk)"}}
        self.db.transact_write_items(
            TransactItems=[order, self.outbox.put("placed", "7", key="order-7")])
        with self.assertRaises(self.db.exceptions.TransactionCanceledException):
            self.db.transact_write_items(
                TransactItems=[order, self.outbox.put("twice", "7", key="order-7")])
        self.assertEqual([event["type"] for event in self.delivered(1)], ["placed"])

    def test_what_is_due_later_waits(self):
        later = int((time.time() + 3600) * 1e6)
        self.outbox.emit("later", "{}", due_us=later)
        self.outbox.emit("now", "{}")
        self.assertEqual([event["type"] for event in self.delivered(1)], ["now"])
        self.assertEqual(json.loads(self.holdfast("outbox", "stats", "--json"))["scheduled"], 1)

    def test_mistakes_are_put_aside_with_their_cause(self):
        for item in ({"pk": S("p.000"), "sk": S("order-7"), "type": S("t")},
                     {"pk": S("p.016"), "sk": S("0" * 26), "type": S("t")}):
            self.db.put_item(TableName=self.name, Item=item)
        nameless = self.outbox.put("t", "{}")["Put"]
        del nameless["Item"]["type"]
        self.db.put_item(**nameless)
        self.outbox.emit("good", "{}")
        self.assertEqual([event["type"] for event in self.delivered(1, failed=3)], ["good"])
        failed = self.failed()
        self.assertEqual(len(failed), 3)
        texts = " ".join(event["error"] for event in failed)
        for part in ("its sk is not of 10 digits", "different buckets", "it has no type"):
            self.assertIn(part, texts)

    def test_a_table_that_is_no_outbox_is_refused(self):
        with self.assertRaises(ValueError):
            emitter()(self.db, self.table(range_type="S"))
