"""The same for asyncio: calls run on threads, and the event loop goes on.

    async with await holdfast.aio.open("memory:") as db:
        await db.put("orders", {"id": "7"})
        async for order in db.scan("orders"):
            ...
        async with db.lock("nightly", timeout=10) as held:
            ...
        async with db.transaction() as tx:
            tx.put("orders", {"id": "8"})

Whatever a method gives can be awaited, iterated by `async for`, or entered by `async with`. Handlers may be
coroutine functions. A call whose task is canceled comes to its end in the background; what it got is given back.
"""
from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
from typing import Any, AsyncIterator, Callable, Generator, Iterator, Optional

from .api import Database, open as _open
from .coordination import Counter, ElementSet, KeyValues, Limit, Lock
from .database import Items
from .errors import HoldfastError
from .messages import Bus, EventStore, Handling, Outbox, Records
from .transaction import Transaction

_WRAPPED = (Database, Counter, ElementSet, KeyValues, Limit, Lock, Items, Bus, EventStore, Handling, Outbox, Records)
_AT_ONCE = ("counter", "kv", "set", "limit", "bus", "transaction", "query", "scan", "execute")  # these send nothing
_AT_ONCE_OF = (Database, Outbox)
_DONE = object()


async def _on_a_thread(work: Callable[[], Any]) -> Any:
    """On a thread of its own, as a call may wait for another one. What a canceled task got is given back."""
    loop = asyncio.get_running_loop()
    future: "asyncio.Future[Any]" = loop.create_future()
    context = contextvars.copy_context()  # with its holdfast.timeout()

    def settle(result: Any, error: Optional[BaseException]) -> None:
        if future.done():
            _give_back(result)
        elif error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        result: Any = None
        error: Optional[BaseException] = None
        try:
            result = context.run(work)
        except StopIteration as stop:
            error = RuntimeError(stop)
        except BaseException as raised:  # it is raised where it is awaited
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:  # the loop is closed
            _give_back(result)

    threading.Thread(target=run, name="holdfast call", daemon=True).start()
    return await future


def _give_back(result: Any) -> None:
    if isinstance(result, Lock):
        def release() -> None:
            with contextlib.suppress(HoldfastError):
                result.release()
        threading.Thread(target=release, daemon=True).start()


def _wrap(value: Any) -> Any:
    return Async(value) if isinstance(value, _WRAPPED) else value


class _Call:
    """A call that has not begun: await it, iterate over it, or enter it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._entered: Any = None

    def __await__(self) -> Generator[Any, None, Any]:
        return self._run().__await__()

    async def _run(self) -> Any:
        return _wrap(await _on_a_thread(self._work))

    async def __aiter__(self) -> AsyncIterator[Any]:
        iterator: Iterator[Any] = await _on_a_thread(lambda: iter(self._work()))
        async for each in _each(iterator):
            yield each

    async def __aenter__(self) -> Any:
        self._entered = await _on_a_thread(self._work)
        return _wrap(self._entered)

    async def __aexit__(self, *error: Any) -> None:
        await _on_a_thread(lambda: self._entered.__exit__(*error))


async def _each(iterator: Iterator[Any]) -> AsyncIterator[Any]:
    while True:
        each = await _on_a_thread(lambda: next(iterator, _DONE))
        if each is _DONE:
            return
        yield _wrap(each)


def _handler(value: Any) -> Any:
    """A coroutine function as one that a thread can call."""
    if not inspect.iscoroutinefunction(value):
        return value
    loop = asyncio.get_running_loop()

    @functools.wraps(value)
    def call(*args: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(value(*args), loop).result()
    return call


class Async:
    """What it wraps, with methods that are awaited."""

    def __init__(self, target: Any) -> None:
        self._target = target

    @property
    def sync(self) -> Any:
        """What it wraps, for boto3_client() and for threads."""
        return self._target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            return value

        @functools.wraps(value)
        def call(*args: Any, **options: Any) -> Any:
            args = tuple(_handler(each) for each in args)
            if name == "on":  # a decorator, or a handler
                made = value(*args, **options)
                return self if made is self._target else lambda function: (made(_handler(function)), function)[1]
            if isinstance(self._target, _AT_ONCE_OF) and name in _AT_ONCE:
                made = value(*args, **options)
                return _Call(lambda: made) if isinstance(made, Transaction) else _wrap(made)
            return _Call(lambda: value(*args, **options))
        return call

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for each in _each(iter(self._target)):
            yield each

    async def __aenter__(self) -> "Async":
        return self

    async def __aexit__(self, *error: Any) -> None:
        await _on_a_thread(lambda: self._target.__exit__(*error))


async def open(url: str, **options: Any) -> Any:
    return Async(await _on_a_thread(lambda: _open(url, **options)))
