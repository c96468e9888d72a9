"""Who waits for whom, in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster_analysis.sentences.phrase import Phrase, fill
from cluster_analysis.sentences.texts import Template, texts
from cluster_run.findings import Finding, Wait

_SAID = texts("findings")
WAITS: Mapping[str, Template] = _SAID["chains"]


def chain(finding: Finding) -> tuple[Phrase, ...]:
    """Return how a finding's delay travels, a sentence a row."""
    late = _late(finding)
    return tuple(fill(WAITS[row.waits_for], _values(row, late)) for row in finding.chain)


def _values(row: Wait, late: Phrase) -> dict[str, Any]:
    digits = 0 if row.ms_per_step >= 100 else 1 if row.ms_per_step >= 1 else 2
    longest = fill(_SAID["in_chains"]["longest"], {"rank": row.rank, "ms": f"{row.ms_per_step:.{digits}f}"})
    return {"who": late, "group": row.group, "n_ranks": row.n_ranks, "longest": longest}


def _late(finding: Finding) -> Phrase:
    if finding.record.subject == "rank":
        return fill(_SAID["in_chains"]["rank"], {"who": finding.ranks[0]})
    if finding.record.subject == "host":
        return fill(_SAID["in_chains"]["host"], {"who": finding.hosts[0]})
    return fill(_SAID["in_chains"]["network"], {})
