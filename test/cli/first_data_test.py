#!/usr/bin/env python3
"""What a server starts with: first_data_test.py COMMAND SOURCE [unittest arguments].

`holdfast serve` as a process with --init, --snapshot, variables, and command lines of DynamoDB Local.
"""
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

COMMAND = os.path.abspath(sys.argv[1])
WAIT_S = 120
FIRST = 5  # the exit code


def clean_env(**more):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("HOLDFAST_", "AWS_", "LISTEN_", "NOTIFY_", "WATCHDOG_"))}
    env.update(HOLDFAST_CONFIG="/dev/null", **more)
    return env


class Server:
    """One that is ready."""

    def __init__(self, *args, env=None, cwd=None, program=None):
        self.log_file = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(program or [COMMAND, "serve", *args], stdout=subprocess.PIPE,
                                        stderr=self.log_file, text=True, env=env or clean_env(), cwd=cwd)
        self.start = ""
        for line in self.process.stdout:
            self.start += line
            if line.startswith("  try"):
                break
        found = re.search(r"serves on (http://\S+:(\d+))", self.start)
        if not found:
            self.process.wait(WAIT_S)
            self.process.stdout.close()
            raise AssertionError(self.log())
        self.url, self.port = found.group(1), int(found.group(2))

    def log(self):
        self.log_file.seek(0)
        return self.log_file.read()

    def call(self, operation, expect=200, **body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        connection.request("POST", "/", json.dumps(body), {
            "X-Amz-Target": "DynamoDB_20120810." + operation, "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Date": "20260101T000000Z",
            "Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, "
                             "SignedHeaders=host, Signature=" + "0" * 64})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status != expect:
            raise AssertionError(text)
        return json.loads(text)

    def items(self, table):
        return self.call("Scan", TableName=table)["Items"]

    def tables(self):
        return self.call("ListTables")["TableNames"]

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(WAIT_S)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT_S)
        self.process.stdout.close()
        self.log_file.close()


