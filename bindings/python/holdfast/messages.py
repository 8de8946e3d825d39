"""Outbox, bus and relay; event store; records; changes of a table.

Whatever handles something is a Handling: a thread of ours asks for deliveries, each is handled on a thread of its own,
and what became of it goes back. The library gives no more at a time than `workers` says.
"""
from __future__ import annotations

import datetime
import json
import threading
from types import TracebackType
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Type, TypeVar, Union,
                    overload)

from ._native import Connection
from .coordination import pages
from .errors import HoldfastError, PermanentError, error_from, invalid
from .transaction import Transaction
from .values import _base64, from_item, to_item

WAIT_MS = 60000  # then it is asked again
AT_ONCE = 256  # deliveries in one answer
MESSAGE_MAX = 1000
_ENDED = ("HF_STOPPED", "HF_CANCELED", "HF_NOT_FOUND")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
OnError = Optional[Callable[[BaseException], Any]]


# ---- names and bytes ------------------------------------------------------------------------------

def _us(time: Any, name: str) -> Optional[int]:
    if time is None:
        return None
    if not isinstance(time, datetime.datetime) or time.tzinfo is None:
        raise invalid(f"{name} is a datetime with a time zone, such as datetime.now(timezone.utc)")
    return (time - _EPOCH) // datetime.timedelta(microseconds=1)


def _payload(payload: Any, content_type: Optional[str]) -> Dict[str, Any]:
    """bytes are as they are; everything else is JSON."""
    if payload is None:
        return {"content_type": content_type}
    if isinstance(payload, (bytes, bytearray)):
        return {"payload": {"base64": _base64(payload)}, "content_type": content_type or "application/octet-stream"}
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise invalid(f"the payload of an event is JSON or bytes: {error}") from None
    return {"payload": text, "content_type": content_type or "application/json"}


def _from_payload(payload: Any, content_type: Optional[str]) -> Any:
    if payload is None:
        return None
    import base64
    data = payload.encode() if isinstance(payload, str) else base64.b64decode(payload["base64"])
    kind = (content_type or "").partition(";")[0].strip()
    if kind.endswith(("/json", "+json")):
        return json.loads(data) if data else None
    return data.decode() if kind.startswith("text/") and isinstance(payload, str) else data


