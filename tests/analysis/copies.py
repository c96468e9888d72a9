"""Values with other fields, of dataclasses and Structs: what Python has as `copy.replace` from 3.13 on."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from msgspec import Struct, structs

V = TypeVar("V")


def replace(value: V, /, **changes: Any) -> V:
    """Return the same value with other fields."""
    if isinstance(value, Struct):
        return structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]
