"""Who waits for whom, in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster_analysis.sentences.phrase import Phrase, Template, fill
from cluster_run.findings import Finding, Wait

WAITS: Mapping[str, Template] = {
    "late": (
        "In its {group:term} {n_ranks} {n_ranks:rank waits|ranks wait} for {who} {longest}.",
        "在其{group:term}中，{n_ranks} 张卡等待{who}{longest}。",
    ),
    "held_up": (
        "Down the line {n_ranks} {n_ranks:rank waits|ranks wait} in their {group:term} for ranks that {who} "
        "held up {longest}.",
        "继而 {n_ranks} 张卡在各自的{group:term}中等待被{who}拖慢的卡{longest}。",
    ),
}
_LONGEST: Template = ("(rank {rank} longest, {ms} ms a step)", "（卡 {rank} 最久，每步 {ms} ms）")
_RANK: Template = ("rank {who}", "卡 {who}")
_HOST: Template = ("host {who}", "主机 {who}")
_NETWORK: Template = ("this part of the network", "这部分网络")


def chain(finding: Finding) -> tuple[Phrase, ...]:
    """Return how a finding's delay travels, a sentence a row."""
    late = _late(finding)
    return tuple(fill(WAITS[row.waits_for], _values(row, late)) for row in finding.chain)


def _values(row: Wait, late: Phrase) -> dict[str, Any]:
    digits = 0 if row.ms_per_step >= 100 else 1 if row.ms_per_step >= 1 else 2
    longest = fill(_LONGEST, {"rank": row.rank, "ms": f"{row.ms_per_step:.{digits}f}"})
    return {"who": late, "group": row.group, "n_ranks": row.n_ranks, "longest": longest}


def _late(finding: Finding) -> Phrase:
    if finding.record.subject == "rank":
        return fill(_RANK, {"who": finding.ranks[0]})
    if finding.record.subject == "host":
        return fill(_HOST, {"who": finding.hosts[0]})
    return fill(_NETWORK, {})
