"""JSON read more strictly than any reader of ours: what is odd is not for this program to judge."""

from __future__ import annotations

import json
import math
from typing import Any

from cluster_reduce.form import UnfitError

_MOST_DIGITS = 18


class Number(str):
    """A number as the file spells it."""

    __slots__ = ()


def strict_json(content: bytes) -> dict[str, Any]:
    """Return an object whose numbers are `Number`.

    Raises:
        UnfitError: not UTF-8, not JSON, no object, a key twice in one object, or a number such as NaN.
    """
    try:
        document = json.loads(
            content.decode(),
            object_pairs_hook=_once,
            parse_float=Number,
            parse_int=Number,
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError):
        raise UnfitError("not JSON") from None
    return object_of(document)


def object_of(value: object) -> dict[str, Any]:
    """Return a value that has to be an object."""
    if type(value) is not dict:
        raise UnfitError("not an object")
    return value


def text_of(value: object) -> str | None:
    """Return a text, or None for null."""
    if value is not None and type(value) is not str:
        raise UnfitError("not a text")
    return value


def float_of(value: object) -> float | None:
    """Return a number as float64, or None for null; a negative one is odd."""
    if value is None:
        return None
    return number_of(value)


def number_of(value: object) -> float:
    """Return a number as float64."""
    if type(value) is not Number or value.startswith("-") or (value.isdigit() and len(value) > _MOST_DIGITS):
        raise UnfitError("not a usual number")
    number = float(value)
    if not math.isfinite(number):
        raise UnfitError("a number beyond float64")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UnfitError("a key that stands twice")
    return found


def _refuse(name: str) -> None:
    raise UnfitError(name)
