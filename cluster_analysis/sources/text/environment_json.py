"""Environment variables that a capture records: ENV_VARIABLES of profiler_metadata.json, or of a database."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pyarrow as pa

from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.text.json_text import decode, read_bytes
from cluster_analysis.tables import schema

ENVIRONMENT_KEY = "ENV_VARIABLES"


class _Metadata(msgspec.Struct):
    variables: dict[str, object] = msgspec.field(name=ENVIRONMENT_KEY, default_factory=dict)


_METADATA: msgspec.json.Decoder[_Metadata] = msgspec.json.Decoder(_Metadata)
_VARIABLES: msgspec.json.Decoder[dict[str, object]] = msgspec.json.Decoder(dict[str, object])


def read_environment(path: Path, rank: int, _: Remark) -> pa.Table | None:
    """Return ENVIRONMENT of profiler_metadata.json; None where it records no variable."""
    content = read_bytes(path)
    # Most record none. The reader of the rest reports whether the file is damaged.
    if ENVIRONMENT_KEY.encode() not in content and b"\\" not in content:
        return None
    return _table(rank, decode(content, _METADATA).variables)


def environment_of(rank: int, text: bytes) -> pa.Table | None:
    """Return ENVIRONMENT of a JSON object of variables; None where it has none."""
    variables = decode(text, _VARIABLES)
    return _table(rank, variables)


def _table(rank: int, variables: Mapping[str, object]) -> pa.Table | None:
    if not variables:
        return None
    names = sorted(variables)
    values = [str(variables[name]) for name in names]
    return schema.rows(schema.ENVIRONMENT, rank, variable=names, value=values)
