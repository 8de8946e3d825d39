#!/usr/bin/env python3
"""Tables that other libraries wrote, and the commands that take them over: adopt_test.py COMMAND SOURCE [unittest
arguments]. Rows are written as those libraries write them, request by request; their relays run beside; the command
is killed at every request.
"""
import base64
import datetime
import http.server
import json
import os
import random
import signal
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request
import uuid

import process as shared
from process import (COMMAND, CORRUPT, DENIED, FAILED, NOT_FOUND, SOURCE, UNAVAILABLE, USAGE, WAIT_S,  # noqa: F401
                     Commands, main, serve, setUpModule, tearDownModule)

FORWARD_S = 20


def call(operation, url=None, **body):
    """An operation of a server, as any client has it. None: a condition was not met."""
    request = urllib.request.Request(
        url or shared.SERVER.url, json.dumps(body).encode(),
        {"X-Amz-Target": "DynamoDB_20120810." + operation, "Content-Type": "application/x-amz-json-1.0",
         "X-Amz-Date": "20260101T000000Z",
         "Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, "
                          "SignedHeaders=host, Signature=" + "0" * 64})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        said = error.read().decode()
        if "ConditionalCheckFailed" in said:
            return None
        raise AssertionError("%s: %s" % (operation, said)) from None


def scan(table, url=None):
    items, more = [], {}
    while True:
        page = call("Scan", url, TableName=table, ConsistentRead=True, **more)
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def now_ms():
    return int(time.time() * 1000)


def iso(ms):
    """As Date.toISOString() has it."""
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + \
        "%03dZ" % (ms % 1000)


def dotnet(ms, ticks=0, offset="+00:00"):
    """As DateTimeOffset.ToString("O") has it: seven digits."""
    return iso(ms)[:-1] + "%04d" % ticks + offset


def av(value):
    """As the document client of the SDK marshals a value."""
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, (int, float)):
        return {"N": repr(value)}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bytes):
        return {"B": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return {"L": [av(one) for one in value]}
    return {"M": {name: av(one) for name, one in value.items()}}


def item(**fields):
    """An item; undefined (None here) is left out."""
    return {name: av(value) for name, value in fields.items() if value is not None}


class EventBusTable:
    """outbox-event-bus with its adapter for DynamoDB, 2.0.3: createTable of its documents, publish(), the poller."""

    def __init__(self, name, url=None, words=("created", "active", "completed", "failed")):
        self.name, self.url, self.words = name, url, words
        call("CreateTable", url, TableName=name, BillingMode="PAY_PER_REQUEST",
             AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"},
                                   {"AttributeName": "status", "AttributeType": "S"},
                                   {"AttributeName": "gsiSortKey", "AttributeType": "N"}],
             KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
             GlobalSecondaryIndexes=[{"IndexName": "status-gsiSortKey-index", "Projection": {"ProjectionType": "ALL"},
                                      "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"},
                                                    {"AttributeName": "gsiSortKey", "KeyType": "RANGE"}]}])

    def publish(self, *events):
        """(id, type, payload, occurredAt in ms): one TransactWriteItems of unconditional puts."""
        call("TransactWriteItems", self.url, TransactItems=[{"Put": {"TableName": self.name, "Item": item(
            id=id_, type=type_, payload=payload, occurredAt=iso(ms), status=self.words[0], retryCount=0,
            gsiSortKey=ms)}} for id_, type_, payload, ms in events])

    def update(self, id_, update, condition=None, **values):
        more = {"ConditionExpression": condition} if condition else {}
        return call("UpdateItem", self.url, TableName=self.name, Key={"id": {"S": id_}}, UpdateExpression=update,
                    ExpressionAttributeNames={"#status": "status"},
                    ExpressionAttributeValues={":" + name: av(value) for name, value in values.items()}, **more)

    def due(self, limit=50):
        return call("Query", self.url, TableName=self.name, IndexName="status-gsiSortKey-index", Limit=limit,
                    KeyConditionExpression="#status = :status AND gsiSortKey <= :now",
                    ExpressionAttributeNames={"#status": "status"},
                    ExpressionAttributeValues={":status": {"S": self.words[0]}, ":now": av(now_ms())})["Items"]

    def claim(self, id_, timeout_ms=30000, at_ms=None):
        at_ms = at_ms or now_ms()
        return self.update(id_, "SET #status = :active, gsiSortKey = :timeoutAt, startedOn = :now",
                           "#status = :created OR (#status = :active AND gsiSortKey <= :now)", active=self.words[1],
                           created=self.words[0], timeoutAt=at_ms + timeout_ms, now=at_ms) is not None

    def complete(self, id_):
        self.update(id_, "SET #status = :completed, completedOn = :now REMOVE gsiSortKey", completed=self.words[2],
                    now=now_ms())

    def retry(self, id_, count, at_ms):
        self.update(id_, "SET #status = :created, retryCount = :rc, lastError = :err, gsiSortKey = :next",
                    created=self.words[0], rc=count, err="no", next=at_ms)

    def fail(self, id_):
        self.update(id_, "SET #status = :failed, retryCount = :rc, lastError = :err, nextRetryAt = :now "
                    "REMOVE gsiSortKey", failed=self.words[3], rc=5, err="no", now=now_ms())

    def relay(self, ledger, stop):
        """start(): what it delivers is in `ledger`."""
        while not stop.is_set():
            for row in self.due(10):
                if self.claim(row["id"]["S"]):
                    ledger.append(row["id"]["S"])
                    self.complete(row["id"]["S"])
            stop.wait(0.01)

    def states(self):
        found = {}
        for row in scan(self.name, self.url):
            found.setdefault(row["status"]["S"], []).append(row["id"]["S"])
        return found


