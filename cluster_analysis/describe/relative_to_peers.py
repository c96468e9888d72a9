"""Each rank and host relative to its peers in the same steps: the fleet's record of a run.

Findings are not used: which ranks they name, and how often, depends on what else was wrong in a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import FloatArray, IntArray, codes, numbers
from cluster_analysis.numeric.grouped import medians_of, quantiles_of
from cluster_analysis.numeric.sorting import combined
from cluster_analysis.numeric.stats import MEDIAN_SE, median, sigma
from cluster_analysis.tables.columns_described import RelativeToPeers
from cluster_analysis.tables.kernels import is_fused
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import CARD_COUNTERS

#: Kernels are the same work only where they are called as often, give or take lost records.
_TOLERANCE = 0.02
#: Healthy hosts differ by less: of computing, of the step, of the clock.
_ALIKE = 0.01
#: Fewer peers are no comparison.
_FEWEST = 3
_PURE = ("hcom_", "hccl_", "lccl_")
_CLOCK = "aicore_frequency_mhz"


@dataclass(frozen=True)
class Measured:
    """One metric of a run. `of` are ranks (U,), or positions of hosts; more is slower.

    `errors` are standard errors, NaN where the run does not show it.
    """

    metric: str
    of: IntArray
    values: FloatArray
    errors: FloatArray
    is_of_hosts: bool = False


def relative_to_peers(tables: Mapping[str, pa.Table], topology: Topology) -> pa.Table:
    """Return `RelativeToPeers` of kernels, operators, steps, links and counters."""
    hosts = sorted(set(topology.hosts.values()))
    position = {host: at for at, host in enumerate(hosts)}
    host_of = {int(rank): position[host] for rank, host in topology.hosts.items()}
    stage_of = {int(rank): stage for rank, stage in topology.stages.items()}
    found = []
    for one in _measured(tables, stage_of, host_of):
        of = pa.array(one.of, pa.int32())
        none = pa.nulls(len(of), pa.int32())
        named = pa.array([str(hosts[at]) for at in one.of.tolist()] if one.is_of_hosts else [None] * len(of))
        columns = [
            pa.array([one.metric] * len(of), pa.string()),
            none if one.is_of_hosts else of,
            named,
            pa.array(one.values),
            pa.array(one.errors, from_pandas=True),
        ]
        found.append(pa.table(columns, names=RelativeToPeers.schema.names).cast(RelativeToPeers.schema))
    return pa.concat_tables([RelativeToPeers.schema.empty_table(), *found])


def _measured(
    tables: Mapping[str, pa.Table], stage_of: Mapping[int, int], host: Mapping[int, int]
) -> Iterator[Measured]:
    for name in ("kernels", "operators"):
        found = same_kernels(tables[name], stage_of, host) if tables[name].num_rows else None
        if found is not None:
            yield found
            break
    else:
        yield from _computing(tables["steps"], stage_of, host)
    yield from _idle(tables["steps"], stage_of, host)
    yield from links(tables["links"])
    counters = _of_metric(tables["counters"], _CLOCK)
    if counters.num_rows >= _FEWEST:
        ranks = _whole(counters, "rank")
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = -np.log(numbers(counters["value"]))
        yield _of_ranks("clock", ranks, _beyond(lower, np.zeros_like(ranks), _positions(ranks, host)))
    yield from counted(tables["counters"])


def counted(counters: pa.Table) -> Iterator[Measured]:
    """Give what the network card of each rank counts, of all its ports."""
    for name in CARD_COUNTERS:
        rows = _of_metric(counters, name)
        of, at = np.unique(_whole(rows, "rank"), return_inverse=True)
        if len(of) >= _FEWEST:
            total = np.asarray(np.bincount(at, np.nan_to_num(numbers(rows["value"]))), float)
            yield _of_ranks(f"counter:{name}", of, total)


def same_kernels(table: pa.Table, stage_of: Mapping[int, int], host: Mapping[int, int]) -> Measured | None:
    """Return the log ratio of the same kernels and shapes to the peers of a rank's stage.

    A call's mean time against that of the ranks of the stage that call it as often, averaged over the
    kernels by the time that they take; the error is that of this average, by how far the kernels differ.
    """
    types, of_type = codes(table["op_type"])
    computes = [bool(one) and not (is_fused(one) or one.lower().startswith(_PURE)) for one in types]
    table = table.filter(pa.array(np.array(computes, bool)[of_type]))
    keys = [name for name in ("op_type", "core_type", "name", "input_shapes") if name in table.column_names]
    own, row = np.unique(_whole(table, "rank"), return_inverse=True)
    n_kinds, kind = combined(_stages(own, stage_of)[row], *(codes(table[name])[1] for name in keys))
    _, cell = combined(np.asarray(row, np.int64), np.asarray(kind, np.int64))
    n_cells = int(cell.max(initial=-1)) + 1
    spent, calls = (
        np.asarray(np.bincount(cell, np.nan_to_num(numbers(table[one])), n_cells), float)
        for one in ("total_us", "n_calls")
    )
    first = np.zeros(n_cells, np.int64)
    first[cell] = np.arange(len(cell))
    row, kind = row[first], kind[first]
    with np.errstate(divide="ignore", invalid="ignore"):
        often = np.abs(calls / medians_of(calls, kind)[kind] - 1)
        log_us = np.where((often <= _TOLERANCE) & (spent > 0), np.log(spent / calls), np.nan)
    n_peers = np.bincount(kind, np.isfinite(log_us), n_kinds)
    longer = _beyond(log_us, kind, _positions(own, host)[row])
    counts = np.isfinite(longer) & (n_peers[kind] >= _FEWEST)
    if not counts.any():
        return None
    weight = np.where(counts, medians_of(spent, kind)[kind], 0.0)
    longer = np.where(counts, longer, 0.0)
    total = np.bincount(row, weight, len(own))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.bincount(row, weight * longer, len(own)) / total
        squares = np.bincount(row, (weight * (longer - value[row])) ** 2, len(own))
        error = np.sqrt(squares) / total
    return _of_ranks("compute", own, value, error)


def _computing(steps: pa.Table, stage_of: Mapping[int, int], host: Mapping[int, int]) -> Iterator[Measured]:
    """Without kernels: what a rank computes in each step, relative to its stage; samples make errors wide."""
    ranks, series = _by_step(steps, "computing_us")
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(series > 0, series, np.nan))
    if len(ranks) >= _FEWEST and np.isfinite(logs).any():
        relative = _beyond_by_step(logs, _stages(ranks, stage_of), _positions(ranks, host))
        yield _of_ranks("compute", ranks, *_mean_and_error(relative))


def _idle(steps: pa.Table, stage_of: Mapping[int, int], host: Mapping[int, int]) -> Iterator[Measured]:
    """What hosts lose by launching kernels and by input, as shares of the step beyond the typical rank's."""
    ranks, computing = _by_step(steps, "computing_us")
    parts = {name: _by_step(steps, f"{name}_us")[1] for name in ("free", "preparing")}
    whole = computing + _by_step(steps, "communication_not_overlapped_us")[1]
    whole = whole + np.nan_to_num(parts["free"]) + np.nan_to_num(parts["preparing"])
    stage = _stages(ranks, stage_of)
    place = _positions(ranks, host)
    known = np.flatnonzero(place >= 0)
    hosts, host_of = np.unique(place[known], return_inverse=True)
    if len(hosts) < _FEWEST:
        return
    for metric, name in (("dispatch", "free"), ("input", "preparing")):
        with np.errstate(divide="ignore", invalid="ignore"):
            share = parts[name] / whole
        if np.isfinite(share).any():
            beyond = _beyond_by_step(share, stage, place)
            # By step: the middle of the host's ranks, so that one rank makes no slow host.
            of_hosts = np.stack([medians_of(of_step, host_of) for of_step in beyond[known].T], axis=1)
            yield Measured(metric, hosts, *_mean_and_error(of_hosts), is_of_hosts=True)


