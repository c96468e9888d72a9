"""A text file for the textfile collector of node_exporter.

Format: Prometheus text exposition format 0.0.4. Metric names end in their base unit (seconds, ratio).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cluster_analysis.result import AnalysisResult
from cluster_analysis.sentences.results import wording
from cluster_run.metric_names import MEANINGS, PREFIX, head, label

_VERDICTS = ("healthy", "degraded", "unknown")
_SEVERITIES = ("info", "warning", "critical")


def render(result: AnalysisResult, finished_at_s: float) -> str:
    """Return all metrics of one analysis.

    Args:
        result: what was found.
        finished_at_s: end of the analysis in seconds since 1970; the age is `time() -` this metric.
    """
    return "\n".join(_lines(result, finished_at_s)) + "\n"


def _lines(result: AnalysisResult, finished_at_s: float) -> Iterator[str]:
    document = result.document
    run = document.run

    def sample(name: str, value: float, **labels: str) -> str:
        return f"{PREFIX}{name}{_labels(labels)} {value:.12g}"

    yield from _head("verdict")
    for verdict in _VERDICTS:
        yield sample("verdict", int(document.verdict == verdict), verdict=verdict)
    yield from _head("finished_timestamp_seconds")
    yield sample("finished_timestamp_seconds", finished_at_s)
    if run.step_ms is not None:
        yield from _head("step_seconds")
        yield sample("step_seconds", run.step_ms / 1000)
    yield from _head("ranks")
    yield sample("ranks", run.ranks)
    yield from _head("expected_ranks")
    yield sample("expected_ranks", run.expected_ranks)
    yield from _head("problems")
    yield sample("problems", len(document.problems))
    yield from _head("findings")
    for severity in _SEVERITIES:
        yield sample(
            "findings", sum(one.severity == severity for one in document.findings), severity=severity
        )
    saving_ms = wording.best_saving_ms(document)
    if saving_ms is not None:
        yield from _head("lost_seconds")
        yield sample("lost_seconds", saving_ms / 1000)
    costed = [one for one in document.findings if one.cost_ms_per_step is not None]
    if costed:
        yield from _head("finding_cost_seconds")
        for finding in costed:
            assert finding.cost_ms_per_step is not None
            yield sample(
                "finding_cost_seconds",
                finding.cost_ms_per_step / 1000,
                finding=finding.id,
                kind=finding.kind,
                severity=finding.severity,
                hosts=",".join(finding.hosts),
            )


def _head(name: str) -> tuple[str, str]:
    return head(PREFIX + name, MEANINGS[PREFIX + name])


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return f"{{{','.join(label(name, value) for name, value in labels.items())}}}"
