#!/usr/bin/env python3
"""The ledger of a move: writers get acknowledgements of the source while it is copied, followed and cut over, and
what copies is killed (kill -9) at random. Afterwards the source is as the target, item by item; every write that was
acknowledged is there, once; nothing else is. Writers are fenced, and go on at the target.

    ledger_test.py COMMAND SOURCE [SEED]

HF_COPY_ROUNDS plays it so many times, each with another seed; HF_SEED repeats one.
"""
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

COMMAND = os.path.abspath(sys.argv[1])
WRITERS, KEYS, KILLS, WAIT_S = 3, 60, 6, 120


def clean_env():
    return {k: v for k, v in os.environ.items()
            if not k.startswith(("HOLDFAST_", "AWS_")) and not k.lower().endswith("_proxy")}


def serve(path):
    server = subprocess.Popen([COMMAND, "serve", "--port", "0", "--db-path", path], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_env())
    line = server.stdout.readline()
    server.port = int(line.split("http://")[1].split()[0].rstrip("/").split(":")[1])
    server.url = "http://127.0.0.1:%d" % server.port
    return server


class Client:
    """One connection; every call has an answer, or the test fails."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)

    def call(self, operation, request):
        self.connection.request("POST", "/", json.dumps(request), {
            "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "DynamoDB_20120810." + operation,
            "X-Amz-Date": "20260101T000000Z",
            "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, "
                             "SignedHeaders=host;x-amz-date;x-amz-target, Signature=0"})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def ok(self, operation, request):
        status, answer = self.call(operation, request)
        if status != 200:
            raise AssertionError("%s: %s" % (operation, answer))
        return answer

    def items(self, table):
        found, start = {}, None
        while True:
            request = {"TableName": table, "ConsistentRead": True}
            if start:
                request["ExclusiveStartKey"] = start
            page = self.ok("Scan", request)
            for item in page["Items"]:
                found[item["id"]["S"]] = item
            start = page.get("LastEvaluatedKey")
            if not start:
                return found


class Writer(threading.Thread):
    """Puts, adds and deletes items of its own; `expected` is what was acknowledged."""

    def __init__(self, number, server, seed):
        super().__init__()
        self.client = Client(server)
        self.random = random.Random(seed)
        self.number, self.expected, self.acknowledged = number, {}, 0
        self.fenced = self.failure = None
        self.ended = threading.Event()

    def step(self):
        key = "w%d-%d" % (self.number, self.random.randrange(KEYS))
        what = self.random.random()
        if what < 0.2:
            status, answer = self.client.call("DeleteItem", {"TableName": "ledger", "Key": {"id": {"S": key}}})
            new = None
        elif what < 0.6:
            status, answer = self.client.call("UpdateItem", {
                "TableName": "ledger", "Key": {"id": {"S": key}}, "UpdateExpression": "ADD hits :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}}})
            old = self.expected.get(key)
            new = dict(old or {"id": {"S": key}})
            new["hits"] = {"N": str(int(new.get("hits", {"N": "0"})["N"]) + 1)}
        else:
            new = {"id": {"S": key}, "text": {"S": "x" * self.random.randrange(300)},
                   "tags": {"SS": sorted({str(self.random.randrange(9)) for _ in range(3)})}}
            status, answer = self.client.call("PutItem", {"TableName": "ledger", "Item": new})
        if status == 200:
            self.acknowledged += 1
            if new is None:
                self.expected.pop(key, None)
            else:
                self.expected[key] = new
            return True
        if "AccessDenied" in answer.get("__type", ""):
            self.fenced = answer
            return False
        raise AssertionError("writer %d: %s" % (self.number, answer))

    def run(self):
        try:
            while not self.ended.is_set() and self.step():
                time.sleep(0.001)
        except Exception as failure:  # shown by the main thread
            self.failure = failure


def copier(source, target, *args, command="copy"):
    return subprocess.Popen([COMMAND, command, source.url, target.url, "--quiet", *args],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_env())


def end(process, expected=0):
    out, err = process.communicate(timeout=WAIT_S)
    if process.returncode != expected:
        raise AssertionError("%s ended with %s: %s%s" % (process.args, process.returncode, out, err))
    return out


def plain(item):
    """Sets have no order."""
    return {name: sorted(value["SS"]) if "SS" in value else value for name, value in item.items()}


def compare(expected, found, where):
    missing = sorted(expected.keys() - found.keys())
    extra = sorted(found.keys() - expected.keys())
    different = sorted(k for k in expected.keys() & found.keys() if plain(expected[k]) != plain(found[k]))
    assert not missing and not extra and not different, \
        "%s: missing %s, extra %s, different %s" % (where, missing[:5], extra[:5], different[:5])


def play(seed, folder):
    chance = random.Random(seed)
    source, target = serve(os.path.join(folder, "source")), serve(os.path.join(folder, "target"))
    writers = []
    try:
        client = Client(source)
        client.ok("CreateTable", {
            "TableName": "ledger", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]})
        old = {"old-%d" % i: {"id": {"S": "old-%d" % i}, "pad": {"S": "y" * 2000}} for i in range(1500)}
        for item in old.values():
            client.ok("PutItem", {"TableName": "ledger", "Item": item})
        writers = [Writer(i, source, seed * 10 + i) for i in range(WRITERS)]
        for writer in writers:
            writer.start()
        # Copy and follow, killed again and again.
        for _ in range(KILLS):
            process = copier(source, target, "--follow", "--max-items", "6000")
            time.sleep(chance.uniform(0.02, 0.7))
            assert process.poll() is None, process.communicate()
            process.kill()
            process.communicate()
        end(copier(source, target, "--follow", "--until-caught-up"))
        assert all(w.failure is None and w.fenced is None for w in writers), [w.failure for w in writers]
        # The cutover is killed as well; then it is taken back, and the source can be written.
        process = copier(source, target, "--settle", "1s", command="cutover")
        time.sleep(chance.uniform(0.1, 1.2))
        process.kill()
        process.communicate()
        end(copier(source, target, "--abort", command="cutover"))
        for i, writer in enumerate(writers):
            if not writer.is_alive():
                assert writer.failure is None, writer.failure
                again = Writer(i, source, seed * 10 + 5 + i)
                again.expected, again.acknowledged = writer.expected, writer.acknowledged
                writers[i] = again
                again.start()
        before = sum(w.acknowledged for w in writers)
        end(copier(source, target, "--follow", "--until-caught-up"))
        while sum(w.acknowledged for w in writers) < before + 20:
            time.sleep(0.01)
        end(copier(source, target, "--settle", "1ms", command="cutover"))
        for writer in writers:
            writer.join(WAIT_S)
            assert writer.failure is None, writer.failure
            assert writer.fenced and target.url in str(writer.fenced), writer.fenced
        expected = dict(old)
        for writer in writers:
            expected.update(writer.expected)
        compare(expected, Client(source).items("ledger"), "source")
        compare(expected, Client(target).items("ledger"), "target")
        # Fences outlive the server, and the target takes writes.
        source.terminate()
        source.communicate(timeout=WAIT_S)
        source = serve(os.path.join(folder, "source"))
        request = {"TableName": "ledger", "Item": {"id": {"S": "new"}}}
        status, answer = Client(source).call("PutItem", request)
        assert status == 400 and "fenced" in str(answer), answer
        Client(target).ok("PutItem", request)
        return sum(w.acknowledged for w in writers)
    finally:
        for writer in writers:
            writer.ended.set()
        for writer in writers:
            writer.join(WAIT_S)
        for server in (source, target):
            server.send_signal(signal.SIGKILL)
            server.communicate()


def main():
    seed = int(os.environ.get("HF_SEED") or (sys.argv[3] if len(sys.argv) > 3 else time.time_ns() % 1000000))
    for round_ in range(int(os.environ.get("HF_COPY_ROUNDS", "1"))):
        folder = tempfile.mkdtemp(prefix="holdfast-copy-")
        try:
            print("seed %d: %d acknowledged writes" % (seed + round_, play(seed + round_, folder)), flush=True)
        except BaseException:
            print("HF_SEED=%d repeats it" % (seed + round_), flush=True)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)


main()
