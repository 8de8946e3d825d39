"""boto3 in this process, unchanged.

botocore asks the handlers of "before-send" for an answer before it sends a request. Ours calls the database and
gives what a server would have sent: there is no port, and exceptions are boto3's own. Who has the database may use
it: nobody looks at signatures, so none are made, which takes a fifth of the time of a call.
"""
from __future__ import annotations

import json
import secrets
import zlib
from typing import TYPE_CHECKING, Any, Iterator, Optional

from ._native import Connection, _Failed
from .errors import HoldfastError

if TYPE_CHECKING:
    from .api import Database

_ENDPOINT = "http://holdfast.invalid"
_SERVICES = ("dynamodb", "dynamodb-streams")
# An answer of ours has these beside what a server sends.
_OURS = ("code", "retryable", "may_have_happened", "operation", "exception", "table", "retry_after_ms", "item",
         "reasons", "limit", "cause")
_INTERNAL = "com.amazonaws.dynamodb.v20120810#InternalServerError"


class _Raw:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._body


def _on_the_wire(error: Any) -> Any:
    wire = {name: value for name, value in error.items() if name not in _OURS}
    wire.setdefault("__type", _INTERNAL)  # it did not come to the operation
    return wire


def _answer(connection: Connection, request: Any) -> Any:
    from botocore.awsrequest import AWSResponse  # type: ignore[import]

    target = request.headers.get("X-Amz-Target", "")
    if isinstance(target, bytes):
        target = target.decode()
    body = request.body or b"{}"
    if isinstance(body, str):
        body = body.encode()
    status = 200
    try:
        text = connection.text(target.rpartition(".")[2], bytes(body))
    except _Failed as failed:
        error = _on_the_wire(json.loads(failed.args[0]))
        status = 500 if error["__type"].endswith("InternalServerError") else 400
        text = json.dumps(error).encode()
    headers = {"content-type": "application/x-amz-json-1.0", "content-length": str(len(text)),
               "x-amz-crc32": str(zlib.crc32(text)), "x-amzn-requestid": secrets.token_hex(26).upper()}
    return AWSResponse(request.url, status, headers, _Raw(text))


def attach(db: "Database", events: Any) -> None:
    """Let the clients of these events, of a session or of one client (client.meta.events), work on this database."""
    connection = db.connection

    def answer(request: Any, **_: Any) -> Any:
        return _answer(connection, request)

    def unsigned(**_: Any) -> Any:
        from botocore import UNSIGNED  # type: ignore[import]

        return UNSIGNED

    for service in _SERVICES:
        events.register(f"before-send.{service}", answer, unique_id=f"holdfast-{service}")
        events.register(f"choose-signer.{service}", unsigned, unique_id=f"holdfast-unsigned-{service}")


def boto3_session(db: "Database", region: str = "us-east-1") -> Any:
    """A boto3.Session whose clients of DynamoDB and of its streams work on this database, in this process."""
    try:
        import boto3  # type: ignore[import]
        import botocore.config  # type: ignore[import]
        import botocore.session  # type: ignore[import]
    except ImportError as error:
        raise HoldfastError("HF_UNSUPPORTED", "boto3 is not installed: pip install boto3") from error
    inner = botocore.session.get_session()
    # botocore composes its long user agent anew for each request, which takes as long as signing.
    inner.set_default_client_config(botocore.config.Config(user_agent="holdfast"))
    session = boto3.session.Session(aws_access_key_id="holdfast", aws_secret_access_key="holdfast",
                                    region_name=region, botocore_session=inner)
    attach(db, session.events)
    return session


def boto3_client(db: "Database", service: str = "dynamodb", *, config: Optional[Any] = None) -> Any:
    """boto3.client("dynamodb") on this database; service "dynamodbstreams" for its streams."""
    return boto3_session(db).client(service, endpoint_url=_ENDPOINT, config=config)


def boto3_resource(db: "Database", *, config: Optional[Any] = None) -> Any:
    """boto3.resource("dynamodb") on this database."""
    return boto3_session(db).resource("dynamodb", endpoint_url=_ENDPOINT, config=config)