class Facts:
    """What the library says of an event, a record or a change, as attributes; those that it left out are None."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        for name, value in facts.items():
            if name.endswith("_us") and isinstance(value, int):
                value = _EPOCH + datetime.timedelta(microseconds=value) if value else None  # 0: it was not
                name = name[:-3] if name in ("time_us", "at_us", "due_us") else f"{name[:-3]}_at"
            setattr(self, name, value)

    if TYPE_CHECKING:
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class Event(Facts):
    """Of an outbox: id, type, key, payload, headers, time, attempts, ... Of a store: stream, version, data, ..."""


class Record(Facts):
    """account, run_time, item, ..."""


class Change(Facts):
    """Of a table: key, old, new, event, ..."""


# ---- handling -------------------------------------------------------------------------------------

def _failure(error: BaseException) -> Dict[str, Any]:
    failure: Dict[str, Any] = {"message": (str(error) or type(error).__name__)[:MESSAGE_MAX]}
    if getattr(error, "permanent", False) is True:
        failure["permanent"] = True
    return failure


class Handling:
    """Something that handles deliveries until stop(), or until nothing is left to do."""

    def __init__(self, connection: Connection, session: Any, handle: Callable[[Mapping[str, Any]], Dict[str, Any]],
                 on_error: OnError) -> None:
        self._connection = connection
        self._session = session
        self._handle = handle
        self._on_error = on_error
        self._stopped = False
        self._number = connection.number()
        self._ended = threading.Event()
        self.error: Optional[BaseException] = None  # why it ended by itself
        self._asker = threading.Thread(target=self._ask, name="holdfast session", daemon=True)
        self._asker.start()

    def _ask(self) -> None:
        try:
            while not self._stopped:
                got = self._connection.wait("session.next", number=self._number, session=self._session,
                                            wait_ms=WAIT_MS, limit=AT_ONCE)
                for delivery in got.get("deliveries", []):
                    threading.Thread(target=self._work, args=(delivery,), name="holdfast handler", daemon=True).start()
                for notice in got.get("notices", []):
                    if notice["type"] == "ended":
                        if notice.get("error"):
                            self.error = error_from(notice["error"], "the session")
                        return
                    self._tell(error_from(notice["error"], notice["type"]) if notice.get("error")
                               else HoldfastError("HF_INTERNAL", notice["type"], details=notice))
        except HoldfastError as error:
            if error.code not in _ENDED:
                self.error = error
                self._tell(error)
        except RuntimeError as error:  # Python is ending: no thread can be started
            self.error = error
        finally:
            self._ended.set()

    def _tell(self, error: BaseException) -> None:
        if self._on_error:
            self._on_error(error)

    def _work(self, delivery: Mapping[str, Any]) -> None:
        try:
            answer = self._handle(delivery)
        except BaseException as error:  # whatever it is, it is told to the library
            answer = {"error": _failure(error)}
        try:
            self._connection.method("session.done", token=delivery["token"], **answer)
        except HoldfastError as error:  # it took too long, or we are stopping: then it is delivered again
            if not self._stopped and error.code not in _ENDED:
                self._tell(error)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait until it ends by itself: whether it has. Raises what it ended with."""
        ended = self._ended.wait(timeout)
        if ended and self.error and not self._stopped:
            raise self.error
        return ended

    def stop(self, drain: float = 10.0) -> None:
        """Begin nothing more, and wait for what runs, at most so many seconds. Once more is no mistake."""
        if self._stopped:
            return
        self._stopped = True
        try:
            self._connection.wait("session.close", session=self._session, drain_ms=int(drain * 1000))
        except HoldfastError as error:
            if error.code not in _ENDED + ("HF_TIMEOUT",):
                raise
        finally:
            while self._asker.is_alive() and self._asker is not threading.current_thread():
                self._connection.cancel(self._number)
                self._asker.join(0.02)

    def __enter__(self) -> "Handling":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()


class _Opened:
    """A pattern on a table, which is opened with its options before the first call."""

    _name: str

    def __init__(self, connection: Connection, table: Optional[str], options: Dict[str, Any]) -> None:
        self._connection = connection
        self._table = table
        if options:
            connection.method(f"{self._name}.open", table=table, **options)

    def _call(self, method: str, **arguments: Any) -> Dict[str, Any]:
        return self._connection.method(f"{self._name}.{method}", table=self._table, **arguments)

    def _read(self, method: str, **arguments: Any) -> Dict[str, Any]:
        return self._connection.read(f"{self._name}.{method}", table=self._table, **arguments)

    def _begin(self, method: str, handle: Callable[[Mapping[str, Any]], Dict[str, Any]], on_error: OnError,
               arguments: Dict[str, Any]) -> Handling:
        got = self._connection.method(method, table=self._table, **arguments)
        return Handling(self._connection, got["session"], handle, on_error)


# ---- outbox ---------------------------------------------------------------------------------------

def _outbox_args(type: str, payload: Any = None, *, content_type: Optional[str] = None,
                 headers: Optional[Mapping[str, Any]] = None, time: Any = None, due: Any = None,
                 **more: Any) -> Dict[str, Any]:
    if not isinstance(type, str) or not type:
        raise invalid("an event has a type, such as order.placed")
    event = {"type": type, **_payload(payload, content_type), "headers": to_item(headers) if headers else None,
             "time_us": _us(time, "time"), "due_us": _us(due, "due"), **more}
    return {name: value for name, value in event.items() if value is not None}


def _outbox_event(event: Mapping[str, Any]) -> Event:
    made = Event(event)
    made.payload = _from_payload(event.get("payload"), event.get("content_type"))
    if event.get("headers"):
        made.headers = from_item(event["headers"])
    return made


