"""Training jobs of the lab: what they write, how they end, and how a user submits them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster_simulate.cli import main as write_simulated
from tests.slurm.lab import SlurmLab

_SCENARIO = ("--scenario", "slow_rank:1.5")
_RANKS = ("--tp", "2", "--pp", "1", "--dp", "4", "--ranks-per-host", "4")
_JOB = (*_SCENARIO, *_RANKS, "--steps", "3", "--microbatches", "2")

# What a training job does as far as the hook can see: each of two nodes writes the captures of its ranks.
_SCRIPT = """\
#!/bin/sh
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --comment={comment}
srun sh -c 'd={target}; mkdir -p $d; cp -r {simulated}/cluster_profiler/$((SLURM_PROCID+1))/profiler/. $d/'
touch written-$SLURM_JOB_ID
{end}
"""


@dataclass(frozen=True)
class SimulatedJob:
    """A run directory of a simulated job, and the rank that the truth says is slow."""

    run: Path
    slow_rank: int

    @property
    def profiler_root(self) -> Path:
        """What its first host has."""
        return self.run / "cluster_profiler" / "1" / "profiler"


def simulate(run: Path) -> SimulatedJob:
    """Simulate a job with one slow rank on two hosts."""
    assert write_simulated([str(run), "-q", *_JOB]) == 0
    truth = json.loads(run.with_name(f"{run.name}.truth.json").read_text())
    return SimulatedJob(run, truth["faults"][0]["ranks"][0])


def write_script(
    work: Path,
    simulated: SimulatedJob,
    *,
    comment: str = "profile_dir=prof",
    target: str = "prof",
    end: str = "true",
) -> Path:
    """Write the script of a training job that leaves its captures in `target` of each node."""
    work.mkdir(exist_ok=True)
    script = work / "train.sbatch"
    run = shlex.quote(str(simulated.run))
    script.write_text(_SCRIPT.format(comment=comment, target=target, simulated=run, end=end))
    return script


@dataclass(frozen=True)
class Pair:
    """A job and its post-job, submitted from the directory `work`."""

    work: Path
    job: str
    post_job: str

    @property
    def log(self) -> str:
        """What the post-job said."""
        return (self.work / f"cluster-hook-{self.job}.out").read_text()


def submit(
    lab: SlurmLab,
    script: Path,
    *sbatch: str,
    hook: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> Pair:
    """Submit a job as a user does."""
    ended = lab.hook("slurm-submit", *hook, script.name, *sbatch, cwd=script.parent, environment=environment)
    said = re.search(r"^post-job (\d+) ", ended.stderr, re.MULTILINE)
    assert said, ended.stderr
    return Pair(script.parent, ended.stdout.split()[-1], said[1])


def slow_ranks(findings: Path) -> list[int]:
    """Return the ranks that a findings.json calls slow."""
    document = json.loads(findings.read_text())
    return [rank for one in document["findings"] if one["kind"] == "slow_rank" for rank in one["ranks"]]


def expect_findings(lab: SlurmLab, simulated: SimulatedJob, pair: Pair, state: str) -> None:
    """Check that the post-job left everything, and said so in its last line."""
    post_state = lab.wait_for(pair.post_job)
    assert post_state == "COMPLETED", pair.log
    results = pair.work / "prof" / "cluster_analysis_output"
    assert slow_ranks(results / "findings.json") == [simulated.slow_rank]
    assert (results / "report.html").stat().st_size > 1000
    assert (results / "metrics.prom").is_file()
    last_line = pair.log.splitlines()[-1]
    assert last_line.startswith(f"job {pair.job} train ({state}): degraded: ")
    assert f"Rank {simulated.slow_rank} " in last_line
    assert json.loads((results / "cluster-hook.json").read_text())["job"]["state"] == state