class ExcaliburTable:
    """Excalibur.Outbox.DynamoDb: EnsureTableExists, AddAsync, ClaimPendingAsync, MarkAsPublishedAsync."""

    def __init__(self, name, url=None, pk="pk", sk="sk"):
        self.name, self.url, self.pk, self.sk = name, url, pk, sk
        call("CreateTable", url, TableName=name, BillingMode="PAY_PER_REQUEST",
             AttributeDefinitions=[{"AttributeName": pk, "AttributeType": "S"},
                                   {"AttributeName": sk, "AttributeType": "S"},
                                   {"AttributeName": "createdAt", "AttributeType": "S"}],
             KeySchema=[{"AttributeName": pk, "KeyType": "HASH"}, {"AttributeName": sk, "KeyType": "RANGE"}],
             StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
             GlobalSecondaryIndexes=[{"IndexName": "ix_pk_createdAt", "Projection": {"ProjectionType": "ALL"},
                                      "KeySchema": [{"AttributeName": pk, "KeyType": "HASH"},
                                                    {"AttributeName": "createdAt", "KeyType": "RANGE"}]}])

    def add(self, pk, id_, created, payload=b"{}", headers=None, type_="OrderPlaced", **more):
        call("PutItem", self.url, TableName=self.name, Item=item(**{
            self.pk: pk, self.sk: id_, "messageType": type_, "payload": base64.b64encode(payload).decode(),
            "createdAt": created, "isPublished": False, "retryCount": 0,
            "headers": json.dumps(headers) if headers is not None else None, **more}))

    def key(self, pk, id_):
        return {self.pk: {"S": pk}, self.sk: {"S": id_}}

    def claim(self, pk, id_, at_ms=None, lease_s=120):
        at_ms = at_ms or now_ms()
        return call("UpdateItem", self.url, TableName=self.name, Key=self.key(pk, id_),
                    ConditionExpression="#isPublished = :false AND (attribute_not_exists(#leasedAt) OR "
                                        "#leasedAt < :cutoff)",
                    UpdateExpression="SET #leasedAt = :now, #leasedBy = :claimant",
                    ExpressionAttributeNames={"#isPublished": "isPublished", "#leasedAt": "leasedAt",
                                              "#leasedBy": "leasedBy"},
                    ExpressionAttributeValues={":false": {"BOOL": False}, ":now": av(dotnet(at_ms)),
                                               ":cutoff": av(dotnet(at_ms - lease_s * 1000)),
                                               ":claimant": {"S": "worker"}}) is not None

    def publish(self, pk, id_):
        call("UpdateItem", self.url, TableName=self.name, Key=self.key(pk, id_),
             ConditionExpression="attribute_exists(#pk)",
             UpdateExpression="SET isPublished = :true, publishedAt = :now, #ttl = :ttl",
             ExpressionAttributeNames={"#pk": self.pk, "#ttl": "ttl"},
             ExpressionAttributeValues={":true": {"BOOL": True}, ":now": av(dotnet(now_ms())),
                                        ":ttl": av(now_ms() // 1000 + 604800)})

    def relay(self, keys, ledger, stop):
        """GetPending and ClaimPending of each partition, by the index, oldest first."""
        while not stop.is_set():
            for pk in keys:
                rows = call("Query", self.url, TableName=self.name, IndexName="ix_pk_createdAt", Limit=1000,
                            KeyConditionExpression="#pk = :pk", FilterExpression="isPublished = :false",
                            ExpressionAttributeNames={"#pk": self.pk},
                            ExpressionAttributeValues={":pk": {"S": pk}, ":false": {"BOOL": False}})["Items"]
                for row in rows[:2]:
                    if self.claim(pk, row[self.sk]["S"]):
                        ledger.append(row[self.sk]["S"])
                        self.publish(pk, row[self.sk]["S"])
            stop.wait(0.01)


class ExcaliburDataTable:
    """Excalibur.Data.DynamoDb: FromOutboundMessage, StageMessageAsync, MarkSentAsync, MarkFailedAsync."""

    def __init__(self, name, url=None):
        self.name, self.url = name, url
        keys = ("PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK")
        call("CreateTable", url, TableName=name, BillingMode="PAY_PER_REQUEST",
             AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
             KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
             GlobalSecondaryIndexes=[{"IndexName": index, "Projection": {"ProjectionType": "ALL"},
                                      "KeySchema": [{"AttributeName": index + "PK", "KeyType": "HASH"},
                                                    {"AttributeName": index + "SK", "KeyType": "RANGE"}]}
                                     for index in ("GSI1", "GSI2")])

    def stage(self, id_, created, priority=0, payload=b"{}", scheduled=None, headers=None, **more):
        call("PutItem", self.url, TableName=self.name, ConditionExpression="attribute_not_exists(PK)", Item=item(
            PK="OUTBOX#Staged", SK="%05d#%s#%s" % (priority, created, id_), GSI1PK="MSG#" + id_, GSI1SK=id_,
            messageId=id_, messageType="Shop.OrderPlaced", destination="orders", payload=payload, status=0,
            priority=priority, createdAt=created, retryCount=0, scheduledAt=scheduled,
            GSI2PK="SCHEDULED" if scheduled else None, GSI2SK=scheduled + "#" + id_ if scheduled else None,
            headers=json.dumps(headers) if headers else None, **more))

    def move(self, id_, state, number, **more):
        """WithStatus: a deletion and a put in one transaction."""
        old = next(row for row in scan(self.name, self.url) if row["messageId"]["S"] == id_)
        new = {**old, **item(PK="OUTBOX#" + state, status=number, **more)}
        call("TransactWriteItems", self.url, TransactItems=[
            {"Delete": {"TableName": self.name, "Key": {"PK": old["PK"], "SK": old["SK"]},
                        "ConditionExpression": "attribute_exists(PK)"}},
            {"Put": {"TableName": self.name, "Item": new, "ConditionExpression": "attribute_not_exists(PK)"}}])

    def unsent(self):
        """GetUnsentMessagesAsync."""
        return [row["messageId"]["S"] for row in call(
            "Query", self.url, TableName=self.name, KeyConditionExpression="PK = :pk",
            FilterExpression="attribute_not_exists(scheduledAt) OR scheduledAt <= :now",
            ExpressionAttributeValues={":pk": {"S": "OUTBOX#Staged"}, ":now": av(dotnet(now_ms()))})["Items"]]


def stringify(value):
    """JSON.stringify()."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class SchemelessTable:
    """@schemeless/event-store-adapter-dynamodb: init() and storeEvents() of its versions.

    layout 1: HASH id; 2: RANGE created, payload binary; 3: EventID#, payload as JSON; 4: the same with a time bucket;
    5: sequences and heads.
    """
    LIMIT = 350000

    def __init__(self, name, url=None, layout=5, objects=None):
        self.name, self.url, self.layout, self.objects = name, url, layout, objects
        keys = {"id": "S"} if layout == 1 else {"id": "S", "created": "S"}
        indexes = {1: {"created": ("created", "id")}, 2: {}, 3: {"eventCreated": ("created", "id")}}.get(
            layout, {"timeBucketIndex": ("timeBucket", "created"), "causationIndex": ("causationId", "created")})
        names = {**keys, **{name: "S" for pair in indexes.values() for name in pair}}
        units = {"ReadCapacityUnits": 10, "WriteCapacityUnits": 10}
        more = {"GlobalSecondaryIndexes": [
            {"IndexName": index, "ProvisionedThroughput": units,
             "Projection": {"ProjectionType": "ALL" if layout == 1 else "KEYS_ONLY"},
             "KeySchema": [{"AttributeName": key, "KeyType": kind} for key, kind in zip(pair, ("HASH", "RANGE"))]}
            for index, pair in indexes.items()]} if indexes else {}
        call("CreateTable", url, TableName=name, ProvisionedThroughput=units,
             AttributeDefinitions=[{"AttributeName": key, "AttributeType": kind} for key, kind in names.items()],
             KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"))], **more)

    def item(self, event, sequence=None):
        id_, ms, payload, reference = event["id"], event["created"], event.get("payload"), None
        fields = {**event, "created": iso(ms)}
        if self.layout >= 4:
            fields["timeBucket"] = iso(ms)[:7]
        if self.objects and len(stringify(payload)) > self.LIMIT:
            key = "events/%s.json" % id_
            path = os.path.join(self.objects, key)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(stringify(fields))
            payload, reference = None, "archive::" + key
        del fields["id"]
        fields.pop("payload", None)
        made = item(**fields, s3Reference=reference, sequence=sequence)
        if self.layout >= 3:
            made["id"] = {"S": "EventID#" + id_}
            if payload or (self.layout < 5 and "payload" in event and not reference):
                made["payload"] = {"S": stringify(payload)}
        else:
            made["id"] = {"S": id_}
            if "payload" in event:
                made["payload"] = av(payload) if self.layout == 1 else av(stringify(payload).encode())
        return made

    def put(self, made):
        call("PutItem", self.url, TableName=self.name, Item=made)

    def store(self, *events):
        if self.layout < 5:
            for event in events:
                self.put(self.item(event))
            return
        groups = {}
        for event in events:
            groups.setdefault("%s::%s" % (event["domain"], event.get("identifier") or ""), []).append(event)
        for key, group in groups.items():
            for at in range(0, len(group), 25):
                self.store_chunk(key, group[at:at + 25])

    def store_chunk(self, key, group):
        head = {"id": {"S": "EventID#HEAD::" + key}, "created": {"S": "HEAD"}}
        found = call("GetItem", self.url, TableName=self.name, Key=head, ConsistentRead=True).get("Item")
        base = int(found["version"]["N"]) if found else 0
        call("TransactWriteItems", self.url, TransactItems=[
            {"Update": {"TableName": self.name, "Key": head, "UpdateExpression": "SET version = :newVersion",
                        "ConditionExpression": "attribute_not_exists(version) OR version = :expected",
                        "ExpressionAttributeValues": {":newVersion": av(base + len(group)), ":expected": av(base)}}}] +
             [{"Put": {"TableName": self.name, "Item": self.item(event, base + i + 1),
                       "ConditionExpression": "attribute_not_exists(id)"}} for i, event in enumerate(group)])


class Killer(http.server.BaseHTTPRequestHandler):
    """Requests go on to the server; at the one with a given number a process is killed, before or after it is done."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        server = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fields = {k: v for k, v in self.headers.items() if k.lower() != "host"}
        server.seen += 1
        time.sleep(server.delay_s)
        target = self.headers["X-Amz-Target"].split(".")[1]
        refused = server.refuses and target.startswith(server.refuses)
        if server.seen == server.at and not server.after:
            return server.kill()
        try:
            if refused:
                answer = 400, b'{"__type":"com.amazonaws.dynamodb.v20120810#UnknownOperationException"}'
            else:
                with urllib.request.urlopen(urllib.request.Request(server.to, body, fields), timeout=FORWARD_S) as got:
                    answer = got.status, got.read()
        except urllib.error.HTTPError as error:
            answer = error.code, error.read()
        if server.seen == server.at:
            return server.kill()
        try:
            self.send_response(answer[0])
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(answer[1])))
            self.end_headers()
            self.wfile.write(answer[1])
        except (BrokenPipeError, ConnectionResetError):  # it was killed, or has enough
            self.close_connection = True

    def log_message(self, *_):
        pass


class KillerServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, to, refuses=None):
        super().__init__(("127.0.0.1", 0), Killer)
        self.to, self.refuses, self.at, self.after, self.seen, self.pid, self.delay_s = to, refuses, 0, False, 0, None, 0
        self.url = "http://127.0.0.1:%d" % self.server_port
        self.known = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def kill(self):
        self.known.wait(WAIT_S)
        os.kill(self.pid, signal.SIGKILL)


