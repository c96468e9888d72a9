"""Simulated jobs for the benchmarks, made once and kept for the next run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

#: 1785 to 1945 operators a rank in five steps: 2 MB of communication.json.
FULL = ("--microbatches", "16", "--segments", "10")
#: A tenth of that.
THIN = ("--microbatches", "2", "--segments", "4")
_STAGES, _TENSOR = 4, 8


def work_directory() -> Path:
    """Return where jobs and environments are kept between runs: BENCH_DIR, or below the system's choice."""
    default = Path(tempfile.gettempdir()) / "cluster-profiler-bench"
    path = Path(os.environ.get("BENCH_DIR", default))
    path.mkdir(parents=True, exist_ok=True)
    return path


def made(name: str, make: Callable[[Path], None]) -> Path:
    """Return what `make` writes at a path, made once; a run that was interrupted leaves nothing behind.

    Each process makes its own: two that wrote into one place left a job without some of its ranks.
    """
    path = work_directory() / name
    if not path.exists():
        growing = path.with_name(f"{name}.{os.getpid()}.new")
        shutil.rmtree(growing, ignore_errors=True)
        print(f"making {name} …", file=sys.stderr)
        make(growing)
        if path.exists():  # another process was faster
            shutil.rmtree(growing)
        else:
            growing.rename(path)
    return path


def simulated(path: Path, *options: str) -> None:
    """Write a simulated job."""
    command = (sys.executable, "-m", "cluster_simulate", str(path), "--quiet", *options)
    subprocess.run(command, check=True)


def simulated_job(n_ranks: int, kind: tuple[str, ...], form: str = "text") -> Path:
    """Return the run directory of a job with one slow rank; TP 8 × PP 4 × DP the rest."""
    name = "full" if kind is FULL else "thin"
    replicas = str(n_ranks // (_TENSOR * _STAGES))
    return made(
        f"{name}-{n_ranks}" if form == "text" else f"{name}-{form}-{n_ranks}",
        lambda path: simulated(
            path,
            *("--tp", str(_TENSOR), "--pp", str(_STAGES), "--dp", replicas),
            *("--steps", "5", "--scenario", "slow_rank:1.25", "--form", form, *kind),
        ),
    )


def size_bytes(path: Path, pattern: str = "communication*.json") -> int:
    """Return how much there is to read."""
    return sum(file.stat().st_size for file in path.rglob(pattern))
