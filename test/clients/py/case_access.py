"""Who may call: keys, signatures, the clock, session tokens, signatures in the query, TLS."""
import datetime
import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import unittest
from unittest import mock

import botocore.auth
import urllib3
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, EndpointConnectionError, SSLError

from support import ENDPOINT, KEY, SECRET, WAIT_S, Case, N, S, Server, client, schema, session

TOKEN_KEY, TOKEN_SECRET, TOKEN = "ASIATEMPORARY", "temporary/secret+key", "FwoGZXIvYXdzE//token=="
FILE = f"""
[default]
aws_access_key_id = {KEY}
aws_secret_access_key = {SECRET}

[temporary]
aws_access_key_id = {TOKEN_KEY}
aws_secret_access_key = {TOKEN_SECRET}
aws_session_token = {TOKEN}
"""
MISMATCH = ("The request signature we calculated does not match the signature you provided. Check "
            "your AWS Secret Access Key and signing method. Consult the service documentation for "
            "details.")
UNKNOWN = "The security token included in the request is invalid."


class QueryAuth(SigV4QueryAuth):
    """In the query, with a body; botocore would take the body for parameters."""

    def __init__(self, body, *args, **more):
        super().__init__(*args, **more)
        self.body = body

    def payload(self, request):
        return hashlib.sha256(self.body).hexdigest()


