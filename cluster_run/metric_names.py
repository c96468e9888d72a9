"""The metrics of an analysis, each with what it means. All are gauges.

Every writer takes the meaning from here: Prometheus wants one text for one metric in all files.
"""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "cluster_analysis_"

MEANINGS: Mapping[str, str] = {
    f"{PREFIX}verdict": "1 for the verdict that holds, 0 for the others.",
    f"{PREFIX}finished_timestamp_seconds": "When the analysis ended.",
    f"{PREFIX}step_seconds": "Mean time of a training step.",
    f"{PREFIX}ranks": "Ranks that were analysed.",
    f"{PREFIX}expected_ranks": "Ranks that the job has.",
    f"{PREFIX}problems": "Hosts, ranks and files that could not be used.",
    f"{PREFIX}findings": "Findings by severity.",
    f"{PREFIX}lost_seconds": "What a step would save if all findings were put right.",
    f"{PREFIX}finding_cost_seconds": "What one finding costs the mean step.",
}


def head(name: str, meaning: str) -> tuple[str, str]:
    """Return the two lines that begin a metric."""
    return f"# HELP {name} {meaning}", f"# TYPE {name} gauge"


def label(name: str, value: str) -> str:
    """Return a label of a sample, escaped as Prometheus asks."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return f'{name}="{escaped}"'
