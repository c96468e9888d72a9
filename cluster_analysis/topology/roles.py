"""Role of each communication group, and each rank's place in the job: stage, index in TP and DP.

From the group's name in the metadata; else from `distributed_args`; else from the ranks that communicate with
each other. The confidence says which: high, medium, low.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from msgspec.structs import replace

from cluster_analysis.tables.model import Group, Topology
from cluster_analysis.tables.operations import record_of
from cluster_run.ids import GroupRole, ParallelSizes, Rank

if TYPE_CHECKING:
    from cluster_run.findings import Confidence

_ROLE_OF_NAME: Mapping[str, GroupRole] = {
    "tp": "tp",
    "cp": "cp",
    **dict.fromkeys(("pp", "pp_new_stream"), "pp"),
    **dict.fromkeys(
        ("dp", "dp_cp", "edp", "dp_modulo_exp", "dp_shard", "dp_shard_cp", "dp_replicate", "fsdp", "hsdp"),
        "dp",
    ),
    **dict.fromkeys(("ep", "exp"), "ep"),
    **dict.fromkeys(("default_group", "hccl_world_group", "world"), "world"),
}
_NUMBERED = re.compile(r"^(tp|pp|dp|cp|ep)[-_]?\d[\d_-]*$")
#: Collectives of tensor parallelism run several times a layer, those of data parallelism a few times a step.
_TP_OVER_DP_OPERATORS = 2.0

#: Rows of GROUP_USE.
_Uses = list[dict[str, Any]]
#: The stage of each rank (pp), and its index in its groups of tensor and data parallelism, where known.
_Places = dict[Literal["pp", "tp", "dp"], dict[Rank, int]]


def assign_roles(
    members: Mapping[str, Group], sizes: ParallelSizes, ranks: tuple[Rank, ...], use: pa.Table
) -> Topology:
    """Return groups with their roles, and the place of each rank; hosts and devices are not known here.

    Args:
        members: every group's members.
        sizes: what the metadata declares, 0 where it does not.
        ranks: all ranks of the job.
        use: GROUP_USE of all ranks, to infer roles where nothing is declared.
    """
    named = {key: role_of_name(one.name) for key, one in members.items()}
    is_named = any(role not in ("unknown", "world") for role in named.values())
    uses = use.to_pylist()
    rings = set[str]() if is_named else _rings(members, uses)
    # A group that exchanges tokens holds experts, whatever its name; other names of several domains tell
    # nothing.
    inferred = _exchanges(members, uses) if is_named else infer_roles(members, uses, ranks, rings)
    roles = inferred | {key: role for key, role in named.items() if role != "unknown"}
    groups = {}
    for key, one in members.items():
        # A guessed role is of medium confidence at most.
        believed: Confidence = one.confidence if is_named or one.confidence == "low" else "medium"
        groups[key] = replace(one, role=roles.get(key, "unknown"), confidence=believed)
    rings |= {key for key, group in groups.items() if group.role == "cp"}
    messages = [row for row in uses if row["is_p2p"] and row["group"] not in rings]
    by_group: _Places = {
        "pp": _stages(groups, members, messages),
        "tp": _index_in(groups, "tp"),
        "dp": _index_in(groups, "dp"),
    }
    by_size = _places_of_sizes(sizes, ranks)
    # Named groups place a rank best; then the declared sizes; guessed groups last.
    worse, better = (by_size, by_group) if is_named else (by_group, by_size)
    places: _Places = {of: {**worse[of], **better[of]} for of in by_group}
    if not places["pp"] and sizes.pp <= 1 and not messages:
        places["pp"] = dict.fromkeys(ranks, 0)
    confidence: Confidence = "high" if is_named else "low"
    if not is_named and any((sizes.tp, sizes.pp, sizes.dp)):
        confidence = "medium"
    return Topology(
        ranks=ranks,
        hosts={},
        devices={},
        groups=groups,
        parallel=_completed(sizes, places, len(ranks)),
        stages=places["pp"],
        tp_index=places["tp"],
        dp_index=places["dp"],
        confidence=confidence,
    )


def role_of_name(name: str) -> GroupRole:
    """Return the role that a group's name declares; `unknown` for mixed domains such as `tp_dp` and `mp`."""
    folded = name.strip().lower()
    if folded in _ROLE_OF_NAME:
        return _ROLE_OF_NAME[folded]
    match = _NUMBERED.match(folded)
    return _ROLE_OF_NAME[match.group(1)] if match else "unknown"


