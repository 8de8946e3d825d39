"""Requests of DynamoDB, made of plain values. Nothing is sent here."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from .errors import invalid
from .expressions import Placeholders
from .values import to_item

_RETURNS = {"none": "NONE", "old": "ALL_OLD", "new": "ALL_NEW", "updated_old": "UPDATED_OLD",
            "updated_new": "UPDATED_NEW"}


def _returns(returns: Optional[str]) -> Optional[str]:
    if returns is None:
        return None
    if returns not in _RETURNS:
        raise invalid(f"returns is one of {', '.join(_RETURNS)}, not {returns!r}")
    return _RETURNS[returns]


def _write(used: Placeholders, table: str, condition: Any, returns: Optional[str], item_on_failure: bool,
           **members: Any) -> Dict[str, Any]:
    return used.into({
        "TableName": table, **members,
        "ConditionExpression": used.condition(condition, "condition"),
        "ReturnValues": _returns(returns),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD" if item_on_failure else None,
    })


def put(table: str, item: Any, condition: Any, names: Any, values: Any, returns: Optional[str],
        item_on_failure: bool) -> Dict[str, Any]:
    return _write(Placeholders(names, values), table, condition, returns, item_on_failure, Item=to_item(item))


def delete(table: str, key: Any, condition: Any, names: Any, values: Any, returns: Optional[str],
           item_on_failure: bool) -> Dict[str, Any]:
    return _write(Placeholders(names, values), table, condition, returns, item_on_failure, Key=to_item(key, "a key"))


def update(table: str, key: Any, text: Any, set: Any, add: Any, remove: Any, deleted: Any, condition: Any,
           names: Any, values: Any, returns: Optional[str], item_on_failure: bool) -> Dict[str, Any]:
    used = Placeholders(names, values)
    return _write(used, table, condition, returns, item_on_failure, Key=to_item(key, "a key"),
                  UpdateExpression=used.update(text, set, add, remove, deleted))


def get(table: str, key: Any, consistent: Optional[bool], attributes: Any, names: Any) -> Dict[str, Any]:
    used = Placeholders(names)
    return used.into({"TableName": table, "Key": to_item(key, "a key"), "ConsistentRead": consistent,
                      "ProjectionExpression": used.projection(attributes)})


def read(table: str, key: Any, index: Any, filter: Any, attributes: Any, consistent: Any, page_size: Any, start: Any,
         names: Any, values: Any, **members: Any) -> Dict[str, Any]:
    used = Placeholders(names, values)
    return used.into({
        "TableName": table, "IndexName": index, "KeyConditionExpression": used.condition(key, "the key"),
        "FilterExpression": used.condition(filter, "filter"), "ProjectionExpression": used.projection(attributes),
        "ConsistentRead": consistent, "Limit": page_size,
        "ExclusiveStartKey": to_item(start, "start") if start else None, **members,
    })


# ---- tables ---------------------------------------------------------------------------------------

_TYPES = {"S": "S", "N": "N", "B": "B", "string": "S", "number": "N", "binary": "B", str: "S", int: "N", bytes: "B"}
_STREAMS = {"keys": "KEYS_ONLY", "new": "NEW_IMAGE", "old": "OLD_IMAGE", "both": "NEW_AND_OLD_IMAGES"}


def _key(key: Any, types: Dict[str, str], what: str) -> List[Dict[str, str]]:
    if not isinstance(key, Mapping) or not 1 <= len(key) <= 2:
        raise invalid(f'{what} is one or two attributes, such as {{"customer": "string", "day": "number"}}')
    for name, kind in key.items():
        wanted = _TYPES.get(kind)
        if not wanted:
            raise invalid(f"the type of {name} is string, number or binary, not {kind!r}")
        if types.setdefault(name, wanted) != wanted:
            raise invalid(f"{name} has two types")
    return [{"AttributeName": name, "KeyType": "RANGE" if i else "HASH"} for i, name in enumerate(key)]


def _index(name: str, index: Any, types: Dict[str, str]) -> Dict[str, Any]:
    strange = set(index) - {"key", "attributes", "local"}
    if strange:
        raise invalid(f"the index {name} has no {', '.join(sorted(strange))}; it has key, attributes, local")
    attributes = index.get("attributes", "all")
    if attributes == "all":
        projection: Dict[str, Any] = {"ProjectionType": "ALL"}
    elif attributes == "keys":
        projection = {"ProjectionType": "KEYS_ONLY"}
    else:
        projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(attributes)}
    return {"IndexName": name, "KeySchema": _key(index.get("key"), types, f"the key of {name}"),
            "Projection": projection}


def create_table(table: str, key: Any, indexes: Any, stream: Optional[str]) -> Dict[str, Any]:
    types: Dict[str, str] = {}
    request: Dict[str, Any] = {"TableName": table, "KeySchema": _key(key, types, "key"),
                               "BillingMode": "PAY_PER_REQUEST"}
    for name, index in (indexes or {}).items():
        kind = "LocalSecondaryIndexes" if index.get("local") else "GlobalSecondaryIndexes"
        request.setdefault(kind, []).append(_index(name, index, types))
    if stream is not None:
        if stream not in _STREAMS:
            raise invalid(f"stream is one of {', '.join(_STREAMS)}, not {stream!r}")
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": _STREAMS[stream]}
    request["AttributeDefinitions"] = [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]
    return request
