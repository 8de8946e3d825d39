"""Python's values as DynamoDB's, and back.

    str                     S
    int, Decimal, float     N; a float by its shortest text, so float() of what is read is the same float
    bool                    BOOL
    None                    NULL
    bytes, bytearray        B
    list, tuple             L
    dict                    M
    set, frozenset          SS, NS or BS: of strings, of numbers or of bytes, not empty

On the way back a number is an int if it is whole, otherwise a Decimal: nothing is rounded, and both can be mixed.
"""
from __future__ import annotations

import base64
import datetime
import math
from decimal import Decimal
from typing import Any, Dict, Mapping

from .errors import invalid

DEPTH_MAX = 100  # DynamoDB refuses more than 32 levels; this is against circles


def _bad(path: str, message: str) -> Exception:
    return invalid(f"{path or 'the value'}: {message}")


def _number(value: Any, path: str) -> str:
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _bad(path, f"{value} is not a number that can be stored")
        return float.__repr__(value)
    if not value.is_finite():
        raise _bad(path, f"{value} is not a number that can be stored")
    return str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode()


def _set(value: Any, path: str) -> Dict[str, Any]:
    members = list(value)
    if not members:
        raise _bad(path, "a set must not be empty: leave the attribute out instead")
    if all(isinstance(each, str) for each in members):
        return {"SS": members}
    if all(_is_number(each) for each in members):
        return {"NS": [_number(each, path) for each in members]}
    if all(isinstance(each, (bytes, bytearray)) for each in members):
        return {"BS": [_base64(each) for each in members]}
    raise _bad(path, "a set has strings, numbers or bytes, all of one kind")


def _hint(value: Any) -> str:
    if isinstance(value, (datetime.date, datetime.time)):
        return f"a {type(value).__name__} has no type of its own: store value.isoformat() or value.timestamp()"
    return (f"{type(value).__name__} cannot be stored: use str, int, Decimal, float, bool, None, bytes, list, dict "
            "or set")


def to_value(value: Any, path: str = "", depth: int = 0) -> Dict[str, Any]:
    """One value. `path` is where it stands, for errors."""
    if isinstance(value, str):
        return {"S": value}
    if value is True or value is False:
        return {"BOOL": value}
    if _is_number(value):
        return {"N": _number(value, path)}
    if value is None:
        return {"NULL": True}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"B": _base64(value)}
    if depth > DEPTH_MAX:
        raise _bad(path[:60], "more than 100 levels: is there a circle?")
    if isinstance(value, Mapping):
        return {"M": _map(value, path, depth + 1)}
    if isinstance(value, (list, tuple)):
        return {"L": [to_value(each, f"{path}[{i}]", depth + 1) for i, each in enumerate(value)]}
    if isinstance(value, (set, frozenset)):
        return _set(value, path)
    raise _bad(path, _hint(value))


def _map(value: Mapping[str, Any], path: str, depth: int) -> Dict[str, Any]:
    made = {}
    for name, each in value.items():
        if not isinstance(name, str):
            raise _bad(path, f"names of attributes are strings, and {name!r} is not")
        made[name] = to_value(each, f"{path}.{name}" if path else name, depth)
    return made


def to_item(item: Any, what: str = "an item") -> Dict[str, Any]:
    if not isinstance(item, Mapping):
        raise invalid(f"{what} is a dict, not a {type(item).__name__}")
    return _map(item, "", 1)


def to_number(text: str) -> Any:
    if text.isdigit() or (text[:1] == "-" and text[1:].isdigit()):
        return int(text)
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else number


def from_value(value: Mapping[str, Any]) -> Any:
    for kind, inner in value.items():
        if kind in ("S", "BOOL"):
            return inner
        if kind == "N":
            return to_number(inner)
        if kind == "NULL":
            return None
        if kind == "M":
            return from_item(inner)
        if kind == "L":
            return [from_value(each) for each in inner]
        if kind == "B":
            return base64.b64decode(inner)
        if kind == "SS":
            return set(inner)
        if kind == "NS":
            return {to_number(each) for each in inner}
        if kind == "BS":
            return {base64.b64decode(each) for each in inner}
    raise invalid(f"DynamoDB has no value {value!r}")


def from_item(item: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: from_value(value) for name, value in item.items()}
