#!/usr/bin/env python3
"""Let a program sign random requests as our client does, and botocore too: client_sign.py PROGRAM

The fields that signing adds have to be the same, byte for byte. signer.c says how requests go to
the program. Services are DynamoDB, whose requests are made like those of our client (hosts with
odd ports, paths before the endpoint, UTF-8 in bodies, keys and tokens), STS and SQS, with queries
and more fields, and S3, whose paths are encoded once and whose bodies may stay unsigned.

HF_SEED=n repeats a run, HF_REQUESTS=n makes it longer.
"""
import datetime
import os
import random
import struct
import subprocess
import sys
import types
from urllib.parse import quote

try:
    import botocore.auth
    from botocore.auth import S3SigV4Auth, SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
except ImportError:
    print("botocore is not installed")
    sys.exit(77)

ADDED = ["X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-SHA256", "Authorization"]
UNSIGNED = ["Accept-Encoding", "User-Agent"]  # by us; botocore would sign the first of them
UNRESERVED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"
WIDE = "\u00e4\u00df\u4f60\U0001f600\u2028"
HOSTS = ["localhost", "127.0.0.1", "[::1]", "dynamodb.eu-central-1.amazonaws.com",
         "111122223333.ddb.us-east-1.amazonaws.com", "my_service.internal", "X.Example.COM"]
PORTS = [None, 1, 80, 443, 8000, 8443, 65535]
REGIONS = ["us-east-1", "eu-central-1", "us-gov-west-1", "local", "r" * 63]
OPERATIONS = ["GetItem", "PutItem", "TransactWriteItems", "BatchGetItem"]


def text(rng, alphabet, most):
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(0, most)))


def random_keys(rng):
    access = "AKID" + text(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)
    secret = rng.choice([text(rng, UNRESERVED + "/+=", 80) or "s", "k" * 60, "k" * 61, "k" * 300,
                         "\u00e4\u00f6" * rng.randint(1, 40)])
    token = rng.choice([None, None, text(rng, UNRESERVED + "/+=", 1200) or "t"])
    return access, secret, token


def random_host(rng, scheme):
    port = rng.choice(PORTS)
    host = rng.choice(HOSTS)
    if port in (None, 443 if scheme == "https" else 80):
        return host, host
    return f"{host}:{port}", f"{host}:{port}"


def for_dynamodb(rng):
    """As client.c builds it: POST, its five fields in its order, a path before the endpoint."""
    path = rng.choice(["/", "/", "/", "/alternator/", "/a/b-c_d/", "/x%20y/", "/%e4%BD%a0/", "/~u/"])
    target = rng.choice(["DynamoDB_20120810.", "DynamoDBStreams_20120810."]) + rng.choice(OPERATIONS)
    fields = [("Content-Type", "application/x-amz-json-1.0"), ("X-Amz-Target", target),
              ("User-Agent", "holdfast/0.1.0")]
    if rng.random() < 0.7:
        fields.append(("Accept-Encoding", "gzip"))
    value = text(rng, UNRESERVED + ' {}":,' + WIDE, rng.choice([0, 20, 700]))
    body = ('{"TableName":"t","Key":{"pk":{"S":"' + value.replace('"', "") + '"}}}').encode()
    return "POST", path, "", fields, body


def random_query(rng):
    names = rng.sample(["Action", "Version", "a", "A", "a-b", "a.b", "list-type", "\u4f60", "x y"],
                       rng.randint(0, 5))
    pairs = [(name, text(rng, UNRESERVED + " +/%&=?#" + WIDE, 12)) for name in names]
    return "&".join(quote(n, safe="-_.~") + "=" + quote(v, safe="-_.~") for n, v in pairs)


def for_others(rng, service):
    method = rng.choice(["GET", "POST", "PUT", "DELETE"])
    part = UNRESERVED + " !$&'()*+,:;=@" + WIDE
    parts = [quote(text(rng, part, 8), safe="-_.~") for _ in range(rng.randint(0, 4))]
    if service != "s3":
        parts = [p for p in parts if p not in (".", "..")]
    path = "/" + "/".join(p for p in parts if p or service == "s3")
    fields = []
    for name in rng.sample(["Content-Type", "X-Amz-Meta-A", "x-amz-acl", "If-Match", "Range",
                            "Accept", "amz-sdk-request"], rng.randint(0, 5)):
        fields.append((name, text(rng, UNRESERVED + "   ;,=\"/", 30).strip()))
    body = bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 55, 56, 64, 500])))
    return method, path, random_query(rng), fields, b"" if method == "GET" else body


