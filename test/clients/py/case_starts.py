"""How the server is started: DynamoDB Local's options, files, regions, variables, limits."""
import os
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from support import ENDPOINT, HOLDFAST, WAIT_S, Case, N, S, Server, client, schema


@unittest.skipIf(ENDPOINT, "starts servers of its own")
class Starts(Case):
    def use(self, server):
        """A table, a write and a read; returns the table's description."""
        db = client(server.url)
        self.addCleanup(db.close)
        db.create_table(**schema("abc"))
        db.put_item(TableName="abc", Item={"pk": S("a"), "v": N(1)})
        self.assertEqual(db.get_item(TableName="abc", Key={"pk": S("a")})["Item"]["v"], N(1))
        return db.describe_table(TableName="abc")["Table"]

    def test_in_memory(self):
        with Server("--in-memory") as server:
            self.use(server)
            self.assertEqual(server.words[1], "  data    in memory (lost on exit)")

    def test_local_in_memory(self):
        with Server("-inMemory", "-sharedDb", "-disableTelemetry", "-port", "0",
                    port=None) as server:
            self.use(server)

    def test_local_db_path(self):
        where = self.directory()
        with Server("-dbPath", where, "-sharedDb", "-optimizeDbBeforeStartup",
                    "-delayTransientStatuses", quiet=False) as server:
            # It says that some of them have no effect.
            self.use(server)
        self.assertTrue(os.path.isdir(os.path.join(where, "holdfast.db")))
        with Server("-dbPath", where) as server:
            self.assertEqual(client(server.url).list_tables()["TableNames"], ["abc"])

    def test_local_db_path_with_in_memory(self):
        done = subprocess.run([HOLDFAST, "serve", "-dbPath", self.directory(), "-inMemory"],
                              capture_output=True, text=True, timeout=WAIT_S)
        self.assertEqual(done.returncode, 2)

    def test_local_cors(self):
        with Server("-inMemory", "-cors", "*") as server:
            self.use(server)

    def test_in_the_working_directory(self):
        where = self.directory()
        with Server(cwd=where) as server:
            self.use(server)
        self.assertEqual(os.listdir(where), ["holdfast.db"])

    def test_region_and_account(self):
        with Server("--in-memory", "--region", "eu-north-1", "--account", "111122223333") as server:
            told = self.use(server)
            self.assertEqual(told["TableArn"], "arn:aws:dynamodb:eu-north-1:111122223333:table/abc")

    def test_newer_wording(self):
        with Server("--in-memory", "--wording", "2026") as server:
            db = client(server.url)
            self.addCleanup(db.close)
            db.create_table(**schema("abc"))
            self.fails("ValidationException", "1 validation error detected: The parameter cannot "
                       "be converted to a numeric value: x", db.put_item, TableName="abc",
                       Item={"pk": S("a"), "n": N("x")})

    def test_stream_shards(self):
        with Server("--in-memory", "--stream-shards", "7") as server:
            db, streams = client(server.url), client(server.url, service="dynamodbstreams")
            db.create_table(**schema("abc", StreamSpecification={
                "StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}))
            arn = db.describe_table(TableName="abc")["Table"]["LatestStreamArn"]
            told = streams.describe_stream(StreamArn=arn)["StreamDescription"]
            self.assertEqual(len(told["Shards"]), 7)
            db.close()
            streams.close()

    def test_sync_modes(self):
        for mode in ("full", "batch", "none"):
            with self.subTest(mode), Server("--db-path", os.path.join(self.directory(), "db"),
                                            "--sync", mode) as server:
                self.use(server)

    def test_one_loop_and_few_connections(self):
        with Server("--in-memory", "--loops", "1", "--connections", "8") as server:
            self.use(server)

    def test_compressed(self):
        where = os.path.join(self.directory(), "db")
        with Server("--db-path", where, "--compress") as server:
            self.use(server)

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            done = subprocess.run([HOLDFAST, "serve", "--in-memory", "--port",
                                   str(taken.getsockname()[1])], capture_output=True, text=True,
                                  timeout=WAIT_S)
        self.assertEqual(done.returncode, 4)

    def test_same_files_twice(self):
        where = os.path.join(self.directory(), "db")
        with Server("--db-path", where) as server:
            done = subprocess.run([HOLDFAST, "serve", "--db-path", where, "--port", "0"],
                                  capture_output=True, text=True, timeout=WAIT_S)
            self.assertEqual(done.returncode, 3)
            self.use(server)

    def test_host_name_allowed(self):
        with Server("--in-memory", "--allow-host", "dynamo.test") as server:
            def status(host):
                request = urllib.request.Request(server.url + "/livez", headers={"Host": host})
                try:
                    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                        return answer.status
                except urllib.error.HTTPError as error:
                    error.close()
                    return error.code

            self.assertEqual((status("dynamo.test"), status("other.test")), (200, 403))

    def test_admin_only_when_asked(self):
        with Server("--in-memory") as server:
            with self.assertRaises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(server.url + "/_holdfast/", timeout=WAIT_S)
            self.assertEqual(caught.exception.code, 404)
            caught.exception.close()

    def test_access_log(self):
        with Server("--in-memory", "--access-log") as server:
            self.use(server)
            log = server.log()
        for operation in ("CreateTable", "PutItem", "GetItem"):
            self.assertIn(operation, log)
