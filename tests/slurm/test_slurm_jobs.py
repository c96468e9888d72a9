"""Real jobs on a real Slurm of emulated nodes: however a job ends, its findings are there."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.slurm.lab import SlurmLab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

_SLOW_RANK = "slow_rank:1.5"
_LAYOUT = ("--tp", "2", "--pp", "1", "--dp", "4", "--steps", "3", "--ranks-per-host", "4")
_N_HOSTS = 2

# What a training job does as far as the hook can see: each node writes the captures of its ranks.
_SCRIPT = """\
#!/bin/sh
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --comment=profile_dir={profile_dir}
srun sh -c 'd={target}; mkdir -p $d; cp -r {simulated}/cluster_profiler/$((SLURM_PROCID+1))/profiler/. $d/'
touch written-$SLURM_JOB_ID
{end}
"""


@dataclass(frozen=True)
class SimulatedJob:
    """A run directory of a simulated job, and the rank that the truth says is slow."""

    run: Path
    slow_rank: int


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> SimulatedJob:
    run = tmp_path_factory.mktemp("simulated") / "run"
    command = [
        sys.executable,
        "-m",
        "cluster_analysis.simulation",
        run,
        "--scenario",
        _SLOW_RANK,
        *_LAYOUT,
        "-q",
    ]
    subprocess.run(command, check=True, timeout=60)
    truth = json.loads((run.parent / f"{run.name}.truth.json").read_text())
    return SimulatedJob(run, truth["faults"][0]["ranks"][0])


def write_script(work: Path, simulated: SimulatedJob, profile_dir: str, target: str, end: str = "") -> Path:
    work.mkdir(exist_ok=True)
    script = work / "train.sbatch"
    script.write_text(
        _SCRIPT.format(
            profile_dir=profile_dir, target=target, simulated=shlex.quote(str(simulated.run)), end=end
        )
    )
    return script


def submit(lab: SlurmLab, script: Path, *sbatch: str, hook: tuple[str, ...] = ()) -> tuple[str, str]:
    """Submit as a user does; return the numbers of the job and of its post-job."""
    command = [sys.executable, "-m", "cluster_hook", "slurm-submit", *hook, script.name, *sbatch]
    ended = lab.run(*command, cwd=script.parent)
    return ended.stdout.split()[-1], ended.stderr.split()[1]


def slow_ranks(findings: Path) -> list[int]:
    """Return the ranks that a findings.json calls slow."""
    document = json.loads(findings.read_text())
    return [rank for one in document["findings"] if one["kind"] == "slow_rank" for rank in one["ranks"]]


@dataclass(frozen=True)
class EndState:
    """A way for a job to end: the last lines of its script, and what is done to it."""

    state: str
    end: str
    sbatch: tuple[str, ...] = ()
    is_cancelled: bool = False


_ENDS = (
    EndState("TIMEOUT", "sleep 300", ("--time=1",)),
    EndState("COMPLETED", "true"),
    EndState("FAILED", "exit 3"),
    EndState("CANCELLED", "sleep 300", is_cancelled=True),
)


@pytest.fixture(scope="session")
def followed(
    lab: SlurmLab, simulated: SimulatedJob, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, str, str]]:
    """All four jobs, submitted at once, because Slurm counts a time limit in minutes."""
    jobs = {}
    for one in _ENDS:
        work = tmp_path_factory.mktemp(one.state.lower())
        script = write_script(work, simulated, "prof", "prof", one.end)
        jobs[one.state] = (work, *submit(lab, script, *one.sbatch))
    for one in _ENDS:
        work, job, _ = jobs[one.state]
        if one.is_cancelled:
            lab.wait_for_file(work / f"written-{job}")
            lab.run("scancel", job)
    return jobs


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"])
def test_the_findings_of_a_job_are_there_however_it_ended(
    lab: SlurmLab, simulated: SimulatedJob, followed: dict[str, tuple[Path, str, str]], state: str
) -> None:
    work, job, post_job = followed[state]
    assert lab.wait_for(job, deadline_s=150) == state
    post_state = lab.wait_for(post_job)
    log = (work / f"cluster-hook-{job}.out").read_text()
    assert post_state == "COMPLETED", log
    results = work / "prof" / "cluster_analysis_output"
    assert slow_ranks(results / "findings.json") == [simulated.slow_rank]
    assert (results / "report.html").stat().st_size > 1000
    assert (results / "metrics.prom").is_file()
    last_line = log.splitlines()[-1]
    assert last_line.startswith(f"job {job} train ({state}): degraded: ")
    assert f"Rank {simulated.slow_rank} " in last_line
    assert json.loads((results / "cluster-hook.json").read_text())["job"]["state"] == state
