"""Topology of the job: places of ranks and their groups, from each rank's data and metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import BoolArray, IntArray, codes
from cluster_analysis.tables.model import Capture, RankMetadata, Topology
from cluster_analysis.tables.schema import OPERATOR_GROUP_PREFIX, with_columns
from cluster_analysis.topology.groups import declared_members, find_members, in_whole_blocks
from cluster_analysis.topology.hosts import devices_of
from cluster_analysis.topology.roles import assign_roles
from cluster_run.facts import Fact, fact
from cluster_run.ids import ParallelSizes, Rank
from cluster_run.problem import Problem

_NO_LOCAL = -1
_PROFILER = "cann_version"


def build_topology(
    capture: Capture, metadata: Mapping[Rank, RankMetadata], use: pa.Table
) -> tuple[Topology, tuple[Problem, ...]]:
    """Return the topology of the job, and contradictions as problems.

    Args:
        capture: what was found; its hosts and devices are taken over.
        metadata: of every rank that could be read.
        use: GROUP_USE of all ranks.
    """
    problems: list[Problem] = []
    sizes, world_size = _declared_sizes(metadata, problems)
    ranks = tuple(Rank(rank) for rank in sorted({*capture.expected_ranks, *range(world_size)}))
    unexpected = sorted(set(ranks) - set(capture.expected_ranks))
    if unexpected:
        problems.append(
            Problem(
                fact("missing_ranks", n_missing=len(unexpected), n_ranks=len(ranks), ranks=tuple(unexpected))
            )
        )
    declared, contradictions = declared_members(metadata)
    captured = tuple(source.rank for source in capture.sources)
    members, ambiguous = find_members(use, declared, captured)
    told = {one.why["group"] for one in contradictions}
    problems += contradictions + [one for one in ambiguous if one.why["group"] not in told]
    if not world_size and set(capture.expected_ranks) <= set(captured):
        members, guessed = in_whole_blocks(members)
        problems += [guessed] if guessed else []
    topology = assign_roles(members, sizes, ranks, use)
    return replace(topology, hosts=capture.hosts, devices=devices_of(capture, metadata)), tuple(problems)


def _declared_sizes(
    metadata: Mapping[Rank, RankMetadata], problems: list[Problem]
) -> tuple[ParallelSizes, int]:
    """Return what most ranks declare; a contradiction means that several jobs were mixed."""
    declared = {
        rank: (one.parallel, one.world_size)
        for rank, one in sorted(metadata.items())
        if one.world_size or one.parallel != ParallelSizes()
    }
    if not declared:
        return ParallelSizes(), 0
    counts = Counter(declared.values())
    chosen = min(counts, key=lambda one: (-counts[one], str(one)))
    if len(counts) > 1:
        others = tuple(rank for rank, one in declared.items() if one != chosen)
        problems.append(
            Problem(
                fact("several_jobs", ranks=others, n_sizes=len(counts)),
                file="profiler_metadata.json",
                advice="analyse_apart",
            )
        )
    return chosen


def unlike_versions(metadata: Mapping[Rank, RankMetadata]) -> tuple[Fact, ...]:
    """Return a note if ranks were recorded by unlike versions; else nothing.

    The start of an operator is the first event of its master plane since May 2026, and of any plane before:
    starts of ranks of unlike versions are not compared. Ends mean the same in all.
    """
    known = {one.versions[_PROFILER] for one in metadata.values() if one.versions.get(_PROFILER)}
    return (fact("unlike_versions", versions=tuple(sorted(known))),) if len(known) > 1 else ()


def map_links(links: pa.Table, topology: Topology) -> tuple[pa.Table, tuple[Problem, ...]]:
    """Return `links` (LINKS) with global `src_rank` and `dst_rank`, null where the group does not show it.

    Links that could not be mapped stay in the table; one problem a group counts them.
    """
    groups = sorted(topology.groups)
    number_of = {group: number for number, group in enumerate(groups)}
    lengths = np.array([len(topology.groups[group].ranks) for group in groups], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if groups else np.zeros(0, dtype=np.int64)
    members = np.array([rank for group in groups for rank in topology.groups[group].ranks], dtype=np.int64)
    texts, text = codes(links["group"])
    numbers = np.array([number_of.get(value, _NO_LOCAL) for value in texts], dtype=np.int64)
    group_number = numbers[text]
    ends = {}
    is_lost = np.zeros(links.num_rows, bool)
    for name in ("src", "dst"):
        local = links[f"{name}_local"].combine_chunks().fill_null(_NO_LOCAL).to_numpy(zero_copy_only=False)
        known = (group_number >= 0) & (local >= 0)
        known[known] &= local[known] < lengths[group_number[known]]
        ranks = np.full(len(local), _NO_LOCAL, dtype=np.int64)
        ranks[known] = members[offsets[group_number[known]] + local[known]]
        ends[f"{name}_rank"] = pa.array(ranks.astype(np.int32), mask=~known)
        is_lost |= ~known
    return with_columns(links, **ends), _unmapped(links, is_lost, (texts, text), topology)


def _unmapped(
    links: pa.Table, is_lost: BoolArray, groups: tuple[tuple[str, ...], IntArray], topology: Topology
) -> tuple[Problem, ...]:
    """Count the links that could not be mapped by group; `groups` are texts, and which one each link has."""
    lost = np.flatnonzero(is_lost)
    if not len(lost):
        return ()
    texts, text = groups
    counts = np.bincount(text[lost], minlength=len(texts))
    last = np.zeros(len(texts), np.int64)
    for name in ("src_local", "dst_local"):
        ends = links[name].combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)
        np.maximum.at(last, text[lost], ends[lost])
    return tuple(
        Problem(
            fact(
                "links_not_mapped",
                n_links=int(counts[at]),
                group=_name(group, topology),
                n_members=int(last[at]) + 1,
            ),
            advice="collect_group",
        )
        for group, at in sorted((group, at) for at, group in enumerate(texts))
        # Data that r1.x never has is no loss of this run; reading the rank reports it once.
        if counts[at] and group and not group.startswith(OPERATOR_GROUP_PREFIX)
    )


def _name(group: str, topology: Topology) -> str:
    known = topology.groups.get(group)
    return f"{known.name} ({group})" if known and known.name else group
