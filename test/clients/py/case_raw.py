"""What is under boto3: headers, checksums, compression, bad requests, health, metrics.

urllib3 comes with botocore; requests here are signed with a signature that nobody checks.
"""
import gzip
import json
import re
import unittest
import zlib

import urllib3

from support import ENDPOINT, WAIT_S, Case, N, S, Server, client, endpoint, fresh_name, schema

HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, "
                     "SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + "0" * 64,
}
SERIALIZATION = "com.amazon.coral.service#SerializationException"


class Raw(Case):
    http = urllib3.PoolManager(retries=False, timeout=WAIT_S)

    def post(self, operation, body, headers=None, service="DynamoDB_20120810", without=()):
        """The answer, as it is on the wire."""
        sent = {**HEADERS, "X-Amz-Target": f"{service}.{operation}", **(headers or {})}
        for name in without:
            del sent[name]
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.http.request("POST", endpoint() + "/", body=data, headers=sent,
                                 decode_content=False)

    def refused(self, answer, status, body):
        self.assertEqual((answer.status, json.loads(answer.data)), (status, body))


class Headers(Raw):
    def test_every_answer_has_them(self):
        answer = self.post("ListTables", {})
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["Content-Type"], "application/x-amz-json-1.0")
        self.assertEqual(int(answer.headers["Content-Length"]), len(answer.data))
        self.assertEqual(int(answer.headers["x-amz-crc32"]), zlib.crc32(answer.data))
        self.assertRegex(answer.headers["x-amzn-RequestId"], "^[0-9A-Z]{52}$")
        self.assertIn("Date", answer.headers)
        self.assertIn("Server", answer.headers)

    def test_errors_have_them_too(self):
        answer = self.post("DescribeTable", {"TableName": "missing"})
        self.assertEqual(answer.status, 400)
        self.assertEqual(int(answer.headers["x-amz-crc32"]), zlib.crc32(answer.data))

    def test_plain_json_is_echoed(self):
        answer = self.post("ListTables", {}, {"Content-Type": "application/json; charset=utf-8"})
        self.assertEqual(answer.status, 200)
        self.assertRegex(answer.headers["Content-Type"], "^application/json")

    def test_other_type_is_not_found(self):
        answer = self.post("ListTables", {}, {"Content-Type": "text/plain"})
        self.assertEqual((answer.status, answer.data),
                         (404, b"<UnknownOperationException/>\n"))

    def test_error_names_its_type(self):
        self.refused(self.post("DescribeTable", {"TableName": "missing"}), 400, {
            "__type": "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException",
            "message": "Requested resource not found: Table: missing not found"})

    def test_unknown_operation(self):
        answer = self.post("MakeCoffee", {})
        self.assertEqual(answer.status, 400)
        self.assertEqual(json.loads(answer.data)["__type"],
                         "com.amazon.coral.service#UnknownOperationException")

    def test_unknown_service(self):
        self.refused(self.post("ListTables", {}, service="Kinesis_20131202"), 400,
                     {"__type": "com.amazon.coral.service#UnknownOperationException"})

    def test_operation_of_streams_with_the_wrong_prefix(self):
        answer = self.post("ListStreams", {})
        self.assertEqual(json.loads(answer.data)["__type"],
                         "com.amazon.coral.service#UnknownOperationException")

    def test_no_signature(self):
        self.refused(self.post("ListTables", {}, without=["Authorization"]), 400, {
            "__type": "com.amazon.coral.service#MissingAuthenticationTokenException",
            "message": "Request is missing Authentication Token"})

    def test_signature_without_parts(self):
        answer = self.post("ListTables", {}, {"Authorization": "AWS4-HMAC-SHA256 "})
        told = json.loads(answer.data)
        self.assertEqual(told["__type"], "com.amazon.coral.service#IncompleteSignatureException")
        for part in ("Credential", "Signature", "SignedHeaders"):
            self.assertIn(f"Authorization header requires '{part}' parameter.", told["message"])

    def test_keep_alive(self):
        pool = urllib3.connectionpool.connection_from_url(endpoint(), maxsize=1, retries=False)
        for _ in range(50):
            answer = pool.request("POST", "/", body=b"{}", headers={
                **HEADERS, "X-Amz-Target": "DynamoDB_20120810.ListTables"})
            self.assertEqual(answer.status, 200)
        self.assertEqual((pool.num_connections, pool.num_requests), (1, 50))

    def test_connection_close(self):
        answer = self.post("ListTables", {}, {"Connection": "close"})
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers.get("Connection", "").lower(), "close")