def infer_roles(
    members: Mapping[str, Group], uses: _Uses, ranks: tuple[Rank, ...], rings: set[str]
) -> dict[str, GroupRole]:
    """Guess roles from the operators of each group.

    Point-to-point operators make a pipeline, or context parallelism where they go round (`rings`); all-to-all
    an expert group; what lies across the stages of a pipeline only shares weights of its ends. Of the rest,
    groups over neighbouring ranks with clearly more operators than groups over distant ranks are
    tensor-parallel and the others data-parallel; where there is one sort only, nothing says which. But tensor
    parallelism communicates in each layer of each micro-batch, so at least as often as its ranks send and
    receive: what does so less often is data-parallel. Without any, the busiest group of all ranks is.
    """
    kinds, exchanges = _kinds(uses), _exchanges(members, uses)
    everyone = set(ranks).union(*(one.ranks for one in members.values()))
    roles: dict[str, GroupRole] = {}
    candidates = []
    for key, one in members.items():
        if len(one.ranks) < 2:
            roles[key] = "unknown"
        elif len(one.ranks) == len(everyone):
            roles[key] = "world"
        elif "p2p" in kinds.get(key, {}):
            roles[key] = "cp" if key in rings else "pp"
        elif key in exchanges:
            roles[key] = exchanges[key]
        else:
            candidates.append(key)
    users = Counter(group for group, _ in {(row["group"], row["rank"]) for row in uses})
    counts = {key: sum(kinds.get(key, {}).values()) / max(1, users[key]) for key in members}
    whole = [key for key, role in roles.items() if role == "world"]
    if whole and not candidates and all("p2p" not in one for one in kinds.values()):
        roles[max(whole, key=lambda key: (counts[key], key))] = "dp"
        return roles
    return roles | _of_the_rest(candidates, members, counts, roles, _messages_a_rank(roles, uses))


def _exchanges(members: Mapping[str, Group], uses: _Uses) -> dict[str, GroupRole]:
    """Return the groups of several ranks that exchange tokens, as groups of experts."""
    found = {row["group"] for row in uses if record_of(row["op_type"]).moves == "tokens"}
    return {key: "ep" for key, one in members.items() if key in found and len(one.ranks) > 1}


def _of_the_rest(
    candidates: list[str],
    members: Mapping[str, Group],
    counts: Mapping[str, float],
    roles: Mapping[str, GroupRole],
    n_messages: float,
) -> dict[str, GroupRole]:
    """Tell tensor-parallel groups from data-parallel ones by `counts` of operators a rank."""
    pipelines = [set(members[key].ranks) for key, role in roles.items() if role == "pp"]
    across = [key for key in candidates if any(len(one & set(members[key].ranks)) > 1 for one in pipelines)]
    near = [key for key in candidates if key not in across and _are_neighbours(members[key].ranks)]
    far = [key for key in candidates if key not in across and key not in near]
    of_near: GroupRole = "unknown"
    if near and _mean(counts, near) < n_messages:
        of_near = "dp"
    elif near and far:
        of_near = "tp" if _mean(counts, near) >= _TP_OVER_DP_OPERATORS * _mean(counts, far) else "dp"
    of_far: GroupRole = "dp" if near else "unknown"
    return {**dict.fromkeys(across, "unknown"), **dict.fromkeys(near, of_near), **dict.fromkeys(far, of_far)}


def _messages_a_rank(roles: Mapping[str, GroupRole], uses: _Uses) -> float:
    """Return how often a rank of a pipeline sends or receives; 0 in a job without one."""
    rows = [row for row in uses if row["is_p2p"] and roles.get(row["group"]) == "pp"]
    n_messages: int = sum(row["n_ops"] for row in rows)
    return n_messages / max(1, len({row["rank"] for row in rows}))


def _kinds(uses: _Uses) -> dict[str, Counter[str]]:
    """Return, for each group, how many operators of each kind it has; all point-to-point ones are `p2p`."""
    kinds: dict[str, Counter[str]] = {}
    for row in uses:
        kind = "p2p" if row["is_p2p"] else row["op_type"]
        kinds.setdefault(row["group"], Counter())[kind] += row["n_ops"]
    return kinds