def definition(name, **more):
    return {"TableName": name, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], **more}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="first")
        self.addCleanup(shutil.rmtree, self.folder)
        os.mkdir(self.path("init"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, *lines):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        with (gzip.open(path, "wt") if name.endswith(".gz") else open(path, "w", encoding="utf-8")) as file:
            file.write(text)
        return path

    def serve(self, *args, **more):
        return Server("--port", "0", *args, cwd=self.folder, **more)

    def run_command(self, *args, env=None, expect=0):
        done = subprocess.run([COMMAND, *args], capture_output=True, text=True, timeout=WAIT_S, cwd=self.folder,
                              env=env or clean_env(), check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def refused(self, expect, *args, env=None):
        """Ends without serving; returns what it says."""
        return self.run_command("serve", "--port", "0", *args, env=env, expect=expect).stderr


class Init(Case):
    def orders(self):
        self.write("init/orders.json", definition("orders"))
        self.write("init/orders.jsonl", *({"id": f"o{i}", "n": i} for i in range(5)))

    def test_a_folder_is_there_when_the_server_is_ready_and_nothing_changes_at_the_next_start(self):
        self.orders()
        self.write("init/b.json", {"Resources": {"T": {"Type": "AWS::DynamoDB::Table", "Properties": {
            "TableName": "people", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": True}}}}})
        self.write("init/people.csv.gz", "id:S,age:N", "ann,30", "ben,40")
        self.write("init/notes.txt", "nothing")
        before = None
        for start in range(3):
            with self.serve("--db-path", "db", "--init", "init") as server:
                self.assertEqual(server.tables(), ["orders", "people"])
                self.assertEqual(len(server.items("orders")), 5)
                self.assertEqual(sorted(i["age"]["N"] for i in server.items("people")), ["30", "40"])
                described = server.call("DescribeTable", TableName="people")["Table"]
                self.assertEqual(described["TableId"], before or described["TableId"])
                before = described["TableId"]
                arn = described["TableArn"]
                self.assertEqual(server.call("ListTagsOfResource", ResourceArn=arn)["Tags"], [])
                self.assertEqual(server.call("DescribeTimeToLive", TableName="people")
                                 ["TimeToLiveDescription"]["AttributeName"], "until")
                self.assertEqual(server.stop(), 0)
                log = server.log()
            self.assertIn("notes.txt is left out", log)
            self.assertEqual("created table" in log, start == 0, log)
            self.assertEqual("people is there already, unchanged" in log, start > 0, log)

    def test_what_differs_is_reported_and_stays(self):
        self.orders()
        with self.serve("--db-path", "db", "--init", "init") as server:
            server.call("DeleteItem", TableName="orders", Key={"id": {"S": "o1"}})
            server.call("PutItem", TableName="orders", Item={"id": {"S": "o3"}, "n": {"N": "99"}})
            server.stop()
        self.write("init/orders.json", definition("orders", StreamSpecification={
            "StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}, GlobalSecondaryIndexes=[{
                "IndexName": "by_id", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"}}]))
        with self.serve("--db-path", "db", "--init", "init") as server:
            self.assertEqual(sorted(i["n"]["N"] for i in server.items("orders")), ["0", "2", "4", "99"])
            described = server.call("DescribeTable", TableName="orders")["Table"]
            self.assertNotIn("StreamSpecification", described)
            self.assertNotIn("GlobalSecondaryIndexes", described)
            log = server.log()
        self.assertRegex(log, r"table orders is not as init/orders\.json says, and is left as it is: .*by_id")
        self.assertRegex(log, r"of 5 items of init/orders\.jsonl, 1 are missing in it and 1 are different; "
                              r"the first one is in init/orders\.jsonl:2")

    def test_a_start_that_was_killed_is_completed_by_the_next_one(self):
        self.write("init/big.json", definition("big"))
        self.write("init/big.jsonl", *({"id": f"{i}", "text": "x" * 200} for i in range(20000)))
        fifo = self.path("init/wait.jsonl")
        self.write("init/wait.schema.json", definition("wait"))
        os.mkfifo(fifo)  # in a folder it is left out; named, it holds the start up
        process = subprocess.Popen([COMMAND, "serve", "--port", "0", "--db-path", "db", "--init", "init/big.json",
                                    "--init", "init/big.jsonl", "--init", "init/wait.schema.json", "--init", fifo],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=clean_env())
        for line in process.stderr:
            if "stored 20000 items" in line:
                break
        process.kill()
        process.communicate()
        process.stdout.close()
        os.unlink(fifo)
        # Without the files it is not served; an item is lost, as if the start had not come that far.
        said = self.refused(FIRST, "--db-path", "db")
        self.assertIn("table big has not all items of --init", said)
        self.assertIn("holdfast table delete big --db embedded:DIR", said)
        self.orders()
        self.assertIn("table big has not all", self.refused(FIRST, "--db-path", "db", "--init", "init/orders.json"))
        with self.serve("--db-path", "db", "--read-only") as server:
            self.assertIn("table big has not all items of --init", server.log())
            self.assertEqual(server.stop(), 0)
        self.run_command("item", "delete", "big", "7", "--db", "embedded:db")
        self.write("init/wait.jsonl", {"id": "1"})
        with self.serve("--db-path", "db", "--init", "init") as server:
            self.assertEqual(server.call("Scan", TableName="big", Select="COUNT", FilterExpression="id = :i",
                                         ExpressionAttributeValues={":i": {"S": "7"}})["Count"], 1)
            self.assertEqual(len(server.items("wait")), 1)
            self.assertIn("table big was not loaded completely", server.log())
            self.assertEqual(server.stop(), 0)
        with self.serve("--db-path", "db", "--init", "init") as server:
            self.assertIn("table big is there already, unchanged", server.log())
            self.assertEqual(server.stop(), 0)
        with self.serve("--db-path", "db") as server:
            self.assertEqual(server.stop(), 0)

    def test_of_a_table_that_was_not_loaded_the_tag_or_the_table_can_be_removed(self):
        for tables, way_out in ((["half"], ["call", "UntagResource"]), ([], ["table", "delete", "half", "--yes"])):
            shutil.rmtree(self.path("db"), ignore_errors=True)
            with self.serve("--db-path", "db") as server:
                arn = server.call("CreateTable", **definition("half", Tags=[
                    {"Key": "holdfast:init", "Value": "loading"}]))["TableDescription"]["TableArn"]
                self.assertEqual(server.stop(), 0)
            self.assertIn("table half has not all", self.refused(FIRST, "--db-path", "db"))
            if way_out[0] == "call":
                way_out.append(json.dumps({"ResourceArn": arn, "TagKeys": ["holdfast:init"]}))
            self.run_command(*way_out, "--db", "embedded:db")
            with self.serve("--db-path", "db") as server:
                self.assertEqual(server.tables(), tables)
                self.assertEqual(server.stop(), 0)

    def test_a_signal_ends_the_start(self):
        self.write("init/wait.schema.json", definition("wait"))
        fifo = self.path("init/wait.jsonl")
        os.mkfifo(fifo)
        process = subprocess.Popen([COMMAND, "serve", "--port", "0", "--db-path", "db", "--init",
                                    "init/wait.schema.json", "--init", fifo], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_env())
        with open(fifo, "w", encoding="utf-8") as file:  # the start waits for what comes
            file.write('{"id":"1"}\n')
            file.flush()
            process.send_signal(signal.SIGTERM)
            out, log = process.communicate(timeout=WAIT_S)  # and there is no end of the file before that
        self.assertEqual(process.returncode, 0, log)
        self.assertEqual(out, "")
        self.assertIn("stopped before everything was loaded", log)

    def test_an_export_of_dynamodb_is_loaded_into_the_table_that_a_description_defines(self):
        self.orders()
        with self.serve("--in-memory", "--init", "init") as server:
            described = server.call("DescribeTable", TableName="orders")
            self.run_command("export", "orders", "--to", "seed", "--format", "aws", "--db", server.url)
        for folder, _, names in os.walk(self.path("seed")):
            if "schema.json" in names:
                os.unlink(os.path.join(folder, "schema.json"))
        self.write("seed/table.json", described)
        with self.serve("--in-memory", "--init", "seed/") as server:
            self.assertEqual(len(server.items("orders")), 5)
            again = server.call("DescribeTable", TableName="orders")["Table"]
            for member in ("KeySchema", "AttributeDefinitions", "BillingModeSummary"):
                if member != "BillingModeSummary":
                    self.assertEqual(again[member], described["Table"][member])
            self.assertEqual(again["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST")

    def test_errors_name_file_and_line_and_end_the_start(self):
        self.orders()
        self.write("init/orders.jsonl", {"id": "1"}, {"id": 2})
        self.assertIn("init/orders.jsonl:2: the key attribute id has to be a string",
                      self.refused(FIRST, "--in-memory", "--init", "init"))
        self.write("init/orders.jsonl", {"id": "1"}, "{not json")
        self.assertIn("init/orders.jsonl:2: ", self.refused(FIRST, "--in-memory", "--init", "init"))
        self.write("init/orders.jsonl", {"id": "1"})
        self.write("init/other.json", definition("orders", DeletionProtectionEnabled=True))
        said = self.refused(FIRST, "--db-path", "none", "--init", "init")
        self.assertIn("init/orders.json and init/other.json define table orders", said)
        os.unlink(self.path("init/other.json"))
        self.write("init/unknown.jsonl", {"id": "1"})
        self.assertIn("init/unknown.jsonl: there is no table unknown, and no file defines it",
                      self.refused(FIRST, "--in-memory", "--init", "init"))
        os.unlink(self.path("init/unknown.jsonl"))
        self.write("init/wrong.json", {**definition("wrong"), "KeySchemas": []})
        self.assertIn("init/wrong.json: ", self.refused(FIRST, "--in-memory", "--init", "init"))
        self.assertIn("KeySchemas", self.refused(FIRST, "--in-memory", "--init", "init"))
        self.write("wrong.json", definition("t"))
        self.assertRegex(self.refused(FIRST, "--in-memory", "--init", "wrong.json"), "wrong.json: table t: .*length")
        self.assertIn("absent", self.refused(FIRST, "--in-memory", "--init", "absent"))
        self.write("template.yaml", "Resources:", "  T:", "    Type: AWS::DynamoDB::Table")
        self.assertIn("convert the template to JSON", self.refused(FIRST, "--in-memory", "--init", "template.yaml"))
        self.assertIn("--read-only and --init", self.refused(2, "--read-only", "--init", "init"))


class Snapshots(Case):
    def test_a_server_starts_from_a_file(self):
        self.write("things.json", definition("things", StreamSpecification={"StreamEnabled": True,
                                                                  "StreamViewType": "NEW_IMAGE"}))
        self.write("things.jsonl", *({"id": f"{i}"} for i in range(30)))
        with self.serve("--db-path", "db", "--init", "things.json", "--init", "things.jsonl") as server:
            self.assertIn("already open", self.run_command("snapshot", "save", "s", "--db", "embedded:db", expect=6).stderr)
            server.stop()
        done = self.run_command("snapshot", "save", "s", "--db", "embedded:db", "--json")
        self.assertEqual({k: json.loads(done.stdout)[k] for k in ("tables", "items")}, {"tables": 1, "items": 30})
        for where, items in ((["--in-memory"], 30), (["--db-path", "copy"], 30), (["--db-path", "copy"], 29)):
            with self.serve(*where, "--snapshot", "s") as server:
                self.assertEqual(len(server.items("things")), items)
                self.assertIn("StreamSpecification", server.call("DescribeTable", TableName="things")["Table"])
                server.call("DeleteItem", TableName="things", Key={"id": {"S": "1"}})
                server.stop()
                log = server.log()
        self.assertIn("the database has tables already; s is not restored", log)
        with open(self.path("s"), "r+b") as file:
            file.seek(200)
            file.write(b"\xff\xff\xff\xff")
        self.assertRegex(self.refused(FIRST, "--in-memory", "--snapshot", "s"), "damaged|checksum")
        self.assertIn("absent", self.refused(FIRST, "--in-memory", "--snapshot", "absent"))
        self.assertIn("no data directory", self.run_command("snapshot", "save", "x", "--db", "http://127.0.0.1:1",
                                                            expect=2).stderr)


class Variables(Case):
    def test_every_option_of_the_help_has_one(self):
        help_text = self.run_command("serve", "--help").stdout
        options = re.findall(r"^ {2,6}(?:-\w, )?--([a-z][a-z-]*)(?: ([A-Z]+))?",
                             help_text.partition("\nExamples")[0], re.M)
        options = [(name, value) for name, value in options if name != "help"]
        self.assertGreater(len(options), 35)
        for name, value in options:
            variable = "HOLDFAST_SERVE_" + name.upper().replace("-", "_")
            said = self.refused(2, "--no-such-option", env=clean_env(**{variable: "wrong"}))
            any_text = value in ("ADDRESS", "NAME", "ORIGINS", "FILE", "DIR", "PATH", "URL", "PLACE")
            if not any_text and (name, value) != ("account", "NUMBER"):
                self.assertIn(f"{variable}: ", said)

    def test_values_and_which_wins(self):
        env = clean_env(HOLDFAST_SERVE_IN_MEMORY="yes", HOLDFAST_SERVE_PORT="0", HOLDFAST_SERVE_HOST="0.0.0.0",
                        HOLDFAST_SERVE_INSECURE_ANY_KEY="1", HOLDFAST_SERVE_ALLOW_HOST="one.example,*.two.example,dotless",
                        HOLDFAST_SERVE_DB_PATH="never", HOLDFAST_SERVE_ADMIN="off")
        with Server(env=env, cwd=self.folder) as server:
            self.assertIn("in memory", server.start)
            self.assertIn("ANY KEY FROM ANY HOST", server.start)
            for host, status in (("one.example", 200), ("a.two.example:80", 200), ("A.b.Two.Example", 200),
                                 ("dynamodb", 200), ("dynamodb:8000", 200), ("two.example", 403),
                                 ("xtwo.example", 403), ("x.one.example", 403), ("dotless.example", 403),
                                 ("dynamodb.", 403), (".two.example", 403)):
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)
                connection.request("GET", "/", headers={"Host": host})
                self.assertEqual(connection.getresponse().status, status, host)
                connection.close()
        with Server("--db-path", "kept", env=env, cwd=self.folder) as server:  # the command line was meant
            self.assertIn("/kept", server.start)
        self.assertTrue(os.path.isdir(self.path("kept")))
        self.assertFalse(os.path.exists(self.path("never")))
        keys = self.write("keys", "[a]", "aws_access_key_id = k", "aws_secret_access_key = s")
        os.chmod(keys, 0o600)
        with Server("--credentials", keys, env=env, cwd=self.folder) as server:
            self.assertIn("must be signed", server.start)
        self.assertIn("HOLDFAST_SERVE_IN_MEMORY: 'maybe' is neither 1 nor 0",
                      self.refused(2, env=clean_env(HOLDFAST_SERVE_IN_MEMORY="maybe")))


class Local(Case):
    """Command lines that people have for amazon/dynamodb-local."""

    LINES = (
        "-jar DynamoDBLocal.jar -inMemory -sharedDb -port 0",
        "-Djava.library.path=./DynamoDBLocal_lib -jar DynamoDBLocal.jar -sharedDb -inMemory -port 0",
        "-Xmx256m -XX:+UseSerialGC -Djava.library.path=. -jar DynamoDBLocal.jar -port 0 -dbPath ./data -sharedDb "
        "-optimizeDbBeforeStartup -delayTransientStatuses -disableTelemetry -cors *",
        "-jar /opt/dynamodb/DynamoDBLocal.jar -inMemory -cors http://localhost:3000,http://a -port 0",
    )

    def test_they_serve(self):
        os.mkdir(self.path("data"))
        os.symlink(COMMAND, self.path("java"))
        for line in self.LINES:
            for program in ([COMMAND], [COMMAND, "serve"], [self.path("java")]):
                with Server(program=[*program, *line.split()], cwd=self.folder) as server:
                    self.assertEqual(server.tables(), [])
                    self.assertEqual("in memory" in server.start, "-inMemory" in line)
                    self.assertEqual(server.stop(), 0)
        self.assertTrue(os.path.isdir(self.path("data/holdfast.db")))

    def test_the_help_and_slips(self):
        done = self.run_command("-jar", "DynamoDBLocal.jar", "-help")
        self.assertIn("holdfast serve", done.stdout)
        self.assertIn("-inMemroy", self.run_command("-jar", "x.jar", "-inMemroy", expect=2).stderr)
        self.assertIn("-Dx", self.run_command("serve", "-Dx=1", expect=2).stderr)
        self.assertIn("cannot be combined",
                      self.run_command("-jar", "x.jar", "-inMemory", "-dbPath", ".", expect=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
