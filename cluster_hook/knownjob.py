"""A job as text that travels: from submission to the post-job, and from the spool to the drain's worker."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from cluster_hook.job import FinishedJob
from cluster_run.errors import InputError

SCHEMA = "cluster-hook-job/1"


def job_to_text(job: FinishedJob) -> str:
    """Return the job as one line of JSON."""
    return json.dumps({"schema": SCHEMA, **asdict(job), "work_dir": str(job.work_dir)})


def job_from_text(text: str) -> FinishedJob:
    """Return the job that `job_to_text` wrote.

    Raises:
        InputError: not such a text.
    """
    try:
        document = json.loads(text)
        if document.pop("schema") != SCHEMA:
            raise InputError(f"not a job of schema {SCHEMA}: {text[:80]!r}")
        nodes = document.pop("nodes")
        work_dir = Path(document.pop("work_dir"))
        return FinishedJob(**document, work_dir=work_dir, nodes=None if nodes is None else tuple(nodes))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"not a job: {text[:80]!r}: {error!r}") from error
