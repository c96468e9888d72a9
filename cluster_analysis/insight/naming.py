"""How MindStudio Insight spells ranks, steps and groups; shared by its text files and its database."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cluster_analysis.tables.model import Topology
from cluster_run.ids import Rank

TOTAL = "Total Op Info"
#: Group of operators whose name has no `@group`: Insight drops operators without one.
NO_GROUP = "unknown"
#: Insight refuses names that are longer or hold one of these.
_MAX_NAME_LENGTH = 500
_UNSAFE = re.compile(r"[|;&$><`\\!\x00-\x1f\"']")


def step_key(step: int) -> str:
    """Return a step as everything but the step table spells it."""
    return f"step{step}"


def rank_set(ranks: Iterable[int], separator: str = ", ") -> str:
    """Return `(0, 1)`, and `(2,)` for one rank, as Python writes tuples; the database has no blanks."""
    ordered = sorted(ranks)
    comma = separator.rstrip() if len(ordered) == 1 else ""
    return f"({separator.join(map(str, ordered))}{comma})"


def safe(name: str) -> str:
    """Return `name` without the characters that Insight refuses, cut to the length it takes."""
    return _UNSAFE.sub("_", name)[:_MAX_NAME_LENGTH]


def op_key(name: str, group: str) -> str:
    """Return `name@group`, the key of an operator in the text files."""
    return f"{safe(name)}@{group or NO_GROUP}"


def members_by_group(
    topology: Topology, mentioned_by: Mapping[str, Iterable[Rank]]
) -> dict[str, tuple[Rank, ...]]:
    """Return the sorted global members of every group that is mentioned.

    Members are the topology's; where it does not know any, the ranks that mention the group.
    """
    members: dict[str, tuple[Rank, ...]] = {}
    for group, mentioning in mentioned_by.items():
        known = topology.groups.get(group)
        members[group] = tuple(sorted(known.ranks if known and known.ranks else mentioning))
    return members
