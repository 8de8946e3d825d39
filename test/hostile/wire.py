#!/usr/bin/env python3
"""Break every member of every operation, over the wire: wire.py HOLDFAST

Operations, members, types and limits come from the service's own model, as botocore has it;
requests.txt has requests that succeed. Into each place of each of these, and into each member that
the model has and the request has not, goes every hostile value there is: other JSON types, null,
empty, NUL, half a surrogate, numbers of 38 and 39 digits, deep nesting, at the limit and one past it,
64 KiB and 1 MiB; names of maps, too. `holdfast serve --in-memory` answers each of them with 200 or
with 400 and a reason, soon, and stops in the end as if nothing had been. A sanitized build says when
it read what was not its own.

HF_HOSTILE=all puts a megabyte into every place, not into each twentieth; that takes minutes.
"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

try:
    import botocore.session
except ImportError:
    print("botocore is not installed")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
ALL = os.environ.get("HF_HOSTILE") == "all"
WAIT_S = 60        # an answer that takes longer does not come
AT_ONCE = 32       # requests that are sent before their answers are read
MANY_BYTES = 1 << 19
LARGE_EACH = 20
PLACE = "@hostile@"
SERVICES = {"dynamodb": "DynamoDB_20120810", "dynamodbstreams": "DynamoDBStreams_20120810"}
HEAD = ("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-amz-json-1.0\r\n"
        "X-Amz-Date: 20260101T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 "
        "Credential=any/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + "0" * 64 + "\r\n")
# What leaves a table behind is followed by these, so that the next one finds none.
CLEANUP = {
    "CreateTable": "new",
    "RestoreTableFromBackup": "restored",
}
# What changes tables in other ways gets a server of its own.
ALONE = {"CreateTable", "RestoreTableFromBackup", "UpdateTable", "DeleteTable", "DeleteBackup",
         "CreateBackup", "PutResourcePolicy", "DeleteResourcePolicy", "UpdateTimeToLive",
         "TagResource", "UntagResource", "UpdateContinuousBackups"}


class Wrong(Exception):
    pass


# ---- the server

class Server:
    running = []

    def __init__(self, program):
        self.process = subprocess.Popen([program, "serve", "--in-memory", "--port", "0"],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        Server.running.append(self.process)
        line = ""
        while "serves on" not in line:
            line = self.process.stdout.readline()
            if not line:
                raise Wrong("the server did not start: " + self.process.stderr.read())
        self.port = int(re.search(r"http://[^ ]*:([0-9]+)", line).group(1))
        self.socket = None

    def connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S)
        self.rest = b""

    def read_answer(self):
        while True:
            head, found, rest = self.rest.partition(b"\r\n\r\n")
            if found:
                length = int(re.search(rb"(?i)content-length: ([0-9]+)", head).group(1))
                if len(rest) >= length:
                    self.rest = rest[length:]
                    return int(head[9:12]), rest[:length], b"close" in head.lower()
            more = self.socket.recv(1 << 20)
            if not more:
                raise ConnectionError("the connection ended")
            self.rest += more

    def send(self, requests):
        """The answers to [(target, body)], which are sent at once."""
        if not self.socket:
            self.connect()
        out = b"".join((HEAD + f"X-Amz-Target: {target}\r\nContent-Length: {len(body)}\r\n\r\n")
                       .encode() + body for target, body in requests)
        self.socket.sendall(out)
        answers = []
        for _ in requests:
            status, body, closes = self.read_answer()
            answers.append((status, body))
            if closes:
                self.socket = None
                if len(answers) < len(requests):
                    answers += self.send(requests[len(answers):])
                break
        return answers

    def blame(self, why):
        """The server did not answer, or is no more."""
        try:
            self.process.wait(timeout=2)
            why += f"\nthe server ended with {self.process.returncode}:\n"
            why += self.process.stderr.read()[-4000:]
        except subprocess.TimeoutExpired:
            why += "\nthe server still runs"
        raise Wrong(why)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=WAIT_S)
        if self.process.returncode != 0:
            raise Wrong(f"the server ended with {self.process.returncode}: {err[-4000:]}")


# ---- the requests of the file

def read_lines():
    """[(kind, operation, body, mark, member)], kind being "+", "-" or "" """
    lines = []
    with open(os.path.join(HERE, "requests.txt"), encoding="utf-8") as file:
        for line in file:
            if not line.strip() or line.startswith("#"):
                continue
            kind, operation, body, mark, member = re.fullmatch(
                r"([+-] )?(\w+) (\{.*\})(?: (\$\w) (\w+))?\n", line).groups()
            lines.append(((kind or "").strip(), operation, body, mark, member))
    return lines


def member_of(answer, name):
    if isinstance(answer, dict):
        if name in answer:
            return answer[name]
        answer = list(answer.values())
    if isinstance(answer, list):
        for one in answer:
            found = member_of(one, name)
            if found is not None:
                return found
    return None


class Bench:
    """A server with the tables of the file, and what its marks stand for."""

    def __init__(self, program, model, lines):
        self.server = Server(program)
        self.model = model
        self.marks = {}
        for kind, operation, body, mark, member in lines:
            if kind != "+":
                continue
            answer = self.must(operation, self.fill_in(body))
            if mark:
                self.marks[mark] = member_of(answer, member)
        self.settle()

    def settle(self):
        """Backups are made in the background."""
        for _ in range(WAIT_S * 20):
            if "CREATING" not in json.dumps(self.must("ListBackups", "{}")):
                return
            time.sleep(0.05)
        raise Wrong("the backup is not done")

    def fill_in(self, body):
        for mark, value in self.marks.items():
            body = body.replace(mark, value)
        return body

    def target(self, operation):
        return self.model.targets.get(operation, SERVICES["dynamodb"]) + "." + operation

    def must(self, operation, body):
        (status, answer), = self.server.send([(self.target(operation), body.encode())])
        if status != 200:
            raise Wrong(f"{operation} {body}: {status} {answer.decode()}")
        return json.loads(answer)


# ---- the model

class Model:
    def __init__(self):
        session = botocore.session.get_session()
        self.targets, self.inputs = {}, {}
        for service, prefix in SERVICES.items():
            model = session.get_service_model(service)
            for name in model.operation_names:
                self.targets[name] = prefix
                self.inputs[name] = model.operation_model(name).input_shape


def example(shape, depth=0):
    """Some value of a member that no request of the file has."""
    kind = shape.type_name
    if kind == "structure":
        names = list(shape.members) if depth < 2 else list(shape.required_members)
        if shape.name == "AttributeValue":
            return {"S": "x"}
        return {name: example(shape.members[name], depth + 1) for name in names
                if shape.members[name].type_name not in ("structure", "list", "map") or depth < 2}
    if kind == "list":
        return [example(shape.member, depth + 1)]
    if kind == "map":
        return {"x": example(shape.value, depth + 1)}
    if kind == "string":
        return shape.enum[0] if shape.enum else "abc"
    return {"boolean": True, "blob": "YQ==", "timestamp": 1}.get(kind, 1)


# ---- hostile values

def text(length):
    return '"' + "a" * length + '"'


SMALL = [
    "null", "true", "false", "0", "-0", "1", "-1", "1.5", "1e400", "-1e-400", "1E2",
    "9" * 38, "9" * 39, "2147483648", "-2147483649", "9223372036854775807",
    "9223372036854775808", "-9223372036854775809", "1" + "0" * 400,
    '""', '"a"', r'"\u0000"', r'"a\u0000b"', r'"\ud800"', r'"\udc00x"', '"\x7f"', r'"\"\\\/"',
    '"' + "9" * 38 + '"', '"' + "9" * 39 + '"', '"1e126"', '"-1e-131"', '"NaN"',
    "[]", "[null]", "[[]]", "[{}]", '["a","a"]', "[1]", "{}", '{"":{}}', r'{"\u0000":1}',
    '{"S":"x"}', '{"S":null}', '{"S":"x","N":"1"}', '{"NS":["1","1"]}', '{"a":{"S":"x"}}',
    '{"B":"!"}', '{"X":1}', "[" * 150 + "]" * 150, '{"L":[' * 40 + '{"S":"x"}' + "]}" * 40,
    '{"M":{"a":' * 40 + '{"NULL":true}' + "}}" * 40, "[" * 5000, '{"a":' * 5000,
]
LONG = [255, 256, 1024, 1025, 2048, 2049, 65535, 65536]
NAMES = ["", "\u0000", "a\u0000", "a" * 255, "a" * 256, "a" * 65535, "a" * 65536, "#", ":", "\u00e9"]


def limits(shape):
    """Texts and lists at the limits of the model and one past them."""
    values = []
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    for limit in (low, high):
        for length in (limit - 1, limit, limit + 1) if limit is not None else ():
            if shape.type_name in ("string", "blob") and 0 <= length <= MANY_BYTES:
                values.append(text(length))
            elif shape.type_name in ("integer", "long", "double"):
                values.append(str(length))
            elif shape.type_name == "list" and 0 <= length <= 1001:
                values.append(json.dumps([example(shape.member)] * length))
    return values


def places(shape, value, path=()):
    """Every place in a request, with its shape: (path, shape, is it there?)"""
    kind = shape.type_name
    if kind == "structure" and isinstance(value, dict):
        for name, member in shape.members.items():
            if name in value:
                yield path + (name,), member, True
                yield from places(member, value[name], path + (name,))
            elif shape.name != "AttributeValue":
                yield path + (name,), member, False
    elif kind == "map" and isinstance(value, dict):
        for name in value:
            yield path + (name,), shape.value, True
            yield from places(shape.value, value[name], path + (name,))
    elif kind == "list" and isinstance(value, list):
        for at, one in enumerate(value):
            yield path + (at,), shape.member, True
            yield from places(shape.member, one, path + (at,))


def with_place(value, path, put):
    """A copy of the request with `put` there."""
    if not path:
        return put
    if isinstance(value, list):
        return [with_place(one, path[1:], put) if i == path[0] else one
                for i, one in enumerate(value)]
    changed = dict(value)
    changed[path[0]] = with_place(value.get(path[0]), path[1:], put)
    return changed


def renamed(value, path, name):
    """A copy with the last name of the path replaced."""
    if len(path) > 1:
        return with_place(value, path[:-1], renamed(lookup(value, path[:-1]), path[-1:], name))
    return {name if key == path[0] else key: one for key, one in value.items()}


def lookup(value, path):
    for step in path:
        value = value[step]
    return value


count = 0


def hostile(shape, request):
    """Bodies: (what is wrong, body)"""
    global count
    yield "empty", b""
    for raw in ("null", "[]", "1", '"x"', "{", "{}", '{"TableName\\u0000' + "a" * 70000 + '":"x"}'):
        yield raw[:40], raw.encode()
    body = json.dumps(request)
    yield "a member that nobody knows", (body[:-1] + (", " if request else "")
                                         + '"\\u0000":{"x":[1,{"y":null}]}}').encode()
    yield "cut", body[:len(body) // 2].encode()
    for path, member, there in places(shape, request):
        where = ".".join(map(str, path))
        around = json.dumps(with_place(request, path, PLACE))
        was = lookup(request, path) if there else None
        values = SMALL + limits(member) + [text(length) for length in LONG]
        count += 1
        if ALL or count % LARGE_EACH == 0:
            values.append(text(1 << 20))
            values.append("[" + ",".join(["{}"] * 20000) + "]")
        if isinstance(was, str):
            values += [json.dumps(was + "\0"), json.dumps("\0" + was), json.dumps(was * 2)]
        if not there:
            values.append(json.dumps(example(member)))
        for raw in values:
            yield f"{where} = {raw[:60]}", around.replace(f'"{PLACE}"', raw).encode()
        if there and isinstance(path[-1], str):
            for name in NAMES:
                yield f"{where} renamed {name[:20]!r}", json.dumps(renamed(request, path,
                                                                          name)).encode()
            yield f"{where} twice", (json.dumps(request)[:-1] + ", " + json.dumps(
                path[0]) + ":" + json.dumps(request[path[0]]) + "}").encode()


# ---- judging

def judge(operation, what, status, answer):
    if status == 200 and not answer: # TagResource has nothing to say
        return
    try:
        error = json.loads(answer)
    except ValueError as broken:
        raise Wrong(f"{operation}: {what}: {status} {answer[:300]}: {broken}") from broken
    if status == 200:
        return
    if status != 400 and status != 413:
        raise Wrong(f"{operation}: {what}: {status} {answer[:300]}")
    if "#" not in error["__type"] or not (error.get("message") or error.get("Message")) \
            and "Serialization" not in error["__type"]:
        raise Wrong(f"{operation}: {what}: no reason: {answer[:300]}")


class Tally:
    sent = fine = 0


def send_all(bench, operation, cases, tally):
    """Send them many at a time."""
    batch, size = [], 0

    def flush():
        nonlocal batch, size
        requests = [(bench.target(operation), body) for _, body in batch]
        after = []
        if operation in CLEANUP:
            name = json.dumps({"TableName": CLEANUP[operation]}).encode()
            off = json.dumps({"TableName": CLEANUP[operation],
                              "DeletionProtectionEnabled": False}).encode()
            after = [(bench.target("UpdateTable"), off), (bench.target("DeleteTable"), name)]
        try:
            answers = bench.server.send([one for request in requests for one in [request] + after])
        except (ConnectionError, socket.timeout) as error:
            bench.server.blame(f"{operation}: {error}; it was one of these:\n  "
                               + "\n  ".join(what for what, _ in batch))
        for (what, _), (status, answer) in zip(batch, answers[::1 + len(after)]):
            judge(operation, what, status, answer)
            tally.sent += 1
            tally.fine += status == 200
        for status, answer in answers:
            judge(operation, "after it", status, answer)
        batch, size = [], 0

    for case in cases:
        batch.append(case)
        size += len(case[1])
        if len(batch) == AT_ONCE or size > MANY_BYTES:
            flush()
    if batch:
        flush()


def check_known(bench):
    """Messages that are known word by word."""
    for key, message in (
            ("a" * 2049, "Size of hashkey has exceeded the maximum size limit of2048 bytes"),
            ("a" * 65536, "Size of hashkey has exceeded the maximum size limit of2048 bytes")):
        body = json.dumps({"TableName": "tab", "ExclusiveStartKey": {"pk": {"S": key},
                                                                     "sk": {"N": "1"}}})
        (status, answer), = bench.server.send([(bench.target("Scan"), body.encode())])
        expected = ("The provided starting key is invalid: One or more parameter values were "
                    "invalid: " + message)
        if status != 400 or json.loads(answer)["message"] != expected:
            raise Wrong(f"Scan: {status} {answer[:300]}")


def main():
    program = sys.argv[1]
    model = Model()
    lines = read_lines()
    tally = Tally()
    began = time.monotonic()
    shared = Bench(program, model, lines)
    seen = set()

    for kind, operation, body, _, _ in lines:
        if kind == "+" or operation not in model.inputs:
            continue # of those that botocore's model does not have yet, the engine's test knows
        bench = Bench(program, model, lines) if operation in ALONE else shared
        body = bench.fill_in(body)
        (status, answer), = bench.server.send([(bench.target(operation), body.encode())])
        if (status == 200) == (kind == "-"):
            raise Wrong(f"{operation} {body}: {status} {answer.decode()}")
        if operation in CLEANUP or operation == "DeleteTable":
            bench.server.stop()
            bench = Bench(program, model, lines)
            body = bench.fill_in(body)
        seen.add(operation)
        shape = model.inputs[operation]
        send_all(bench, operation, hostile(shape, json.loads(body)), tally)
        if bench is not shared:
            bench.server.stop()
    for operation, shape in sorted(model.inputs.items()):
        if operation not in seen: # not ours: said so, whatever the body is
            send_all(shared, operation, hostile(shape, example(shape)), tally)
    check_known(shared)
    shared.server.stop()
    print(f"{tally.sent} requests, {tally.fine} of them fine, {len(model.inputs)} operations, "
          f"{time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    try:
        main()
    except Wrong as error:
        print(error)
        sys.exit(1)
    finally:
        for process in Server.running:
            if process.poll() is None:
                process.kill()
                process.wait()
