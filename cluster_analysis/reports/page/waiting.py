"""Who waited for whom: from a finding's ranks to the groups they kept waiting, and so on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.numeric.arrays import numbers
from cluster_analysis.result import AnalysisResult
from cluster_analysis.tables.schema import rows_of

_MAX_LEVELS = 2
_MAX_GROUPS_A_LEVEL = 6
#: Waiting below this share of the longest wait of the chain is not shown.
_MIN_SHARE = 0.05
_MAX_OPERATORS = 200


class Waiting(Struct, frozen=True):
    """How long one group waited for one rank, and how long quiet groups of its role wait; µs a rank and step.

    Quiet is the lower quartile: a slow rank may well keep half of the groups of a kind waiting. It can keep
    all of them waiting, those that average gradients above all; only waiting below it says nothing.
    """

    group: str
    last_rank: int
    wait_us: float
    quiet_us: float
    level: int


def waits_by_rank(matched: pa.Table, n_steps: int) -> dict[str, dict[int, float]]:
    """Return for each group what the mean of its ranks waited a step for each of the others, in µs."""
    sums = matched.group_by(["group", "last_rank"], use_threads=False).aggregate([("total_wait_us", "sum")])
    n_ranks = ranks_of_groups(matched)
    waits: dict[str, dict[int, float]] = defaultdict(dict)
    for group, last_rank, total_us in rows_of(sums, "group", "last_rank", "total_wait_us_sum"):
        if last_rank is not None:
            waits[group][last_rank] = (total_us or 0.0) / n_ranks[group] / n_steps
    return dict(waits)


def ranks_of_groups(matched: pa.Table) -> dict[str, int]:
    """Return how many ranks took part in each group: for messages, which have a row a call, all callers."""
    counted = matched.group_by(["group"], use_threads=False).aggregate(
        [("n_ranks", "max"), ("rank", "count_distinct")]
    )
    rows = rows_of(counted, "group", "n_ranks_max", "rank_count_distinct")
    return {group: max(together, alone, 1) for group, together, alone in rows}


def build_chains(result: AnalysisResult, matched: pa.Table, n_steps: int) -> dict[str, list[Waiting]]:
    """Return for each finding that blames ranks and costs time who waited for them, nearest level first."""
    findings = [one for one in result.document.findings if one.record.part == "slow_devices" and one.is_alarm]
    blamed = {one.id: one.ranks for one in findings}
    if not blamed:
        return {}
    waits = waits_by_rank(matched, n_steps)
    quiet = _quiet_waits(matched, waits)
    members = {
        group: result.topology.groups[group].ranks for group in waits if group in result.topology.groups
    }
    by_rank: dict[int, list[str]] = defaultdict(list)
    for group in waits:
        for rank in waits[group]:
            by_rank[rank].append(group)
    return {finding: _chain(ranks, waits, quiet, members, by_rank) for finding, ranks in blamed.items()}


def _chain(
    named: Sequence[int],
    waits: Mapping[str, Mapping[int, float]],
    quiet: Mapping[str, float],
    members: Mapping[str, Sequence[int]],
    by_rank: Mapping[int, list[str]],
) -> list[Waiting]:
    chain: list[Waiting] = []
    seen: set[str] = set()
    late: set[int] = set(named)
    floor_us = _MIN_SHARE * max(
        (waits[group][rank] for rank in late for group in by_rank.get(rank, ())), default=0
    )
    for level in range(1, _MAX_LEVELS + 1):
        found: dict[str, Waiting] = {}
        for rank in sorted(late):
            for group in by_rank.get(rank, ()):
                one = Waiting(group, rank, waits[group][rank], quiet[group], level)
                longest = group not in found or one.wait_us > found[group].wait_us
                if group not in seen and longest and one.wait_us > max(floor_us, 0.9 * one.quiet_us):
                    found[group] = one
        ordered = sorted(found.values(), key=lambda one: (-one.wait_us, one.group))
        kept = ordered[:_MAX_GROUPS_A_LEVEL]
        if not kept:
            break
        chain += kept
        seen |= set(found)
        late = {rank for one in kept for rank in members.get(one.group, ())} - late - set(named)
    return chain


def _quiet_waits(matched: pa.Table, waits: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """For each group the lower quartile, over the groups of its role, of their longest wait for one rank."""
    pairs = matched.select(["group", "role"]).group_by(["group", "role"], use_threads=False).aggregate([])
    roles = dict(rows_of(pairs, "group", "role"))
    longest: dict[str, list[float]] = defaultdict(list)
    for group, by_rank in waits.items():
        longest[roles[group]].append(max(by_rank.values(), default=0.0))
    quartiles = {role: float(np.quantile(values, 0.25)) for role, values in longest.items()}
    return {group: quartiles[roles[group]] for group in waits}


def last_ranks(waits: Mapping[str, Mapping[int, float]]) -> dict[str, tuple[int, float]]:
    """Return for each group the rank it waited longest for, and the share of its waiting that was for it."""
    last = {}
    for group, by_rank in waits.items():
        rank = max(by_rank, key=lambda one: (by_rank[one], -one))
        total = sum(by_rank.values())
        last[group] = (rank, by_rank[rank] / total if total > 0 else 0.0)
    return last


def slowest_operators(matched: pa.Table) -> list[Mapping[str, object]]:
    """Return the operators with the widest spread of arrivals and those with the longest transfer."""
    # By position, not by name: sending and receiving of two pairs of ranks may share step, group and name.
    chosen: set[int] = set()
    for column in ("max_wait_us", "transfer_us"):
        chosen.update(_largest(matched, column))
    rows = matched.take(pa.array(sorted(chosen), pa.int64())).to_pylist()
    rows.sort(key=lambda row: (-(row["max_wait_us"] or 0.0), row["step"], row["group"]))
    return [{name: value for name, value in row.items() if name != "n_expected"} for row in rows]


def _largest(matched: pa.Table, column: str) -> list[int]:
    """Return the positions of the rows with the largest values: only these are worth sorting."""
    values = np.nan_to_num(numbers(matched[column]), nan=-np.inf)
    n = len(values)
    floor = np.partition(values, n - _MAX_OPERATORS)[n - _MAX_OPERATORS] if n > _MAX_OPERATORS else -np.inf
    positions = np.flatnonzero(values >= floor)
    rows = matched.take(pa.array(positions))
    rows = rows.set_column(rows.schema.get_field_index("group"), "group", rows["group"].cast(pa.string()))
    tie_breakers = [(name, "ascending") for name in ("step", "group", "ordinal", "last_rank")]
    order = pc.sort_indices(rows, sort_keys=[(column, "descending"), *tie_breakers])
    found: list[int] = positions[order.to_numpy()[:_MAX_OPERATORS]].tolist()
    return found
