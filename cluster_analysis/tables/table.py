"""How a table is declared: a class whose attributes are its columns, each with its type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import pyarrow as pa


class _Column(str):
    """A column whose table is not made yet: its type alone is known."""

    kind: pa.DataType

    @classmethod
    def of(cls, kind: pa.DataType) -> _Column:
        """Return a column of this type."""
        column = cls()
        column.kind = kind
        return column


FLOAT64: str = _Column.of(pa.float64())
INT32: str = _Column.of(pa.int32())
INT64: str = _Column.of(pa.int64())
TEXT: str = _Column.of(pa.string())
#: Texts that many rows share.
CATEGORY: str = _Column.of(pa.dictionary(pa.int32(), pa.string()))
BINARY: str = _Column.of(pa.binary())
LIST_OF_INT32: str = _Column.of(pa.list_(pa.int32()))


class Table:
    """A table: `schema` has the types of its columns, and each attribute is the name of its own.

    A table that is made of another one has its own columns first, then those of the other.
    """

    schema: ClassVar[pa.Schema] = pa.schema([])

    def __init_subclass__(cls) -> None:
        columns = {name: one for name, one in vars(cls).items() if isinstance(one, _Column)}
        cls.schema = pa.schema([*((name, one.kind) for name, one in columns.items()), *cls.schema])
        for name in cls.schema.names:
            setattr(cls, name, name)

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, object]]) -> pa.Table:
        """Return these rows; what one of them lacks is null."""
        return pa.Table.from_pylist(list(rows), schema=cls.schema)
