"""The columns of communication_matrix.json → the table that the file itself gives, of one or more files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.columns.columns import Columns
from cluster_analysis.sources.columns.levels import Levels
from cluster_analysis.sources.columns.name_columns import Names
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.link_names import Described, LinkNames, links_table
from cluster_analysis.sources.measured import MEASURED_LINKS, NEEDED_LINKS, tell_missing, without_negative
from cluster_analysis.sources.names import Coded, shared_texts
from cluster_analysis.tables import schema
from cluster_run.facts import fact


class LinkFile:
    """The links of one file, as arrays.

    Raises:
        BadFileError: the columns are damaged.
    """

    def __init__(self, file: Columns, rank: int) -> None:
        levels = Levels(file, "n_links", "src_local")
        self.rank = rank
        self.n_rows = levels.n_rows
        self.steps = levels.steps
        self.is_p2p = levels.is_p2p
        self.operators, self.keys = (levels.of_rows(file.names(name)) for name in ("op_name", "key"))
        self.sources, self.destinations = (
            _local_ranks(levels.of_rows(file.ints(name))) for name in ("src_local", "dst_local")
        )
        transports, known = file.coded("transport")
        self.transports: Coded = (levels.of_rows(transports), known)
        self.sizes_mb, self.times_ms = (levels.of_rows(file.floats(name)) for name in ("size_mb", "time_ms"))


def links_of(files: Sequence[LinkFile], remark: Remark) -> pa.Table:
    """Return LINKS of one or more files, one file behind the other; what they lack goes to `remark`."""
    table = _table(files)
    tell_missing(table, NEEDED_LINKS, remark)
    return without_negative(table, MEASURED_LINKS, remark)


def _table(files: Sequence[LinkFile]) -> pa.Table:
    counts = [one.n_rows for one in files]
    if not sum(counts):
        return schema.empty(schema.LINKS)
    filed_p2p = pa.array(np.concatenate([one.is_p2p for one in files]))
    columns = {
        "rank": pa.array(np.repeat(np.array([one.rank for one in files], np.int32), counts)),
        "step": pa.array(np.concatenate([one.steps for one in files])),
        "src_local": pa.array(np.concatenate([one.sources for one in files])),
        "dst_local": pa.array(np.concatenate([one.destinations for one in files])),
        "transport": shared_texts([one.transports for one in files]),
        "size_bytes": _scaled([one.sizes_mb for one in files], numbers.BYTES_PER_MB),
        "time_us": _scaled([one.times_ms for one in files], numbers.US_PER_MS),
    }
    return links_table(_described(files), filed_p2p, columns)


def _described(files: Sequence[LinkFile]) -> Described:
    """Return what `LinkNames` makes of the entries' names; one without letters names no operator."""
    keys, operators = (Names.joined([getattr(one, name) for one in files]) for name in ("keys", "operators"))
    (known_keys, key_places), (known, places) = keys.distinct(), operators.distinct()
    texts = known.texts()
    is_none = np.array([text == "" for text in texts.to_pylist()], bool)
    given = np.where(is_none[places], -1, places)
    owners = np.repeat(np.arange(len(files)), [one.n_rows for one in files])
    return LinkNames(key_places, known_keys.texts().to_pylist(), owners, given, texts).described()


def _scaled(values: Sequence[npt.NDArray[np.float64]], factor: float) -> pa.Array:
    """Return values times factor; NaN becomes null."""
    with np.errstate(over="ignore"):
        return pa.array(np.concatenate(values) * factor, from_pandas=True)


def _local_ranks(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    local = values.astype(np.int32)
    if (local != values).any():
        raise BadFileError(fact("not_of_form", detail="columns: ranks"))
    return local
