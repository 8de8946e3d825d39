"""A database that was opened, and items as plain values."""
from __future__ import annotations

import json
import random
import time
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Type

from . import requests
from ._native import Connection
from .errors import HoldfastError, invalid
from .expressions import Condition
from .transaction import Transaction
from .values import from_item, to_item, to_value

BATCH_READ = 100  # limits of DynamoDB
BATCH_WRITE = 25
Item = Dict[str, Any]
Names = Optional[Mapping[str, str]]
Values = Optional[Mapping[str, Any]]


class Page:
    """Items of a page; `next` is where the following one starts, None behind the last."""

    def __init__(self, items: List[Item], count: int, scanned: int, next: Any) -> None:
        self.items = items
        self.count = count
        self.scanned = scanned
        self.next = next


class Items:
    """What a query, a scan or a statement finds: nothing is read before somebody asks, page by page."""

    def __init__(self, page: Callable[[Any, Optional[int]], Page], limit: Optional[int]) -> None:
        self._page = page
        self._limit = limit

    def pages(self) -> Iterator[Page]:
        left, start = self._limit, None
        while left is None or left > 0:
            page = self._page(start, left)
            if left is not None:
                if len(page.items) > left:
                    del page.items[left:]
                    page.next = None  # it would continue behind what was left out
                left -= len(page.items)
            start = page.next
            yield page
            if not start:
                return

    def __iter__(self) -> Iterator[Item]:
        for page in self.pages():
            yield from page.items

    def all(self) -> List[Item]:
        return list(self)

    def first(self) -> Optional[Item]:
        return next(iter(self), None)


