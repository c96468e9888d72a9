"""Members of communication groups: from metadata, else from links, else from the ranks that mention them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from cluster_analysis.tables.model import Group, RankMetadata
from cluster_analysis.tables.schema import OPERATOR_GROUP_PREFIX
from cluster_run.facts import fact
from cluster_run.ids import Rank
from cluster_run.problem import Problem

if TYPE_CHECKING:
    from cluster_run.findings import Confidence

#: One row a rank, group and kind of operator; small, whatever the length of the run.
#: `local_rank` is the rank's number in the group where its links show it (a link from it to itself);
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


def declared_members(
    metadata: Mapping[Rank, RankMetadata],
) -> tuple[dict[str, tuple[str, tuple[Rank, ...]]], list[Problem]]:
    """Return `{group: (name, members)}` as the metadata declares it, and contradictions between ranks."""
    votes: dict[str, dict[tuple[str, tuple[Rank, ...]], list[Rank]]] = {}
    for rank in sorted(metadata):
        for one in metadata[rank].groups:
            votes.setdefault(one.group, {}).setdefault((one.name, one.global_ranks), []).append(rank)
    problems = []
    declared = {}
    for group, said in sorted(votes.items()):
        # The members that most ranks declare; of equally many the first, so that order does not matter.
        name, ranks = min(said, key=lambda one: (-len(said[one]), one))
        declared[group] = (name, ranks)
        others = {members: by for (_, members), by in said.items() if members != ranks}
        if others:
            is_one = any(not set(ranks).isdisjoint(members) for members in others)
            why = fact(
                "group_disagreement" if is_one else "groups_of_one_id",
                group=name or group,
                ranks=ranks,
                others=tuple(sorted(rank for by in others.values() for rank in by)),
            )
            advice = "check_one_job" if is_one else "name_groups_apart"
            problems.append(Problem(why, file="profiler_metadata.json", advice=advice))
    return declared, problems


def find_members(
    use: pa.Table, declared: Mapping[str, tuple[str, tuple[Rank, ...]]], captured: Iterable[Rank]
) -> tuple[dict[str, Group], list[Problem]]:
    """Return every group that the data or the metadata names with its members; their roles are not known yet.

    Args:
        use: GROUP_USE of all ranks.
        declared: see `declared_members`.
        captured: ranks that have data; one of them that never mentions a group is no member of it.
    """
    seen: dict[str, _Seen] = {}
    for row in use.to_pylist():
        if row["group"]:
            seen.setdefault(row["group"], _Seen()).add(
                Rank(row["rank"]), row["local_rank"], row["n_local"] or 0
            )
    known = frozenset(captured)
    members: dict[str, Group] = {}
    problems: list[Problem] = []
    for group in sorted(seen.keys() | declared.keys()):
        one = seen.get(group, _Seen())
        users = tuple(sorted(one.users))
        if group in declared and declared[group][1]:
            name, ranks = declared[group]
            members[group] = Group(group, "unknown", ranks, name, "high")
            strangers = tuple(rank for rank in users if rank not in ranks)
            if strangers:
                said = fact("no_member", group=name or group, ranks=strangers, members=ranks)
                problems.append(Problem(said, rank=strangers[0], advice="check_one_job"))
            continue
        clash = one.clash()
        if clash is not None or _is_several(group, one):
            members[group] = Group(group, "unknown", (), "", "low")
            if clash is not None and not group.startswith(OPERATOR_GROUP_PREFIX):
                local, pair = clash
                why = fact("two_of_one_local_rank", ranks=pair, local_rank=local, group=group)
                problems.append(Problem(why, rank=pair[1], advice="check_one_job"))
            continue
        ranks, confidence = _inferred(one, known)
        members[group] = Group(group, "unknown", ranks, "", confidence)
    return members, problems


def in_whole_blocks(members: Mapping[str, Group]) -> tuple[dict[str, Group], Problem | None]:
    """Return the members with the job's widest group completed where its last ranks are guessed.

    Links show only a part of a group without data, so its size is a lower bound: ten, say. But parallel
    groups divide a job evenly: where ranks 0 to 7 are a group, there are 16. The problem says so.
    """
    from_zero = {
        key: len(one.ranks) for key, one in members.items() if one.ranks == tuple(range(len(one.ranks)))
    }
    last = max((max(one.ranks) for one in members.values() if one.ranks), default=-1)
    widest = [key for key, size in from_zero.items() if size == last + 1 and members[key].confidence == "low"]
    blocks = [size for size in from_zero.values() if 1 < size < last + 1]
    if not widest or not blocks or (last + 1) % max(blocks) == 0:
        return dict(members), None
    block = max(blocks)
    n_ranks = -(-(last + 1) // block) * block
    everyone = tuple(map(Rank, range(n_ranks)))
    return {**members, **{key: replace(members[key], ranks=everyone) for key in widest}}, Problem(
        fact("size_not_known", last=int(last), block=int(block), n_ranks=n_ranks), advice="give_rank_table"
    )


class _Seen(Struct):
    """Data on one group."""

    users: set[Rank] = field(default_factory=set)
    locals_of: dict[Rank, set[int]] = field(default_factory=dict)
    n_local: int = 0

    def add(self, rank: Rank, local: int | None, n_local: int) -> None:
        self.users.add(rank)
        self.n_local = max(self.n_local, n_local)
        if local is not None:
            self.locals_of.setdefault(rank, set()).add(local)

    def at(self) -> dict[int, Rank]:
        """Return the rank at each local rank that is known for certain."""
        return {next(iter(local)): rank for rank, local in sorted(self.locals_of.items()) if len(local) == 1}

    def clash(self) -> tuple[int, tuple[Rank, Rank]] | None:
        """Return a local rank that two ranks have, and these; None when there is none."""
        taken: dict[int, Rank] = {}
        for rank, own in sorted(self.locals_of.items()):
            for local in own if len(own) == 1 else ():
                if local in taken:
                    return local, (taken[local], rank)
                taken[local] = rank
        return None


def _is_several(group: str, seen: _Seen) -> bool:
    """Return whether one name stands for several groups: more ranks use it than one group has."""
    return group.startswith(OPERATOR_GROUP_PREFIX) and 0 < seen.n_local < len(seen.users)


def _inferred(seen: _Seen, captured: frozenset[Rank]) -> tuple[tuple[Rank, ...], Confidence]:
    """Return the members of a group that no metadata declares; only the first where the rest is unknown."""
    users = tuple(sorted(seen.users))
    at = seen.at()
    n_members = max(seen.n_local, len(users), max(at, default=-1) + 1)
    if sorted(at) == list(range(n_members)):
        return tuple(at[local] for local in range(n_members)), "high"
    if len(users) == n_members and all(users[local] == rank for local, rank in at.items()):
        return users, "medium"
    filled = _filled(at, n_members, users, captured)
    if filled:
        return filled, "low"
    first_unknown = next(local for local in range(n_members) if local not in at)
    return tuple(at[local] for local in range(first_unknown)), "low"


def _filled(
    at: Mapping[int, Rank], n_members: int, users: tuple[Rank, ...], captured: frozenset[Rank]
) -> tuple[Rank, ...]:
    """Return all members where the known ones lie on a line (rank = a + stride × local), else nothing.

    Launchers number ranks that way. A captured rank that never mentions the group contradicts it.
    """
    if len(at) < 2:
        return ()
    first, second = sorted(at)[:2]
    stride, rest = divmod(at[second] - at[first], second - first)
    if rest or stride <= 0:
        return ()
    ranks = tuple(Rank(at[first] + (local - first) * stride) for local in range(n_members))
    fits = all(ranks[local] == rank for local, rank in at.items()) and set(users) <= set(ranks)
    contradicted = any(rank in captured and rank not in users for rank in ranks)
    return ranks if fits and not contradicted and ranks[0] >= 0 else ()
