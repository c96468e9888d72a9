"""Metrics as text, and what those of an analysis mean. All are gauges.

Every writer takes the meaning from here: Prometheus wants one text for one metric in all files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: Values by metric and series; a text is written as it is.
Samples = Mapping[str, Mapping[str, float | str]]

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


def series(name: str, labels: Mapping[str, str]) -> str:
    """Return the name of a metric with labels, escaped as Prometheus asks."""
    escaped = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
    said = ",".join(f'{key}="{value.translate(escaped)}"' for key, value in labels.items())
    return f"{name}{{{said}}}" if said else name


def by_series(
    prefix: str, samples: Mapping[str, Iterable[tuple[float | None, Mapping[str, str]]]]
) -> Samples:
    """Return the values that are known by metric and series; names are given without their prefix."""
    return {
        prefix + name: {series(prefix + name, labels): value for value, labels in values if value is not None}
        for name, values in samples.items()
    }


def exposition(samples: Samples, meanings: Mapping[str, str]) -> str:
    """Return metrics as text for Prometheus (text exposition format 0.0.4).

    Args:
        samples: a metric without any value is left out.
        meanings: what each metric means.
    """
    lines: list[str] = []
    for name, values in samples.items():
        if values:
            lines += [f"# HELP {name} {meanings[name]}", f"# TYPE {name} gauge"]
        written = {one: value if isinstance(value, str) else f"{value:.12g}" for one, value in values.items()}
        lines += [f"{one} {value}" for one, value in written.items()]
    return "\n".join(lines) + "\n"