class Tables:
    """Items and tables; `connection` is below it."""

    connection: Connection

    def call(self, operation: str, request: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """An operation of DynamoDB, with DynamoDB's JSON."""
        if not isinstance(operation, str) or not operation.isalpha():
            raise invalid(f'an operation has a name such as "PutItem", not {operation!r}')
        return self.connection.call(operation, dict(request or {}))

    # ---- items ------------------------------------------------------------------------------------

    def get(self, table: str, key: Mapping[str, Any], *, consistent: Optional[bool] = None,
            attributes: Optional[Sequence[str]] = None, names: Names = None) -> Optional[Item]:
        """The item, or None."""
        item = self.call("GetItem", requests.get(table, key, consistent, attributes, names)).get("Item")
        return None if item is None else from_item(item)

    def put(self, table: str, item: Mapping[str, Any], *, condition: Optional[Condition] = None, names: Names = None,
            values: Values = None, returns: Optional[str] = None, item_on_failure: bool = False) -> Optional[Item]:
        return self._written("PutItem", requests.put(table, item, condition, names, values, returns, item_on_failure))

    def update(self, table: str, key: Mapping[str, Any], update: Any = None, *,
               set: Optional[Mapping[str, Any]] = None, add: Optional[Mapping[str, Any]] = None,
               remove: Optional[Sequence[str]] = None, delete: Optional[Mapping[str, Any]] = None,
               condition: Optional[Condition] = None, names: Names = None, values: Values = None,
               returns: Optional[str] = None, item_on_failure: bool = False) -> Optional[Item]:
        """Change by set, add, remove and delete, or by an expr() or DynamoDB's text."""
        return self._written("UpdateItem", requests.update(table, key, update, set, add, remove, delete, condition,
                                                           names, values, returns, item_on_failure))

    def delete(self, table: str, key: Mapping[str, Any], *, condition: Optional[Condition] = None,
               names: Names = None, values: Values = None, returns: Optional[str] = None,
               item_on_failure: bool = False) -> Optional[Item]:
        return self._written("DeleteItem",
                             requests.delete(table, key, condition, names, values, returns, item_on_failure))

    def _written(self, operation: str, request: Dict[str, Any]) -> Optional[Item]:
        item = self.call(operation, request).get("Attributes")
        return None if item is None else from_item(item)

    def query(self, table: str, key: Condition, *, index: Optional[str] = None, filter: Optional[Condition] = None,
              attributes: Optional[Sequence[str]] = None, names: Names = None, values: Values = None,
              consistent: Optional[bool] = None, limit: Optional[int] = None, page_size: Optional[int] = None,
              start: Optional[Mapping[str, Any]] = None, reverse: bool = False) -> Items:
        if key is None:
            raise invalid("query needs a key condition; scan reads the whole table")
        request = requests.read(table, key, index, filter, attributes, consistent, page_size, start, names, values,
                                ScanIndexForward=False if reverse else None)
        return self._items("Query", request, limit)

    def scan(self, table: str, *, index: Optional[str] = None, filter: Optional[Condition] = None,
             attributes: Optional[Sequence[str]] = None, names: Names = None, values: Values = None,
             consistent: Optional[bool] = None, limit: Optional[int] = None, page_size: Optional[int] = None,
             start: Optional[Mapping[str, Any]] = None, segment: Optional[int] = None,
             segments: Optional[int] = None) -> Items:
        request = requests.read(table, None, index, filter, attributes, consistent, page_size, start, names, values,
                                Segment=segment, TotalSegments=segments)
        return self._items("Scan", request, limit)

    def _items(self, operation: str, request: Dict[str, Any], limit: Optional[int]) -> Items:
        def page(start: Any, left: Optional[int]) -> Page:
            asked = dict(request)
            if start:
                asked["ExclusiveStartKey"] = start
            # With a filter, a limit of items that are found says nothing about those to be read.
            if left is not None and "Limit" not in asked and "FilterExpression" not in asked:
                asked["Limit"] = left
            answer = self.call(operation, asked)
            return Page([from_item(item) for item in answer.get("Items", [])], answer.get("Count", 0),
                        answer.get("ScannedCount", 0), answer.get("LastEvaluatedKey"))
        return Items(page, limit)

    def count(self, table: str, key: Condition, *, index: Optional[str] = None, filter: Optional[Condition] = None,
              names: Names = None, values: Values = None) -> int:
        """How many items a query finds, without reading them into this process."""
        request = requests.read(table, key, index, filter, None, None, None, None, names, values, Select="COUNT")
        return sum(page.count for page in self._items("Query", request, None).pages())

    def execute(self, statement: str, parameters: Sequence[Any] = (), *, consistent: Optional[bool] = None,
                limit: Optional[int] = None, page_size: Optional[int] = None) -> Items:
        """PartiQL. A statement that writes does so when its items are asked for: execute(...).all()."""
        request: Dict[str, Any] = {"Statement": statement}
        if parameters:
            request["Parameters"] = [to_value(each, f"parameter {i + 1}") for i, each in enumerate(parameters)]
        if consistent is not None:
            request["ConsistentRead"] = consistent
        if page_size is not None:
            request["Limit"] = page_size

        def page(start: Any, left: Optional[int]) -> Page:
            answer = self.call("ExecuteStatement", {**request, "NextToken": start} if start else request)
            items = [from_item(item) for item in answer.get("Items", [])]
            return Page(items, len(items), len(items), answer.get("NextToken"))
        return Items(page, limit)

    def get_many(self, table: str, keys: Iterable[Mapping[str, Any]], *,
                 consistent: Optional[bool] = None) -> List[Optional[Item]]:
        """The items of these keys, in their order; None where there is none."""
        wanted = [to_item(key, "a key") for key in keys]
        names = sorted(wanted[0]) if wanted else []

        def place(item: Mapping[str, Any]) -> str:
            return json.dumps([_canonical(item.get(name)) for name in names])

        found: Dict[str, Item] = {}
        waiting = list({place(key): key for key in wanted}.values())
        attempt = 0
        while waiting:
            part, waiting = waiting[:BATCH_READ], waiting[BATCH_READ:]
            asked: Dict[str, Any] = {"Keys": part}
            if consistent is not None:
                asked["ConsistentRead"] = consistent
            answer = self.call("BatchGetItem", {"RequestItems": {table: asked}})
            for item in answer.get("Responses", {}).get(table, []):
                found[place(item)] = from_item(item)
            rest = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
            attempt = _later(rest, waiting, attempt)
        return [found.get(place(key)) for key in wanted]

    def write_many(self, table: str, put: Iterable[Mapping[str, Any]] = (),
                   delete: Iterable[Mapping[str, Any]] = ()) -> None:
        """Put and delete many items, without conditions; not a transaction."""
        waiting: List[Dict[str, Any]] = [{"PutRequest": {"Item": to_item(item)}} for item in put]
        waiting += [{"DeleteRequest": {"Key": to_item(key, "a key")}} for key in delete]
        attempt = 0
        while waiting:
            part, waiting = waiting[:BATCH_WRITE], waiting[BATCH_WRITE:]
            answer = self.call("BatchWriteItem", {"RequestItems": {table: part}})
            attempt = _later(answer.get("UnprocessedItems", {}).get(table, []), waiting, attempt)

    # ---- transactions -----------------------------------------------------------------------------

    def transaction(self, *, token: Optional[str] = None) -> Transaction:
        """with db.transaction() as tx: all of it, or nothing. With a token, once in ten minutes."""
        return Transaction(self.connection, token)

    def get_together(self, *gets: Sequence[Any]) -> List[Optional[Item]]:
        """Several items at one moment: get_together(("orders", {"id": 7}), ("customers", {"id": 1}))."""
        actions = [{"Get": requests.get(table, key, None, None, None)} for table, key in gets]
        answer = self.call("TransactGetItems", {"TransactItems": actions})
        return [from_item(each["Item"]) if each.get("Item") else None for each in answer["Responses"]]

    # ---- tables -----------------------------------------------------------------------------------

    def create_table(self, table: str, key: Mapping[str, Any], *,
                     indexes: Optional[Mapping[str, Mapping[str, Any]]] = None, stream: Optional[str] = None,
                     expires: Optional[str] = None, if_missing: bool = False) -> None:
        """key: {"customer": "string", "day": "number"}. Waits until the table can be used."""
        try:
            self.call("CreateTable", requests.create_table(table, key, indexes, stream))
        except HoldfastError as error:
            if not (if_missing and error.code == "HF_IN_USE"):
                raise
        _until(lambda: bool(self.call("DescribeTable", {"TableName": table})["Table"]["TableStatus"] == "ACTIVE"))
        if expires:
            now = self.call("DescribeTimeToLive", {"TableName": table}).get("TimeToLiveDescription", {})
            if (now.get("TimeToLiveStatus"), now.get("AttributeName")) != ("ENABLED", expires):
                self.call("UpdateTimeToLive", {
                    "TableName": table, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": expires}})

    def delete_table(self, table: str, *, if_exists: bool = False) -> None:
        try:
            self.call("DeleteTable", {"TableName": table})
        except HoldfastError as error:
            if not (if_exists and error.code == "HF_NOT_FOUND"):
                raise
            return

        def gone() -> bool:
            try:
                self.call("DescribeTable", {"TableName": table})
            except HoldfastError as error:
                if error.code == "HF_NOT_FOUND":
                    return True
                raise
            return False
        _until(gone)

    def tables(self) -> Iterator[str]:
        request: Dict[str, Any] = {}
        while True:
            answer = self.call("ListTables", request)
            yield from answer["TableNames"]
            if not answer.get("LastEvaluatedTableName"):
                return
            request = {"ExclusiveStartTableName": answer["LastEvaluatedTableName"]}


class Closing:
    """with ... as: closed at the end of the block."""

    connection: Connection

    @property
    def url(self) -> str:
        return self.connection.url

    def close(self) -> None:
        """Cancels what waits, waits for what runs, ends locks and handlers, and closes the database."""
        self.connection.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


def _canonical(value: Any) -> Any:
    """A key's value such that equal ones are equal texts: 1 and 1.0, and so on."""
    if value and "N" in value:
        return {"N": str(from_item({"n": value})["n"])}
    return value


def _until(done: Callable[[], bool]) -> None:
    wait_s = 0.01
    while not done():
        time.sleep(wait_s)
        wait_s = min(1.0, wait_s * 2)


def _later(rest: List[Any], waiting: List[Any], attempt: int) -> int:
    """What a batch left over goes to the end of the queue, after a while that grows."""
    if not rest:
        return 0
    waiting += rest
    time.sleep(min(2.0, 0.025 * 2 ** attempt) * (0.5 + random.random() / 2))
    return attempt + 1
