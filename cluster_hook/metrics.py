"""Puts the metrics of an analysis where node_exporter's textfile collector reads them."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

from cluster_run.errors import InputError
from cluster_run.files import write_text_whole

#: What cluster-analyse calls its metrics, in its output directory.
METRICS_NAME = "metrics.prom"
#: More than a large job's metrics take; a larger file is not one of ours.
MAX_METRICS_BYTES = 1024 * 1024
#: After this long a job's metrics leave the collector's directory.
KEEP_S = 7 * 86400.0

_PREFIX = "cluster_analysis_"
_COMMENT = re.compile(r"# (HELP|TYPE) cluster_analysis_[a-z_]+ .*")
_SAMPLE = re.compile(r"(cluster_analysis_[a-z_]+)(?:\{(.*)\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|NaN|[+-]Inf)")


def read_metrics(results: Path) -> str:
    """Return the metrics among the results of an analysis; empty where there are none."""
    try:
        with (results / METRICS_NAME).open("rb") as stream:
            content = stream.read(MAX_METRICS_BYTES + 1)
        return content.decode() if len(content) <= MAX_METRICS_BYTES else ""
    except (OSError, UnicodeDecodeError):
        return ""


def labelled(text: str, job: str) -> str:
    """Return the metrics with the label `job_id`, without which two jobs' metrics would clash.

    Raises:
        InputError: a line is not one that cluster-analyse writes; one bad file makes the collector drop all.
    """
    label = 'job_id="{}"'.format(job.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
    lines = [line for line in text.splitlines() if line]
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