def links(table: pa.Table) -> Iterator[Measured]:
    """Give for each transport how much slower the links of a rank are than links of their size and kind.

    A rank's own fault slows all its links of one direction, so that the fastest of them counts; of both
    directions the slower one. So a slow link between two healthy ranks names neither of them.
    """
    if not table.num_rows:
        return
    names = table["transport"].cast(pa.string()).to_pylist()
    src, dst = (_whole(table, name) for name in ("src_rank", "dst_rank"))
    slower = np.log1p(np.maximum(numbers(table["excess_share"]), -0.9))
    for transport in sorted({one for one in names if one and one.upper() != "LOCAL"}):
        rows = np.flatnonzero((np.array(names) == transport) & np.isfinite(slower))
        if not len(rows):
            continue
        ranks = np.unique(np.r_[src[rows], dst[rows]])
        worst = np.full(len(ranks), -np.inf)
        for end in (src, dst):
            best = np.full(len(ranks), np.inf)
            np.minimum.at(best, np.searchsorted(ranks, end[rows]), slower[rows])
            worst = np.maximum(worst, np.where(np.isfinite(best), best, -np.inf))
        if len(ranks) >= _FEWEST:
            yield _of_ranks(f"link:{transport}", ranks, worst)


def _beyond(values: FloatArray, group: IntArray, host: IntArray) -> FloatArray:
    """Return what each value (N,) lies above the middle of its group, without hosts that are slow as a whole.

    Of two hosts the slower one is: the middle of all their ranks lies halfway to it.
    """
    _, part = combined(group, host)
    of_host = np.where(np.isfinite(values), medians_of(values, part)[part], np.nan)
    is_usual = of_host <= quantiles_of(of_host, group, 0.5)[group] + _ALIKE
    return values - medians_of(np.where(is_usual, values, np.nan), group)[group]


