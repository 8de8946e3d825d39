"""Locks, do-once, limits, counters, keys and values, sets.

Options that are not named here are those of docs/methods.md, such as lease_ms; one that does not exist is refused.
"""
from __future__ import annotations

import functools
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Set, Type, TypeVar, Union

from ._native import Connection, timeout_ms
from .errors import HoldfastError, invalid
from .transaction import Transaction
from .values import from_item, from_value, to_item, to_value

Work = TypeVar("Work", bound=Callable[..., Any])


class Lock:
    """A lock that we hold, until release() or the end of the with block."""

    def __init__(self, connection: Connection, name: str, got: Mapping[str, Any]) -> None:
        self._connection = connection
        self._session = got["session"]
        self._released = False
        self.name = name
        self.fence = int(got["fence"])  # grows whenever the lock changes hands
        self.data: Optional[Dict[str, Any]] = from_item(got["data"]) if got.get("data") else None

    def release(self) -> None:
        """Give it back. HF_LOST: another may have had it in between. Once more is no mistake."""
        if not self._released:
            self._released = True
            self._connection.method("lock.release", session=self._session)

    def extend(self, lease_ms: Optional[int] = None) -> None:
        """Renew the lease now, for work that takes long on end."""
        self._connection.method("lock.extend", session=self._session, lease_ms=lease_ms)

    def set_data(self, data: Mapping[str, Any]) -> None:
        self._connection.method("lock.set_data", session=self._session, data=to_item(data))
        self.data = dict(data)

    @property
    def lost(self) -> bool:
        """Whether it is not ours any more: stop working then."""
        if self._released:
            return True
        return bool(self._connection.method("lock.state", session=self._session)["state"] != "held")

    def guard(self, tx: Transaction) -> None:
        """Let the transaction happen only while the lock is held."""
        tx.join(self._connection.method("lock.guard_actions", session=self._session))

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            self.release()
        except HoldfastError:
            if kind is None:  # otherwise that error is the one to be seen
                raise


class Verdict:
    """Of a limit: true if it is allowed. retry_ms: when to ask again; left: how many more."""

    def __init__(self, verdict: Mapping[str, Any]) -> None:
        self.verdict = verdict
        self.allowed = bool(verdict.get("allowed"))
        self.locked = bool(verdict.get("locked"))
        self.used = int(verdict.get("used", 0))
        self.left = int(verdict.get("left", 0))
        self.retry_ms = int(verdict.get("retry_ms", 0))
        self.reset_ms = int(verdict.get("reset_ms", 0))

    def __bool__(self) -> bool:
        return self.allowed


class Limit:
    def __init__(self, connection: Connection, name: str, table: Optional[str], rule: Dict[str, Any]) -> None:
        self._connection = connection
        self._at = {"table": table, "name": name}
        self._rule = rule

    def take(self, cost: int = 1, **options: Any) -> Verdict:
        """Count one, or `cost`, if the rule allows it."""
        return Verdict(self._connection.method("limit.take", **self._at, rule=self._rule, cost=cost, **options))

    def peek(self, cost: int = 1, **options: Any) -> Verdict:
        return Verdict(self._connection.method("limit.peek", **self._at, rule=self._rule, cost=cost, **options))

    def refund(self, verdict: Verdict) -> None:
        """Give back what take() counted."""
        self._connection.method("limit.refund", **self._at, rule=self._rule, verdict=verdict.verdict)

    def clear(self) -> None:
        self._connection.method("limit.clear", **self._at)


