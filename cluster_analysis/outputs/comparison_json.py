"""comparison.json: what changed since the baseline, for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from msgspec.structs import asdict

from cluster_analysis.judge.baseline import Comparison, Matched
from cluster_analysis.result import Reported
from cluster_analysis.sentences import changes, subjects
from cluster_run.layout import COMPARISON_NAME

SCHEMA = "cluster-comparison/1"


def files(given: Reported) -> Iterator[tuple[str, bytes]]:
    """Give comparison.json, where a baseline was named."""
    if given.comparison is not None:
        yield COMPARISON_NAME, comparison_to_json(given.comparison).encode("ascii")


def comparison_to_json(comparison: Comparison) -> str:
    """Return the comparison as JSON: the same comparison gives the same bytes."""
    matched = {
        state: [_matched_plain(one) for one in comparison.findings if one.state == state]
        for state in ("fixed", "still", "new")
    }
    document = {
        "schema": SCHEMA,
        "changes": [asdict(one) for one in comparison.changes],
        "summary": [one.en for one in changes.summary(comparison)],
        "refusals": [one.en for one in changes.refusals(comparison)],
        **matched,
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _matched_plain(one: Matched) -> dict[str, object]:
    return {
        "id": one.finding.id,
        "kind": one.finding.kind,
        "what": subjects.subject(one.finding).en,
        "before_ms": one.before.cost_ms_per_step if one.before else None,
        "after_ms": one.after.cost_ms_per_step if one.after else None,
    }
