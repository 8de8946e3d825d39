"""A server for tests, in a process of its own."""
from __future__ import annotations

import atexit
import collections
import datetime
import json
import os
import re
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from types import TracebackType
from typing import Any, Deque, Dict, List, Mapping, Optional, Sequence, Type, Union

from ._native import command
from .errors import HoldfastError, invalid

STOP_S = 30  # then it is killed
LOG_LINES = 200  # the newest are kept for messages


class Server:
    """start_server() gives one; stop() or the end of a with block ends it."""

    region = "us-east-1"

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._child = child
        self._lines: Deque[str] = collections.deque(maxlen=LOG_LINES)
        self._log = threading.Thread(target=self._read_log, daemon=True)
        self._log.start()
        self.pid = child.pid
        assert child.stdout
        for line in child.stdout:
            found = re.search(r"serves on (https?:\S+)", line)
            if found:
                self.endpoint = found[1]
                break
        else:
            code = child.wait()
            self._log.join()
            child.stdout.close()
            raise HoldfastError("HF_IO", f"the server ended with {code}:\n{self.log}")
        threading.Thread(target=self._drain, daemon=True).start()
        atexit.register(self._kill)

    def _read_log(self) -> None:
        assert self._child.stderr
        with self._child.stderr as log:
            for line in log:
                self._lines.append(line)

    def _drain(self) -> None:
        assert self._child.stdout
        with self._child.stdout as lines:
            for _ in lines:
                pass

    def _kill(self) -> None:
        if self._child.poll() is None:
            self._child.kill()

    @property
    def log(self) -> str:
        return "".join(list(self._lines))

    def client_config(self) -> Dict[str, str]:
        """boto3.client("dynamodb", **server.client_config())"""
        return {"endpoint_url": self.endpoint, "region_name": self.region, "aws_access_key_id": "holdfast",
                "aws_secret_access_key": "holdfast"}

    @property
    def env(self) -> Dict[str, str]:
        """For processes that find their endpoint in the environment, as SDKs do."""
        return {"AWS_ENDPOINT_URL_DYNAMODB": self.endpoint, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": self.endpoint,
                "AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region, "AWS_ACCESS_KEY_ID": "holdfast",
                "AWS_SECRET_ACCESS_KEY": "holdfast"}

    def snapshot(self, name: str = "default") -> None:
        """Keep the whole database under that name."""
        self._admin("PUT", f"snapshots/{urllib.parse.quote(name, safe='')}")

    def restore(self, name: str = "default") -> None:
        """Set the whole database back to it, in one step."""
        self._admin("POST", f"snapshots/{urllib.parse.quote(name, safe='')}/restore")

    def clock(self, to: Union[int, float, datetime.datetime, None]) -> Any:
        """Move the clock of the database, by seconds or to a time; None: back to the true one."""
        if to is None:
            return self._admin("PUT", "clock", {"reset": True})
        if isinstance(to, datetime.datetime):
            return self._admin("PUT", "clock", {"now_s": to.timestamp()})
        return self._admin("PUT", "clock", {"advance_s": to})

    def maintain(self) -> None:
        """Do now what maintenance does once a second: expiry, trimming."""
        self._admin("POST", "upkeep")

    def _admin(self, method: str, path: str, body: Any = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.endpoint}/_holdfast/{path}", data=data, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            try:
                message = json.loads(text).get("message") or text.decode()
            except ValueError:
                message = text.decode(errors="replace")
            raise HoldfastError("HF_NOT_FOUND" if error.code == 404 else "HF_INVALID", message) from None
        return json.loads(text) if text else None

    def stop(self) -> None:
        """Ask it to end, and wait for that. Once more is no mistake."""
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        atexit.unregister(self._kill)
        self._log.join()
        if self._child.returncode != 0:
            raise HoldfastError("HF_INTERNAL", f"the server ended with {self._child.returncode}:\n{self.log}")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()


def start_server(path: Optional[str] = None, *, port: int = 0, args: Sequence[str] = (),
                 env: Optional[Mapping[str, str]] = None) -> Server:
    """A server on a free port, with its data in memory or in the directory `path`.

    `args` are more options of `holdfast serve`. It ends with this process, unless that is killed.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise invalid(f"port is a number up to 65535, not {port!r}")
    data: List[str] = ["--in-memory"] if path is None else ["--db-path", os.fspath(path)]
    program = command()
    try:
        child = subprocess.Popen([program, "serve", "--port", str(port), "--admin", *data, *args],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env={**os.environ, **(env or {})})
    except OSError as error:
        raise HoldfastError("HF_IO", f"{program} cannot be run: {error.strerror}") from error
    return Server(child)
