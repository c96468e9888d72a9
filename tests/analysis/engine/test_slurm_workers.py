"""What a job of dask-jobqueue's runs on its node."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cluster_analysis.engine.clusters import slurm

jobqueue = pytest.importorskip("dask_jobqueue", reason="the extra slurm is not installed")


def test_no_worker_takes_a_module_from_the_directory_that_its_job_begins_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cluster_analysis.py").write_text("raise SystemExit('of the user')")
    (tmp_path / "random.py").write_text("raise SystemExit('of the user')")
    monkeypatch.setattr(slurm, "_where_to_listen", dict)
    settings = slurm._settings(tmp_path)
    settings["security"] = None
    job = jobqueue.slurm.SLURMJob(
        "tcp://127.0.0.1:1",
        name="worker",
        protocol="tcp://",
        **{
            name: settings[name]
            for name in (
                "python",
                "cores",
                "processes",
                "memory",
                "walltime",
                "worker_command",
                "worker_extra_args",
            )
        },
    )
    (command,) = [line for line in job.job_script().splitlines() if sys.executable in line]
    words = command.split()
    assert words[1] in ("-P", "-I")
    assert words[2:4] == ["-m", "cluster_analysis.engine.clusters.worker"]
    asked = subprocess.run([*words[:4], "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "of the user" not in asked.stdout + asked.stderr
