"""Environment variables that a capture records: ENV_VARIABLES of profiler_metadata.json, or META_DATA."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db.sqlite import open_database
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.text.json_text import decode, read_bytes
from cluster_analysis.tables import schema

_KEY = "ENV_VARIABLES"


class _Metadata(msgspec.Struct):
    variables: dict[str, object] = msgspec.field(name=_KEY, default_factory=dict)


_METADATA: msgspec.json.Decoder[_Metadata] = msgspec.json.Decoder(_Metadata)
_VARIABLES: msgspec.json.Decoder[dict[str, object]] = msgspec.json.Decoder(dict[str, object])


def read_environment(path: Path, rank: int, _: Remark) -> pa.Table | None:
    """Return ENVIRONMENT of profiler_metadata.json; None where it records no variable.

    Raises:
        BadFileError: the file cannot be read; so does the reader below.
    """
    content = read_bytes(path)
    # Most record none, and whether the file is damaged is told by whoever reads the rest of it.
    if _KEY.encode() not in content and b"\\" not in content:
        return None
    return _table(rank, decode(content, _METADATA).variables)


def read_db_environment(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return ENVIRONMENT of a profiler database's META_DATA; None where it records no variable."""
    with open_database(path, remark) as database:
        if not database.has("META_DATA", "name", "value"):
            return None
        rows = database.rows("SELECT value FROM META_DATA WHERE name = ?", (_KEY,))
    if not rows:
        return None
    variables = decode(str(rows[0][0]).encode(), _VARIABLES)
    return _table(rank, variables)


def _table(rank: int, variables: Mapping[str, object]) -> pa.Table | None:
    if not variables:
        return None
    names, values = _texts(tuple((name, str(variables[name])) for name in sorted(variables)))
    ranks = numbers.constant(rank, len(variables), pa.int32())
    return pa.Table.from_arrays([ranks, names, values], schema=schema.ENVIRONMENT)


@lru_cache(maxsize=64)
def _texts(variables: tuple[tuple[str, str], ...]) -> tuple[pa.Array, pa.Array]:
    """Return names and values; most ranks of a job have the same ones."""
    names, values = zip(*variables, strict=True)
    return pa.array(names, pa.string()), pa.array(values, pa.string())
