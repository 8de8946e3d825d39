"""Count instructions per request, before and now; started by bench/instructions, see bench/README.md.

Instructions do not depend on what else the machine does, so one run says what many timed ones cannot.

 (1) In process: instructions.c is built with the headers and shared libraries of each version. callgrind collects
     what is below measure(): the call, without the making of its request.
 (2) Over HTTP: `holdfast serve --in-memory` of each version runs under callgrind, which writes what it has counted
     and begins anew whenever ListTables is called. What two calls of ListTables without a request in between cost
     is taken off. All threads count; one connection asks.
 (3) Status: 0, 1 when a row is above --limit, 2 when it could not be run.
"""

import argparse
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = "build/release"
OPERATIONS = ("get", "put", "update", "query50", "batch25", "transact4", "gsi-put", "gsi-query50")
PARTITION, BODY, BATCH, QUERY = 100, 700, 25, 50
START_SECONDS = 120


class Failed(Exception):
    pass


def say(text):
    print(f"bench/instructions: {text}", file=sys.stderr, flush=True)


def run(words, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode:
        raise Failed(f"{' '.join(words[:8])} ...: {done.stderr.strip()[-1000:]}")
    return done


def counted(path):
    """The sum of a file of callgrind."""
    with open(path, encoding="utf-8") as file:
        found = re.search(r"(?m)^(?:totals|summary): (\d+)", file.read())
    if not found:
        raise Failed(f"{path} has no sum")
    return int(found.group(1))


# ---- in process ----------------------------------------------------------------------------------


def build_program(tree, into):
    libraries = os.path.join(tree, BUILD)
    run([os.environ.get("CC", "cc"), "-std=c11", "-O2", "-I", os.path.join(tree, "include"), "-o", into,
         os.path.join(ROOT, "bench/instructions.c"), "-L", libraries, "-lholdfast-engine", "-lholdfast",
         "-Wl,-rpath," + libraries])
    return into


def in_process(options, program, place, operation, directory):
    url = "memory:" if place == "memory" else "embedded:" + os.path.join(directory, "db")
    out = os.path.join(directory, "out")
    run(["valgrind", "--tool=callgrind", "--toggle-collect=measure", "--callgrind-out-file=" + out, program, url,
         operation, str(options.items), str(options.calls)])
    shutil.rmtree(os.path.join(directory, "db"), ignore_errors=True)
    return counted(out) / options.calls


# ---- over HTTP -----------------------------------------------------------------------------------


def attribute(value):
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    return {"SS": value} if isinstance(value, list) else {"S": value}


def key(number):
    return {"pk": {"S": "p%08d" % (number // PARTITION)}, "sk": {"N": str(number % PARTITION)}}


def item(number, at):
    values = {"pk": "p%08d" % (number // PARTITION), "sk": number % PARTITION, "owner": "o%08d" % (number // PARTITION),
              "created": 1700000000 + number + at, "name": "Ann Other", "email": "ann.other@example.com",
              "active": bool(number % 2), "score": number % 1000, "visits": 0, "tags": ["blue", "large", "new"],
              "body": "b" * BODY}
    return {name: attribute(value) for name, value in values.items()}


def update(table, number):
    return {"TableName": table, "Key": key(number), "UpdateExpression": "ADD visits :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}}}


def request(operation, at, items):
    """Operation of the service, and its body."""
    number = at * 7919 % items
    indexed = operation.startswith("gsi-")
    table = "indexed" if indexed else "plain"
    if operation == "get":
        return "GetItem", {"TableName": table, "Key": key(number)}
    if operation.endswith("put"):
        return "PutItem", {"TableName": table, "Item": item(number, at)}
    if operation == "update":
        return "UpdateItem", update(table, number)
    if operation.endswith("query50"):
        body = {"TableName": table, "Limit": QUERY, "KeyConditionExpression": "#k = :k",
                "ExpressionAttributeNames": {"#k": "owner" if indexed else "pk"},
                "ExpressionAttributeValues": {":k": {"S": "%s%08d" % ("o" if indexed else "p", number // PARTITION)}}}
        return "Query", dict(body, IndexName="by-owner") if indexed else body
    if operation == "batch25":
        return "BatchWriteItem", {"RequestItems": {table: [
            {"PutRequest": {"Item": item((number + i * 31) % items, at)}} for i in range(BATCH)]}}
    return "TransactWriteItems", {"TransactItems": [
        {"Put": {"TableName": table, "Item": item(number, at)}},
        {"Put": {"TableName": table, "Item": item((number + 31) % items, at)}},
        {"Update": update(table, (number + 62) % items)},
        {"ConditionCheck": {"TableName": table, "Key": key((number + 93) % items),
                            "ConditionExpression": "attribute_exists(pk)"}}]}


def table_of(name):
    names = {"pk": "S", "sk": "N"}
    body = {"TableName": name, "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]}
    if name == "indexed":
        names.update(owner="S", created="N")
        body["GlobalSecondaryIndexes"] = [{
            "IndexName": "by-owner", "Projection": {"ProjectionType": "ALL"},
            "KeySchema": [{"AttributeName": "owner", "KeyType": "HASH"},
                          {"AttributeName": "created", "KeyType": "RANGE"}]}]
    body["AttributeDefinitions"] = [{"AttributeName": n, "AttributeType": t} for n, t in names.items()]
    return body


class Server:
    """A server under callgrind, and one connection to it."""

    def __init__(self, program, directory):
        self.out = os.path.join(directory, "out")
        self.dumps = 0
        self.process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--dump-before=hf__engine_list_tables", "--callgrind-out-file=" + self.out,
             program, "serve", "--in-memory", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if not found:
            self.stop()
            raise Failed(f"{program} under valgrind did not start: {line!r}")
        self.socket = socket.create_connection(("127.0.0.1", int(found.group(1))), timeout=START_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def stop(self):
        self.process.terminate()
        self.process.communicate(timeout=START_SECONDS)

    def ask(self, operation, body):
        data = json.dumps(body, separators=(",", ":")).encode()
        self.socket.sendall((
            "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Amz-Target: DynamoDB_20120810.%s\r\n"
            "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Date: 20260101T000000Z\r\n"
            "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/dynamodb/aws4_request, "
            "SignedHeaders=host;x-amz-date, Signature=%s\r\nContent-Length: %d\r\n\r\n"
            % (operation, "0" * 64, len(data))).encode() + data)
        while b"\r\n\r\n" not in self.rest:
            self.receive()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))
        while len(self.rest) < length:
            self.receive()
        answer, self.rest = self.rest[:length], self.rest[length:]
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise Failed(f"{operation}: {answer[:300]!r}")
        return answer

    def receive(self):
        part = self.socket.recv(1 << 20)
        if not part:
            raise Failed("the server has closed the connection")
        self.rest += part

    def count(self):
        """What was counted since the last time."""
        self.ask("ListTables", {})
        self.dumps += 1
        path = "%s.%d" % (self.out, self.dumps)
        return counted(path)

    def fill(self, items):
        for name in ("plain", "indexed"):
            self.ask("CreateTable", table_of(name))
            for at in range(0, items, BATCH):
                self.ask("BatchWriteItem", {"RequestItems": {name: [
                    {"PutRequest": {"Item": item(n, 0)}} for n in range(at, min(at + BATCH, items))]}})

    def measure(self, operation, items, calls):
        requests = [request(operation, at, items) for at in range(1, calls + 1)]
        self.ask(*requests[0])  # what is made at the first time
        self.count()
        empty = self.count()
        for words in requests:
            answer = self.ask(*words)
            if words[0] == "Query" and json.loads(answer)["Count"] != QUERY:
                raise Failed("a wrong answer to Query")
        return (self.count() - empty) / calls


def over_http(options, program, directory, rows):
    server = Server(program, directory)
    try:
        server.fill(options.items)
        return {row: server.measure(row.split("/")[1], options.items, options.calls) for row in rows}
    finally:
        server.stop()
        for path in glob.glob(server.out + "*"):
            os.unlink(path)


# ---- the run -------------------------------------------------------------------------------------


def measure(options, tree, name, directory, rows):
    found = {}
    http = [row for row in rows if row.startswith("http/")]
    if http:
        say(f"{name}: over HTTP")
        found.update(over_http(options, os.path.join(tree, BUILD, "holdfast"), directory, http))
    inside = [row for row in rows if row not in http]
    program = build_program(tree, os.path.join(directory, "program")) if inside else None
    for row in inside:
        say(f"{name}: {row}")
        found[row] = in_process(options, program, *row.split("/"), directory)
    return found


def main():
    p = argparse.ArgumentParser(prog="bench/instructions", description="Instructions per request, before and now.")
    p.add_argument("--before", metavar="TREE", help="a worktree of another version, with its release preset built")
    p.add_argument("--only", default="", metavar="REGEX", help="rows such as http/put or memory/batch25")
    p.add_argument("--items", type=int, default=2000, help="in each table (2000)")
    p.add_argument("--calls", type=int, default=400, help="of every row (400)")
    p.add_argument("--limit", type=float, default=0, metavar="RATIO", help="status 1 when a row is above it")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--dir", default=os.path.join(ROOT, "build"), help="for databases and counts (build)")
    options = p.parse_args()
    if options.items < PARTITION or options.items % PARTITION or options.calls < 1:
        p.error(f"--items has to be a multiple of {PARTITION}, --calls at least 1")
    rows = [f"{place}/{operation}" for place in ("http", "memory", "disk") for operation in OPERATIONS]
    rows = [row for row in rows if re.search(options.only, row)]
    directory = tempfile.mkdtemp(prefix="bench-instructions-", dir=options.dir)
    try:
        now = measure(options, ROOT, "now", directory, rows)
        before = measure(options, os.path.abspath(options.before), "before", directory, rows) if options.before else {}
    except (Failed, OSError) as error:
        say(str(error))
        return 2
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{'row':<18} {'before':>12} {'now':>12}  ratio")
    worst = 0
    for row in rows:
        ratio = now[row] / before[row] if row in before else 0
        worst = max(worst, ratio)
        print(f"{row:<18} {before.get(row, 0):>12,.0f} {now[row]:>12,.0f}  {ratio:.3f}" if ratio else
              f"{row:<18} {'':>12} {now[row]:>12,.0f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"items": options.items, "calls": options.calls, "before": before, "now": now}, file, indent=1)
    return int(bool(options.limit) and worst > options.limit)


if __name__ == "__main__":
    sys.exit(main())
