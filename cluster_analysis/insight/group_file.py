"""Communication groups as Insight lists them: communication_group.json and CommunicationGroupMapping."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
from msgspec import Struct

from cluster_analysis.insight.naming import NO_GROUP, members_by_group, safe
from cluster_analysis.tables.model import RankMetadata, Topology
from cluster_run.ids import Rank


class GroupRow(Struct, frozen=True):
    """One group in one use. `group_id` is the communicator's own name, empty where it is unknown."""

    kind: str
    ranks: tuple[Rank, ...]
    group: str
    group_id: str
    pg_name: str


def group_rows(
    uses: pa.Table, topology: Topology, metadata: Mapping[Rank, RankMetadata]
) -> tuple[GroupRow, ...]:
    """Return the groups that the data mentions, collective ones first, by their ranks.

    A group that is used both ways has two rows.
    """
    mentioned: dict[tuple[str, bool], set[Rank]] = {}
    for row in uses.select(["rank", "group", "is_p2p"]).to_pylist():
        mentioned.setdefault((row["group"] or "", bool(row["is_p2p"])), set()).add(Rank(row["rank"]))
    names = {one.group: one.name for metadatum in metadata.values() for one in metadatum.groups}
    ids = {one.group: one.group_id for metadatum in metadata.values() for one in metadatum.groups}
    rows = []
    for (group, is_p2p), ranks in mentioned.items():
        members = members_by_group(topology, {group: ranks})[group]
        kind = "p2p" if is_p2p else "collective"
        # A name is handed on only where the job gave it: Insight reads advice out of tp, dp, cp and pp.
        rows.append(
            GroupRow(kind, members, group or NO_GROUP, safe(ids.get(group, "")), safe(names.get(group, "")))
        )
    return tuple(sorted(rows, key=lambda row: (row.kind, row.ranks, row.group)))


def group_json(rows: Sequence[GroupRow]) -> str:
    """Return communication_group.json."""
    document = {
        "collective": [list(row.ranks) for row in rows if row.kind == "collective"],
        "p2p": [list(row.ranks) for row in rows if row.kind == "p2p"],
        "comm_group_parallel_info": [
            {
                "type": row.kind,
                "rank_set": list(row.ranks),
                "group_name": row.group,
                "group_id": row.group_id,
                "pg_name": row.pg_name,
            }
            for row in rows
        ],
    }
    return json.dumps(document, ensure_ascii=True, allow_nan=False) + "\n"
