"""The communication calls of one step as arrays: what matching, streams and replay work on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray, codes, numbers
from cluster_analysis.numeric.sorting import distinct
from cluster_analysis.tables.operations import Operation, record_of
from cluster_analysis.tables.schema import TRANSPORT_BYTES, TRANSPORT_TIMES
from cluster_analysis.thresholds.calls import DRIFT

#: Columns of COLLECTIVES that `calls_of` reads.
COLUMNS = (
    "rank",
    "group",
    "op_type",
    "op_index",
    "start_ns",
    "elapse_us",
    *TRANSPORT_BYTES,
    *TRANSPORT_TIMES,
    "payload_bytes",
)


class Calls(Struct, frozen=True, dict=True):
    """One entry a call of one rank, sorted by rank and start. Start and end are µs on the rank's own clock.

    `rank`, `group` and `kind` are positions in `ranks`, `groups` and `types`; `number` is the running
    number of the operator's name, -1 where there is none. `origin_us` (ranks,) is where each rank's clock
    starts on its host's, relative to the earliest one. `size_bytes` is NaN where no file tells it, and
    so is `busy_us`, the summed times of the links that carried the call. `rows` are those of COLLECTIVES, -1
    for a call that was filled in. `starts_agree` says whether starts of different ranks mean the same.
    """

    ranks: IntArray
    groups: tuple[str, ...]
    types: tuple[str, ...]
    rank: IntArray
    group: IntArray
    kind: IntArray
    number: IntArray
    start_us: FloatArray
    end_us: FloatArray
    elapse_us: FloatArray
    size_bytes: FloatArray
    busy_us: FloatArray
    origin_us: FloatArray
    has_clock: bool
    rows: npt.NDArray[np.int64]
    starts_agree: bool = True

    def __len__(self) -> int:
        return len(self.rank)

    @cached_property
    def surely_ended_us(self) -> FloatArray:
        """When each call had ended even on a clock that drifts (V,)."""
        return self.end_us - DRIFT * self.elapse_us

    @cached_property
    def is_send(self) -> BoolArray:
        """True for calls that only send."""
        return self._where(lambda one: one.is_send)

    @cached_property
    def is_point_to_point(self) -> BoolArray:
        """True for sends, receives and exchanges between two ranks, whatever the file calls them."""
        return self._where(lambda one: one.is_message)

    @cached_property
    def moves_gradients(self) -> BoolArray:
        """True for calls that add up what the ranks have computed: none has anything to send before."""
        return self.moving("gradients")

    def moving(self, what: str) -> BoolArray:
        """True for calls that move `weights`, `gradients`, or `tokens`, as `Operation.moves` says."""
        return self._where(lambda one: one.moves == what)

    @cached_property
    def is_receive(self) -> BoolArray:
        """True for calls that only receive."""
        return self._where(lambda one: one.is_receive)

    @cached_property
    def by_group(self) -> IntArray:
        """Calls in the order of their groups, in each the collectives first, then by rank and start."""
        return np.argsort(2 * self.group + self.is_point_to_point, kind="stable")

    @cached_property
    def collectives_by_group(self) -> IntArray:
        """The same without point-to-point calls."""
        return self.by_group[~self.is_point_to_point[self.by_group]]

    @cached_property
    def messages_by_group(self) -> IntArray:
        """Point-to-point calls in the order of their groups, then by rank and start."""
        return self.by_group[self.is_point_to_point[self.by_group]]

    @cached_property
    def _begin_of_rank(self) -> IntArray:
        return np.searchsorted(self.rank, np.arange(len(self.ranks) + 1))

    def of_rank(self, rank: int) -> slice:
        """Return where the calls of a rank (its position in `ranks`) lie."""
        return slice(int(self._begin_of_rank[rank]), int(self._begin_of_rank[rank + 1]))

    def _where(self, is_wanted: Callable[[Operation], bool]) -> BoolArray:
        return np.array([is_wanted(record_of(name)) for name in self.types], bool)[self.kind]


def with_more(calls: Calls, source: IntArray, **own: Any) -> tuple[Calls, IntArray]:
    """Return the calls with some more, and the place of each before (V,); new ones count behind the others.

    Args:
        calls: those that files record.
        source: the call that each new one is like (N,).
        own: columns (N,) in which the new ones differ.
    """
    n, times = len(calls), ("start_us", "end_us")
    rank, start, end = (np.concatenate([getattr(calls, name), own[name]]) for name in ("rank", *times))
    # Calls that begin at one time stay as they were: which of them overlaps the other hangs on their order.
    first = np.where(end[n:] > start[n:], n, -1)
    order = np.lexsort((np.r_[np.arange(n), first], start, rank))
    columns: dict[str, Any] = {
        name: np.concatenate([old, np.asarray(own.get(name, old[source])).astype(old.dtype)])[order]
        for name in ("rank", "group", "kind", "number", "size_bytes", "busy_us", *times)
        for old in (getattr(calls, name),)
    }
    rows = np.concatenate([calls.rows, np.full(len(source), -1)])[order]
    return replace(calls, elapse_us=columns["end_us"] - columns["start_us"], rows=rows, **columns), order


def calls_of(collectives: pa.Table, *, starts_agree: bool = True) -> Calls:
    """Turn the COLLECTIVES rows of one step into `Calls`; rows without an elapse time are left out."""
    elapse = numbers(collectives["elapse_us"])
    usable = np.flatnonzero(np.isfinite(elapse) & (elapse >= 0))
    table = collectives.select(COLUMNS)
    if len(usable) < len(elapse):
        table = table.take(pa.array(usable))
    start_ns = table["start_ns"].fill_null(-1).to_numpy()
    has_clock = bool(len(start_ns)) and bool((start_ns > 0).all())
    ranks, rank = distinct(table["rank"].to_numpy())
    number = table["op_index"].fill_null(-1).to_numpy()
    # A rank's clock counts from its first call: nanoseconds since 1970 do not fit a float64.
    origin = np.full(len(ranks), np.iinfo(np.int64).max)
    np.minimum.at(origin, rank, start_ns)
    since = start_ns - origin[rank]
    order = _by_rank_and_start(rank, since, number) if has_clock else np.argsort(rank, kind="stable")
    start_us = since[order] / 1e3
    groups, group = codes(table["group"])
    types, kind = codes(table["op_type"])
    elapse_us = elapse[usable][order]
    sizes = _sizes(table)
    return Calls(
        ranks=ranks.astype(np.int32),
        groups=groups,
        types=types,
        rank=rank[order].astype(np.int32),
        group=group[order],
        kind=kind[order],
        number=number[order].astype(np.int32),
        start_us=start_us,
        end_us=start_us + elapse_us,
        elapse_us=elapse_us,
        size_bytes=sizes[order],
        busy_us=_busy(table)[order],
        origin_us=(origin - origin.min(initial=np.iinfo(np.int64).max)) / 1e3,
        has_clock=has_clock,
        starts_agree=starts_agree,
        rows=usable[order],
    )


def _sizes(table: pa.Table) -> FloatArray:
    """Bytes on the links for each call (N,), its payload where no transport is known; else NaN."""
    carried = [numbers(table[name]) for name in TRANSPORT_BYTES]
    sizes = np.zeros(table.num_rows)
    for size in carried:
        sizes += size if np.isfinite(size).all() else np.nan_to_num(size)
    unknown = np.logical_and.reduce([np.isnan(size) for size in carried])
    if unknown.any():
        sizes[unknown] = numbers(table["payload_bytes"])[unknown]
    return sizes


def _busy(table: pa.Table) -> FloatArray:
    """Busy time of the links of each call (N,), summed; NaN where no file has it."""
    busy = np.zeros(table.num_rows)
    for name in TRANSPORT_TIMES:
        time = numbers(table[name])
        np.add(busy, time, out=busy, where=~np.isnan(time))
    busy[~(busy > 0)] = np.nan
    return busy


def _by_rank_and_start(rank: IntArray, since_ns: IntArray, number: IntArray) -> IntArray:
    """The order of calls; those that a rank starts at one time by their running numbers."""
    longest = int(since_ns.max(initial=0)) + 1
    if longest * (int(rank.max(initial=0)) + 1) > np.iinfo(np.int64).max:
        return np.lexsort((number, since_ns, rank))
    key = rank.astype(np.int64) * longest + since_ns
    # Stable: files hold a rank's calls in a few runs that are in order, which are merged quickly.
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    return np.lexsort((number, since_ns, rank)) if (ordered[1:] == ordered[:-1]).any() else order


def on_device_us(steps: pa.Table) -> FloatArray:
    """Time of each row's step (N,) from the device's first activity to its last; NaN where unknown."""
    parts = (numbers(steps[f"{name}_us"]) for name in ("computing", "communication_not_overlapped", "free"))
    return np.asarray(sum(parts), np.float64)
