"""open()"""
from __future__ import annotations

from typing import Any, Optional

from ._native import Connection
from .coordination import Coordination
from .database import Closing, Tables
from .errors import invalid
from .messages import Messages


class Database(Tables, Coordination, Messages, Closing):
    """A database; any thread may use it. A child of fork() opens its own."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def method(self, name: str, /, **arguments: Any) -> Any:
        """Any method of docs/methods.md, with its JSON: db.method("lock.list", prefix="job")."""
        if "." not in name:
            raise invalid(f'a method has a name such as "lock.list", not {name!r}; operations are for call()')
        return self.connection.method(name, **arguments)


def open(url: str, *, read_only: bool = False, no_create: bool = False, sync: Optional[str] = None,
         region: Optional[str] = None, owner: Optional[str] = None) -> Database:
    """Open "embedded:PATH", "memory:", "http://HOST:PORT" or "dynamodb://REGION".

    sync, of a directory: "full" (default), "batch" or "none". owner: our name in lists of holders.
    """
    if not isinstance(url, str):
        raise invalid('open needs a URL: "embedded:shop.db", "memory:", "http://127.0.0.1:8000" or '
                      '"dynamodb://eu-central-1"')
    return Database(Connection(url, {"read_only": read_only or None, "no_create": no_create or None, "sync": sync,
                                     "region": region, "owner": owner}))
