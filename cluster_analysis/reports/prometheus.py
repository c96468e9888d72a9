"""A text file for the textfile collector of node_exporter.

Metric names end in their base unit (seconds, ratio).
"""

from __future__ import annotations

from typing import get_args

from cluster_analysis.sentences import verdicts
from cluster_run.findings import Finding, FindingsDocument, Severity, Verdict
from cluster_words.metric_names import MEANINGS, PREFIX, by_series, exposition


def render(document: FindingsDocument, finished_at_s: float) -> str:
    """Return all metrics of one analysis.

    Args:
        document: findings.json, which is all that the hook has of a result.
        finished_at_s: end of the analysis in seconds since 1970; the age is `time() -` this metric.
    """
    run, saving_ms = document.run, verdicts.best_saving_ms(document)
    samples: dict[str, list[tuple[float | None, dict[str, str]]]] = {
        "verdict": [(document.verdict == one, {"verdict": one}) for one in get_args(Verdict)],
        "finished_timestamp_seconds": [(finished_at_s, {})],
        "step_seconds": [(_seconds(run.step_ms), {})],
        "ranks": [(run.ranks, {})],
        "expected_ranks": [(run.expected_ranks, {})],
        "problems": [(len(document.problems), {})],
        "findings": [
            (sum(found.severity == one for found in document.findings), {"severity": one})
            for one in get_args(Severity)
        ],
        "lost_seconds": [(_seconds(saving_ms), {})],
        "finding_cost_seconds": [
            (_seconds(one.cost_ms_per_step), _labels_of(one)) for one in document.findings
        ],
    }
    return exposition(by_series(PREFIX, samples), MEANINGS)


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000


def _labels_of(finding: Finding) -> dict[str, str]:
    hosts = ",".join(finding.hosts)
    return {"finding": finding.id, "kind": finding.kind, "severity": finding.severity, "hosts": hosts}