def _beyond_by_step(series: FloatArray, group: IntArray, host: IntArray) -> FloatArray:
    return np.stack([_beyond(of_step, group, host) for of_step in series.T], axis=1)


def _of_ranks(metric: str, ranks: IntArray, values: FloatArray, errors: FloatArray | None = None) -> Measured:
    known = np.isfinite(values)
    errors = np.full(len(values), np.nan) if errors is None else errors
    return Measured(metric, ranks[known], values[known], errors[known])


def _by_step(steps: pa.Table, name: str) -> tuple[IntArray, FloatArray]:
    ranks, row = np.unique(_whole(steps, "rank"), return_inverse=True)
    in_order, column = np.unique(_whole(steps, "step"), return_inverse=True)
    values = np.full((len(ranks), len(in_order)), np.nan)
    values[row, column] = numbers(steps[name])
    return ranks, values


def _mean_and_error(series: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The middle over steps and its error; NaN with one step."""
    n = np.isfinite(series).sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return median(series, 1), np.where(n > 1, MEDIAN_SE * sigma(series, 1) / np.sqrt(n), np.nan)


def _whole(table: pa.Table, name: str) -> IntArray:
    return np.asarray(table[name].to_numpy(), np.int64)


def _stages(ranks: IntArray, stage_of: Mapping[int, int]) -> IntArray:
    """Return the stage of each rank, from 1; 0 where it is not known."""
    return np.array([stage_of.get(int(one), -1) for one in ranks], np.int64) + 1


def _positions(ranks: IntArray, host: Mapping[int, int]) -> IntArray:
    """Return the host of each rank, -1 where it is not known."""
    return np.array([host.get(int(one), -1) for one in ranks], np.int64)


def _of_metric(counters: pa.Table, metric: str) -> pa.Table:
    return counters.filter(pc.equal(counters["metric"].cast(pa.string()), metric))
