"""The bundled library, and calls to it.

What always holds:

  (1) hf_bind_close() is called when no call is under way and none can begin: calls are counted.
  (2) A process that did not open a handle never calls the library with it: a child of fork() has none of its threads.
  (3) Whatever may take long is called on a thread of its own if the caller is the main thread, which then waits such
      that Ctrl-C is noticed; the call is canceled and waited for.
"""
from __future__ import annotations

import atexit
import contextlib
import contextvars
import ctypes
import itertools
import json
import os
import threading
import time
import weakref
from typing import Any, Dict, Iterator, List, Optional

from .errors import HoldfastError, error_from, invalid

SIGNAL_S = 0.5  # how often a call that waits looks whether Ctrl-C came
LONG_S = 0.02  # how often a call is canceled again that had not begun when it was canceled

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native")


def command() -> str:
    """The holdfast command. HOLDFAST_COMMAND names another one."""
    return os.environ.get("HOLDFAST_COMMAND") or os.path.join(_FOLDER, "holdfast")


def _load() -> ctypes.CDLL:
    file = os.environ.get("HOLDFAST_LIBRARY") or os.path.join(_FOLDER, "libholdfast.so")
    try:
        # Python may have an OpenSSL or zlib of its own inside; ours finds the ones that it was built with.
        c = ctypes.CDLL(file, mode=os.RTLD_NOW | os.RTLD_LOCAL | getattr(os, "RTLD_DEEPBIND", 0))
    except OSError as error:
        raise ImportError(f"holdfast: the library cannot be loaded: {error}. There are packages for Linux on x86-64 "
                          "with the C library 2.34 or later; HOLDFAST_LIBRARY names another build") from error
    text, size, pointer = ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)
    c.hf_bind_open_url.argtypes = [text, size, text, size, pointer, pointer, ctypes.POINTER(size)]
    c.hf_bind_open_url.restype = ctypes.c_int
    c.hf_bind_request.argtypes = [ctypes.c_void_p, text, size, text, size, pointer, ctypes.POINTER(size)]
    c.hf_bind_request.restype = ctypes.c_int
    c.hf_bind_cancel.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    c.hf_bind_cancel.restype = ctypes.c_int
    c.hf_bind_free.argtypes = [ctypes.c_void_p]
    c.hf_bind_free.restype = None
    c.hf_bind_close.argtypes = [ctypes.c_void_p]
    c.hf_bind_close.restype = None
    c.hf_version.argtypes = []
    c.hf_version.restype = text
    return c


_c = _load()
version: str = _c.hf_version().decode()


_ends: "contextvars.ContextVar[Optional[float]]" = contextvars.ContextVar("holdfast.timeout", default=None)


@contextlib.contextmanager
def timeout(seconds: float) -> Iterator[None]:
    """All calls in this block, of this thread or task, end together after so many seconds: HF_TIMEOUT."""
    milliseconds = timeout_ms(seconds)
    if milliseconds is None:
        raise invalid("timeout is a number of seconds, not None")
    until, outer = time.monotonic() + milliseconds / 1000, _ends.get()
    token = _ends.set(until if outer is None else min(until, outer))
    try:
        yield
    finally:
        _ends.reset(token)


def _left_ms() -> Optional[int]:
    until = _ends.get()
    return None if until is None else max(1, int((until - time.monotonic()) * 1000))


def _with_members(text: bytes, **members: Optional[int]) -> bytes:
    """The JSON of an object with more members, in front."""
    more = ",".join(f'"{name}":{value}' for name, value in members.items() if value is not None).encode()
    rest = text[1:]
    return text if not more else b"{" + more + (rest if rest.lstrip()[:1] == b"}" else b"," + rest)


class _Failed(Exception):
    """The text of an error as the library gives it."""


def _take(status: int, answer: ctypes.c_void_p, length: ctypes.c_size_t) -> bytes:
    if not answer:
        raise MemoryError("holdfast: there is no memory for the answer")
    try:
        text = ctypes.string_at(answer, length.value)
    finally:
        _c.hf_bind_free(answer)
    if status:
        raise _Failed(text)
    return text


