"""The metrics of an analysis: beside its results, and where node_exporter reads them."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from pathlib import Path

from cluster_run.errors import InputError
from cluster_run.files import write_text_whole
from cluster_run.findings import FindingsDocument
from cluster_words.metric_names import MEANINGS, PREFIX, by_series, exposition, series

#: Beside findings.json.
METRICS_NAME = "metrics.prom"
#: More than a large job's metrics take; a longer text is not ours.
MAX_METRICS_LENGTH = 1024 * 1024
#: After this long the metrics of a job end, and the alerts on them.
KEEP_S = 86400.0

_FAILED = f"{PREFIX}failed"
_EXPIRES = f"{PREFIX}expires_timestamp_seconds"
_FINISHED = f"{PREFIX}finished_timestamp_seconds"
_MEANINGS: Mapping[str, str] = {
    **MEANINGS,
    _FAILED: "1 where the job could not be collected or analysed.",
    _EXPIRES: "When these metrics end, because the job is long gone.",
}
_LABEL = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE = re.compile(
    rf"(cluster_analysis_[a-z_]+)(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)"
)
_EXPIRES_AT = re.compile(rf"^{_EXPIRES}\{{.*\}} ([0-9.e+]+)$", re.MULTILINE)
_DRAIN_FILE = "cluster_hook.prom"


def write_metrics(document: FindingsDocument, results: Path) -> str:
    """Write the metrics of findings.json beside it; return their text."""
    # Late: the analysis' own modules bring pyarrow, and most calls of the hook need none of it.
    from cluster_analysis.reports import prometheus  # noqa: PLC0415

    text = prometheus.render(document, time.time())
    write_text_whole(results / METRICS_NAME, text)
    return text


def metrics_of_a_failure(now_s: float) -> str:
    """Return the metrics of a job that could not be analysed."""
    return f"{_FAILED} 1\n{_FINISHED} {now_s:.12g}\n"


def labelled(text: str, job: str, expires_s: float) -> str:
    """Return the metrics with the label `job_id`, without which two jobs' metrics would clash.

    Metrics that are not ours are refused, and their help texts are written anew: the text comes from a user's
    process, and one bad line makes the collector drop the whole file.

    Raises:
        InputError: a line is not one that cluster-analyse writes.
    """
    if len(text) > MAX_METRICS_LENGTH:
        raise InputError(f"the metrics of job {job} are too long to be ours")
    samples: dict[str, dict[str, float | str]] = {}
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    if not any(line.startswith(_FAILED) for line in lines):
        lines.append(f"{_FAILED} 0")
    for line in [*lines, f"{_EXPIRES} {expires_s:.12g}"]:
        match = _SAMPLE.fullmatch(line)
        name, labels, value = match.groups() if match else ("", "", "")
        one = series(name, {"job_id": job})
        one = f"{one[:-1]},{labels}}}" if labels else one
        if name not in _MEANINGS or "job_id=" in (labels or "") or one in samples.get(name, {}):
            raise InputError(f"the metrics of job {job} hold a line that is none: {line[:80]!r}")
        samples.setdefault(name, {})[one] = value
    return exposition(samples, _MEANINGS)


def safe_name(text: str) -> str:
    """Return the text as a part of a file's name."""
    return "".join(one if (one.isalnum() and one.isascii()) or one in "-_" else "_" for one in text)


def place_metrics(text: str, job: str, directory: Path, keep_s: float = KEEP_S) -> None:
    """Write the metrics of `job` into the collector's directory, to end `keep_s` from now.

    Raises:
        InputError: the directory is missing or cannot be written, or the metrics are not ours.
    """
    _write(directory / f"{PREFIX}{safe_name(job)}.prom", labelled(text, job, time.time() + keep_s))


def place_drain_metrics(requests: Mapping[str, int], directory: Path) -> None:
    """Write how many requests lie in which area of the spool, and that a drain looked at them now.

    Raises:
        InputError: the directory is missing or cannot be written.
    """
    meanings = {
        "cluster_hook_requests": "Requests in each area of the drain's spool.",
        "cluster_hook_drain_looked_timestamp_seconds": "When a drain last looked for requests.",
    }
    in_areas = [(n, {"area": area}) for area, n in requests.items()]
    samples = by_series(
        "cluster_hook_", {"requests": in_areas, "drain_looked_timestamp_seconds": [(time.time(), {})]}
    )
    _write(directory / _DRAIN_FILE, exposition(samples, meanings))


def prune_metrics(directory: Path) -> None:
    """Remove the metrics of jobs that have expired. Files of others are left alone."""
    for path in directory.glob(f"{PREFIX}*.prom"):
        with contextlib.suppress(OSError, ValueError):
            expires = _EXPIRES_AT.search(path.read_text())
            if expires is not None and float(expires.group(1)) < time.time():
                path.unlink()


def _write(path: Path, text: str) -> None:
    if not path.parent.is_dir():
        raise InputError(f"{path.parent}: there is no such directory for metrics on this host")
    try:
        write_text_whole(path, text)
    except OSError as error:
        raise InputError(f"{path.parent}: the metrics cannot be written: {error.strerror}") from error
