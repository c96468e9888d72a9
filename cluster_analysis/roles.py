"""What a communication group is for, and each rank's place in the job: stage, index in TP and DP.

From the group's name in the metadata; else from `distributed_args`; else from who talks to whom. The
confidence says which: high, medium, low.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from cluster_analysis.groups import Members
from cluster_analysis.model import Confidence, Group, GroupRole, ParallelSizes
from cluster_run.ids import Rank

_ROLE_OF_NAME: Mapping[str, GroupRole] = {
    "tp": "tp",
    "pp": "pp",
    "pp_new_stream": "pp",
    "dp": "dp",
    "dp_cp": "dp",
    "edp": "dp",
    "dp_modulo_exp": "dp",
    "cp": "cp",
    "ep": "ep",
    "exp": "ep",
    "default_group": "world",
    "hccl_world_group": "world",
    "world": "world",
}
_NUMBERED = re.compile(r"^(tp|pp|dp|cp|ep)[-_]?\d[\d_-]*$")


@dataclass(frozen=True)
class Roles:
    """Groups with their roles, and the place of each rank; mappings lack ranks that are not placed."""

    groups: Mapping[str, Group]
    parallel: ParallelSizes
    stages: Mapping[Rank, int] = field(default_factory=dict)
    tp_index: Mapping[Rank, int] = field(default_factory=dict)
    dp_index: Mapping[Rank, int] = field(default_factory=dict)
    confidence: Confidence = "high"


def assign_roles(
    members: Mapping[str, Members], sizes: ParallelSizes, ranks: tuple[Rank, ...], use: pa.Table
) -> Roles:
    """Return roles and places.

    Args:
        members: every group's members.
        sizes: what the metadata declares, 0 where it does not.
        ranks: all ranks of the job.
        use: GROUP_USE of all ranks, to infer roles where nothing is declared.
    """
    named = {key: role_of_name(one.name) for key, one in members.items()}
    is_named = any(role not in ("unknown", "world") for role in named.values())
    roles = named if is_named else {**infer_roles(members, use, len(ranks)), **_known(named)}
    groups = {
        key: Group(
            key, roles.get(key, "unknown"), one.ranks, one.name, one.confidence if is_named else _low(one)
        )
        for key, one in members.items()
    }
    stages = _index_in(groups, "pp")
    tp_index, dp_index = _index_in(groups, "tp"), _index_in(groups, "dp")
    confidence: Confidence = "high" if is_named else "low"
    if any((sizes.tp, sizes.pp, sizes.dp)):
        placed = _places_of_sizes(sizes, ranks)
        confidence = "high" if is_named else "medium"
        stages = {**placed[0], **(stages if is_named else {})}
        tp_index = {**placed[1], **(tp_index if is_named else {})}
        dp_index = {**placed[2], **(dp_index if is_named else {})}
    sizes = _completed(sizes, stages, tp_index, dp_index)
    if not stages and sizes.pp <= 1:
        stages = dict.fromkeys(ranks, 0)
    return Roles(groups, sizes, stages, tp_index, dp_index, confidence)


def role_of_name(name: str) -> GroupRole:
    """Return the role that a group's name declares; `unknown` for mixed domains such as `tp_dp` and `mp`."""
    folded = name.strip().lower()
    if folded in _ROLE_OF_NAME:
        return _ROLE_OF_NAME[folded]
    match = _NUMBERED.match(folded)
    return _ROLE_OF_NAME[match.group(1)] if match else "unknown"


def infer_roles(members: Mapping[str, Members], use: pa.Table, n_ranks: int) -> dict[str, GroupRole]:
    """Guess roles from the operators of each group.

    Point-to-point operators make a pipeline, all-to-all an expert group. Of the rest the group over
    neighbouring ranks with most operators is tensor-parallel (several collectives a layer), the others
    data-parallel (few a step). One group over all ranks is data-parallel when it is the only one.
    """
    n_collectives: dict[str, int] = {}
    kinds: dict[str, set[str]] = {}
    for row in use.to_pylist():
        kinds.setdefault(row["group"], set()).add("p2p" if row["is_p2p"] else row["op_type"])
        if not row["is_p2p"]:
            n_collectives[row["group"]] = n_collectives.get(row["group"], 0) + row["n_ops"]
    roles: dict[str, GroupRole] = {}
    candidates = []
    for key, one in members.items():
        seen = kinds.get(key, set())
        if len(one.ranks) >= n_ranks > 1:
            roles[key] = "world"
        elif len(one.ranks) < 2:
            roles[key] = "unknown"
        elif "p2p" in seen:
            roles[key] = "pp"
        elif any(kind.startswith("alltoall") for kind in seen):
            roles[key] = "ep"
        else:
            candidates.append(key)
    if not candidates and list(roles.values()).count("world") == 1 and "pp" not in roles.values():
        return {key: "dp" if role == "world" else role for key, role in roles.items()}
    neighbouring = [key for key in candidates if _are_neighbours(members[key].ranks)]
    spread = [key for key in candidates if key not in neighbouring]
    are_tp = bool(neighbouring) and _mean(n_collectives, neighbouring) >= 2 * _mean(n_collectives, spread)
    for key in candidates:
        roles[key] = "tp" if are_tp and key in neighbouring else "dp"
    return roles


def _mean(counts: Mapping[str, int], keys: list[str]) -> float:
    return sum(counts.get(key, 0) for key in keys) / len(keys) if keys else 0.0


def _are_neighbours(ranks: tuple[Rank, ...]) -> bool:
    return list(ranks) == list(range(ranks[0], ranks[0] + len(ranks)))


def _known(named: Mapping[str, GroupRole]) -> dict[str, GroupRole]:
    return {key: role for key, role in named.items() if role != "unknown"}


def _low(one: Members) -> Confidence:
    return "low" if one.confidence == "low" else "medium"


def _index_in(groups: Mapping[str, Group], role: GroupRole) -> dict[Rank, int]:
    """Return each rank's index in its largest group of that role."""
    index: dict[Rank, int] = {}
    for group in sorted(
        (one for one in groups.values() if one.role == role), key=lambda one: (len(one.ranks), one.group)
    ):
        index.update({rank: number for number, rank in enumerate(group.ranks)})
    return index


def _places_of_sizes(
    sizes: ParallelSizes, ranks: tuple[Rank, ...]
) -> tuple[dict[Rank, int], dict[Rank, int], dict[Rank, int]]:
    """Return stage, TP index and DP index; Megatron and MindSpore number ranks in the order tp, cp, dp, pp."""
    tp, cp, pp = sizes.tp or 1, sizes.cp or 1, sizes.pp or 1
    n_ranks = max(ranks, default=-1) + 1
    dp = sizes.dp or max(1, n_ranks // (tp * cp * pp))
    per_stage = tp * cp * dp
    if per_stage * pp < n_ranks:
        return {}, {}, {}
    stages = {rank: rank // per_stage for rank in ranks}
    return stages, {rank: rank % tp for rank in ranks}, {rank: rank // (tp * cp) % dp for rank in ranks}


def _completed(
    sizes: ParallelSizes,
    stages: Mapping[Rank, int],
    tp_index: Mapping[Rank, int],
    dp_index: Mapping[Rank, int],
) -> ParallelSizes:
    """Return the sizes, with those that nothing declares taken from the places."""
    return ParallelSizes(
        tp=sizes.tp or max(tp_index.values(), default=-1) + 1,
        pp=sizes.pp or max(stages.values(), default=-1) + 1,
        dp=sizes.dp or max(dp_index.values(), default=-1) + 1,
        cp=sizes.cp,
        ep=sizes.ep,
    )
