"""Jobs for tests."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from cluster_hook.job import ReportedJob

_JOB = ReportedJob(
    job="12",
    name="train",
    user="ada",
    state="COMPLETED",
    nodes=("node1", "node2"),
    work_dir=Path("/work-dir"),
    comment="profile_dir=prof",
    uid=os.geteuid(),
)


def a_job(**changes: object) -> ReportedJob:
    """Return a job that asks to be followed, with some fields changed."""
    return replace(_JOB, **changes)  # type: ignore[arg-type]
