"""What the cases share: servers, clients, tables, and comparing errors.

One server in memory serves most cases; it is started when the first case asks for it. Cases that
stop, kill or configure a server start their own. A server that complains on its standard error, or
does not end with status 0 when told to, is a failure.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest
import urllib.request

import boto3
import botocore.loaders
import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

HERE = os.path.dirname(os.path.abspath(__file__))
HOLDFAST = os.path.abspath(os.environ["HOLDFAST"]) if os.environ.get("HOLDFAST") else None
ENDPOINT = os.environ.get("ENDPOINT")
REGION = "us-east-1"
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
WAIT_S = 120  # for what takes no time, unless the machine is very busy

_complaints = []
_lock = threading.Lock()
_shared = {}
_number = iter(range(1, 1 << 30))
_loader = botocore.loaders.create_loader(os.path.join(HERE, "models"))


class Server:
    """A `holdfast serve` that is ready."""

    def __init__(self, *args, cwd=None, quiet=True, port="0"):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "LISTEN_"))}
        self.args = args
        self.quiet = quiet
        self.stderr = tempfile.TemporaryFile("w+")
        words = ["--port", port] if port is not None else []
        self.process = subprocess.Popen([HOLDFAST, "serve", *words, *args], cwd=cwd, env=env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.stderr, text=True)
        self.words = []
        for line in self.process.stdout:
            self.words.append(line.rstrip())
            if line.startswith("  try"):
                break
        found = self.words and re.search(r"(https?)://.*:(\d+)$", self.words[0])
        if not found:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not start: {self.log()}")
        self.port = int(found.group(2))
        self.url = f"{found.group(1)}://127.0.0.1:{self.port}"

    def log(self):
        self.stderr.seek(0)
        return self.stderr.read()

    def kill(self):
        """As a crash would end it."""
        self.process.kill()
        self.process.wait(WAIT_S)
        self._close()

    def stop(self):
        """As an operator would end it; returns what was wrong about that, or None."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait(WAIT_S)
        log = self.log()
        self._close()
        if status != 0:
            return f"serve {' '.join(self.args)} ended with status {status}: {log[-2000:]}"
        worse = [line for line in log.splitlines()
                 if self.quiet and not re.match(r"\S+ (info|debug) ", line)]
        return f"serve {' '.join(self.args)} complained: {worse[0]}" if worse else None

    def _close(self):
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        wrong = self.stop()
        if wrong and kind is None:
            raise AssertionError(wrong)


def endpoint():
    """The server of most cases."""
    if ENDPOINT:
        return ENDPOINT
    with _lock:
        if "server" not in _shared:
            _shared["server"] = Server("--in-memory", "--admin")
        return _shared["server"].url


def finish():
    """Stop what is shared; returns complaints."""
    if "server" in _shared:
        wrong = _shared.pop("server").stop()
        if wrong:
            _complaints.append(wrong)
    return _complaints


def needs_server(thing):
    return unittest.skipIf(ENDPOINT, "starts servers of its own")(thing)


# ---- clients --------------------------------------------------------------------------------

def session(key=KEY, secret=SECRET, token=None, region=REGION):
    """A boto3 session whose model also has what DynamoDB has learnt since; see models/."""
    core = botocore.session.Session()
    core.set_credentials(key, secret, token)
    core.register_component("data_loader", _loader)  # one for all, as reading models takes time
    return boto3.session.Session(botocore_session=core, region_name=region)


def config(retries=0, pool=10, timeout=60, checked=True, mode="standard", **more):
    return Config(retries={"total_max_attempts": retries + 1, "mode": mode}, read_timeout=timeout,
                  connect_timeout=timeout, max_pool_connections=pool,
                  parameter_validation=checked, **more)


def client(url=None, service="dynamodb", verify=None, login=None, **more):
    return (login or session()).client(service, endpoint_url=url or endpoint(), verify=verify,
                                       config=config(**more))


def shared(kind):
    """Clients that all cases can have: making one takes longer than many calls of it."""
    with _lock:
        if kind in _shared:
            return _shared[kind]
    makers = {
        "client": client,
        "unchecked": lambda: client(checked=False),
        "streams": lambda: client(service="dynamodbstreams"),
        "streams unchecked": lambda: client(service="dynamodbstreams", checked=False),
        "resource": lambda: session().resource("dynamodb", endpoint_url=endpoint(),
                                               config=config()),
    }
    made = makers[kind]()
    with _lock:
        return _shared.setdefault(kind, made)


