"""Packet sizes, summed exactly over the operators of a group: as the compiled reader did, or of entries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.communication_tables import PacketEntries
from cluster_analysis.sources.errors import Remark, left_out
from cluster_analysis.tables import schema
from cluster_analysis.tables.sent import TRANSPORTS

_SORTED_TRANSPORTS = tuple(sorted(TRANSPORTS))
#: Sums of the compiled reader, as in packet_totals.h.
_TOTAL = np.dtype(
    [("n", np.float64), ("ms", np.float64)]
    + [(name, np.int32) for name in ("file", "step", "group", "transport", "size", "unused")]
)
_PLACES = np.array([_SORTED_TRANSPORTS.index(name) for name in TRANSPORTS])


def packet_sums(rank: int, entries: PacketEntries, remark: Remark) -> pa.Table:
    """Return PACKETS, in order; `remark` is called for sizes that are no number.

    The sums are exact, so the order of the entries makes no difference.
    """
    if not len(entries.sizes):
        return schema.empty(schema.PACKETS)
    steps, step_places = np.unique(entries.steps, return_inverse=True)
    names, group_places = _groups(entries.groups)
    sizes, size_places = _sizes(entries.sizes)
    # One number names step, group, transport and size, in the order of the table.
    shape = (len(steps), len(names), len(TRANSPORTS), len(sizes))
    places = (step_places, group_places, _PLACES[entries.transports], size_places)
    codes = np.ravel_multi_index(places, shape)
    order = np.argsort(codes, kind="stable")
    is_bad = np.isnan(sizes[size_places[order]])
    if is_bad.any():
        remark(left_out(int(is_bad.sum()), "packet_size", "no_number"))
        order = order[~is_bad]
    if not len(order):
        return schema.empty(schema.PACKETS)
    sorted_codes = codes[order]
    begins = np.concatenate(([0], np.flatnonzero(sorted_codes[1:] != sorted_codes[:-1]) + 1))
    parts = list(pairwise([*begins.tolist(), len(order)]))
    counts, times_ms = (
        [math.fsum(own[begin:end]) for begin, end in parts] for own in entries.figures[order].T.tolist()
    )
    at = np.unravel_index(sorted_codes[begins], shape)
    named = [names[place] for place in at[1].tolist()]
    owners = np.zeros(len(named), np.int64)
    return _table([rank], owners, steps[at[0]], named, at[2].tolist(), sizes[at[3]], counts, times_ms)


def packets_of_totals(
    ranks: Sequence[int], totals: bytes, steps: npt.NDArray[np.int64], groups: pa.Array, sizes: pa.Array
) -> pa.Table | None:
    """Return the same from the compiled reader's sums; None where sizes must be looked at one by one.

    Args:
        ranks: the ranks.
        totals: as packet_totals.h has them.
        steps: the step of each key, no two of which name one.
        groups: the groups' names.
        sizes: the sizes, as texts.
    """
    numeric, n_bad = numbers.to_float64(sizes)
    known = numeric.to_numpy(zero_copy_only=False)
    if n_bad or numeric.null_count or len(np.unique(known)) < len(known):
        return None
    found = np.frombuffer(totals, _TOTAL)
    names = groups.to_pylist()
    place_of = np.argsort(sorted(range(len(names)), key=names.__getitem__))
    transports, step, size = _PLACES[found["transport"]], steps[found["step"]], known[found["size"]]
    order = np.lexsort((size, transports, place_of[found["group"]], step, found["file"]))
    found = found[order]
    owner = found["file"].astype(np.int64)
    named = [names[group] for group in found["group"].tolist()]
    counts, times_ms = found["n"].tolist(), found["ms"].tolist()
    return _table(ranks, owner, step[order], named, transports[order].tolist(), size[order], counts, times_ms)


def _table(
    ranks: Sequence[int],
    owners: npt.NDArray[np.int64],
    steps: npt.NDArray[np.int64],
    groups: list[str],
    transports: list[int],
    sizes: npt.NDArray[np.float64],
    counts: list[float],
    times_ms: list[float],
) -> pa.Table:
    columns = {
        "rank": pa.array(np.array(ranks, np.int32)[owners]),
        "step": pa.array(steps, pa.int64()),
        "group": numbers.encoded(groups),
        "transport": numbers.encoded([_SORTED_TRANSPORTS[place] for place in transports]),
        "packet_bytes": pa.array(sizes * numbers.BYTES_PER_MB),
        "n_packets": pa.array(list(map(round, counts)), pa.int64()),
        "total_us": pa.array([time_ms * numbers.US_PER_MS for time_ms in times_ms], pa.float64()),
    }
    return pa.table(columns, schema=schema.PACKETS)


def _groups(groups: pa.DictionaryArray) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the names of all groups, sorted, and the place of each entry's group among them."""
    known = groups.dictionary.to_pylist()
    order = sorted(range(len(known)), key=known.__getitem__)
    return [known[at] for at in order], np.argsort(order)[groups.indices.to_numpy()]


def _sizes(encoded: pa.DictionaryArray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the distinct sizes, sorted, NaN last for what is no number, and each text's place among them."""
    # One number can be written in two ways.
    numeric, _ = numbers.to_float64(encoded.dictionary)
    known, places = np.unique(numeric.to_numpy(zero_copy_only=False), return_inverse=True)
    return known, places[encoded.indices.to_numpy()]
