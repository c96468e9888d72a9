"""The simulator for other tests and benchmarks: jobs with known faults, as arrays, tables or files.

    from cluster_simulate.api import JobSpec, parse_scenario, simulate, truth, write_run

    spec = JobSpec(tp=4, pp=4, dp=4, steps=5)
    job = simulate(spec, [parse_scenario("slow_rank:1.25@5")], seed=1)
    answer = truth(job)            # Truth: faults with their true cost by re-simulation
    write_run(job, Path("run1"), form="text", framework="pt")    # and run1.truth.json next to it

A fault without a place is given one by the seed; `job.faults` has it filled in. The same spec, faults and
seed give the same job; a fault changes only what it slows: all random numbers stay as they were.
"""

from __future__ import annotations

from cluster_simulate.files.rundir import write_run
from cluster_simulate.job.events import simulate
from cluster_simulate.job.faults import Fault, parse_scenario
from cluster_simulate.job.job import SimulatedJob
from cluster_simulate.job.spec import Healthy, JobSpec, Noise
from cluster_simulate.job.truth import Truth, truth, truth_path

__all__ = [
    "Fault",
    "Healthy",
    "JobSpec",
    "Noise",
    "SimulatedJob",
    "Truth",
    "parse_scenario",
    "simulate",
    "truth",
    "truth_path",
    "write_run",
]