class Bodies(Raw):
    def test_no_json(self):
        self.refused(self.post("ListTables", b"{"), 400, {"__type": SERIALIZATION})

    def test_array(self):
        answer = self.post("ListTables", b"[]")
        self.assertEqual(answer.status, 400)

    def test_null(self):
        self.assertEqual(self.post("ListTables", b"null").status, 400)

    def test_wrong_type_of_a_field(self):
        self.refused(self.post("ListTables", {"Limit": "x"}), 400, {
            "__type": SERIALIZATION, "Message": "STRING_VALUE cannot be converted to Integer"})

    def test_number_for_text(self):
        self.refused(self.post("DescribeTable", {"TableName": 1}), 400, {
            "__type": SERIALIZATION, "Message": "NUMBER_VALUE cannot be converted to String"})

    def test_json_number_under_n(self):
        answer = self.post("PutItem", {"TableName": "abc", "Item": {"a": {"N": 1}}})
        self.assertEqual(json.loads(answer.data)["__type"], SERIALIZATION)

    def test_bad_base64(self):
        answer = self.post("PutItem", {"TableName": "abc", "Item": {"a": {"B": "x"}}})
        self.assertEqual(json.loads(answer.data)["__type"], SERIALIZATION)

    def test_unknown_members_are_ignored(self):
        self.assertEqual(self.post("ListTables", {"Colour": {"deep": [1, None]}}).status, 200)

    def test_200000_levels(self):
        answer = self.post("ListTables", b"[" * 200000)
        self.assertEqual(answer.status, 400)

    def test_17_mb(self):
        body = b'{"TableName":"' + b"x" * (17 << 20) + b'"}'
        try:
            self.assertEqual(self.post("DescribeTable", body).status, 413)
        except urllib3.exceptions.ProtocolError:
            pass  # the answer came while we were still sending
        self.assertEqual(self.post("ListTables", {}).status, 200)

    def test_duplicate_type_tags(self):
        answer = self.post("GetItem", {"TableName": "abc", "Key": {"a": {"S": "x", "N": "1"}}})
        self.assertEqual(json.loads(answer.data)["message"],
                         "Supplied AttributeValue has more than one datatypes set, must contain "
                         "exactly one of the supported datatypes")


class Compression(Raw):
    def test_gzip_request(self):
        answer = self.post("ListTables", gzip.compress(b'{"Limit": 1}'),
                           {"Content-Encoding": "gzip"})
        self.assertEqual(answer.status, 200)

    def test_gzip_in_two_members(self):
        answer = self.post("ListTables", gzip.compress(b'{"Lim') + gzip.compress(b'it": 1}'),
                           {"Content-Encoding": "gzip"})
        self.assertEqual(answer.status, 200)

    def test_deflate_request(self):
        answer = self.post("ListTables", zlib.compress(b"{}"), {"Content-Encoding": "deflate"})
        self.assertEqual(answer.status, 200)

    def test_a_write_in_gzip(self):
        name = self.table()
        body = json.dumps({"TableName": name, "Item": {"pk": S("a"), "v": S("x" * 100000)}})
        self.assertEqual(self.post("PutItem", gzip.compress(body.encode()),
                                   {"Content-Encoding": "gzip"}).status, 200)
        self.assertEqual(self.get(name, pk=S("a"))["v"], S("x" * 100000))

    def test_broken_gzip(self):
        answer = self.post("ListTables", gzip.compress(b"{}")[:-4], {"Content-Encoding": "gzip"})
        self.assertEqual(answer.status, 500)

    def test_unknown_coding(self):
        self.assertEqual(self.post("ListTables", b"{}", {"Content-Encoding": "br"}).status, 500)

    def test_a_bomb(self):
        answer = self.post("ListTables", gzip.compress(b" " * (64 << 20)),
                           {"Content-Encoding": "gzip"})
        self.assertEqual(answer.status, 413)

    def large(self, headers):
        name = self.table(items=[{"pk": S("a"), "v": S("x" * 50000)}])
        return self.post("GetItem", {"TableName": name, "Key": {"pk": S("a")}}, headers)

    def test_gzip_answer(self):
        answer = self.large({"Accept-Encoding": "gzip"})
        self.assertEqual(answer.headers["Content-Encoding"], "gzip")
        self.assertLess(len(answer.data), 2000)
        self.assertEqual(int(answer.headers["x-amz-crc32"]), zlib.crc32(answer.data))
        self.assertEqual(json.loads(gzip.decompress(answer.data))["Item"]["v"], S("x" * 50000))

    def test_deflate_answer(self):
        answer = self.large({"Accept-Encoding": "deflate"})
        self.assertEqual(answer.headers["Content-Encoding"], "deflate")
        self.assertEqual(json.loads(zlib.decompress(answer.data))["Item"]["v"], S("x" * 50000))

    def test_small_answers_stay_plain(self):
        answer = self.post("ListTables", {"Limit": 1}, {"Accept-Encoding": "gzip"})
        self.assertNotIn("Content-Encoding", answer.headers)

    def test_quality_0_is_no(self):
        answer = self.large({"Accept-Encoding": "gzip;q=0"})
        self.assertNotIn("Content-Encoding", answer.headers)