class Objects(http.server.BaseHTTPRequestHandler):
    """A folder as a bucket of S3, as far as reading goes: HEAD of the bucket, GET of an object or a range of it."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self):
        self.answer(200 if self.path == "/archive" else 404)

    def do_GET(self):
        path = os.path.join(self.server.folder, self.path.split("?")[0][len("/archive/"):])
        if self.server.broken:
            return self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        if not os.path.exists(path):
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        with open(path, "rb") as file:
            body = file.read()
        begin, end = map(int, self.headers["Range"][len("bytes="):].split("-"))
        part = body[begin:end + 1]
        return self.answer(206, part, Content_Range="bytes %d-%d/%d" % (begin, begin + len(part) - 1, len(body)))

    def log_message(self, *_):
        pass


class Bucket(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Objects)
        self.folder, self.broken, self.url = folder, False, "http://127.0.0.1:%d" % self.server_port
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Adopts(Commands):
    def prepare(self):
        self.prefix = self.env["HOLDFAST_PREFIX"]

    def json(self, *args, code=0, **more):
        got, out, err = self.run_(*args, "--json", **more)
        self.assertEqual(got, code, err)
        if not code:
            self.assertEqual(err, "")
        return json.loads(out)

    def fails(self, code, error, *args, **more):
        err = super().fails(code, error, *args, **more)
        self.assertTrue(err.startswith("holdfast %s %s: " % args[:2]), err)
        return err

    def second(self):
        """Another database, and its URL."""
        server = serve("--in-memory")
        self.addCleanup(lambda: (server.terminate(), server.communicate(timeout=WAIT_S)))
        return server.url

    def proxy(self, to, **more):
        proxy = KillerServer(to, **more)
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        return proxy

    def killed_at(self, proxy, at, after, *args):
        """Run it, and kill it at that request. True: it came to its end before."""
        proxy.seen, proxy.at, proxy.after = 0, at, after
        proxy.known.clear()
        process = subprocess.Popen([COMMAND, *args], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        proxy.pid = process.pid
        proxy.known.set()
        out, err = process.communicate(timeout=WAIT_S)
        proxy.at = 0
        if process.returncode == -signal.SIGKILL:
            return False
        self.assertEqual((process.returncode, err), (0, ""), out)
        return True

    def step_beside(self, number, process, threads, rows, ledger):
        """Called with each event: at some let the command move something, at some let the relays deliver something."""
        holds = {30: lambda: len(rows()) < 30, 60: lambda: ledger}.get(number)
        time_over = time.monotonic() + WAIT_S
        while holds and not holds() and time.monotonic() < time_over:
            time.sleep(0.01)
        if number == 30:
            process.send_signal(signal.SIGSTOP)
            for thread in threads:
                thread.start()
        if number == 60:
            process.send_signal(signal.SIGCONT)

    def pending(self, *db):
        """The events of the outbox, in the order of delivery per key."""
        rows = self.ok("outbox", "ls", "--later", "--jsonl", *db)
        return [json.loads(line) for line in rows.splitlines()]

    def delivered(self, *db):
        out = self.ok("outbox", "drain", "--to", "stdout:", *db).splitlines()
        return [json.loads(line) for line in out if line.startswith("{")]


def counts(moved, duplicates=0, delivered=0, failed=0, claimed=0, behind=0, unreadable=0):
    return {"moved": moved, "duplicates": duplicates, "delivered": delivered, "failed": failed, "claimed": claimed,
            "behind": behind, "unreadable": unreadable}


BUS = ("--from", "outbox-event-bus")


class EventBus(Adopts):
    def table(self, url=None, **more):
        return EventBusTable(("" if url else self.prefix) + "events", url, **more)

    def fill(self, table):
        """An event in every state, and what `adopt` is to say of them."""
        at = now_ms() - 3600 * 1000
        table.publish(("a", "order.placed", {"total": 9.5, "tags": [None, True, ""]}, at),
                      ("b", "order.paid", "text", at - 1000), ("c", "x", 0, at), ("d", "x", [], at), ("e", "x", {}, at),
                      ("f", "x", {}, at), ("g", "x", {}, at), ("h", "later", {}, now_ms() + 86400 * 1000))
        table.claim("c")                                 # a relay has it
        table.claim("d", at_ms=at)                       # its relay died
        table.claim("e")
        table.complete("e")
        table.fail("f")
        table.retry("g", 2, now_ms() + 3600 * 1000)      # waits for its third attempt
        return at

    def test_every_state(self):
        table = self.table()
        at = self.fill(table)
        self.assertEqual(self.json("outbox", "adopt", "events", *BUS, "--dry-run"),
                         {"movable": 5, "duplicates": 0, "delivered": 1, "failed": 1, "claimed": 1, "behind": 0,
                          "unreadable": 0})
        self.assertEqual(len(scan(table.name)), 8)
        self.fails(NOT_FOUND, "outbox", "outbox", "ls", "--table", "outbox")
        self.assertEqual(self.json("outbox", "adopt", "events", *BUS), counts(5, delivered=1, failed=1, claimed=1))
        self.assertEqual(table.states(), {"active": ["c"], "completed": ["e"], "failed": ["f"]})
        stored = {event["id"]: event for event in self.pending()}
        self.assertEqual(set(stored), set("abdgh"))
        out = {event["id"]: event for event in self.delivered()}
        self.assertEqual(set(out), set("abd"))
        self.assertEqual((out["a"]["type"], out["a"]["data"], out["a"]["time"]),
                         ("order.placed", {"total": 9.5, "tags": [None, True, ""]}, iso(at)[:-1] + "000Z"))
        self.assertEqual((out["b"]["data"], out["d"]["data"]), ("text", []))
        table.complete("c")
        self.assertEqual(self.json("outbox", "adopt", "events", *BUS, "--failed"), counts(1, delivered=2))
        self.assertEqual(self.json("outbox", "adopt", "events", *BUS), counts(0, delivered=2))
        self.assertEqual([event["id"] for event in self.delivered()], ["f"])

    def test_the_order_is_that_of_their_due_times(self):
        table, at = self.table(), now_ms() - 3600 * 1000
        ids = ["e%03d" % i for i in range(70)]
        shuffled = list(enumerate(ids))
        random.Random(7).shuffle(shuffled)
        for number, id_ in shuffled:
            table.publish((id_, "x", number, at + number))
        self.assertEqual(self.json("outbox", "adopt", "events", *BUS, "--buckets", "1"), counts(70))
        self.assertEqual([event["id"] for event in self.delivered()], ids)

    def test_claims(self):
        table, at = self.table(), now_ms()
        table.publish(("a", "x", {}, at), ("b", "x", {}, at))
        table.claim("a", timeout_ms=1, at_ms=at - 30 * 1000)
        table.claim("b", timeout_ms=1, at_ms=at - 300 * 1000)
        self.assertEqual(self.json("outbox", "adopt", "events", *BUS), counts(1, claimed=1))
        self.assertEqual(self.json("outbox", "adopt", "events", *BUS, "--grace", "10s"), counts(1))

    def test_the_statuses_of_its_first_versions(self):
        table, at = self.table(words=("PENDING", "PROCESSING", "COMPLETED", "FAILED")), now_ms() - 3600 * 1000
        table.publish(("a", "x", {}, at), ("b", "x", {}, at), ("c", "x", {}, at), ("d", "x", {}, at))
        table.claim("b")
        table.complete("c")
        table.fail("d")
        self.assertEqual(self.json("outbox", "adopt", "events", *BUS), counts(1, delivered=1, failed=1, claimed=1))

    def test_rows_that_cannot_be_read(self):
        table, at = self.table(), now_ms() - 1000
        table.publish(("a", "x", {}, at), ("bad\x1b[1m", "x", {}, at), ("n", "", {}, at), ("t" * 1025, "x", {}, at),
                      ("z", "y" * 1025, {}, at))
        table.update("bad\x1b[1m", "SET #status = :s", s="strange")
        table.update("ghost", "SET #status = :s, completedOn = :now", s="completed", now=at)  # as retryEvents leaves
        table.update("ghost2", "SET #status = :s, gsiSortKey = :now", s="created", now=at)
        for _ in range(2):
            code, out, err = self.run_("outbox", "adopt", "events", *BUS, "--json")
            self.assertEqual(code, FAILED)
            got = json.loads(out)
            self.assertEqual((got["unreadable"], got["delivered"]), (5, 1))
            said = "\n".join(json.loads(line)["notice"]["message"] for line in err.splitlines())
            for text in ('"bad\x1b[1m" in its table: "status" must be created, active', '"n" in its table: "type" is',
                         '"ghost2" in its table: "type" is missing', "id has 1025 bytes", "type has 1025 bytes"):
                self.assertIn(text, said)
        self.assertEqual({event["id"] for event in self.pending()}, {"a"})
        self.assertEqual(len(scan(table.name)), 6)

    def test_an_id_that_was_emitted_before(self):
        table, at = self.table(), now_ms() - 1000
        table.publish(("a", "x", {"n": 1}, at), ("b", "x", {"n": 2}, at), ("c", "x", {"n": 3}, at))
        self.ok("outbox", "emit", "x", '{"n":1}', "--id", "a", "-q")
        self.ok("outbox", "emit", "other", '{"n":1}', "--id", "b", "-q")
        code, out, err = self.run_("outbox", "adopt", "events", *BUS, "--json")
        self.assertEqual((code, json.loads(out)), (FAILED, counts(1, duplicates=1, unreadable=1)))
        self.assertIn("another event in the outbox has its id", err)
        self.assertEqual(table.states(), {"created": ["b"]})
        other = self.second()
        self.ok("outbox", "emit", "other", '{"n":1}', "--id", "b", "-q", "--db", other)
        code, out, _ = self.run_("outbox", "adopt", "events", *BUS, "--from-db", shared.SERVER.url, "--db", other)
        self.assertEqual(code, NOT_FOUND)  # without the prefix
        before = scan(table.name)
        code, out, err = self.run_("outbox", "adopt", table.name, *BUS, "--from-db", shared.SERVER.url, "--db", other,
                                   "--json")
        self.assertEqual((code, json.loads(out)), (FAILED, counts(0, unreadable=1)), err)
        self.assertEqual(scan(table.name), before)  # its mark was taken back

    def test_what_cannot_be(self):
        self.fails(USAGE, "missing option --from", "outbox", "adopt", "events")
        self.fails(USAGE, "--from", "outbox", "adopt", "events", "--from", "other")
        self.fails(USAGE, "exclude", "outbox", "adopt", "events", *BUS, "--dry-run", "--follow")
        self.fails(USAGE, "name another outbox", "outbox", "adopt", "outbox", *BUS)
        self.fails(NOT_FOUND, "events", "outbox", "adopt", "events", *BUS)
        self.fails(UNAVAILABLE, "127.0.0.1:1", "outbox", "adopt", "events", *BUS, "--from-db", "http://127.0.0.1:1",
                   "--timeout", "3s")
        ExcaliburTable(self.prefix + "events")
        self.fails(USAGE, "another key than tables of outbox-event-bus", "outbox", "adopt", "events", *BUS)
        self.assertEqual(self.ok("outbox", "ls"), "")
        new = "embedded:" + self.path("new")
        self.fails(NOT_FOUND, "new", "outbox", "adopt", "events", *BUS, "--db", new)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_in_a_directory(self):
        db = ("--db", "embedded:" + self.path("db"))
        server = serve("--db-path", self.path("db"))
        url = server.url
        EventBusTable(self.prefix + "events", url).publish(("a", "x", {}, now_ms()))
        server.terminate()
        server.communicate(timeout=WAIT_S)
        self.assertEqual(self.json("outbox", "adopt", "events", *BUS, *db), counts(1))
        self.assertEqual([event["id"] for event in self.delivered(*db)], ["a"])

    def test_on_a_terminal(self):
        table = self.table()
        for i in range(3):
            table.publish(("e%d" % i, "x", {}, now_ms()))
        self.assertEqual(self.on_terminal("outbox", "adopt", "events", *BUS)[0].split(), ["moved", "3"])

    def kill_everywhere(self, proxy, table, url, *args):
        """Kill it at request after request, until it gets to its end; new events come all the while."""
        kills, at, number = 0, 1, 0
        expected = set()
        self.ok(*args)  # makes the outbox: after a kill in between another one waits for the table
        while True:
            for _ in range(3 if kills < 10 else 0):
                id_ = "e%d" % number
                table.publish((id_, "x", {"n": number}, now_ms() - 1000))
                expected.add(id_)
                number += 1
            if self.killed_at(proxy, at, kills % 2 == 1, *args):
                break
            kills, at = kills + 1, at + 1
            self.assertLess(kills, 60)
        self.assertGreaterEqual(kills, 10)
        got = [event["id"] for event in self.pending("--db", url)]
        self.assertEqual(sorted(got), sorted(expected))
        self.assertEqual(scan(table.name, table.url), [])

    def test_killed_at_every_request(self):
        table = self.table()
        proxy = self.proxy(shared.SERVER.url)
        self.kill_everywhere(proxy, table, shared.SERVER.url, "outbox", "adopt", "events", *BUS, "--batch", "4",
                             "--db", proxy.url)

    def test_killed_at_every_request_between_databases(self):
        url = self.second()
        table = EventBusTable("events", url)
        proxy = self.proxy(url)
        self.kill_everywhere(proxy, table, shared.SERVER.url, "outbox", "adopt", "events", *BUS, "--batch", "4",
                             "--from-db", proxy.url)

    def test_killed_at_every_request_of_the_other_database(self):
        url = self.second()
        table = EventBusTable("events", url)
        proxy = self.proxy(shared.SERVER.url)
        self.kill_everywhere(proxy, table, shared.SERVER.url, "outbox", "adopt", "events", *BUS, "--batch", "4",
                             "--from-db", url, "--db", proxy.url)

    def test_without_transactions(self):
        table = self.table()
        proxy = self.proxy(shared.SERVER.url, refuses="Transact")
        self.kill_everywhere(proxy, table, proxy.url, "outbox", "adopt", "events", *BUS, "--batch", "4",
                             "--db", proxy.url)

    def beside(self, table, *args):
        """Its relays and its producers run; each event is delivered by one of the two, and by one only."""
        ledger, stop = [], threading.Event()
        relays = [threading.Thread(target=table.relay, args=(ledger, stop)) for _ in range(2)]
        process = self.start("outbox", "adopt", *args, *BUS, "--follow", "--poll", "100ms", "--batch", "5", "--json")
        expected = ["e%d" % i for i in range(150)]
        for i, id_ in enumerate(expected):
            table.publish((id_, "x", {"n": i}, now_ms()))
            self.step_beside(i, process, relays, lambda: scan(table.name, table.url), ledger)
        time_over = time.monotonic() + WAIT_S
        while set(table.states()) - {"completed"} and time.monotonic() < time_over:
            time.sleep(0.05)
        stop.set()
        for relay in relays:
            relay.join()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT_S)
        self.assertEqual((process.returncode, err), (0, ""))
        ours = [event["id"] for event in self.pending()]
        self.assertEqual(sorted(ours + ledger), sorted(expected))
        self.assertEqual(json.loads(out)["moved"], len(ours))
        self.assertGreater(len(ours), 0)
        self.assertGreater(len(ledger), 0)

    def test_beside_their_relays(self):
        self.beside(self.table(), "events")

    def test_beside_their_relays_in_another_database(self):
        url = self.second()
        self.beside(EventBusTable("events", url), "events", "--from-db", url)

    def together(self, table, *args):
        """Two runs at the same time, on 100 events."""
        for _ in range(3):
            ids = [str(uuid.uuid4()) for _ in range(100)]
            table.publish(*[(id_, "x", {}, now_ms()) for id_ in ids])
            runs = [self.start("outbox", "adopt", *args, *BUS, "--batch", "3", "--json") for _ in range(2)]
            done = []
            for run in runs:
                out, err = run.communicate(timeout=WAIT_S)
                self.assertEqual((run.returncode, err), (0, ""))
                done.append(json.loads(out))
            self.assertEqual(sorted(event["id"] for event in self.pending()), sorted(ids))
            self.assertEqual(sum(one["moved"] for one in done), 100)
            self.assertEqual(table.states(), {})
            self.delivered()

    def test_two_at_once(self):
        self.together(self.table(), "events")

    def test_two_at_once_between_databases(self):
        url = self.second()
        self.together(EventBusTable("events", url), "events", "--from-db", url)

    def test_a_signal(self):
        table = self.table()
        for i in range(5):
            table.publish(*[("e%d-%d" % (i, j), "x", {}, now_ms()) for j in range(100)])
        proxy = self.proxy(shared.SERVER.url)
        proxy.delay_s = 0.02  # so that 500 take long enough
        process = self.start("outbox", "adopt", "events", *BUS, "--batch", "1", "--db", proxy.url)
        time_over = time.monotonic() + WAIT_S
        while len(scan(table.name)) > 495 and time.monotonic() < time_over:
            time.sleep(0.01)
        process.terminate()
        _, err = process.communicate(timeout=WAIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn("events were moved: run it again", err)
        self.ok("outbox", "adopt", "events", *BUS)
        self.assertEqual(len({event["id"] for event in self.pending()}), 500)


EXCALIBUR = ("--from", "excalibur")


class Excalibur(Adopts):
    def table(self, url=None, **more):
        return ExcaliburTable(("" if url else self.prefix) + "theirs", url, **more)

    def test_every_field(self):
        table, at = self.table(), 1769903999250
        table.add("orders", "m1", dotnet(at, 4567, "+02:00"), b'{"n": 1}', {"who": "ann"}, aggregateId="7",
                  aggregateType="order", correlationId="c", causationId="d", tenantId="__untenanted__", destination="q")
        table.add("orders", "m2", dotnet(at), b"\x00\xff", tenantId="t")
        self.assertEqual(self.json("outbox", "adopt", "theirs", *EXCALIBUR), counts(2))
        two, one = sorted(self.delivered(), key=lambda event: event["id"], reverse=True)
        self.assertEqual(one, {
            "specversion": "1.0", "id": "m1", "source": "holdfast", "type": "OrderPlaced",
            "time": iso(at - 7200000)[:-1] + "456Z", "datacontenttype": "application/json", "subject": "7",
            "aggregatetype": "order", "partitionkey": "orders", "correlationid": "c", "causationid": "d",
            "destination": "q", "who": "ann", "data": {"n": 1}})
        self.assertEqual((two["data_base64"], two["tenant"]), ("AP8=", "t"))

    def test_states_and_claims(self):
        table, at = self.table(), now_ms() - 1000 * 1000
        for number, id_ in enumerate("abcdef"):
            table.add("p", id_, dotnet(at + number))
        table.add("q", "g", dotnet(at))
        table.claim("p", "a")
        table.publish("p", "a")
        table.claim("p", "c")                      # so d, e and f wait
        table.claim("p", "e", at_ms=at)            # its worker died
        self.assertEqual(self.json("outbox", "adopt", "theirs", *EXCALIBUR), counts(2, delivered=1, claimed=1, behind=3))
        self.assertEqual({event["id"] for event in self.pending()}, {"b", "g"})
        self.assertEqual(self.json("outbox", "adopt", "theirs", *EXCALIBUR, "--lease", "1ms", "--grace", "0s"),
                         counts(4, delivered=1))
        self.assertEqual([event["id"] for event in self.delivered() if event["partitionkey"] == "p"], list("bcdef"))

    def test_the_order_of_each_partition(self):
        table, at = self.table(pk="Partition", sk="Message"), now_ms() - 3600 * 1000
        rows = [("p%d" % (i % 3), str(uuid.UUID(int=random.Random(i).getrandbits(128))), i) for i in range(90)]
        for pk, id_, i in random.Random(1).sample(rows, len(rows)):
            table.add(pk, id_, dotnet(at + i // 10, i), json.dumps(i).encode())
        self.assertEqual(self.json("outbox", "adopt", "theirs", *EXCALIBUR, "--batch", "7"), counts(90))
        got = {}
        for event in self.delivered():
            got.setdefault(event["partitionkey"], []).append(event["data"])
        self.assertEqual(got, {"p%d" % p: list(range(p, 90, 3)) for p in range(3)})

    def test_killed_between_databases(self):
        url = self.second()
        table = ExcaliburTable("theirs", url)
        proxy = self.proxy(url)
        kills, number = 0, 0
        while True:
            for _ in range(3):
                table.add("p%d" % (number % 2), "m%03d" % number, dotnet(now_ms()), json.dumps(number).encode())
                number += 1
            if self.killed_at(proxy, kills + 1, kills % 2 == 1, "outbox", "adopt", "theirs", *EXCALIBUR, "--from-db",
                              proxy.url, "--batch", "4"):
                break
            kills += 1
        self.assertGreaterEqual(kills, 10)
        self.assertEqual(scan("theirs", url), [])
        got = {}
        for event in self.delivered():
            got.setdefault(event["partitionkey"], []).append(event["data"])
        self.assertEqual(got, {"p%d" % p: list(range(p, number, 2)) for p in range(2)})

    def test_beside_their_workers(self):
        table = self.table()
        ledger, stop = [], threading.Event()
        keys = ["p%d" % i for i in range(4)]
        workers = [threading.Thread(target=table.relay, args=(keys, ledger, stop)) for _ in range(2)]
        process = self.start("outbox", "adopt", "theirs", *EXCALIBUR, "--follow", "--poll", "100ms", "--batch", "3",
                             "--json")
        expected = ["m%03d" % i for i in range(120)]
        for i, id_ in enumerate(expected):
            table.add(keys[i % 4], id_, dotnet(now_ms(), i), json.dumps(i).encode())
            self.step_beside(i, process, workers, lambda: scan(table.name), ledger)
        time_over = time.monotonic() + WAIT_S
        while any(not row["isPublished"]["BOOL"] for row in scan(table.name)) and time.monotonic() < time_over:
            time.sleep(0.05)
        stop.set()
        for worker in workers:
            worker.join()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT_S)
        self.assertEqual((process.returncode, err), (0, ""))
        ours = [event["id"] for event in self.pending()]
        self.assertEqual(sorted(ours + ledger), expected)
        self.assertTrue(ours and ledger)


DATA = ("--from", "excalibur-data")


class ExcaliburData(Adopts):
    def table(self, url=None):
        return ExcaliburDataTable(("" if url else self.prefix) + "outbox_messages", url)

    def fill(self, table):
        at = now_ms() - 3600 * 1000
        table.stage("c", dotnet(at), 5, b'{"n":3}', headers={"a": 1}, correlationId="k", tenantId="t")
        table.stage("a", dotnet(at + 1), 1, b'{"n":1}')
        table.stage("b", dotnet(at + 2), 1, b"\xff")
        table.stage("s", dotnet(at), 1, scheduled=dotnet(now_ms() + 86400 * 1000))
        table.stage("x", dotnet(at))
        table.stage("y", dotnet(at))
        table.move("x", "Sent", 2, sentAt=dotnet(at))
        table.move("y", "Failed", 3, lastError="no", retryCount=3, lastAttemptAt=dotnet(at))

    def test_states_and_order(self):
        table = self.table()
        self.fill(table)
        self.assertEqual(self.json("outbox", "adopt", "outbox_messages", *DATA, "--buckets", "1"),
                         counts(4, delivered=1, failed=1))
        self.assertEqual(table.unsent(), [])
        out = self.delivered()
        self.assertEqual([event["id"] for event in out], ["a", "b", "c"])
        self.assertEqual((out[2]["type"], out[2]["data"], out[2]["destination"], out[2]["correlationid"],
                          out[2]["tenant"], out[2]["a"]), ("Shop.OrderPlaced", {"n": 3}, "orders", "k", "t", 1))
        self.assertEqual(out[1]["data_base64"], "/w==")
        self.assertEqual([event["id"] for event in self.pending()], ["s"])
        self.assertEqual(self.json("outbox", "adopt", "outbox_messages", *DATA, "--failed"), counts(1, delivered=1))

    def test_tables_that_are_of_another_library(self):
        table = self.table()
        self.fill(table)
        code, out, err = self.run_("outbox", "adopt", "outbox_messages", *EXCALIBUR, "--json")
        self.assertEqual((code, json.loads(out)), (FAILED, counts(0, unreadable=6)))
        self.assertIn('\\"isPublished\\" is missing', err)
        SchemelessTable(self.prefix + "events", layout=1).store(happened(1, payload=1, occurredAt=iso(now_ms())))
        code, out, err = self.run_("outbox", "adopt", "events", *BUS, "--json")
        self.assertEqual((code, json.loads(out)), (FAILED, counts(0, unreadable=1)))
        self.assertIn('\\"status\\" is missing', err)
        self.assertEqual(self.pending(), [])

    def test_killed_between_databases(self):
        url = self.second()
        table = ExcaliburDataTable("outbox_messages", url)
        self.fill(table)
        for i in range(6):
            table.stage("m%d" % i, dotnet(now_ms()))
        proxy = self.proxy(url)
        kills = 0
        while not self.killed_at(proxy, kills + 1, kills % 2 == 1, "outbox", "adopt", "outbox_messages", *DATA,
                                 "--failed", "--from-db", proxy.url, "--batch", "1"):
            kills += 1
            unsent = set(table.unsent())
            self.assertFalse(unsent & {event["id"] for event in self.pending()})
        self.assertGreaterEqual(kills, 10)
        got = {event["id"]: event for event in self.pending()}
        more = {"m%d" % i for i in range(6)}
        self.assertEqual(set(got), set("abcsy") | more)
        self.assertEqual([row["messageId"]["S"] for row in scan(table.name, url)], ["x"])
        self.assertEqual({event["id"] for event in self.delivered()}, set("abcy") | more)  # s is still due tomorrow


def happened(number, domain="order", identifier="7", ms=None, **more):
    """An event as its runtime creates it: a ULID that sorts by time."""
    ms = ms if ms is not None else 1769903999000 + number
    return {"id": "01KG%022d" % number, "domain": domain, "type": "noted", "created": ms,
            "meta": {"schemaVersion": 1}, "identifier": identifier, **more}


class Events(Adopts):
    def table(self, url=None, **more):
        return SchemelessTable(("" if url else self.prefix) + "theirs", url, **more)

    def adopt(self, *options, code=0, table="theirs"):
        return self.json("events", "adopt", table, *options, code=code)

    def exported(self, *db):
        return [json.loads(line) for line in self.ok("events", "export", *db).split("\n")[:-1]]

    def counts(self, events, streams, imported, existing=0, left=0, verified=None):
        return {"events": events, "streams": streams, "imported": imported, "existing": existing, "left": left,
                "verified": streams if verified is None else verified}

    def test_every_field(self):
        table = self.table()
        first = happened(1, type="placed", payload={"total": 9.5, "text": "", "no": None, "é": "\u2028"},
                         correlationId="01KG%022d" % 1, meta={"schemaVersion": 3, "by": "ann", "n": 1.5, "list": [{}]})
        second = happened(2, type="paid", payload="[1]", causationId=first["id"], correlationId=first["id"])
        third = happened(3, type="undone", payload=0, causationId=first["id"], correlationId=first["id"],
                         meta={"schemaVersion": 1, "isCompensating": True, "compensatesEventId": second["id"]})
        bare = {"id": "x", "domain": "lone", "type": "noted", "created": 1769903999004, "payload": [1]}
        table.store(first, second, bare)
        table.store(third)
        self.assertEqual(self.json("events", "adopt", "theirs", "--dry-run"), {
            "events": 4, "streams": 2, "importable": 4, "existing": 0, "left": 0, "verified": 0})
        self.fails(NOT_FOUND, "events", "events", "export", "--table", "events")
        self.assertEqual(self.adopt(), self.counts(4, 2, 4))
        one, two, three, four = self.exported()
        for got in (one, two, three, four):
            del got["position"], got["hash"]
        self.assertEqual(one, {"domain": "order", "stream": "7", "version": 1, "id": first["id"], "type": "placed",
                               "time": "2026-01-31T23:59:59.001000Z", "schema": 3, "content_type": "application/json",
                               "correlation": first["id"], "meta": {"by": {"S": "ann"}, "n": {"N": "1.5"},
                                                                    "list": {"L": [{"M": {}}]}},
                               "payload": first["payload"]})
        self.assertEqual((two["version"], two["payload"], two["causation"], two["correlation"], "meta" in two),
                         (2, "[1]", first["id"], first["id"], False))
        self.assertEqual((three["version"], three["compensates"], "payload" in three, "meta" in three),
                         (3, second["id"], False, False))  # 0 was lost there
        self.assertEqual((four["domain"], four["stream"], four["version"], four["id"], four["payload"]),
                         ("lone", "", 1, "x", [1]))
        self.assertEqual(self.adopt(), self.counts(4, 2, 0, existing=4))
        table.store(happened(4, payload=4), happened(5, identifier="8", payload=5))
        self.assertEqual(self.adopt(), self.counts(6, 3, 2, existing=4))
        self.assertEqual(self.json("events", "verify"), {"streams": 3, "events": 6})

    def test_many_events_of_many_streams(self):
        table, dice = self.table(), random.Random(3)
        streams = [("order", str(i)) for i in range(9)] + [("é/%", "x\ny"), ("a", ""), ("a", "b")]
        events = [happened(i, *dice.choice(streams), payload={"i": i}, ms=1769903999000 + dice.randrange(50))
                  for i in range(300)]
        for at in range(0, 300, 30):
            table.store(*events[at:at + 30])
        self.assertEqual(self.adopt(), self.counts(300, 12, 300))
        table.store(happened(400, "a::b", "c"), happened(401, "a::b", "c"))  # once: its own code cannot find that head
        self.assertEqual(self.adopt(), self.counts(302, 13, 2, existing=300))
        rows = {row["id"]["S"][8:]: row for row in scan(table.name) if row.get("domain", {"S": "a::b"})["S"] != "a::b"}
        got = [event for event in self.exported() if event["domain"] != "a::b"]
        self.assertEqual(len(got), 300)
        for event in got:
            row = rows[event["id"]]
            self.assertEqual((event["domain"], event["stream"], event["version"], event["time"][:23], event["payload"]),
                             (row["domain"]["S"], row["identifier"]["S"], int(row["sequence"]["N"]),
                              row["created"]["S"][:23], json.loads(row["payload"]["S"])))
        # events of a stream are in their order, and all are by time as far as that allows
        times = sorted((row["created"]["S"], row["id"]["S"]) for row in rows.values())
        slots = [(rows[id_[8:]]["domain"]["S"], rows[id_[8:]]["identifier"]["S"]) for _, id_ in times]
        self.assertEqual([(event["domain"], event["stream"]) for event in got], slots)

    def test_older_layouts(self):
        for layout in (1, 2, 3, 4):
            with self.subTest(layout=layout):
                name = "theirs%d" % layout
                table = SchemelessTable(self.prefix + name, layout=layout)
                table.store(happened(2, payload={"n": 2}), happened(1, payload={"n": 1}, causationId="c"),
                            happened(3, payload="text", identifier="8"))
                self.assertEqual(self.adopt("--table", "our%d" % layout, table=name), self.counts(3, 2, 3))
                got = [json.loads(line) for line in self.ok("events", "export", "--table", "our%d" % layout).splitlines()]
                self.assertEqual([(event["version"], event["payload"]) for event in got],
                                 [(1, {"n": 1}), (2, {"n": 2}), (1, "text")])
                self.assertEqual((got[0]["causation"], got[0]["id"]), ("c", happened(1)["id"]))
                self.assertEqual(self.adopt("--table", "our%d" % layout, table=name), self.counts(3, 2, 0, existing=3))

    def test_times_in_seconds(self):
        call("CreateTable", TableName=self.prefix + "theirs", BillingMode="PAY_PER_REQUEST",
             AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"},
                                   {"AttributeName": "created", "AttributeType": "N"}],
             KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
             GlobalSecondaryIndexes=[{"IndexName": "created", "Projection": {"ProjectionType": "ALL"},
                                      "KeySchema": [{"AttributeName": "created", "KeyType": "HASH"},
                                                    {"AttributeName": "id", "KeyType": "RANGE"}]}])
        call("PutItem", TableName=self.prefix + "theirs", Item=item(
            id="a", domain="order", type="x", created=1769903999, payload={"n": 1}))
        self.assertEqual(self.adopt(), self.counts(1, 1, 1))
        self.assertEqual(self.exported()[0]["time"], "2026-01-31T23:59:59.000000Z")

    def test_sequences_that_are_not_whole(self):
        table = self.table()
        table.store(*[happened(i, payload=i) for i in range(1, 6)])
        table.store(*[happened(10 + i, identifier="8", payload=i) for i in range(1, 4)])
        table.store(happened(20, identifier="9"), happened(21, identifier="9"))
        call("DeleteItem", TableName=table.name, Key={"id": {"S": "EventID#" + happened(3)["id"]},
                                                      "created": {"S": iso(happened(3)["created"])}})
        old = SchemelessTable(self.prefix + "old", layout=4)
        table.put(old.item(happened(9, identifier="8", payload=0)))  # of a version before it had sequences
        call("DeleteItem", TableName=table.name, Key={"id": {"S": "EventID#" + happened(21)["id"]},
                                                      "created": {"S": iso(happened(21)["created"])}})
        code, out, err = self.run_("events", "adopt", "theirs", "--json")
        self.assertEqual((code, json.loads(out)), (FAILED, self.counts(9, 3, 3, left=6, verified=2)))
        for text in ("left 2 events of stream order/7: sequence 3 is missing", "left stream order/8: 1 of its 4 events",
                     "stream order/9 ends with sequence 1 in its table, and its head says 2"):
            self.assertIn(text, err)
        self.assertEqual([(event["stream"], event["version"]) for event in self.exported()],
                         [("7", 1), ("7", 2), ("9", 1)])
        self.assertEqual(self.adopt("--renumber"), self.counts(9, 3, 6, existing=3))
        self.assertEqual([(event["stream"], event["version"], event.get("payload")) for event in self.exported()][3:],
                         [("7", 3, 4), ("7", 4, 5), ("8", 1, 0), ("8", 2, 1), ("8", 3, 2), ("8", 4, 3)])

    def test_rows_that_cannot_be_read(self):
        table = self.table()
        table.store(*[happened(i, payload=i) for i in range(1, 5)], *[happened(10 + i, "b") for i in range(3)])
        bad = table.item(happened(2, payload=2), 2)
        del bad["type"]
        table.put(bad)
        table.put({**table.item(happened(30, "c"), 1), "created": {"S": "yesterday"}})
        table.put({**table.item(happened(31, "d"), 1), "sequence": {"S": "1"}})
        table.put({**table.item(happened(32, ""), 1)})
        table.put(table.item(happened(11, "b", ms=1769904999000), 4))  # the same id at another time, which it takes there
        code, out, err = self.run_("events", "adopt", "theirs", "--json")
        got = json.loads(out)
        self.assertEqual((code, got["imported"]), (FAILED, 1 + 3), err)
        for text in ('later events of stream order/7: \\"type\\" is missing', '\\"created\\" must be a time',
                     '\\"sequence\\" must be an integer', '\\"domain\\" is missing', "already used by another event"):
            self.assertIn(text, err)
        self.assertEqual(sorted((event["domain"], event["version"]) for event in self.exported()),
                         [("b", 1), ("b", 2), ("b", 3), ("order", 1)])
        code, _, _ = self.run_("events", "adopt", "theirs", "--dry-run")
        self.assertEqual(code, FAILED)

    def test_payloads_in_s3(self):
        table = self.table(objects=self.path("archive"))
        blobs = ("--blobs", "dir:" + self.path("blobs"))
        large = "x" * 400000
        table.store(happened(1, payload={"large": large}), happened(2, payload=2),
                    happened(3, identifier="8", payload={"large": large + "y"}))
        code, out, err = self.run_("events", "adopt", "theirs", "--json", *blobs)
        self.assertEqual((code, json.loads(out)), (FAILED, self.counts(3, 2, 0, left=3, verified=0)))
        self.assertIn("say with --objects where that is", err)
        path = self.path("archive/events/%s.json" % happened(3)["id"])
        os.rename(path, path + ".away")
        code, out, err = self.run_("events", "adopt", "theirs", "--json", *blobs, "--objects", self.path("archive"))
        self.assertEqual((code, json.loads(out)), (FAILED, self.counts(3, 2, 2, left=1, verified=1)), err)
        self.assertIn("No such file", err)
        for text in ("", "[]", "{}", '{"id":"x","payload":1}'):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            code, out, err = self.run_("events", "adopt", "theirs", "--json", *blobs, "--objects", self.path("archive"))
            self.assertEqual((code, json.loads(out)["left"]), (FAILED, 1))
            self.assertIn("s3Reference", err)
        os.rename(path + ".away", path)
        self.assertEqual(self.adopt(*blobs, "--objects", self.path("archive")), self.counts(3, 2, 1, existing=2))
        out = self.ok("events", "export", *blobs)
        self.assertEqual([event["payload"] for event in map(json.loads, out.splitlines())],
                         [{"large": large}, 2, {"large": large + "y"}])
        made = table.item(happened(9, "z"), 1)
        table.put({**made, "s3Reference": {"S": "archive::../../etc/passwd"}})
        _, _, err = self.run_("events", "adopt", "theirs", *blobs, "--objects", self.path("archive"))
        self.assertIn("leads out of the folder", err)

    def test_payloads_in_a_bucket(self):
        table = self.table(objects=self.path("archive"))
        self.env.update(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b", AWS_DEFAULT_REGION="us-east-1")
        bucket = Bucket(self.path("archive"))
        self.addCleanup(bucket.server_close)
        self.addCleanup(bucket.shutdown)
        large = "x" * 400000
        table.store(happened(1, payload={"large": large}), happened(2, payload=2),
                    happened(3, identifier="8", payload={"large": large}))
        more = ("--blobs", "dir:" + self.path("blobs"), "--objects", "s3://archive?path_style=1&endpoint=" + bucket.url)
        path = self.path("archive/events/%s.json" % happened(3)["id"])
        os.rename(path, path + ".away")
        code, out, err = self.run_("events", "adopt", "theirs", "--json", *more)
        self.assertEqual((code, json.loads(out)), (FAILED, self.counts(3, 2, 2, left=1, verified=1)), err)
        self.assertIn("has no object events/", err)
        os.rename(path + ".away", path)
        bucket.broken = True  # that is not the fault of the event
        code, out, err = self.run_("events", "adopt", "theirs", "--json", *more, "--timeout", "5s")
        self.assertEqual((code, out), (DENIED, ""), err)
        bucket.broken = False
        self.assertEqual(self.adopt(*more), self.counts(3, 2, 1, existing=2))
        self.assertEqual([event["payload"] for event in self.exported("--blobs", "dir:" + self.path("blobs"))],
                         [{"large": large}, 2, {"large": large}])
        made = table.item(happened(9, "z"), 1)
        table.put({**made, "s3Reference": {"S": "other::events/x.json"}})
        self.assertIn("in bucket other, and --objects is archive", self.run_("events", "adopt", "theirs", *more)[2])
        code, _, err = self.run_("events", "adopt", "theirs", "--objects",
                                 "s3://nowhere?path_style=1&endpoint=" + bucket.url)
        self.assertEqual(code, NOT_FOUND, err)

    def test_what_cannot_be(self):
        self.fails(USAGE, "TABLE", "events", "adopt")
        self.fails(NOT_FOUND, "theirs", "events", "adopt", "theirs")
        self.fails(USAGE, "name another event store", "events", "adopt", "events")
        EventBusTable(self.prefix + "theirs")
        self.assertEqual(self.adopt(), self.counts(0, 0, 0))  # keys are those of its first layout
        ExcaliburTable(self.prefix + "others")
        self.fails(USAGE, "another key", "events", "adopt", "others")
        new = "embedded:" + self.path("new")
        self.fails(NOT_FOUND, "new", "events", "adopt", "theirs", "--db", new)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_on_a_terminal(self):
        self.table().store(*[happened(i, payload=i) for i in range(1, 40)])
        lines = [line.split() for line in self.on_terminal("events", "adopt", "theirs")]
        self.assertIn(["imported", "39"], lines)

    def test_two_at_once(self):
        table = self.table()
        for i in range(200):
            table.store(happened(i, identifier=str(i % 4), payload=i + 1))
        runs = [self.start("events", "adopt", "theirs", "--json") for _ in range(3)]
        done = []
        for run in runs:
            out, err = run.communicate(timeout=WAIT_S)
            self.assertEqual((run.returncode, err), (0, ""))
            done.append(json.loads(out))
        self.assertEqual([one["imported"] + one["existing"] for one in done], [200] * 3)
        self.assertEqual(sorted(event["payload"] for event in self.exported()), list(range(1, 201)))
        self.assertEqual(self.json("events", "verify"), {"streams": 4, "events": 200})

    def killed(self, table, proxy, first, more, *args):
        """Killed at request after request; its programs append all the while."""
        kills, number = 0, 0
        while True:
            for _ in range(more if kills else first):
                number += 1
                table.store(happened(number, identifier=str(number % 4), payload=number))
            if self.killed_at(proxy, kills + 1, kills % 2 == 1, "events", "adopt", "theirs", *args):
                break
            kills += 1
            self.assertLess(kills, 100)
        self.assertGreaterEqual(kills, 10)
        got = self.exported()
        self.assertEqual([event["payload"] for event in got], list(range(1, number + 1)))
        for event in got:
            self.assertEqual(event["version"], (event["payload"] + 3) // 4 if event["payload"] % 4 else
                             event["payload"] // 4)

    def test_killed_at_every_request(self):
        proxy = self.proxy(shared.SERVER.url)
        self.killed(self.table(), proxy, 40, 4, "--db", proxy.url)

    def test_killed_at_every_request_between_databases(self):
        url = self.second()
        proxy = self.proxy(url)
        self.killed(SchemelessTable("theirs", url), proxy, 600, 1, "--from-db", proxy.url)


if __name__ == "__main__":
    main()
