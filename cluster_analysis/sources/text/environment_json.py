"""Environment variables that a capture records: ENV_VARIABLES of profiler_metadata.json, or of a database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.text.json_text import decode, read_bytes
from cluster_analysis.tables import schema

ENVIRONMENT_KEY = "ENV_VARIABLES"
#: Names, sorted, and values.
Variables = tuple[tuple[str, str], ...]


class _Metadata(msgspec.Struct):
    variables: dict[str, object] = msgspec.field(name=ENVIRONMENT_KEY, default_factory=dict)


_METADATA: msgspec.json.Decoder[_Metadata] = msgspec.json.Decoder(_Metadata)
_VARIABLES: msgspec.json.Decoder[dict[str, object]] = msgspec.json.Decoder(dict[str, object])


def read_environment(path: Path, rank: int, _: Remark) -> pa.Table | None:
    """Return ENVIRONMENT of profiler_metadata.json; None where it records no variable.

    Raises:
        BadFileError: the file cannot be read.
    """
    return _of_rank(rank, variables_of(read_bytes(path)))


def environment_of(rank: int, text: bytes) -> pa.Table | None:
    """Return ENVIRONMENT of a JSON object of variables; None where it has none.

    Raises:
        BadFileError: it is none.
    """
    variables = decode(text, _VARIABLES)
    return _of_rank(rank, _sorted(variables))


def variables_of(content: bytes) -> Variables:
    """Return the variables that the content of profiler_metadata.json records.

    Raises:
        BadFileError: they cannot be read.
    """
    # Most record none. The reader of the rest reports whether the file is damaged.
    if ENVIRONMENT_KEY.encode() not in content and b"\\" not in content:
        return ()
    return _sorted(decode(content, _METADATA).variables)


def environment_of_ranks(variables: Collection[tuple[int, Variables]]) -> pa.Table:
    """Return ENVIRONMENT of the variables of several ranks, one behind the other."""
    texts = [_texts(own) for _, own in variables]
    names, values = (pa.concat_arrays(one) for one in zip(*texts, strict=True))
    ranks = np.repeat(np.array([rank for rank, _ in variables], np.int32), [len(own) for _, own in variables])
    return pa.Table.from_arrays([pa.array(ranks), names, values], schema=schema.ENVIRONMENT)


def _of_rank(rank: int, variables: Variables) -> pa.Table | None:
    return environment_of_ranks([(rank, variables)]) if variables else None


def _sorted(variables: Mapping[str, object]) -> Variables:
    return tuple((name, str(variables[name])) for name in sorted(variables))


@lru_cache(maxsize=64)
def _texts(variables: Variables) -> tuple[pa.Array, pa.Array]:
    """Return names and values; most ranks of a job have the same ones."""
    names, values = zip(*variables, strict=True)
    return pa.array(names, pa.string()), pa.array(values, pa.string())