Handler = Callable[[Event], Any]
_Handler = TypeVar("_Handler", bound=Handler)


class Bus:
    """A handler for each type of event, in this process: "order.placed", "order.*" or "*"."""

    def __init__(self, outbox: "Outbox") -> None:
        self._outbox = outbox
        self._handlers: Dict[str, Handler] = {}
        self._handling: Optional[Handling] = None

    @overload
    def on(self, type: str, handler: Handler) -> "Bus": ...
    @overload
    def on(self, type: str) -> Callable[[_Handler], _Handler]: ...

    def on(self, type: str, handler: Optional[Handler] = None) -> Any:
        """bus.on(type, handler), or @bus.on(type)."""
        if handler is None:
            return lambda function: (self.on(type, function), function)[1]
        if type in self._handlers:
            raise invalid(f"{type} has a handler already")
        self._handlers[type] = handler
        return self

    def _handler(self, type: str) -> Handler:
        at, name = self._handlers.get(type), type
        while at is None and "." in name:
            name = name.rpartition(".")[0]
            at = self._handlers.get(f"{name}.*")
        at = at or self._handlers.get("*")
        if at is None:
            raise PermanentError(f"no handler for events of type {type}")
        return at

    def start(self, *, on_error: OnError = None, **options: Any) -> "Bus":
        """Options: those of a relay, such as workers, max_attempts."""
        if self._handling:
            raise invalid("the bus runs already")
        if not self._handlers:
            raise invalid("the bus has no handlers: call on(type, handler) before start()")
        self._handling = self._outbox.relay(lambda event: self._handler(event.type)(event), on_error=on_error,
                                            **options)
        return self

    def stop(self, drain: float = 10.0) -> None:
        if self._handling:
            self._handling.stop(drain)
            self._handling = None

    def __enter__(self) -> "Bus":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()


class Outbox(_Opened):
    """Events that are stored with the change they belong to or not at all, and delivered at least once."""

    _name = "outbox"

    def emit(self, type: str, payload: Any = None, *, key: Optional[str] = None, tx: Optional[Transaction] = None,
             **event: Any) -> str:
        """Store an event, by itself or as a part of a transaction. Its id."""
        return self.emit_all([{"type": type, "payload": payload, "key": key, **event}], tx=tx)[0]

    def emit_all(self, events: Sequence[Mapping[str, Any]], *, tx: Optional[Transaction] = None) -> List[str]:
        """Several, all or none: [{"type", "payload", "key", ...}]."""
        made = [_outbox_args(**event) for event in events]
        if not made:
            return []
        if tx is None:
            return list(self._call("emit", events=made)["ids"])
        return list(tx.join(self._call("emit_actions", events=made), lambda: self._call("wake"))["ids"])

    def bus(self) -> Bus:
        return Bus(self)

    def relay(self, sink: Union[str, Handler], *, on_error: OnError = None, **options: Any) -> Handling:
        """Deliver to a broker or webhook by its URL, as `holdfast relay` does, or to a function of one event."""
        if isinstance(sink, str):
            return self._begin("relay.start", lambda delivery: {}, on_error, {"sink": sink, **options})
        deliver = sink

        def handle(delivery: Mapping[str, Any]) -> Dict[str, Any]:
            failures = []
            for index, event in enumerate(delivery["events"]):
                try:
                    deliver(_outbox_event(event))
                except BaseException as error:
                    failures.append({"index": index, **_failure(error)})
            return {"failures": failures} if failures else {}
        return self._begin("relay.start", handle, on_error, options)

    def stats(self) -> Facts:
        return Facts({"pending": 0, "failed": 0, **self._read("stats")})

    def pending(self, *, limit: Optional[int] = None, **options: Any) -> Iterator[Event]:
        return self._list("pending", limit, options)

    def failed(self, *, limit: Optional[int] = None, **options: Any) -> Iterator[Event]:
        """Dead letters."""
        return self._list("failed", limit, options)

    def _list(self, method: str, limit: Optional[int], options: Dict[str, Any]) -> Iterator[Event]:
        for event in pages(lambda after: self._read(method, after=after, **options), "events", limit):
            yield _outbox_event(event)

    def retry(self, *ids: str, **which: Any) -> int:
        """Let dead letters be delivered again: these, or all, or type=..., cause=... How many."""
        return self._some("retry", ids, which)

    def discard(self, *ids: str, **which: Any) -> int:
        return self._some("discard", ids, which)

    def _some(self, word: str, ids: Sequence[str], which: Dict[str, Any]) -> int:
        got = self._call(word, ids=list(ids)) if ids else self._call(f"{word}_all", **which)
        return int(got.get("done", 0))


