"""Writes that happen all or not at all."""
from __future__ import annotations

import uuid
from types import TracebackType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Type

from . import requests
from ._native import Connection
from .errors import invalid
from .expressions import Condition, Expression


class Transaction:
    """with db.transaction() as tx: what was added is written at the end of the block; if it raises, nothing is.

    Adding sends nothing, except for patterns that have to read first.
    """

    def __init__(self, connection: Connection, token: Optional[str] = None) -> None:
        self._connection = connection
        self._token = token
        self._actions: List[Dict[str, Any]] = []
        self._after: List[Callable[[], Any]] = []
        self._over = False

    def add(self, action: Dict[str, Any]) -> None:
        """An action as DynamoDB has it: {"Put": {"TableName", "Item", ...}}."""
        if self._over:
            raise invalid("the transaction is over: add to it inside of its block")
        self._actions.append(action)

    def join(self, made: Dict[str, Any], after: Optional[Callable[[], Any]] = None) -> Dict[str, Any]:
        """What a method made whose name ends with _actions; `after` is called when all of it has been written."""
        for action in made["actions"]:
            self.add(action)
        if after:
            self._after.append(after)
        return made

    def put(self, table: str, item: Mapping[str, Any], *, condition: Optional[Condition] = None,
            names: Optional[Mapping[str, str]] = None, values: Optional[Mapping[str, Any]] = None,
            item_on_failure: bool = False) -> None:
        self.add({"Put": requests.put(table, item, condition, names, values, None, item_on_failure)})

    def update(self, table: str, key: Mapping[str, Any], update: Any = None, *,
               set: Optional[Mapping[str, Any]] = None, add: Optional[Mapping[str, Any]] = None,
               remove: Optional[Sequence[str]] = None, delete: Optional[Mapping[str, Any]] = None,
               condition: Optional[Condition] = None, names: Optional[Mapping[str, str]] = None,
               values: Optional[Mapping[str, Any]] = None, item_on_failure: bool = False) -> None:
        self.add({"Update": requests.update(table, key, update, set, add, remove, delete, condition, names, values,
                                            None, item_on_failure)})

    def delete(self, table: str, key: Mapping[str, Any], *, condition: Optional[Condition] = None,
               names: Optional[Mapping[str, str]] = None, values: Optional[Mapping[str, Any]] = None,
               item_on_failure: bool = False) -> None:
        self.add({"Delete": requests.delete(table, key, condition, names, values, None, item_on_failure)})

    def check(self, table: str, key: Mapping[str, Any], condition: Condition, *,
              names: Optional[Mapping[str, str]] = None, values: Optional[Mapping[str, Any]] = None,
              item_on_failure: bool = False) -> None:
        """Write only if the condition holds for this item, too."""
        if condition is None:
            raise invalid("check needs a condition")
        self.add({"ConditionCheck": requests.delete(table, key, condition, names, values, None, item_on_failure)})

    def __len__(self) -> int:
        return len(self._actions)

    def __enter__(self) -> "Transaction":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if kind is None:
            self.commit()
        else:
            self._over = True

    def commit(self) -> None:
        """Write it now. The end of the block does that, too."""
        if self._over:
            return
        self._over = True
        if not self._actions:
            return
        self._connection.call("TransactWriteItems", {"TransactItems": self._actions,
                                                     "ClientRequestToken": self._token or str(uuid.uuid4())})
        for after in self._after:
            after()


__all__ = ["Transaction", "Expression"]