def _encode(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise invalid("a string has half of a surrogate pair, which UTF-8 cannot hold") from None
    except (TypeError, ValueError) as error:
        raise invalid(f"the arguments cannot be sent: {error}") from None


def _without_none(arguments: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


class Connection:
    """A handle of the library. Any thread may use it."""

    def __init__(self, url: str, options: Dict[str, Any]) -> None:
        self.url = url
        self._pid = os.getpid()
        self._gate = threading.Condition()
        self._running: Dict[object, int] = {}  # calls, and their threads
        self._waits: Dict[int, None] = {}
        self._closing = False
        self._closed = threading.Event()
        self._numbers = itertools.count(1)
        self._local = url.startswith(("embedded:", "memory:"))
        bind, answer, length = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        in_url, text = _encode_text(url), _encode(_without_none(options))
        try:
            _take(_c.hf_bind_open_url(in_url, len(in_url), text, len(text), bind, answer, length), answer, length)
        except _Failed as error:
            raise error_from(json.loads(error.args[0]), "open") from None
        self._bind = bind
        _open.add(self)

    def _enter(self, call: object, number: int = 0) -> None:
        if os.getpid() != self._pid:
            raise invalid(f"{self.url} was opened before fork(), by process {self._pid}: a child cannot use it; open "
                          "it in the child (a directory: close it in the parent first, or use a server)")
        with self._gate:
            if self._closing:
                raise HoldfastError("HF_STOPPED", f"the database {self.url} is closed")
            self._running[call] = threading.get_ident()
            if number:
                self._waits[number] = None

    def _leave(self, call: object, number: int = 0) -> None:
        if os.getpid() != self._pid:  # somebody may have held the gate when it was copied
            return
        with self._gate:
            self._running.pop(call, None)
            self._waits.pop(number, None)
            if self._closing:
                self._gate.notify_all()

    def _request(self, name: bytes, text: bytes) -> bytes:
        answer, length = ctypes.c_void_p(), ctypes.c_size_t()
        return _take(_c.hf_bind_request(self._bind, name, len(name), text, len(text), answer, length), answer, length)

    def text(self, method: str, json_text: bytes) -> bytes:
        """JSON in and out. Raises _Failed with the JSON of an error."""
        name, this = _encode_text(method), object()
        try:
            self._enter(this)
            if self._local or threading.current_thread() is not threading.main_thread():
                return self._request(name, _with_members(json_text, deadline_ms=_left_ms()))
            number = self.number()
            return self._aside(name, _with_members(json_text, deadline_ms=_left_ms(), cancel=number), number)
        finally:
            self._leave(this)

    def call(self, method: str, arguments: Dict[str, Any]) -> Dict[str, Any]:
        try:
            answer: Dict[str, Any] = json.loads(self.text(method, _encode(arguments)))
            return answer
        except _Failed as error:
            raise error_from(json.loads(error.args[0]), method) from None

    def method(self, method: str, /, **arguments: Any) -> Dict[str, Any]:
        """A method of a pattern; arguments that are None are left out."""
        return self.call(method, _without_none(arguments))

    def read(self, method: str, /, **arguments: Any) -> Dict[str, Any]:
        """One that only reads: {} where nobody has made its table yet."""
        try:
            return self.method(method, **arguments)
        except HoldfastError as error:
            if error.code == "HF_NOT_FOUND" and error.message.startswith("table ") \
                    and error.message.endswith(" does not exist"):
                return {}
            raise

    def number(self) -> int:
        """For wait() and cancel()."""
        return next(self._numbers)

    def cancel(self, number: int) -> None:
        """End the calls with that number that wait now."""
        if os.getpid() != self._pid:
            return
        with self._gate:
            if number in self._waits:
                _c.hf_bind_cancel(self._bind, number)

    def wait(self, method: str, /, *, number: int = 0, **arguments: Any) -> Dict[str, Any]:
        """One that waits for something to happen: Ctrl-C, cancel() and close() end it."""
        number = number or self.number()
        left = _left_ms()
        if left is not None:
            arguments["deadline_ms"] = min(left, arguments.get("deadline_ms") or left)
        text = _encode({**_without_none(arguments), "cancel": number})
        this = object()
        try:
            self._enter(this, number)
            if threading.current_thread() is threading.main_thread():
                answer = self._aside(method.encode(), text, number)
            else:
                answer = self._request(method.encode(), text)
            result: Dict[str, Any] = json.loads(answer)
            return result
        except _Failed as error:
            raise error_from(json.loads(error.args[0]), method) from None
        finally:
            self._leave(this, number)

    def _aside(self, name: bytes, text: bytes, number: int) -> bytes:
        ended, gate = threading.Event(), threading.Lock()
        result: List[Any] = []
        begun = abandoned = False

        def work() -> None:
            nonlocal begun
            with gate:
                if abandoned:
                    return
                begun = True
            try:
                result.append(self._request(name, text))
            except BaseException as error:  # it is raised below
                result.append(error)
            finally:
                ended.set()

        try:  # Ctrl-C may come while the thread is being started, too
            threading.Thread(target=work, name="holdfast call", daemon=True).start()
            # A signal that comes just before this sleeps, or to another thread, does not wake it.
            while not ended.wait(SIGNAL_S):
                pass
        except BaseException:
            with gate:
                abandoned = not begun
            while not abandoned and not ended.wait(LONG_S):
                if number:
                    _c.hf_bind_cancel(self._bind, number)
            if result and isinstance(result[0], bytes) and number:
                self._undo(result[0])
            raise
        if isinstance(result[0], BaseException):
            raise result[0]
        return bytes(result[0])

    def _undo(self, answer: bytes) -> None:
        """The call came to its end just before it was interrupted: nobody will know its session."""
        session = json.loads(answer).get("session")
        if session is not None:
            text = _encode({"session": session})
            try:
                self._request(b"session.close", text)
            except _Failed:
                pass  # it has ended already

    def close(self) -> None:
        """Cancel what waits, wait for what runs, and close the database. Once more is no mistake."""
        if os.getpid() != self._pid:
            return
        with self._gate:
            first = not self._closing
            self._closing = True
        if not first:
            self._closed.wait()
            return
        with self._gate:
            # This thread is in no call: Ctrl-C may have come before it could say so.
            while any(thread != threading.get_ident() for thread in self._running.values()):
                for number in self._waits:
                    _c.hf_bind_cancel(self._bind, number)
                self._gate.wait(LONG_S)
        _c.hf_bind_close(self._bind)
        _open.discard(self)
        self._closed.set()

    @property
    def closed(self) -> bool:
        return self._closing

    def __del__(self) -> None:
        if hasattr(self, "_bind") and not self._closing:
            self.close()


def _encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise invalid(f"{text!r} has half of a surrogate pair, which UTF-8 cannot hold") from None


_open: "weakref.WeakSet[Connection]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for connection in list(_open):
        connection.close()


def timeout_ms(timeout: Optional[float]) -> Optional[int]:
    """Seconds as milliseconds; at least one, as 0 says that there is no limit."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 <= timeout <= 4_000_000:
        raise invalid(f"timeout is a number of seconds, not {timeout!r}")
    return max(1, int(timeout * 1000))
