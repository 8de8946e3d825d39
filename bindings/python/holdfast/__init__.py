"""holdfast: DynamoDB's data model in your process, with locks, an outbox and an event store. No server needed.

    import holdfast

    with holdfast.open("embedded:shop.db") as db:
        db.create_table("orders", {"customer": "string", "day": "number"}, if_missing=True)
        db.put("orders", {"customer": "ann", "day": 2, "total": Decimal("12.50")})
        for order in db.query("orders", {"customer": "ann"}):
            print(order["total"])
"""
from . import aio
from ._native import timeout, version as __version__
from .api import Database, open
from .boto import attach, boto3_client, boto3_resource, boto3_session
from .database import Items, Page
from .coordination import Counter, ElementSet, Entry, KeyValues, Limit, Lock, Verdict
from .errors import HoldfastError, PermanentError
from .expressions import (attr, begins_with, between, contains, eq, exists, expr, ge, gt, le, lt, missing, ne, one_of)
from .messages import Bus, Change, Event, EventStore, Handling, Outbox, Record, Records
from .server import Server, start_server
from .transaction import Transaction

__all__ = [
    "Bus", "Change", "Counter", "Database", "ElementSet", "Entry", "Event", "EventStore", "Handling",
    "HoldfastError", "Items", "KeyValues", "Limit", "Lock", "Outbox", "Page", "PermanentError", "Record",
    "Records", "Server", "Transaction", "Verdict", "__version__", "aio", "attach", "attr", "begins_with",
    "between", "boto3_client", "boto3_resource", "boto3_session", "contains", "eq", "exists", "expr", "ge",
    "gt", "le", "lt", "missing", "ne", "one_of", "open", "start_server", "timeout",
]