class Counter:
    def __init__(self, connection: Connection, at: Dict[str, Any]) -> None:
        self._connection = connection
        self._at = at

    def add(self, by: int = 1, *, request: Optional[str] = None, tx: Optional[Transaction] = None,
            **options: Any) -> Optional[int]:
        """The new value; None with tx. With a `request`, an id, it is added once, however often it is asked for."""
        arguments = {**self._at, "by": by, "request": request, **options}
        if tx is not None:
            tx.join(self._connection.method("counter.add_actions", **arguments))
            return None
        return int(self._connection.method("counter.add", **arguments).get("value", 0))

    def get(self) -> int:
        return int(self._connection.read("counter.get", **self._at).get("value", 0))

    def set(self, value: int) -> int:
        """Gives the value before, as reset() does."""
        return int(self._connection.method("counter.set", **self._at, value=value).get("was", 0))

    def reset(self) -> int:
        return int(self._connection.method("counter.reset", **self._at).get("was", 0))

    def delete(self) -> None:
        self._connection.method("counter.delete", **self._at)

    def take(self, count: int = 1) -> int:
        """As a sequence: the first of `count` numbers that nobody else gets."""
        return int(self._connection.method("sequence.take", **self._at, count=count)["first"])


class Entry:
    """Of a key: its value, None where there is none; its version; when it expires, in seconds since 1970."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.id = entry.get("id")
        self.found = "value" in entry
        self.value = from_value(entry["value"]) if self.found else None
        self.version = entry.get("version")
        self.expires_s = entry.get("expires_s") or None


class KeyValues:
    def __init__(self, connection: Connection, at: Dict[str, Any]) -> None:
        self._connection = connection
        self._at = at

    def get(self, id: str, default: Any = None) -> Any:
        entry = self.entry(id)
        return entry.value if entry.found else default

    def entry(self, id: str, **options: Any) -> Entry:
        return Entry({"id": id, **self._connection.read("kv.get", **self._at, id=id, **options)})

    def set(self, id: str, value: Any, *, ttl_s: Optional[int] = None, tx: Optional[Transaction] = None,
            **options: Any) -> Optional[Entry]:
        """The entry as it is now; None with tx. Options: if_absent, if_version."""
        arguments = {**self._at, "id": id, "value": to_value(value, id), "ttl_s": ttl_s, **options}
        if tx is not None:
            tx.join(self._connection.method("kv.set_actions", **arguments))
            return None
        return Entry(self._connection.method("kv.set", **arguments))

    def delete(self, id: str, **options: Any) -> Entry:
        """What it had."""
        return Entry({"id": id, **self._connection.method("kv.delete", **self._at, id=id, **options)})

    def list(self, *, limit: Optional[int] = None, **options: Any) -> Iterator[Entry]:
        """Options: prefix, from_ (the first key), before, backward."""
        if "from_" in options:
            options["from"] = options.pop("from_")
        for entry in pages(lambda after: self._connection.read("kv.list", **{**self._at, **options, "after": after}),
                           "entries", limit):
            yield Entry(entry)

    def clear(self, **options: Any) -> int:
        return int(self._connection.method("kv.clear", **self._at, **options).get("cleared", 0))


class ElementSet:
    """A set of any number of strings, numbers or bytes."""

    def __init__(self, connection: Connection, at: Dict[str, Any]) -> None:
        self._connection = connection
        self._at = at

    def values(self) -> Set[Any]:
        return {from_value(each) for each in self._connection.read("set.get", **self._at).get("elements", [])}

    def has(self, element: Any) -> bool:
        return bool(self._connection.read("set.contains", **self._at, element=to_value(element)).get("contains"))

    def add(self, *elements: Any) -> int:
        """How many were new."""
        return int(self._change("set.add", elements).get("added", 0))

    def remove(self, *elements: Any) -> int:
        """How many were there."""
        return int(self._change("set.remove", elements).get("removed", 0))

    def _change(self, method: str, elements: Any) -> Dict[str, Any]:
        if not elements:
            raise invalid("no elements")
        return self._connection.method(method, **self._at, elements=[to_value(each) for each in elements])


def pages(page: Callable[[Optional[str]], Mapping[str, Any]], member: str, limit: Optional[int]) -> Iterator[Any]:
    """The members of page after page, at most `limit`."""
    after = None
    while limit is None or limit > 0:
        got = page(after)
        for each in got.get(member, []):
            if limit is not None:
                if limit <= 0:
                    return
                limit -= 1
            yield each
        after = got.get("next")
        if not after:
            return


def _at(id: Optional[str], partition: Optional[str], options: Dict[str, Any]) -> Dict[str, Any]:
    at = {**options, "partition": partition, "partitioned": True if partition is not None else None}
    if id is not None:
        at["id"] = id
    return at


class Coordination:
    connection: Connection

    def lock(self, name: str, *, timeout: Optional[float] = None, data: Optional[Mapping[str, Any]] = None,
             **options: Any) -> Lock:
        """Acquire a lock, waiting for it at most so many seconds: with db.lock("nightly", timeout=10) as held."""
        got = self.connection.wait("lock.acquire", name=name, deadline_ms=timeout_ms(timeout),
                                   data=None if data is None else to_item(data), **options)
        return Lock(self.connection, name, got)

    def try_lock(self, name: str, *, data: Optional[Mapping[str, Any]] = None, **options: Any) -> Optional[Lock]:
        """The lock if it is free, otherwise None."""
        try:
            got = self.connection.method("lock.try", name=name, data=None if data is None else to_item(data), **options)
        except HoldfastError as error:
            if error.code == "HF_LOCKED":
                return None
            raise
        return Lock(self.connection, name, got)

    def do_once(self, key: str, work: Callable[[], Any], *, user: str = "default", timeout: Optional[float] = None,
                attempt_ms: Optional[int] = None, **options: Any) -> Any:
        """Do `work` once for this key, in all processes: what it returned is stored, and is what everybody gets.

        Others wait while it runs. When it raises, the next one tries again; if the exception has a true `permanent`,
        nobody does. An attempt that is silent for attempt_ms, as its process died, is over.
        """
        begun = self.connection.wait("once.begin", key=key, user=user, timeout_ms=attempt_ms,
                                     deadline_ms=timeout_ms(timeout), **options)
        if not begun["begun"]:
            record = begun["record"]
            stored = record.get("result") or {}
            result = from_value(stored["value"]) if "value" in stored else None
            if record["state"] == "failed":
                raise invalid(f"{key} has failed for good: {result or 'no reason is stored'}")
            return result
        session = begun["session"]
        try:
            result = work()
            stored = {} if result is None else {"value": to_value(result, "the result")}
        except BaseException as error:
            if getattr(error, "permanent", False) is True:
                self.connection.method("once.fail", session=session, result={"value": to_value(str(error))})
            else:
                self.connection.method("session.close", session=session)
            raise
        self.connection.method("once.finish", session=session, result=stored)
        return result

    def once(self, key: Union[str, Callable[..., str]], **options: Any) -> Callable[[Work], Work]:
        """@db.once(key="nightly"), or @db.once(key=lambda number: f"invoice-{number}"): do_once() for each call."""
        def decorate(work: Work) -> Work:
            @functools.wraps(work)
            def once(*args: Any, **named: Any) -> Any:
                text = key if isinstance(key, str) else key(*args, **named)
                return self.do_once(text, lambda: work(*args, **named), **options)
            return once  # type: ignore[return-value]
        return decorate

    def once_clear(self, key: str, *, user: str = "default", table: Optional[str] = None) -> bool:
        """Forget it, so that it can be done again."""
        return bool(self.connection.method("once.clear", key=key, user=user, table=table).get("cleared"))

    def limit(self, name: str, *, limit: int, window_ms: int, kind: str = "fixed", table: Optional[str] = None,
              **rule: Any) -> Limit:
        """kind: "attempts", "fixed", "sliding" or "rate"."""
        return Limit(self.connection, name, table, {"kind": kind, "limit": limit, "window_ms": window_ms, **rule})

    def counter(self, id: str, *, table: str = "counters", partition: Optional[str] = None, **at: Any) -> Counter:
        return Counter(self.connection, _at(id, partition, {"table": table, **at}))

    def kv(self, *, partition: Optional[str] = None, **at: Any) -> KeyValues:
        """Options: table, space."""
        return KeyValues(self.connection, _at(None, partition, at))

    def set(self, id: str, *, partition: Optional[str] = None, **at: Any) -> ElementSet:
        return ElementSet(self.connection, _at(id, partition, at))


__all__ = ["Coordination", "Counter", "ElementSet", "Entry", "KeyValues", "Limit", "Lock", "Verdict"]
