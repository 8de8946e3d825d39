"""Conditions, filters, projections and updates, with names and values of one's own.

    {"total": 5, "day": between(1, 3)}            attributes that equal, or are what the operator says
    expr("{} > {} AND NOT contains({}, {})", attr("total"), 5, attr("tags"), "old")
    "total > :min"  with  values={"min": 5}

Paths are names separated by dots, with [0] for elements of lists: "address.lines[0]". attr(["a.b"]) is a name
with a dot in it.
"""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from .errors import invalid
from .values import to_value

_STEP = re.compile(r"([^\[\]]+)((?:\[\d+\])*)")
Path = Union[str, Sequence[str]]


class Operator:
    def __init__(self, render: Callable[[str, Callable[[Any], str]], str]) -> None:
        self.render = render


class Attribute:
    def __init__(self, path: Path) -> None:
        self.path = path


class Expression:
    def __init__(self, text: str, operands: Sequence[Any]) -> None:
        self.parts = text.split("{}")
        self.operands = operands
        if len(self.parts) != len(operands) + 1:
            raise invalid(f'the expression "{text}" has {len(self.parts) - 1} {{}} and {len(operands)} operands')


Condition = Union[str, Expression, Mapping[str, Any]]


def attr(path: Path) -> Attribute:
    """An attribute as an operand of expr()."""
    return Attribute(path)


def expr(text: str, *operands: Any) -> Expression:
    """DynamoDB's text with {} for each operand: a value, an attr() or another expr()."""
    return Expression(text, operands)


def _compare(sign: str) -> Callable[[Any], Operator]:
    def compare(operand: Any) -> Operator:
        return Operator(lambda path, value: f"{path} {sign} {value(operand)}")
    return compare


eq, ne, lt, le, gt, ge = (_compare(sign) for sign in ("=", "<>", "<", "<=", ">", ">="))


def between(low: Any, high: Any) -> Operator:
    return Operator(lambda path, value: f"{path} BETWEEN {value(low)} AND {value(high)}")


def begins_with(prefix: Any) -> Operator:
    return Operator(lambda path, value: f"begins_with({path}, {value(prefix)})")


def contains(member: Any) -> Operator:
    return Operator(lambda path, value: f"contains({path}, {value(member)})")


def one_of(*operands: Any) -> Operator:
    return Operator(lambda path, value: f"{path} IN ({', '.join(value(each) for each in operands)})")


def exists() -> Operator:
    return Operator(lambda path, value: f"attribute_exists({path})")


def missing() -> Operator:
    return Operator(lambda path, value: f"attribute_not_exists({path})")


class Placeholders:
    """What the expressions of one request share."""

    def __init__(self, names: Optional[Mapping[str, str]] = None, values: Optional[Mapping[str, Any]] = None) -> None:
        self._names: Dict[str, str] = {}
        self._values: Dict[str, Any] = {}
        self._given_names = {name if name.startswith("#") else f"#{name}": each for name, each in (names or {}).items()}
        for name, each in (values or {}).items():
            self._values[name if name.startswith(":") else f":{name}"] = to_value(each, name)

    def path(self, path: Path) -> str:
        return ".".join(self._step(step) for step in path.split(".")) if isinstance(path, str) \
            else ".".join(self._name(name) for name in path)

    def _step(self, step: str) -> str:
        found = _STEP.fullmatch(step)
        if not found:
            raise invalid(f'"{step}" is not part of a path: names separated by dots, with [0] for elements of lists')
        return self._name(found[1]) + found[2]

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, f"#_{len(self._names)}")

    def value(self, value: Any, path: str = "") -> str:
        name = f":_{len(self._values)}"
        self._values[name] = to_value(value, path)
        return name

    def text(self, expression: Expression) -> str:
        made = expression.parts[0]
        for operand, part in zip(expression.operands, expression.parts[1:]):
            made += self._operand(operand) + part
        return made

    def _operand(self, operand: Any, path: str = "") -> str:
        if isinstance(operand, Attribute):
            return self.path(operand.path)
        return self.text(operand) if isinstance(operand, Expression) else self.value(operand, path)

    def condition(self, condition: Any, what: str) -> Optional[str]:
        if condition is None or isinstance(condition, str):
            return condition
        if isinstance(condition, Expression):
            return self.text(condition)
        if not isinstance(condition, Mapping):
            raise invalid(f"{what} is a dict of attributes, an expr() or DynamoDB's text")
        parts: List[str] = []
        for name, wanted in condition.items():
            path = self.path(name)
            parts.append(wanted.render(path, lambda each, name=name: self.value(each, name))  # type: ignore[misc]
                         if isinstance(wanted, Operator) else f"{path} = {self._operand(wanted, name)}")
        if not parts:
            raise invalid(f"{what} has no attributes")
        return " AND ".join(parts)

    def projection(self, attributes: Any) -> Optional[str]:
        if attributes is None or isinstance(attributes, str):
            return attributes
        return ", ".join(self.path(path) for path in attributes)

    def update(self, text: Any, set: Optional[Mapping[str, Any]], add: Optional[Mapping[str, Any]],
               remove: Optional[Sequence[str]], delete: Optional[Mapping[str, Any]]) -> str:
        if text is not None:
            if set or add or remove or delete:
                raise invalid("an update has either a text or set, add, remove and delete")
            return self.text(text) if isinstance(text, Expression) else str(text)
        if isinstance(remove, str):
            raise invalid(f"remove is a list of paths: [{remove!r}]")
        clauses = []
        for word, pairs, sign in (("SET", set, " = "), ("ADD", add, " "), ("DELETE", delete, " ")):
            if pairs:
                clauses.append(f"{word} " + ", ".join(
                    f"{self.path(path)}{sign}{self._operand(value, path)}" for path, value in pairs.items()))
        if remove:
            clauses.append("REMOVE " + ", ".join(self.path(path) for path in remove))
        if not clauses:
            raise invalid("the update changes nothing: it has no set, add, remove or delete")
        return " ".join(clauses)

    def into(self, request: Dict[str, Any]) -> Dict[str, Any]:
        names = {**self._given_names, **{each: name for name, each in self._names.items()}}
        if names:
            request["ExpressionAttributeNames"] = names
        if self._values:
            request["ExpressionAttributeValues"] = dict(self._values)
        return {name: value for name, value in request.items() if value is not None}