def _rings(members: Mapping[str, Group], uses: _Uses) -> set[str]:
    """Groups of three ranks or more in which all send and receive alike: the ends of a pipeline do not.

    A group with ranks without files is a ring if the others are like those of a ring of that size.
    """
    counts: dict[str, dict[Rank, Counter[str]]] = {}
    for row in uses:
        if row["is_p2p"]:
            of_group = counts.setdefault(row["group"], {})
            of_group.setdefault(Rank(row["rank"]), Counter())[row["op_type"]] += row["n_ops"]
    alike = {
        key: (len(members[key].ranks), tuple(sorted(next(iter(by_rank.values())).items())))
        for key, by_rank in counts.items()
        if key in members and len({tuple(sorted(one.items())) for one in by_rank.values()}) == 1
    }
    complete = {(size, calls) for key, (size, calls) in alike.items() if 2 < size == len(counts[key])}
    return {key for key, one in alike.items() if one in complete}


def _mean(counts: Mapping[str, float], keys: list[str]) -> float:
    return sum(counts[key] for key in keys) / len(keys)


def _are_neighbours(ranks: tuple[Rank, ...]) -> bool:
    return list(ranks) == list(range(ranks[0], ranks[0] + len(ranks)))


def _stages(groups: Mapping[str, Group], members: Mapping[str, Group], messages: _Uses) -> dict[Rank, int]:
    """Return the stage of each rank that a pipeline connects: its place in the chain, by rank."""
    edges: set[tuple[Rank, Rank]] = set()
    for group in groups.values():
        if group.role == "pp":
            edges |= {(left, right) for left, right in zip(group.ranks, group.ranks[1:], strict=False)}
    if not edges:
        edges = _world_edges(members, messages)
    neighbours: dict[Rank, set[Rank]] = {}
    for left, right in edges:
        neighbours.setdefault(left, set()).add(right)
        neighbours.setdefault(right, set()).add(left)
    stages: dict[Rank, int] = {}
    for rank in sorted(neighbours):
        if rank not in stages:
            chain = _connected(rank, neighbours)
            stages.update({one: stage for stage, one in enumerate(sorted(chain))})
    return stages


def _world_edges(members: Mapping[str, Group], messages: _Uses) -> set[tuple[Rank, Rank]]:
    """Return senders and receivers if a pipeline uses a group that is not its own: the links show them."""
    edges = set()
    for row in messages:
        one = members.get(row["group"])
        if one:
            # Of two ranks the other one is the peer, also where no file has links.
            peers = row["peers"] if len(one.ranks) > 2 else range(2)
            edges |= {(Rank(row["rank"]), one.ranks[peer]) for peer in peers if peer < len(one.ranks)}
    return {(left, right) for left, right in edges if left != right}


def _connected(start: Rank, neighbours: Mapping[Rank, set[Rank]]) -> set[Rank]:
    reached, pending = {start}, [start]
    while pending:
        for other in neighbours[pending.pop()] - reached:
            reached.add(other)
            pending.append(other)
    return reached


def _index_in(groups: Mapping[str, Group], role: GroupRole) -> dict[Rank, int]:
    """Return each rank's index in its largest group of that role."""
    index: dict[Rank, int] = {}
    of_role = [group for group in groups.values() if group.role == role]
    for group in sorted(of_role, key=lambda one: (len(one.ranks), one.group)):
        index.update({rank: number for number, rank in enumerate(group.ranks)})
    return index


def _places_of_sizes(sizes: ParallelSizes, ranks: tuple[Rank, ...]) -> _Places:
    """Return the places of each rank as far as the sizes are declared.

    Megatron and MindSpore number ranks in the order tp, cp, dp, pp.
    """
    n_ranks = max(ranks, default=-1) + 1
    places: _Places = {"pp": {}, "tp": {}, "dp": {}}
    if sizes.pp and n_ranks % sizes.pp == 0:
        places["pp"] = {rank: rank // (n_ranks // sizes.pp) for rank in ranks}
    if sizes.tp:
        places["tp"] = {rank: rank % sizes.tp for rank in ranks}
    if sizes.dp and sizes.tp:
        places["dp"] = {rank: rank // (sizes.tp * (sizes.cp or 1)) % sizes.dp for rank in ranks}
    return places


def _completed(sizes: ParallelSizes, places: _Places, n_ranks: int) -> ParallelSizes:
    """Return the sizes, with those that nothing declares taken from the places.

    Where others account for all ranks, there is no tensor parallelism: no group shows that.
    """
    seen = {of: max(of_ranks.values(), default=-1) + 1 for of, of_ranks in places.items()}
    tp, pp, dp = sizes.tp or seen["tp"], sizes.pp or seen["pp"], sizes.dp or seen["dp"]
    if not tp and pp * dp * max(sizes.cp, 1) == n_ranks:
        tp = 1
    return ParallelSizes(tp=tp, pp=pp, dp=dp, cp=sizes.cp, ep=sizes.ep)