# ---- event store ----------------------------------------------------------------------------------

def _stream(name: str) -> Dict[str, Any]:
    if not isinstance(name, str) or not name:
        raise invalid('a stream has a name such as "order/7"')
    domain, slash, id = name.partition("/")
    return {"domain": domain, "id": id} if slash else {"domain": domain}


def _store_args(type: str, data: Any = None, *, content_type: Optional[str] = None,
                meta: Optional[Mapping[str, Any]] = None, time: Any = None, **more: Any) -> Dict[str, Any]:
    event = {"type": type, **_payload(data, content_type), "meta": to_item(meta) if meta else None,
             "time_us": _us(time, "time"), **more}
    return {name: value for name, value in event.items() if value is not None}


def _store_event(event: Mapping[str, Any]) -> Event:
    rest = {name: value for name, value in event.items() if name not in ("payload", "domain", "stream", "hash", "meta")}
    made = Event(rest)
    made.stream = f"{event['domain']}/{event['stream']}" if event.get("stream") else event["domain"]
    made.version = int(event["version"])
    made.data = _from_payload(event.get("payload"), event.get("content_type"))
    if event.get("meta"):
        made.meta = from_item(event["meta"])
    return made


def _expect(expect: Union[int, str, None]) -> Dict[str, Any]:
    if expect is None or expect == "any":
        return {}
    if expect in ("exists", "none") and isinstance(expect, str):
        return {"expect": expect}
    if isinstance(expect, int) and not isinstance(expect, bool) and expect >= 0:
        return {"expect": "version", "version": expect} if expect else {"expect": "none"}
    raise invalid(f'expect is a version, "any", "none" or "exists", not {expect!r}')


class EventStore(_Opened):
    """Streams of events, named "domain/id"; a stream's versions count from 1."""

    _name = "events"

    def append(self, stream: str, events: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]], *,
               expect: Union[int, str, None] = None, tx: Optional[Transaction] = None) -> int:
        """Append {"type", "data", ...}, or a list of them; the stream's new version.

        expect: the version before, 0 for a new stream, "exists". HF_CONDITION when it is another.
        """
        listed = [events] if isinstance(events, Mapping) else events
        arguments = {**_stream(stream), **_expect(expect), "events": [_store_args(**event) for event in listed]}
        if tx is None:
            return int(self._call("append", **arguments)["last"])
        return int(tx.join(self._call("append_actions", **arguments))["last"])

    def read(self, stream: str, *, limit: Optional[int] = None, backward: bool = False, first: Optional[int] = None,
             last: Optional[int] = None) -> Iterator[Event]:
        """The events of one stream, from version `first` to `last`."""
        arguments: Dict[str, Any] = {**_stream(stream), "from": first, "to": last, "backward": backward or None}
        while limit is None or limit > 0:
            got = self._read("read", **arguments)
            for event in got.get("events", []):
                if limit is not None:
                    if limit <= 0:
                        return
                    limit -= 1
                yield _store_event(event)
            if not int(got.get("next") or 0):
                return
            arguments["to" if backward else "from"] = got["next"]

    def version(self, stream: str) -> int:
        """0: there is no such stream."""
        return int(self._read("stream", **_stream(stream)).get("version", 0))

    def all(self, *, limit: Optional[int] = None, **options: Any) -> Iterator[Event]:
        """All events, in their order. Options: after (a position), domain, type."""
        after = options.pop("after", None)
        while limit is None or limit > 0:
            got = self._read("all", after=after, **options)
            for event in got.get("events", []):
                if limit is not None:
                    if limit <= 0:
                        return
                    limit -= 1
                yield _store_event(event)
            after = got.get("next")
            if not after or not got.get("events"):
                return

    def subscribe(self, name: str, handler: Handler, *, on_error: OnError = None, **options: Any) -> Handling:
        """All events, one after another, from where the subscription of that name was. One process at a time has it.

        Options: domain, type, start ("first", "end"), park.
        """
        return self._begin("events.subscribe", self._each(handler), on_error, {"name": name, **options})

    def consume(self, name: str, handler: Handler, *, on_error: OnError = None, **options: Any) -> Handling:
        """A share of all events: every process with that name is a consumer of one group."""
        return self._begin("events.consume", self._each(handler), on_error, {"name": name, **options})

    @staticmethod
    def _each(handler: Handler) -> Callable[[Mapping[str, Any]], Dict[str, Any]]:
        def handle(delivery: Mapping[str, Any]) -> Dict[str, Any]:
            for event in delivery["events"]:
                handler(_store_event(event))
            return {}
        return handle