@unittest.skipIf(ENDPOINT, "starts servers of its own")
class Keys(Case):
    @classmethod
    def setUpClass(cls):
        cls.dir = subprocess.run(["mktemp", "-d"], capture_output=True, text=True,
                                 check=True).stdout.strip()
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        path = os.path.join(cls.dir, "keys")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(FILE)
        cls.server = Server("--in-memory", "--admin", "--credentials", path)
        cls.own = client(cls.server.url)

    @classmethod
    def tearDownClass(cls):
        wrong = cls.server.stop()
        if wrong:
            raise AssertionError(wrong)

    @property
    def db(self):
        return self.own

    def with_keys(self, *args, **more):
        made = client(self.server.url, login=session(*args, **more))
        self.addCleanup(made.close)
        return made

    def test_right_key(self):
        name = self.table(items=[{"pk": S("ä/ö?&=+ "), "v": N(1)}])
        self.assertEqual(self.get(name, pk=S("ä/ö?&=+ "))["v"], N(1))

    def test_any_region(self):
        for region in ("eu-central-1", "ddblocal", "us-gov-west-1"):
            with self.subTest(region):
                self.assertIn("TableNames", self.with_keys(region=region).list_tables())

    def test_wrong_secret(self):
        error = self.fails("InvalidSignatureException", MISMATCH,
                           self.with_keys(secret="wrong").list_tables)
        self.assertEqual(error.response["ResponseMetadata"]["HTTPStatusCode"], 400)

    def test_unknown_key(self):
        self.fails("UnrecognizedClientException", UNKNOWN,
                   self.with_keys(key="AKIANOBODY").list_tables)

    def test_wrong_secret_changes_nothing(self):
        with self.assertRaises(ClientError):
            self.with_keys(secret="wrong").create_table(**schema("sneaky"))
        self.assertNotIn("sneaky", self.db.list_tables()["TableNames"])

    def test_session_token(self):
        db = self.with_keys(TOKEN_KEY, TOKEN_SECRET, TOKEN)
        self.assertIn("TableNames", db.list_tables())

    def test_wrong_session_token(self):
        with self.assertRaises(ClientError) as caught:
            self.with_keys(TOKEN_KEY, TOKEN_SECRET, "other").list_tables()
        self.assertEqual(caught.exception.response["Error"]["Code"],
                         "UnrecognizedClientException")

    def test_no_session_token(self):
        with self.assertRaises(ClientError) as caught:
            self.with_keys(TOKEN_KEY, TOKEN_SECRET).list_tables()
        self.assertEqual(caught.exception.response["Error"]["Code"],
                         "UnrecognizedClientException")

    def at_another_time(self, minutes):
        now = datetime.datetime.utcnow() + datetime.timedelta(minutes=minutes)
        real = datetime.datetime

        class Moved(real):
            @classmethod
            def utcnow(cls):
                return now

        return mock.patch.object(botocore.auth.datetime, "datetime", Moved)

    def test_clock_too_late(self):
        with self.at_another_time(-20):
            self.fails("InvalidSignatureException", re.compile(
                r"^Signature expired: \d{8}T\d{6}Z is now earlier than \d{8}T\d{6}Z "
                r"\(\d{8}T\d{6}Z - 5 min\.\)$"), self.db.list_tables)

    def test_clock_too_early(self):
        with self.at_another_time(20):
            self.fails("InvalidSignatureException", re.compile(
                r"^Signature not yet current: \d{8}T\d{6}Z is still later than \d{8}T\d{6}Z "
                r"\(\d{8}T\d{6}Z \+ 5 min\.\)$"), self.db.list_tables)

    def test_clock_a_little_off(self):
        for minutes in (-4, 4):
            with self.subTest(minutes), self.at_another_time(minutes):
                self.assertIn("TableNames", self.db.list_tables())

    def test_moved_clock_of_the_database_leaves_signatures(self):
        self.signed("PUT", "/_holdfast/clock", {"advance_s": 86400})
        try:
            self.assertIn("TableNames", self.db.list_tables())
        finally:
            self.signed("PUT", "/_holdfast/clock", {"reset": True})

    http = urllib3.PoolManager(retries=False, timeout=WAIT_S)

    def signed(self, method, path, body):
        data = json.dumps(body).encode()
        request = AWSRequest(method, self.server.url + path, data=data)
        SigV4Auth(Credentials(KEY, SECRET), "dynamodb", "us-east-1").add_auth(request)
        return self.http.request(method, request.url, body=data, headers=dict(request.headers))

    def test_admin_path_needs_a_signature(self):
        self.assertEqual(self.http.request("GET", self.server.url + "/_holdfast/clock").status,
                         400)
        self.assertEqual(self.signed("GET", "/_holdfast/clock", {}).status, 200)

    def test_health_needs_none(self):
        self.assertEqual(self.http.request("GET", self.server.url + "/livez").status, 200)

    def presign(self, operation="ListTables", body=b"{}", expires=60, secret=SECRET, key=KEY,
                token=None):
        request = AWSRequest("POST", self.server.url + "/", headers={
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": "DynamoDB_20120810." + operation})
        QueryAuth(body, Credentials(key, secret, token), "dynamodb", "us-east-1",
                  expires=expires).add_auth(request)
        return request.url, dict(request.headers)

    def post(self, url, headers, body=b"{}"):
        answer = self.http.request("POST", url, body=body, headers=headers)
        return answer.status, json.loads(answer.data)

    def test_presigned(self):
        url, headers = self.presign()
        self.assertIn("X-Amz-Signature=", url)
        self.assertNotIn("Authorization", headers)
        status, told = self.post(url, headers)
        self.assertEqual((status, list(told)), (200, ["TableNames"]))

    def test_presigned_with_token(self):
        url, headers = self.presign(key=TOKEN_KEY, secret=TOKEN_SECRET, token=TOKEN)
        self.assertEqual(self.post(url, headers)[0], 200)

    def test_presigned_other_body(self):
        url, headers = self.presign()
        status, told = self.post(url, headers, b'{"Limit": 1}')
        self.assertEqual((status, told["message"]), (400, MISMATCH))

    def test_presigned_other_operation(self):
        url, headers = self.presign()
        headers["X-Amz-Target"] = "DynamoDB_20120810.DescribeLimits"
        status, told = self.post(url, headers)
        self.assertEqual((status, told["message"]), (400, MISMATCH))

    def test_presigned_wrong_secret(self):
        status, told = self.post(*self.presign(secret="wrong"))
        self.assertEqual((status, told["message"]), (400, MISMATCH))

    def test_presigned_expired(self):
        with self.at_another_time(-2):
            url, headers = self.presign(expires=60)
        status, told = self.post(url, headers)
        self.assertEqual(status, 400)
        self.assertRegex(told["message"], r"^Signature expired: .*\(\S+ - 1 min\.\)$")

    def test_presigned_lasts_longer_than_the_window(self):
        with self.at_another_time(-30):
            url, headers = self.presign(expires=3600)
        self.assertEqual(self.post(url, headers)[0], 200)

    def test_header_and_query(self):
        url, headers = self.presign()
        headers["Authorization"] = "AWS4-HMAC-SHA256 Credential=x"
        status, told = self.post(url, headers)
        self.assertEqual((status, told["__type"]),
                         (400, "com.amazon.coral.service#InvalidSignatureException"))
        self.assertEqual(told["message"], "Found both 'X-Amz-Algorithm' as a query-string param "
                                          "and 'Authorization' as HTTP header.")


@unittest.skipIf(ENDPOINT, "starts servers of its own")
@unittest.skipUnless(shutil.which("openssl"), "needs the openssl command")
class Tls(Case):
    @classmethod
    def setUpClass(cls):
        cls.dir = subprocess.run(["mktemp", "-d"], capture_output=True, text=True,
                                 check=True).stdout.strip()
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        cls.certificate, cls.key = os.path.join(cls.dir, "cert.pem"), os.path.join(cls.dir, "key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=holdfast", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                        "-keyout", cls.key, "-out", cls.certificate],
                       check=True, capture_output=True)
        cls.server = Server("--in-memory", "--tls-cert", cls.certificate, "--tls-key", cls.key,
                            quiet=False)

    @classmethod
    def tearDownClass(cls):
        wrong = cls.server.stop()
        if wrong:
            raise AssertionError(wrong)

    def test_url(self):
        self.assertTrue(self.server.url.startswith("https://"))

    def test_verified(self):
        db = client(self.server.url, verify=self.certificate)
        db.create_table(**schema("tls"))
        db.put_item(TableName="tls", Item={"pk": S("a"), "v": S("x" * 300000)})
        found = db.get_item(TableName="tls", Key={"pk": S("a")})["Item"]
        self.assertEqual(len(found["v"]["S"]), 300000)
        db.close()

    def test_by_name(self):
        db = client(self.server.url.replace("127.0.0.1", "localhost"), verify=self.certificate)
        self.assertIn("TableNames", db.list_tables())
        db.close()

    def test_not_trusted(self):
        with self.assertRaises(SSLError):
            client(self.server.url).list_tables()

    def test_unverified(self):
        with mock.patch("warnings.warn"):
            self.assertIn("TableNames", client(self.server.url, verify=False).list_tables())

    def test_plain_http_gets_no_answer(self):
        with self.assertRaises(Exception) as caught:
            client(self.server.url.replace("https", "http")).list_tables()
        self.assertNotIsInstance(caught.exception, AssertionError)

    def test_versions(self):
        url = self.server.url.replace("127.0.0.1", "localhost")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.subTest(version):
                context = ssl.create_default_context(cafile=self.certificate)
                context.minimum_version = context.maximum_version = version
                pool = urllib3.PoolManager(ssl_context=context, retries=False)
                self.assertEqual(pool.request("GET", url + "/livez").status, 200)

    def test_streams_over_tls(self):
        streams = client(self.server.url, service="dynamodbstreams", verify=self.certificate)
        self.assertEqual(streams.list_streams(TableName="none-there")["Streams"], [])

    def test_nobody_listens(self):
        with Server("--in-memory") as server:
            db = client(server.url)
            self.assertIn("TableNames", db.list_tables())
        with self.assertRaises(EndpointConnectionError):
            db.list_tables()
