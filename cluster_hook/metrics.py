"""The metrics of an analysis: beside its results, and where node_exporter reads them."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

from cluster_run.errors import InputError
from cluster_run.files import write_text_whole
from cluster_run.layout import FINDINGS_NAME

#: Beside findings.json.
METRICS_NAME = "metrics.prom"
#: More than a large job's metrics take; a longer text is not ours.
MAX_METRICS_LENGTH = 1024 * 1024
#: After this long a job's metrics leave the collector's directory.
KEEP_S = 7 * 86400.0

_PREFIX = "cluster_analysis_"
_COMMENT = re.compile(r"# (HELP|TYPE) cluster_analysis_[a-z_]+ .*")
_SAMPLE = re.compile(r"(cluster_analysis_[a-z_]+)(?:\{(.*)\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|NaN|[+-]Inf)")


def write_metrics(results: Path) -> str:
    """Write the metrics of findings.json beside it; return their text.

    Raises:
        InputError: the findings cannot be read.
    """
    # Late: the analysis' own modules bring pyarrow, and most calls of the hook need none of it.
    from cluster_analysis.findings_json import document_from_json  # noqa: PLC0415
    from cluster_analysis.reports import prometheus  # noqa: PLC0415
    from cluster_analysis.result import AnalysisResult  # noqa: PLC0415
    from cluster_analysis.tables.model import Topology  # noqa: PLC0415

    path = results / FINDINGS_NAME
    try:
        document = document_from_json(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    nothing_else = Topology((), {}, {}, {}, document.run.parallel, {})
    text = prometheus.render(AnalysisResult(document, nothing_else, {}), time.time())
    write_text_whole(results / METRICS_NAME, text)
    return text


def labelled(text: str, job: str) -> str:
    """Return the metrics with the label `job_id`, without which two jobs' metrics would clash.

    Raises:
        InputError: a line is not one that cluster-analyse writes; one bad file makes the collector drop all.
    """
    label = 'job_id="{}"'.format(job.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
    lines = [line for line in text.splitlines() if line]
    if len(text) > MAX_METRICS_LENGTH:
        raise InputError(f"the metrics of job {job} are too long to be ours")
    strange = [line for line in lines if not _SAMPLE.fullmatch(line) and not _COMMENT.fullmatch(line)]
    if strange:
        raise InputError(f"the metrics of job {job} hold a line that is none: {strange[0][:80]!r}")
    return "".join(_SAMPLE.sub(lambda sample: _with_label(sample, label), line) + "\n" for line in lines)


def _with_label(sample: re.Match[str], label: str) -> str:
    name, labels, value = sample.groups()
    return f"{name}{{{label}{',' + labels if labels else ''}}} {value}"


def place_metrics(text: str, job: str, directory: Path) -> None:
    """Write the metrics of `job` into the collector's directory, and remove those of a week ago.

    Raises:
        InputError: the directory is missing or cannot be written, or the metrics are not ours.
    """
    if not directory.is_dir():
        raise InputError(f"{directory}: there is no such directory for metrics")
    safe = "".join(one if (one.isalnum() and one.isascii()) or one in "-_" else "_" for one in job)
    try:
        write_text_whole(directory / f"{_PREFIX}{safe}.prom", labelled(text, job))
        for path in directory.glob(f"{_PREFIX}*.prom"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > KEEP_S:
                    path.unlink()
    except OSError as error:
        raise InputError(f"{directory}: the metrics cannot be written: {error.strerror}") from error
