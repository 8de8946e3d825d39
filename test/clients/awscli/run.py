#!/usr/bin/env python3
"""The aws command against the holdfast command.

    HOLDFAST=build/dev/holdfast test/clients/awscli/run.py [-v] [NAME...]
    ENDPOINT=http://127.0.0.1:8000 test/clients/awscli/run.py [-v] [NAME...]

AWSCLI names the aws command when it is not the one in /usr/bin or PATH. It takes most of a second
to start, so cases prepare what they need by plain requests, run it once or twice, and four at a
time; and where aws is a program in Python, it is loaded once (warm.py). With ENDPOINT, cases that need
the admin path or a server of their own are left out.

A case is a function whose name begins with test_; its argument has the calls. A failed case prints
a line, and the last line is "N passed, N failed".
"""
import concurrent.futures
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

AWSCLI = os.environ.get("AWSCLI") or (
    "/usr/bin/aws" if os.path.exists("/usr/bin/aws") else shutil.which("aws"))
HOLDFAST = os.environ.get("HOLDFAST")
ENDPOINT = os.environ.get("ENDPOINT")
AT_ONCE = 4
WAIT_S = 300
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
_number = itertools.count(1)


class Failure(Exception):
    pass


class LeftOut(Exception):
    pass


# ---- servers --------------------------------------------------------------------------------

