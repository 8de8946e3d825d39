#!/usr/bin/env python3
"""Sign random requests with botocore and let a program verify them: sign.py PROGRAM

The program reads them from its standard input: all texts are a length (u32, little endian) and
bytes, absent ones the length 0xffffffff; numbers are u64.

    keys: how many, then access key, secret, token of each
    requests: how many, then the wall clock, method, target, body, how many fields, name and value
    of each

HF_SEED=n repeats a run, HF_REQUESTS=n makes it longer.
"""
import calendar
import hashlib
import os
import random
import struct
import subprocess
import sys
import time
from urllib.parse import quote, urlsplit

try:
    from botocore.auth import SigV4Auth, SigV4QueryAuth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
except ImportError:
    print("botocore is not installed")
    sys.exit(77)

UNRESERVED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"
REGIONS = ["us-east-1", "eu-central-1", "ddblocal", "x", "r" * 70]
KEYS = [
    ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None),
    ("fakeMyKeyId", "fakeSecretAccessKey", None),
    ("ASIATEMPORARY", "k" * 200, "FwoGZXIvYXdzE//////////wEaD+token=="),
    ("k", "\u00e4\u00f6", None),
]


class QueryAuthWithBody(SigV4QueryAuth):
    """Query authentication that signs a body, which botocore would move into the query."""

    def __init__(self, body, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.body = body

    def payload(self, request):
        return hashlib.sha256(self.body).hexdigest()


def text(rng, alphabet, most):
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(0, most)))


def random_path(rng):
    if rng.random() < 0.5:
        return "/"
    parts = ["", ".", "..", "a", "b%20c", "%2F", "%e4%BD%a0", "$&'()*+,:@!", "~user", "x.y-z_"]
    return "/" + "/".join(rng.choice(parts) for _ in range(rng.randint(0, 6)))


def random_params(rng):
    """Pairs, some of the same name, with all that needs an escape."""
    letters = UNRESERVED + " +/%&=?#\"<>\u00e4\u4f60\U0001f600"
    names = ["a", "A", "a-", "a1", "X-Other", " ", "\u4f60", text(rng, letters, 8) or "n"]
    return [(rng.choice(names), text(rng, letters, 12)) for _ in range(rng.randint(0, 6))]


def random_query(rng):
    """As a client would write it; "a" for "a=" now and then."""
    pairs = []
    for name, value in random_params(rng):
        pair = quote(name, safe="-_.~") + "=" + quote(value, safe="-_.~")
        pairs.append(pair[:-1] if not value and rng.random() < 0.5 else pair)
    return "&".join(pairs)


def random_headers(rng):
    headers = []
    if rng.random() < 0.9:
        headers.append(("X-Amz-Target", "DynamoDB_20120810." + text(rng, UNRESERVED, 12)))
    if rng.random() < 0.9:
        headers.append(("Content-Type", "application/x-amz-json-1.0"))
    if rng.random() < 0.5:
        headers.append(("User-Agent", "not signed"))
    for _ in range(rng.randint(0, 5)):
        name = rng.choice(["My-Header", "my-header", "Z", "a-b", "amz-sdk-request", "X-Amz-Meta"])
        headers.append((name, text(rng, UNRESERVED + "   \t;,=\"/\u00e4", 30).strip()))
    return headers


def make(rng, credentials, region):
    """A request, and who signs it."""
    host = rng.choice(["localhost:8000", "127.0.0.1", "dynamodb.us-east-1.amazonaws.com"])
    scheme = rng.choice(["http", "https"])
    url = f"{scheme}://{host}{random_path(rng)}"
    body = bytes(rng.randrange(256) for _ in range(rng.choice([0, 2, 60, 300])))
    in_query = rng.random() < 0.4
    params = {}
    if in_query or rng.random() < 0.5:
        url += "?" + random_query(rng)
    else:
        params = dict(random_params(rng))
    method = rng.choice(["POST", "POST", "GET", "PUT"])
    request = AWSRequest(method=method, url=url, params=params, data=b"" if in_query else body)
    for name, value in random_headers(rng):
        request.headers.add_header(name, value)
    if in_query:
        expires = rng.choice([1, 60, 3600, 604800])
        signer = QueryAuthWithBody(body, credentials, "dynamodb", region, expires)
    else:
        expires = None
        signer = SigV4Auth(credentials, "dynamodb", region)
        request.context["payload_signing_enabled"] = rng.random() < 0.8
    signer.add_auth(request)
    return request, host, body, expires


def put(out, value):
    if value is None:
        out += struct.pack("<I", 0xFFFFFFFF)
        return
    data = value if isinstance(value, bytes) else value.encode("utf-8")
    out += struct.pack("<I", len(data)) + data


def put_request(rng, out, request, host, body, expires):
    stamp = request.context["timestamp"]
    signed = calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
    now = signed + (rng.randint(-300, 300) if expires is None else rng.randint(0, expires))
    fields = [("Host", host)] + list(request.headers.items())
    sent = request.prepare()
    parts = urlsplit(sent.url)
    rng.shuffle(fields)
    # Fields of one name keep their order: that is part of the signature.
    order = {}
    for name, value in [("Host", host)] + list(request.headers.items()):
        order.setdefault(name.lower(), []).append(value)
    out += struct.pack("<Q", now)
    put(out, request.method)
    put(out, (parts.path or "/") + ("?" + parts.query if parts.query else ""))
    put(out, body)
    out += struct.pack("<Q", len(fields))
    for name, _ in fields:
        put(out, name)
        put(out, order[name.lower()].pop(0))


def main():
    seed = int(os.environ.get("HF_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    count = int(os.environ.get("HF_REQUESTS", "400"))
    rng = random.Random(seed)
    out = bytearray(struct.pack("<Q", len(KEYS)))
    for key in KEYS:
        for part in key:
            put(out, part)
    out += struct.pack("<Q", count)
    for _ in range(count):
        request, host, body, expires = make(rng, Credentials(*rng.choice(KEYS)),
                                            rng.choice(REGIONS))
        put_request(rng, out, request, host, body, expires)
    done = subprocess.run([sys.argv[1]], input=bytes(out), check=False)
    if done.returncode:
        print(f"repeat with HF_SEED={seed}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
