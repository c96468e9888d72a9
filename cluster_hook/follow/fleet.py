"""Adds an analysed run to the fleet, if a database is named. It costs the job nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cluster_hook.isolation import our_command
from cluster_hook.job import ReportedJob
from cluster_hook.processes import run_command
from cluster_run.errors import ExitCode
from cluster_run.layout import FLEET_VARIABLE

_DEADLINE_S = 120.0


def remember(job: ReportedJob, run: Path, results: Path) -> None:
    """Add the run to the fleet that the environment names; what goes wrong is one line of the log."""
    if not os.environ.get(FLEET_VARIABLE):
        return
    hours = []
    if job.began_s is not None and job.ended_s is not None and job.ended_s > job.began_s:
        hours = [f"--hours={(job.ended_s - job.began_s) / 3600:.4f}"]
    command = our_command("cluster_fleet", "add", str(run), f"--results={results}", "-q", *hours)
    end = run_command(command, name="cluster-fleet", deadline_s=_DEADLINE_S, capture=True)
    if end.code != ExitCode.DONE:
        print(f"cluster-hook: the fleet does not remember this run: {end.reason}", file=sys.stderr)