class Server:
    def __init__(self, *args):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [HOLDFAST, "serve", "--port", "0", "--in-memory", *args], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=self.log, text=True, env=env)
        found = re.search(r"(http://\S+)$", self.process.stdout.readline().strip())
        if not found:
            raise Failure("the server did not start")
        self.url = found.group(1)

    def stop(self):
        """What was wrong with it, or None."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(WAIT_S)
        self.process.stdout.close()
        self.log.seek(0)
        worse = [line for line in self.log if not re.match(r"\S+ (info|debug) ", line)]
        if status != 0:
            return f"the server ended with status {status}"
        return f"the server complained: {worse[0].strip()}" if worse else None


# ---- the aws command ------------------------------------------------------------------------

class Warm:
    """The aws command, loaded once; None of `path` when it cannot be."""

    def __init__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="holdfast-awscli-")
        self.path = self.process = None
        with open(AWSCLI, "rb") as file:
            line = file.readline(200)
        found = re.fullmatch(rb"#!\s*(/\S*python3?[0-9.]*)\s*", line)
        if not found:
            return
        path = os.path.join(self.dir.name, "socket")
        self.process = subprocess.Popen(
            [found.group(1), os.path.join(os.path.dirname(os.path.abspath(__file__)), "warm.py"),
             path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if self.process.stdout.readline() == b"ready\n":
            self.path = path

    def run(self, args, env):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, \
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(WAIT_S)
            connection.connect(self.path)
            socket.send_fds(connection, [json.dumps({"args": args, "env": env}).encode()],
                            [out.fileno(), err.fileno()])
            status = connection.recv(16)
            out.seek(0)
            err.seek(0)
            return int(status or -1), out.read().decode(), err.read().decode()

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.communicate(timeout=WAIT_S)
        self.dir.cleanup()


WARM = None


def run_aws(args, env):
    """Status, output, errors."""
    if WARM and WARM.path:
        return WARM.run(args, env)
    done = subprocess.run([AWSCLI, *args], capture_output=True, text=True, timeout=WAIT_S, env=env,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


# ---- calls ----------------------------------------------------------------------------------

class World:
    """What a case gets: the aws command, plain requests, and comparing."""

    def __init__(self, url):
        self.url = url

    def run(self, *args, service="dynamodb", env=None, parse=True):
        """Run aws; returns its status, its answer (JSON when there is some) and its errors."""
        # Nothing of the user's: no profile, no pager, no retries that would hide an error.
        clean = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/nonexistent",
                 "LANG": "C.UTF-8", "AWS_CONFIG_FILE": "/dev/null",
                 "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_PAGER": "",
                 "AWS_MAX_ATTEMPTS": "1", "AWS_RETRY_MODE": "standard",
                 "AWS_EC2_METADATA_DISABLED": "true", "AWS_DEFAULT_REGION": "us-east-1",
                 "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, **(env or {})}
        status, answer, errors = run_aws([service, *args, "--endpoint-url", self.url], clean)
        if parse and answer.lstrip().startswith(("{", "[")):
            answer = json.loads(answer)
        return status, answer, errors.strip()

    def aws(self, *args, **more):
        status, answer, errors = self.run(*args, **more)
        if status != 0 or errors:
            raise Failure(f"aws {args[0]}: status {status}: {errors}")
        return answer

    def refused(self, operation, code, message, *args, **more):
        """aws must end with 254 and say this error."""
        status, _, errors = self.run(*args, **more)
        expected = f"An error occurred ({code}) when calling the {operation} operation"
        self.equal(status, 254)
        # A retry that was not allowed is told in between.
        self.equal(re.sub(r" \(reached max retries: \d+\)", "", errors), f"{expected}: {message}")

    def call(self, operation, **body):
        """A plain request, to prepare and to check."""
        request = urllib.request.Request(self.url, json.dumps(body).encode(), {
            "X-Amz-Target": "DynamoDB_20120810." + operation, "X-Amz-Date": "20260101T000000Z",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/"
                             "aws4_request, SignedHeaders=host, Signature=" + "0" * 64})
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return json.loads(answer.read() or b"{}")

    def admin(self, method, path, body):
        if ENDPOINT:
            raise LeftOut("needs the admin path")
        request = urllib.request.Request(self.url + "/_holdfast" + path, method=method,
                                         data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return json.load(answer)

    def table(self, *items, sort=False, **more):
        """A new table with these items; keys are pk and, when sorted, the number sk."""
        name = f"cli{os.getpid()}-{next(_number)}"
        names = [("pk", "S", "HASH")] + ([("sk", "N", "RANGE")] if sort else [])
        self.call("CreateTable", TableName=name, BillingMode="PAY_PER_REQUEST",
                  AttributeDefinitions=[{"AttributeName": n, "AttributeType": t}
                                        for n, t, _ in names] + more.pop("types", []),
                  KeySchema=[{"AttributeName": n, "KeyType": k} for n, _, k in names], **more)
        while self.call("DescribeTable", TableName=name)["Table"]["TableStatus"] != "ACTIVE":
            time.sleep(0.1)
        for item in items:
            self.call("PutItem", TableName=name, Item=item)
        return name

    def item(self, table, pk):
        return self.call("GetItem", TableName=table, Key={"pk": {"S": pk}},
                         ConsistentRead=True).get("Item")

    @staticmethod
    def equal(found, expected):
        if found != expected:
            raise Failure(f"{found!r} is not {expected!r}")

    @staticmethod
    def true(fact, what=""):
        if not fact:
            raise Failure(what or "that is not so")


def item(pk, **more):
    return {"pk": {"S": pk}, **more}


# ---- cases: tables --------------------------------------------------------------------------

def test_create_table(w):
    name = f"cli{os.getpid()}-{next(_number)}"
    told = w.aws("create-table", "--table-name", name,
                 "--attribute-definitions", "AttributeName=pk,AttributeType=S",
                 "AttributeName=sk,AttributeType=N",
                 "--key-schema", "AttributeName=pk,KeyType=HASH", "AttributeName=sk,KeyType=RANGE",
                 "--billing-mode", "PAY_PER_REQUEST", "--tags", "Key=a,Value=b")
    w.equal(told["TableDescription"]["TableName"], name)
    w.equal([key["KeyType"] for key in told["TableDescription"]["KeySchema"]], ["HASH", "RANGE"])


def test_create_table_from_json(w):
    name = f"cli{os.getpid()}-{next(_number)}"
    told = w.aws("create-table", "--cli-input-json", json.dumps({
        "TableName": name, "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "B"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}))
    w.equal(told["TableDescription"]["AttributeDefinitions"][0]["AttributeType"], "B")


def test_create_table_twice(w):
    name = w.table()
    w.refused("CreateTable", "ResourceInUseException", f"Table already exists: {name}",
              "create-table", "--table-name", name, "--billing-mode", "PAY_PER_REQUEST",
              "--attribute-definitions", "AttributeName=pk,AttributeType=S",
              "--key-schema", "AttributeName=pk,KeyType=HASH")


def test_describe_table_query(w):
    name = w.table()
    w.equal(w.aws("describe-table", "--table-name", name, "--query", "Table.TableStatus",
                  "--output", "text"), "ACTIVE\n")


def test_describe_missing_table(w):
    w.refused("DescribeTable", "ResourceNotFoundException",
              "Requested resource not found: Table: missing not found",
              "describe-table", "--table-name", "missing")


def test_list_tables_pages_by_itself(w):
    names = {w.table() for _ in range(5)}
    told = w.aws("list-tables", "--page-size", "2")
    w.true(names <= set(told["TableNames"]), told)


def test_list_tables_max_items(w):
    w.table()
    w.table()
    told = w.aws("list-tables", "--max-items", "1")
    w.equal(len(told["TableNames"]), 1)
    w.true("NextToken" in told)


def test_delete_table_and_wait(w):
    name = w.table()
    w.equal(w.aws("delete-table", "--table-name", name)["TableDescription"]["TableStatus"],
            "DELETING")
    w.equal(w.aws("wait", "table-not-exists", "--table-name", name), "")


def test_wait_table_exists(w):
    w.equal(w.aws("wait", "table-exists", "--table-name", w.table()), "")


def test_update_table_throughput(w):
    told = w.aws("update-table", "--table-name", w.table(), "--billing-mode", "PROVISIONED",
                 "--provisioned-throughput", "ReadCapacityUnits=5,WriteCapacityUnits=6")
    w.equal(told["TableDescription"]["TableName"][:3], "cli")


def test_update_table_index(w):
    name = w.table(item("a", g={"S": "x"}), item("b"))
    w.aws("update-table", "--table-name", name,
          "--attribute-definitions", "AttributeName=pk,AttributeType=S",
          "AttributeName=g,AttributeType=S", "--global-secondary-index-updates",
          json.dumps([{"Create": {"IndexName": "by-g", "Projection": {"ProjectionType": "ALL"},
                                  "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}]}}]))
    told = w.aws("scan", "--table-name", name, "--index-name", "by-g")
    w.equal(told["Items"], [item("a", g={"S": "x"})])


def test_tags(w):
    arn = w.call("DescribeTable", TableName=w.table())["Table"]["TableArn"]
    w.equal(w.aws("tag-resource", "--resource-arn", arn, "--tags", "Key=team,Value=blue"), "")
    w.equal(w.aws("list-tags-of-resource", "--resource-arn", arn)["Tags"],
            [{"Key": "team", "Value": "blue"}])


def test_time_to_live(w):
    name = w.table()
    w.aws("update-time-to-live", "--table-name", name, "--time-to-live-specification",
          "Enabled=true,AttributeName=due")
    w.equal(w.aws("describe-time-to-live", "--table-name", name)["TimeToLiveDescription"],
            {"TimeToLiveStatus": "ENABLED", "AttributeName": "due"})


def test_describe_limits(w):
    w.equal(w.aws("describe-limits")["TableMaxReadCapacityUnits"], 40000)


def test_describe_endpoints(w):
    w.equal(w.aws("describe-endpoints")["Endpoints"][0]["CachePeriodInMinutes"], 1440)


# ---- cases: items ---------------------------------------------------------------------------

def test_put_and_get(w):
    name = w.table()
    value = {"pk": {"S": "ä \u65e5\U0001f980 \"quoted\""}, "n": {"N": "1234567890.0123456789"},
             "l": {"L": [{"BOOL": True}, {"NULL": True}]}, "ss": {"SS": ["a", "b"]}}
    w.equal(w.aws("put-item", "--table-name", name, "--item", json.dumps(value)), "")
    told = w.aws("get-item", "--table-name", name, "--key", json.dumps({"pk": value["pk"]}))
    w.equal(told["Item"], value)


def test_binary_as_base64(w):
    name = w.table()
    w.aws("put-item", "--table-name", name, "--item",
          json.dumps(item("a", b={"B": "AAEC/w=="})))
    w.equal(w.item(name, "a")["b"], {"B": "AAEC/w=="})


def test_put_item_from_a_file(w):
    name = w.table()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(item("big", v={"S": "x" * 200000}), file)
        file.flush()
        w.aws("put-item", "--table-name", name, "--item", "file://" + file.name)
    w.equal(len(w.item(name, "big")["v"]["S"]), 200000)


def test_get_missing_item(w):
    w.equal(w.aws("get-item", "--table-name", w.table(), "--key", '{"pk": {"S": "none"}}'), "")


def test_get_projection_as_text(w):
    name = w.table(item("a", v={"N": "7"}, w={"N": "8"}))
    w.equal(w.aws("get-item", "--table-name", name, "--key", '{"pk": {"S": "a"}}',
                  "--projection-expression", "v", "--query", "Item.v.N", "--output", "text"),
            "7\n")


def test_condition_fails(w):
    name = w.table(item("a"))
    w.refused("PutItem", "ConditionalCheckFailedException", "The conditional request failed",
              "put-item", "--table-name", name, "--item", json.dumps(item("a")),
              "--condition-expression", "attribute_not_exists(pk)")


def test_update_item(w):
    name = w.table(item("a", v={"N": "1"}))
    told = w.aws("update-item", "--table-name", name, "--key", '{"pk": {"S": "a"}}',
                 "--update-expression", "SET #v = #v + :x",
                 "--expression-attribute-names", '{"#v": "v"}',
                 "--expression-attribute-values", '{":x": {"N": "41"}}',
                 "--return-values", "UPDATED_NEW")
    w.equal(told["Attributes"], {"v": {"N": "42"}})


def test_delete_item(w):
    name = w.table(item("a", v={"N": "1"}))
    told = w.aws("delete-item", "--table-name", name, "--key", '{"pk": {"S": "a"}}',
                 "--return-values", "ALL_OLD", "--return-consumed-capacity", "TOTAL")
    w.equal(told["Attributes"], item("a", v={"N": "1"}))
    w.equal(told["ConsumedCapacity"]["CapacityUnits"], 1.0)
    w.equal(w.item(name, "a"), None)


def test_validation_message(w):
    w.refused("PutItem", "ValidationException",
              "One or more parameter values were invalid: Missing the key pk in the item",
              "put-item", "--table-name", w.table(), "--item", '{"other": {"S": "a"}}')


# ---- cases: reads ---------------------------------------------------------------------------

def sorted_table(w, count):
    return w.table(*[item("p", sk={"N": str(i)}, odd={"BOOL": i % 2 == 1})
                     for i in range(count)], sort=True)


def test_query(w):
    told = w.aws("query", "--table-name", sorted_table(w, 10), "--key-condition-expression",
                 "pk = :p AND sk BETWEEN :a AND :b", "--expression-attribute-values",
                 json.dumps({":p": {"S": "p"}, ":a": {"N": "3"}, ":b": {"N": "5"}}),
                 "--no-scan-index-forward")
    w.equal([found["sk"]["N"] for found in told["Items"]], ["5", "4", "3"])
    w.equal((told["Count"], told["ScannedCount"]), (3, 3))


def test_query_pages_by_itself(w):
    told = w.aws("query", "--table-name", sorted_table(w, 25), "--key-condition-expression",
                 "pk = :p", "--expression-attribute-values", '{":p": {"S": "p"}}',
                 "--page-size", "7")
    w.equal([int(found["sk"]["N"]) for found in told["Items"]], list(range(25)))


def test_query_max_items_and_token(w):
    name = sorted_table(w, 12)
    args = ("query", "--table-name", name, "--key-condition-expression", "pk = :p",
            "--expression-attribute-values", '{":p": {"S": "p"}}', "--max-items", "8")
    first = w.aws(*args)
    w.equal(len(first["Items"]), 8)
    rest = w.aws(*args, "--starting-token", first["NextToken"])
    w.equal([found["sk"]["N"] for found in rest["Items"]], ["8", "9", "10", "11"])


def test_scan_filter_count(w):
    told = w.aws("scan", "--table-name", sorted_table(w, 10), "--filter-expression", "odd = :o",
                 "--expression-attribute-values", '{":o": {"BOOL": true}}', "--select", "COUNT")
    w.equal((told["Count"], told["ScannedCount"]), (5, 10))


def test_scan_of_large_pages(w):
    name = w.table(*[item(str(i), v={"S": "x" * 200000}) for i in range(12)])
    told = w.aws("scan", "--table-name", name, "--query", "length(Items)")
    w.equal(told, "12\n")


def test_query_reserved_word(w):
    w.refused("Scan", "ValidationException",
              "Invalid FilterExpression: Attribute name is a reserved keyword; reserved keyword: "
              "name", "scan", "--table-name", w.table(), "--filter-expression", "name = :n",
              "--expression-attribute-values", '{":n": {"S": "x"}}')


# ---- cases: batches, transactions, statements, streams, backups -----------------------------

def test_batch_write(w):
    name = w.table(item("old"))
    told = w.aws("batch-write-item", "--request-items", json.dumps({name: [
        {"PutRequest": {"Item": item("new")}}, {"DeleteRequest": {"Key": item("old")}}]}))
    w.equal(told["UnprocessedItems"], {})
    w.equal((w.item(name, "old"), w.item(name, "new")), (None, item("new")))


def test_batch_get(w):
    name = w.table(item("a"), item("b"))
    told = w.aws("batch-get-item", "--request-items",
                 json.dumps({name: {"Keys": [item("a"), item("none")]}}))
    w.equal((told["Responses"], told["UnprocessedKeys"]), ({name: [item("a")]}, {}))


def test_transact_write(w):
    name = w.table()
    w.equal(w.aws("transact-write-items", "--transact-items", json.dumps([
        {"Put": {"TableName": name, "Item": item(key)}} for key in "ab"])), "")
    w.equal(w.item(name, "b"), item("b"))


def test_transact_write_canceled(w):
    name = w.table(item("a"))
    w.refused("TransactWriteItems", "TransactionCanceledException",
              "Transaction cancelled, please refer cancellation reasons for specific reasons "
              "[None, ConditionalCheckFailed]",
              "transact-write-items", "--transact-items", json.dumps([
                  {"Put": {"TableName": name, "Item": item("b")}},
                  {"ConditionCheck": {"TableName": name, "Key": item("a"),
                                      "ConditionExpression": "attribute_not_exists(pk)"}}]))
    w.equal(w.item(name, "b"), None)


def test_transact_get(w):
    name = w.table(item("a"))
    told = w.aws("transact-get-items", "--transact-items", json.dumps([
        {"Get": {"TableName": name, "Key": item(key)}} for key in ("a", "none")]))
    w.equal(told["Responses"], [{"Item": item("a")}, {}])


def test_execute_statement(w):
    name = w.table(item("a", v={"N": "1"}))
    told = w.aws("execute-statement", "--statement",
                 f'SELECT v FROM "{name}" WHERE pk = ?', "--parameters", '[{"S": "a"}]')
    w.equal(told["Items"], [{"v": {"N": "1"}}])


def test_streams(w):
    name = w.table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
    w.call("PutItem", TableName=name, Item=item("a"))
    streams = w.aws("list-streams", "--table-name", name, service="dynamodbstreams")["Streams"]
    w.equal([stream["TableName"] for stream in streams], [name])
    arn = streams[0]["StreamArn"]
    told = w.aws("describe-stream", "--stream-arn", arn, service="dynamodbstreams")
    shards = [shard["ShardId"] for shard in told["StreamDescription"]["Shards"]]

    def records(shard):
        at = w.aws("get-shard-iterator", "--stream-arn", arn, "--shard-id", shard,
                   "--shard-iterator-type", "TRIM_HORIZON", service="dynamodbstreams")
        return w.aws("get-records", "--shard-iterator", at["ShardIterator"],
                     service="dynamodbstreams")["Records"]

    found = [record for shard in shards for record in records(shard)]
    w.equal([(record["eventName"], record["dynamodb"]["NewImage"]) for record in found],
            [("INSERT", item("a"))])


def test_backups(w):
    name = w.table(item("a"))
    made = w.aws("create-backup", "--table-name", name, "--backup-name", "first")
    arn = made["BackupDetails"]["BackupArn"]
    listed = w.aws("list-backups", "--table-name", name)["BackupSummaries"]
    w.equal([backup["BackupArn"] for backup in listed], [arn])
    until = time.monotonic() + 60
    while w.call("DescribeBackup", BackupArn=arn)["BackupDescription"]["BackupDetails"][
            "BackupStatus"] != "AVAILABLE" and time.monotonic() < until:
        time.sleep(0.05)
    told = w.aws("delete-backup", "--backup-arn", arn)
    w.equal(told["BackupDescription"]["BackupDetails"]["BackupStatus"], "DELETED")


def test_continuous_backups(w):
    told = w.aws("describe-continuous-backups", "--table-name", w.table())
    w.equal(told["ContinuousBackupsDescription"]["ContinuousBackupsStatus"], "ENABLED")


# ---- cases: retries and keys ----------------------------------------------------------------

def test_throttling_is_retried(w):
    name = w.table(item("a"))
    w.admin("PUT", "/faults", {"faults": [{"kind": "throttle", "table": name, "count": 2}]})
    told = w.aws("get-item", "--table-name", name, "--key", '{"pk": {"S": "a"}}',
                 env={"AWS_MAX_ATTEMPTS": "5"})
    w.equal(told["Item"], item("a"))


def test_credentials(_):
    if ENDPOINT:
        raise LeftOut("starts a server of its own")
    with tempfile.TemporaryDirectory() as where:
        path = os.path.join(where, "keys")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(f"[default]\naws_access_key_id = {KEY}\n"
                       f"aws_secret_access_key = {SECRET}\n")
        server = Server("--credentials", path)
        try:
            w = World(server.url)
            w.equal(w.aws("list-tables"), {"TableNames": []})
            w.refused("ListTables", "InvalidSignatureException",
                      "The request signature we calculated does not match the signature you "
                      "provided. Check your AWS Secret Access Key and signing method. Consult the "
                      "service documentation for details.", "list-tables",
                      env={"AWS_SECRET_ACCESS_KEY": "wrong"})
            w.refused("ListTables", "UnrecognizedClientException",
                      "The security token included in the request is invalid.", "list-tables",
                      env={"AWS_ACCESS_KEY_ID": "AKIANOBODY"})
        finally:
            wrong = server.stop()
        w.equal(wrong, None)


# ---- all of them ----------------------------------------------------------------------------

def run_case(case, world):
    begin = time.monotonic()
    try:
        case(world)
        outcome = "ok"
    except LeftOut as reason:
        outcome = f"left out: {reason}"
    except Exception as error:  # whatever it is, the case failed
        outcome = f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"
    return case.__name__, outcome, time.monotonic() - begin


def main():
    global WARM
    verbose = "-v" in sys.argv[1:]
    names = [word for word in sys.argv[1:] if word != "-v"]
    if not AWSCLI or not os.path.exists(AWSCLI):
        print("the aws command is not installed")
        return 77
    if not HOLDFAST and not ENDPOINT:
        print("HOLDFAST or ENDPOINT must be in the environment")
        return 2
    cases = [case for name, case in sorted(globals().items()) if name.startswith("test_") and
             (not names or any(word in name for word in names))]
    # With one shard a stream is read by two calls; each takes most of a second.
    server = None if ENDPOINT else Server("--admin", "--stream-shards", "1")
    passed = failed = 0
    WARM = Warm()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        world = World(ENDPOINT or server.url)
        for name, outcome, took in pool.map(lambda case: run_case(case, world), cases):
            if outcome == "ok":
                passed += 1
            elif not outcome.startswith("left out"):
                failed += 1
                print(f"FAILED  {name}: {outcome}")
            if verbose:
                print(f"{took:6.2f} s  {name}: {outcome}", flush=True)
    WARM.stop()
    wrong = server.stop() if server else None
    if wrong:
        failed += 1
        print(f"FAILED  {wrong}")
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
