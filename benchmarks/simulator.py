"""How long the simulator takes: `python -m benchmarks.simulator`.

Baseline: the study behind docs/simulation.md simulated 64 ranks × 12 steps in 0.1 s and 1024 ranks × 5
steps in 1.3 s of one core, without link times, files or truth.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cluster_simulate.api import JobSpec, parse_scenario, simulate, tables, truth, write_run
from cluster_simulate.job.job import SimulatedJob

_T = TypeVar("_T")
_FAULT = parse_scenario("slow_rank:1.25")
_JOBS = {
    "64 ranks × 12 steps": JobSpec(steps=12),
    "64 ranks × 5 steps, 360 operators a step": JobSpec(segments=20),
    "1024 ranks × 5 steps": JobSpec(tp=8, pp=4, dp=32),
    "10240 ranks × 3 steps": JobSpec(tp=8, pp=8, dp=160, segments=1, steps=3),
}


def main() -> None:
    """Print a line a job and measure."""
    for name, spec in _JOBS.items():
        print(name)
        job = _timed("simulate", lambda spec=spec: simulate(spec, [_FAULT], 1))  # type: ignore[misc]
        print(f"    {len(job.ops):,} operators, {len(job.links.op):,} link uses, step {job.step_ms:.0f} ms")
        _timed("truth, by simulating again", lambda job=job: truth(job))  # type: ignore[misc]
        if spec.n_ranks <= 1024:
            _timed("tables, without files", lambda job=job: tables(job))  # type: ignore[misc]
        if spec.n_ranks <= 64:
            for form in ("text", "db", "r1"):
                _timed(f"write as {form}", lambda job=job, form=form: _write(job, form))  # type: ignore[misc]


def _write(job: SimulatedJob, form: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="bench-simulator-"))
    try:
        write_run(job, folder / "run", form)  # type: ignore[arg-type]
    finally:
        shutil.rmtree(folder)


def _timed(what: str, work: Callable[[], _T]) -> _T:
    began, cpu = time.perf_counter(), time.process_time()
    done = work()
    print(f"  {what:<28} {time.perf_counter() - began:6.2f} s, {time.process_time() - cpu:6.2f} s of a core")
    return done


if __name__ == "__main__":
    main()