class UnsignedBody(S3SigV4Auth):
    """What S3's configuration would decide."""

    def _should_sha256_sign_payload(self, request):
        return False


class Clock(datetime.datetime):
    """What botocore takes for now, whatever it asks."""
    at = datetime.datetime(2026, 1, 1)

    @classmethod
    def utcnow(cls):
        return cls.at

    @classmethod
    def now(cls, tz=None):
        return cls.at.replace(tzinfo=tz)


def set_clock(seconds):
    Clock.at = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    if hasattr(botocore.auth, "get_current_datetime"):  # where newer ones ask
        botocore.auth.get_current_datetime = lambda *_a, **_k: Clock.at
    if hasattr(botocore.auth, "datetime"):
        botocore.auth.datetime = types.SimpleNamespace(datetime=Clock)


def sign(case):
    now, keys, region, service, unsigned, scheme, where, host, request = case
    method, path, query, fields, body = request
    set_clock(now)
    url = f"{scheme}://{where}{path}" + ("?" + query if query else "")
    made = AWSRequest(method=method, url=url, data=body)
    for name, value in fields:
        if name not in UNSIGNED:
            made.headers.add_header(name, value)
    made.headers["Host"] = host
    auth = UnsignedBody if unsigned else S3SigV4Auth if service == "s3" else SigV4Auth
    auth(Credentials(*keys), service, region).add_auth(made)
    return {name.lower(): made.headers[name] for name in ADDED if made.headers[name] is not None}


def put(out, value):
    if value is None:
        out += struct.pack("<I", 0xFFFFFFFF)
        return
    data = value if isinstance(value, bytes) else value.encode("utf-8")
    out += struct.pack("<I", len(data)) + data


def put_case(out, case):
    now, keys, region, service, unsigned, _, _, host, request = case
    method, path, query, fields, body = request
    out += struct.pack("<Q", now)
    for part in (*keys, region, service):
        put(out, part)
    out += struct.pack("<Q", unsigned)
    put(out, method)
    put(out, path + ("?" + query if query else ""))
    put(out, body)
    out += struct.pack("<Q", len(fields) + 1)
    for name, value in [("Host", host)] + fields:
        put(out, name)
        put(out, value)


def random_case(rng, before):
    """Often with the keys, the region or the time of the one before, as in a client."""
    scheme = rng.choice(["http", "https"])
    where, host = random_host(rng, scheme)
    service = rng.choice(["dynamodb"] * 4 + ["sts", "sqs", "s3"])
    unsigned = service == "s3" and scheme == "https" and rng.random() < 0.4
    request = for_dynamodb(rng) if service == "dynamodb" else for_others(rng, service)
    now = rng.choice([0, 86399, 86400, 951782400, 1709164800, 4102444799,
                      rng.randrange(1 << 32), rng.randrange(1 << 32)])
    keys, region = random_keys(rng), rng.choice(REGIONS)
    if before and rng.random() < 0.6:
        keys = before[1]
        region = rng.choice([before[2], region])
        now = rng.choice([before[0], before[0] + 1, now])
    return now, keys, region, service, unsigned, scheme, where, host, request


def main():
    seed = int(os.environ.get("HF_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    count = int(os.environ.get("HF_REQUESTS", "2000"))
    rng = random.Random(seed)
    cases = []
    for _ in range(count):
        cases.append(random_case(rng, cases[-1] if cases else None))
    out = bytearray(struct.pack("<Q", count))
    for case in cases:
        put_case(out, case)
    done = subprocess.run([sys.argv[1]], input=bytes(out), stdout=subprocess.PIPE, check=False)
    lines = done.stdout.decode("utf-8").splitlines()
    failed = done.returncode or len(lines) != count
    for case, line in zip(cases, lines):
        ours = dict(field.split(": ", 1) for field in line.split("\t"))
        ours = {name.lower(): value for name, value in ours.items()}
        theirs = sign(case)
        if ours != theirs:
            print(f"{case!r}\n  botocore {theirs!r}\n  here     {ours!r}")
            failed = True
            break
    if failed:
        print(f"{len(lines)} of {count} signed, status {done.returncode}; repeat with HF_SEED={seed}")
        return 1
    tokens = sum(case[1][2] is not None for case in cases)
    print(f"{count} requests are signed as botocore does it, {tokens} of them with a token")
    return 0


if __name__ == "__main__":
    sys.exit(main())