class Health(Raw):
    def fetch(self, path, **more):
        return self.http.request("GET", endpoint() + path, **more)

    def test_root(self):
        answer = self.fetch("/")
        host = endpoint().partition("://")[2]
        self.assertEqual((answer.status, answer.data.decode()), (200, f"healthy: {host} "))

    def test_other_path(self):
        self.assertEqual(self.fetch("/nothing").status, 404)

    def test_options_without_origin(self):
        self.assertEqual(self.http.request("OPTIONS", endpoint() + "/").status, 404)

    def test_unknown_method(self):
        self.assertIn(self.http.request("DELETE", endpoint() + "/").status, (400, 404, 405))


@unittest.skipIf(ENDPOINT, "only holdfast has them")
class Ours(Raw):
    fetch = Health.fetch

    def test_livez(self):
        answer = self.fetch("/livez")
        self.assertEqual((answer.status, answer.data), (200, b"alive\n"))

    def test_readyz(self):
        answer = self.fetch("/readyz")
        self.assertEqual((answer.status, answer.data), (200, b"ready\n"))

    def test_metrics_are_prometheus_text(self):
        answer = self.fetch("/metrics")
        self.assertEqual(answer.headers["Content-Type"],
                         "text/plain; version=0.0.4; charset=utf-8")
        for line in answer.data.decode().splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? [0-9.e+-]+)$")

    def test_foreign_pages_are_refused(self):
        answer = self.post("ListTables", {}, {"Origin": "http://evil.example"})
        self.assertEqual(answer.status, 403)

    def test_foreign_names_are_refused(self):
        answer = self.post("ListTables", {}, {"Host": "evil.example"})
        self.assertEqual(answer.status, 403)
        self.assertIn("--allow-host", json.loads(answer.data)["message"])

    def test_metrics_count(self):
        with Server("--in-memory") as server:
            db = client(server.url)
            name = fresh_name()
            db.create_table(**schema(name))
            for i in range(5):
                db.put_item(TableName=name, Item={"pk": S(str(i)), "v": N(i)})
            with self.assertRaises(db.exceptions.ConditionalCheckFailedException):
                db.put_item(TableName=name, Item={"pk": S("0")},
                            ConditionExpression="attribute_not_exists(pk)")
            text = self.http.request("GET", server.url + "/metrics").data.decode()

        def value(outcome):
            pattern = (r'holdfast_requests_total\{operation="PutItem",outcome="%s"\} (\d+)'
                       % outcome)
            return int(re.search(pattern, text).group(1))

        self.assertEqual((value("ok"), value("client_error"), value("server_error")), (5, 1, 0))
        self.assertIn('holdfast_request_seconds_count{operation="PutItem"} 6\n', text)
        db.close()


@unittest.skipIf(ENDPOINT, "starts servers of its own")
class Browsers(Raw):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--in-memory", "--cors", "https://app.example")

    @classmethod
    def tearDownClass(cls):
        wrong = cls.server.stop()
        if wrong:
            raise AssertionError(wrong)

    def ask(self, method, **headers):
        return self.http.request(method, self.server.url + "/", body=b"{}", headers={
            **HEADERS, "X-Amz-Target": "DynamoDB_20120810.ListTables",
            **{name.replace("_", "-"): value for name, value in headers.items()}})

    def test_allowed_origin(self):
        answer = self.ask("POST", Origin="https://app.example")
        self.assertEqual(answer.status, 200)
        self.assertIn(answer.headers["Access-Control-Allow-Origin"], ("*", "https://app.example"))

    def test_preflight(self):
        answer = self.ask("OPTIONS", Origin="https://app.example",
                          Access_Control_Request_Method="POST",
                          Access_Control_Request_Headers="authorization,x-amz-target")
        self.assertEqual((answer.status, answer.data), (200, b""))
        self.assertEqual(answer.headers["Access-Control-Allow-Headers"],
                         "authorization,x-amz-target")
        self.assertEqual(answer.headers["Access-Control-Allow-Methods"], "POST")
        self.assertEqual(answer.headers["Access-Control-Max-Age"], "172800")

    def test_another_origin(self):
        self.assertEqual(self.ask("POST", Origin="https://other.example").status, 403)

    def test_no_origin_no_header(self):
        self.assertNotIn("Access-Control-Allow-Origin", self.ask("POST").headers)
