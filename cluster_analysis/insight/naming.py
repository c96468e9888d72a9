"""How MindStudio Insight spells ranks, steps and groups; shared by its text files and its database."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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


def safe_names(names: Sequence[str]) -> Sequence[str]:
    """Return `safe` of each name."""
    return names if all_safe(names) else [safe(name) for name in names]


def all_safe(names: Sequence[str]) -> bool:
    """Return whether `safe` changes none of them: most often none, which one look shows."""
    return max(map(len, names), default=0) <= _MAX_NAME_LENGTH and not _UNSAFE.search("".join(names))


def op_key(name: str, group: str) -> str:
    """Return `name@group`, the key of an operator in the text files."""
    return f"{safe(name)}@{group or NO_GROUP}"


def op_keys(keys: pa.Array, names: pa.Array, groups: pa.Array) -> pa.Array:
    """Return the keys of operators (binary) as Insight takes them; see `op_key`.

    Args:
        keys: what the profiler wrote, `name@group`.
        names: the names in them.
        groups: the groups, "" where there is none.
    """
    # Few have to be changed, most often none.
    is_refused = pc.or_(
        pc.match_substring_regex(names, _UNSAFE.pattern), pc.greater(pc.utf8_length(names), _MAX_NAME_LENGTH)
    )
    changed = np.flatnonzero(pc.or_(is_refused, pc.equal(groups, "")).to_numpy(zero_copy_only=False))
    if not len(changed):
        return keys.cast(pa.binary())
    at = pa.array(changed)
    pairs = zip(names.take(at).to_pylist(), groups.take(at).to_pylist(), strict=True)
    mask = np.zeros(len(keys), bool)
    mask[changed] = True
    texts = pa.array([op_key(name, group) for name, group in pairs], pa.string())
    return pc.replace_with_mask(keys, pa.array(mask), texts).cast(pa.binary())


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
