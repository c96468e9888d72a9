"""Members of communication groups: from metadata first, then from the links, then from who mentions them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from cluster_analysis.model import Confidence, Problem, RankMetadata
from cluster_run.ids import Rank, format_number_ranges

#: One row a rank, group and kind of operator; small, whatever the length of the run.
#: `local_rank` is the rank's number in the group where its links tell it (a link from it to itself);
#: `n_local` how many local ranks its links mention at least; `peers` the local ranks at the other end.
GROUP_USE = pa.schema(
    [
        ("rank", pa.int32()),
        ("group", pa.string()),
        ("is_p2p", pa.bool_()),
        ("op_type", pa.string()),
        ("n_ops", pa.int64()),
        ("local_rank", pa.int32()),
        ("n_local", pa.int32()),
        ("peers", pa.list_(pa.int32())),
    ]
)


@dataclass(frozen=True)
class Members:
    """Members of one group: `ranks[i]` is local rank i. `users` are the ranks whose data mentions it."""

    group: str
    ranks: tuple[Rank, ...]
    name: str
    confidence: Confidence
    users: tuple[Rank, ...]


def declared_members(
    metadata: Mapping[Rank, RankMetadata],
) -> tuple[dict[str, tuple[str, tuple[Rank, ...]]], list[Problem]]:
    """Return `{group: (name, members)}` as the metadata declares it, and where ranks contradict each other."""
    votes: dict[str, Counter[tuple[str, tuple[Rank, ...]]]] = {}
    for rank in sorted(metadata):
        for one in metadata[rank].groups:
            votes.setdefault(one.group, Counter())[one.name, one.global_ranks] += 1
    problems = []
    declared = {}
    for group, counter in sorted(votes.items()):
        # The members that most ranks declare; of equally many the first, so that order does not matter.
        (name, ranks), _ = min(counter.items(), key=lambda item: (-item[1], item[0]))
        declared[group] = (name, ranks)
        if len({members for _, members in counter}) > 1:
            problems.append(
                Problem(
                    f"the ranks disagree on the members of group {name or group}; "
                    f"{format_number_ranges(ranks)} is used, as most ranks say",
                    file="profiler_metadata.json",
                    advice="check that the captures belong to one job",
                )
            )
    return declared, problems


def find_members(
    use: pa.Table, declared: Mapping[str, tuple[str, tuple[Rank, ...]]], captured: Iterable[Rank]
) -> tuple[dict[str, Members], list[Problem]]:
    """Return the members of every group that the data or the metadata names.

    Args:
        use: GROUP_USE of all ranks.
        declared: see `declared_members`.
        captured: ranks that have data; one of them that never mentions a group is no member of it.
    """
    rows = use.to_pylist()
    users: dict[str, set[Rank]] = {}
    locals_of: dict[str, dict[Rank, set[int]]] = {}
    n_local: dict[str, int] = {}
    for row in rows:
        group, rank = row["group"], Rank(row["rank"])
        if not group:
            continue
        users.setdefault(group, set()).add(rank)
        if row["local_rank"] is not None:
            locals_of.setdefault(group, {}).setdefault(rank, set()).add(row["local_rank"])
        n_local[group] = max(n_local.get(group, 0), row["n_local"] or 0)
    known = frozenset(captured)
    members: dict[str, Members] = {}
    problems: list[Problem] = []
    for group in sorted(users.keys() | declared.keys()):
        mentioned = tuple(sorted(users.get(group, ())))
        if group in declared and declared[group][1]:
            name, ranks = declared[group]
            members[group] = Members(group, ranks, name, "high", mentioned)
            continue
        inferred, confidence, problem = _inferred(
            group, mentioned, locals_of.get(group, {}), n_local.get(group, 0), known
        )
        members[group] = Members(group, inferred, "", confidence, mentioned)
        if problem:
            problems.append(problem)
    return members, problems


def _inferred(
    group: str,
    users: tuple[Rank, ...],
    locals_of: Mapping[Rank, set[int]],
    n_local: int,
    captured: frozenset[Rank],
) -> tuple[tuple[Rank, ...], Confidence, Problem | None]:
    """Return the members of a group that no metadata declares."""
    at: dict[int, Rank] = {}
    for rank in users:
        own = locals_of.get(rank, set())
        if len(own) == 1:
            (local,) = own
            if local in at:
                return (
                    (),
                    "low",
                    Problem(
                        f"ranks {at[local]} and {rank} are both local rank {local} of group {group}, so it is more than "
                        "one group; its operators are not matched over ranks",
                        rank=rank,
                    ),
                )
            at[local] = rank
    n_members = max(n_local, len(users), max(at, default=-1) + 1)
    if not at:
        return users, ("medium" if n_members == len(users) else "low"), None
    if sorted(at) == list(range(n_members)):
        return tuple(at[local] for local in range(n_members)), "high", None
    filled = _filled(at, n_members, users, captured)
    if filled:
        return filled, "low", None
    prefix = next((local for local in range(n_members) if local not in at), n_members)
    return tuple(at[local] for local in range(prefix)), "low", None


def _filled(
    at: Mapping[int, Rank], n_members: int, users: tuple[Rank, ...], captured: frozenset[Rank]
) -> tuple[Rank, ...]:
    """Return all members where the known ones lie on a line (rank = a + stride × local), else nothing.

    Launchers number ranks that way. A captured rank that never mentions the group contradicts it.
    """
    if len(at) < 2:
        return ()
    (first, second), *_ = [sorted(at)[:2]]
    stride, rest = divmod(at[second] - at[first], second - first)
    if rest or stride <= 0:
        return ()
    ranks = tuple(Rank(at[first] + (local - first) * stride) for local in range(n_members))
    fits = all(ranks[local] == rank for local, rank in at.items()) and set(users) <= set(ranks)
    contradicted = any(rank in captured and rank not in users for rank in ranks)
    return ranks if fits and not contradicted and ranks[0] >= 0 else ()
