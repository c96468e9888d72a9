"""Values with other fields, as `copy.replace` of Python 3.13 makes them, and tables with another column."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import pyarrow as pa
from msgspec import Struct, structs

V = TypeVar("V")


def replace(value: V, /, **changes: Any) -> V:
    """Return the same value with other fields."""
    if isinstance(value, Struct):
        return structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


def with_column(table: pa.Table, name: str, values: object) -> pa.Table:
    """Return the same table with other values of a column."""
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), pa.array(values))
