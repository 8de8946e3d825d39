"""What calls fail with."""
from __future__ import annotations

from typing import Any, Dict, List, Optional


class HoldfastError(Exception):
    """`code` is one of docs/errors.md, such as "HF_CONDITION".

    `retryable`: the same call may succeed later. `may_have_happened`: the effect may be there although the
    call failed. `item` and `reasons` are there if they were asked for, as plain values.
    """

    code: str
    retryable: bool
    may_have_happened: bool
    item: Optional[Dict[str, Any]]
    reasons: List[Dict[str, Any]]

    def __init__(self, code: str, message: str, *, retryable: bool = False, may_have_happened: bool = False,
                 details: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.may_have_happened = may_have_happened
        self.details = details or {}
        self.item = None
        self.reasons = []

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def __reduce__(self) -> Any:
        return (_again, (self.code, self.message, self.__dict__))


def _again(code: str, message: str, state: Dict[str, Any]) -> HoldfastError:
    error = HoldfastError(code, message)
    error.__dict__.update(state)
    return error


class PermanentError(Exception):
    """Raised by a handler: to try again is of no use. Any exception with a true `permanent` says the same."""

    permanent = True


def invalid(message: str) -> HoldfastError:
    return HoldfastError("HF_INVALID", message)


def error_from(error: Dict[str, Any], what: str) -> HoldfastError:
    from .values import from_item

    code = error.get("code", "HF_INTERNAL")
    made = HoldfastError(code, error.get("message") or error.get("Message") or f"{what} failed with {code}",
                         retryable=error.get("retryable", False),
                         may_have_happened=error.get("may_have_happened", False), details=error)
    item = error.get("Item") or error.get("item")
    if item:
        made.item = from_item(item)
    for reason in error.get("CancellationReasons") or []:
        made.reasons.append({"code": reason.get("Code"), "message": reason.get("Message"),
                             "item": from_item(reason["Item"]) if reason.get("Item") else None})
    return made