# ---- records, changes -----------------------------------------------------------------------------

def _record(record: Mapping[str, Any]) -> Record:
    made = Record({name: value for name, value in record.items() if name != "item"})
    made.item = from_item(record["item"]) if record.get("item") else None
    return made


def _change(change: Mapping[str, Any]) -> Change:
    images = {"key": "key", "old_image": "old", "new_image": "new"}
    made = Change({name: value for name, value in change.items() if name not in images})
    for name, short in images.items():
        setattr(made, short, from_item(change[name]) if change.get(name) else None)
    return made


class Records(_Opened):
    """Work that waits in a table, and is processed."""

    _name = "records"

    def put(self, record: Mapping[str, Any], *, only_new: bool = False, tx: Optional[Transaction] = None) -> None:
        item = to_item(record, "a record")
        if tx is None:
            self._call("put", record=item, only_new=only_new or None)
        else:
            tx.join(self._call("put_actions", record=item))

    def get(self, account: str, run_time: str) -> Optional[Record]:
        try:
            return _record(self._call("get", account=account, run_time=run_time))
        except HoldfastError as error:
            if error.code == "HF_NOT_FOUND":
                return None
            raise

    def count(self, state: str = "unprocessed") -> int:
        return int(self._read("count", state=state).get("count", 0))

    def process(self, handler: Callable[[Record], Any], *, on_error: OnError = None, **options: Any) -> Handling:
        """Each record is claimed, and done when the function has returned.

        Ends by itself when none is left (wait()), or with forever=True at stop().
        """
        def handle(delivery: Mapping[str, Any]) -> Dict[str, Any]:
            handler(_record(delivery["record"]))
            return {}
        return self._begin("records.process", handle, on_error, options)


class Messages:
    connection: Connection

    def outbox(self, table: Optional[str] = None, **options: Any) -> Outbox:
        return Outbox(self.connection, table, options)

    def events(self, table: Optional[str] = None, **options: Any) -> EventStore:
        return EventStore(self.connection, table, options)

    def records(self, table: Optional[str] = None, **options: Any) -> Records:
        return Records(self.connection, table, options)

    def changes(self, table: str, handler: Callable[[List[Change]], Any], *, on_error: OnError = None,
                **options: Any) -> Handling:
        """Every change of a table with a stream, in the order of each item; the handler gets batches.

        Processes with the same `name` share the work, and go on where the last one was.
        """
        def handle(delivery: Mapping[str, Any]) -> Dict[str, Any]:
            handler([_change(change) for change in delivery["changes"]])
            return {}
        got = self.connection.method("streams.consume", table=table, **options)
        return Handling(self.connection, got["session"], handle, on_error)
