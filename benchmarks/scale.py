"""`make bench-scale`: cost a rank as the job grows, with one worker and two, and by a model with more.

Full files to 1024 ranks, thin ones to 10 240, without Insight's files, which only copy. What several
machines would take is worked out, not measured: what one worker and two took tells what they share and what
they do not (Amdahl), and a Dask cluster takes some seconds to start.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from benchmarks.jobs import FULL, THIN, simulated_job, size_bytes, work_directory
from benchmarks.measure import MIB, Measured, measure
from cluster_analysis.sources.compiled.reader import in_use

_SIZES = ((FULL, 64), (FULL, 256), (FULL, 1024), (THIN, 64), (THIN, 256), (THIN, 1024), (THIN, 10240))
_WORKERS = (1, 2)
#: Machines of the model, each with two workers.
_MACHINES = (4, 16)
#: What a Dask cluster takes until its workers are there, as measured on one machine.
_CLUSTER_START_S = 3.0


def main(argv: Sequence[str]) -> int:
    """Print one line a size and number of workers, and the model's wall times."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__)
    parser.add_argument("--largest", type=int, default=10240, help="leave out larger jobs")
    arguments = parser.parse_args(argv)
    print(in_use())
    print(
        f"{'':12}{'workers':>8}{'read':>10}{'wall':>10}{'CPU':>10}{'memory':>10}"
        f"{'wall a rank':>13}{'CPU a rank':>12}" + "".join(f"{f'model: {n} machines':>20}" for n in _MACHINES)
    )
    for kind, n_ranks in _SIZES:
        if n_ranks <= arguments.largest:
            _measure_size(kind, n_ranks)
    return 0


def _measure_size(kind: tuple[str, ...], n_ranks: int) -> None:
    job = simulated_job(n_ranks, kind)
    size = size_bytes(job)
    runs = [_run(str(job), n_workers) for n_workers in _WORKERS]
    name = "full" if kind is FULL else "thin"
    for n_workers, one in zip(_WORKERS, runs, strict=True):
        models = "".join(f"{_modelled_s(runs, n):18.2f} s" for n in _MACHINES) if one is runs[-1] else ""
        print(
            f"{n_ranks:6} {name:5}{n_workers:8}{size / MIB:6.0f} MiB{one.wall_s:8.2f} s{one.cpu_s:8.2f} s"
            f"{one.peak_bytes / MIB:6.0f} MiB{1e3 * one.wall_s / n_ranks:10.2f} ms"
            f"{1e3 * one.cpu_s / n_ranks:9.2f} ms"
            f"{models}" + ("" if one.exit_code == 0 else f"  exit {one.exit_code}"),
            flush=True,
        )


def _run(job: str, n_workers: int) -> Measured:
    work = work_directory()
    output = work / "output-scale"
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "cluster_analysis", job, "--output", str(output), "--no-insight"]
    one = measure([*command, "--workers", str(n_workers)], work / "scale.log")
    shutil.rmtree(output, ignore_errors=True)
    return one


def _modelled_s(runs: Sequence[Measured], n_machines: int) -> float:
    """Wall time on several machines of two workers: what is shared shrinks, the rest stays."""
    alone, together = (one.wall_s for one in runs)
    shared = min(max(2 * (alone - together), 0.0), alone)
    return _CLUSTER_START_S + alone - shared + shared / (2 * n_machines)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