def admin(method, path, body=None, url=None):
    """A request to /_holdfast/."""
    request = urllib.request.Request((url or endpoint()) + "/_holdfast" + path, method=method,
                                     data=None if body is None else json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
        return json.load(answer)


# ---- tables ---------------------------------------------------------------------------------

def attributes(**types):
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def keys(*names):
    return [{"AttributeName": name, "KeyType": kind}
            for name, kind in zip(names, ("HASH", "RANGE"))]


def schema(name, hash_type="S", range_type=None, **more):
    """What CreateTable needs: key "pk", and "sk" with a type for it."""
    types = {"pk": hash_type, **({"sk": range_type} if range_type else {})}
    types.update(more.pop("types", {}))
    return {"TableName": name, "AttributeDefinitions": attributes(**types),
            "KeySchema": keys("pk", "sk") if range_type else keys("pk"),
            "BillingMode": "PAY_PER_REQUEST", **more}


def index(name, *names, projection="ALL", include=None):
    made = {"IndexName": name, "KeySchema": keys(*names),
            "Projection": {"ProjectionType": projection}}
    if include:
        made["Projection"]["NonKeyAttributes"] = include
    return made


def fresh_name():
    return f"t{os.getpid()}-{next(_number)}"


class Case(unittest.TestCase):
    """A case with clients; tables that it makes are gone afterwards."""
    longMessage = True
    maxDiff = 2000

    @property
    def db(self):
        return shared("client")

    @property
    def unchecked(self):
        return shared("unchecked")

    @property
    def streams(self):
        return shared("streams")

    @property
    def resource(self):
        return shared("resource")

    def directory(self):
        made = tempfile.mkdtemp(prefix="holdfast-py-")
        self.addCleanup(shutil.rmtree, made, ignore_errors=True)
        return made

    def table(self, hash_type="S", range_type=None, items=(), name=None, **more):
        """A new table; returns its name."""
        name = name or fresh_name()
        self.db.create_table(**schema(name, hash_type, range_type, **more))
        self.addCleanup(self.drop, name)
        if ENDPOINT:
            self.db.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
        for item in items:
            self.db.put_item(TableName=name, Item=item)
        return name

    def drop(self, name):
        try:
            self.db.delete_table(TableName=name)
        except self.db.exceptions.ResourceNotFoundException:
            pass

    def fails(self, code, message, call, *args, **more):
        """The call must fail with this code and message (a text, or a compiled pattern)."""
        with self.assertRaises(ClientError) as caught:
            call(*args, **more)
        error = caught.exception.response["Error"]
        self.assertEqual(error["Code"], code, error["Message"])
        if isinstance(message, re.Pattern):
            self.assertRegex(error["Message"], message)
        else:
            self.assertEqual(error["Message"], message)
        return caught.exception

    def invalid(self, message, call, *args, **more):
        return self.fails("ValidationException", message, call, *args, **more)

    def get(self, table, **key):
        """The item with that key, or None."""
        answer = self.db.get_item(TableName=table, Key=key, ConsistentRead=True)
        return answer.get("Item")


class Shared(Case):
    """Cases that share tables, which setUpClass() of the class makes by make()."""

    @classmethod
    def make(cls):
        raise NotImplementedError

    @classmethod
    def create(cls, hash_type="S", range_type=None, **more):
        name = fresh_name()
        shared("client").create_table(**schema(name, hash_type, range_type, **more))
        cls.addClassCleanup(shared("client").delete_table, TableName=name)
        if ENDPOINT:
            shared("client").get_waiter("table_exists").wait(TableName=name,
                                                             WaiterConfig={"Delay": 1})
        return name

    @classmethod
    def setUpClass(cls):
        cls.make()


def S(text):
    return {"S": text}


def N(number):
    return {"N": str(number)}


def B(data):
    return {"B": data}


def put_many(table, items):
    """By batches of 25."""
    items = list(items)
    for at in range(0, len(items), 25):
        shared("client").batch_write_item(RequestItems={
            table: [{"PutRequest": {"Item": item}} for item in items[at:at + 25]]})


def refusals(**rows):
    """A decorator: a case per row, name=(operation, parameters, code, message).

    Parameters without TableName get the table of the class, `cls.name`. They are sent unchecked.
    """
    def add(cls):
        for name, (operation, parameters, code, message) in rows.items():
            def test(self, operation=operation, parameters=parameters, code=code, message=message):
                call = getattr(self.unchecked, operation)
                sent = dict(parameters)
                if getattr(self, "name", None) and "TableName" not in sent:
                    sent["TableName"] = self.name
                sent = {k: v for k, v in sent.items() if v is not None}
                self.fails(code, message, call, **sent)
            setattr(cls, "test_refused_" + name, test)
        return cls
    return add


INVALID = "ValidationException"
