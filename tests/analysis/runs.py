"""Run directories for tests of the whole analysis: simulated, or real where they are there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_simulate.api import JobSpec, SimulatedJob, parse_scenario, simulate, write_run

REAL_DATA = Path(__file__).parents[3] / "shared" / "data"


def simulated(
    path: Path, *faults: str, seed: int = 1, form: str = "text", framework: str = "pt", **sizes: int
) -> Path:
    """Write a run of a job of these sizes as it lies on its hosts: nobody collected it."""
    write_run(_job(faults, seed, sizes), path, form=form, framework=framework)  # type: ignore[arg-type]
    (path / "manifest.json").unlink()
    return path


def write_small_run(
    path: Path, *, form: str = "text", framework: str = "pt", steps: int = 3, dp: int = 2,
    faults: tuple[str, ...] = ("slow_rank:1.3@3",), seed: int = 5,
) -> Path:  # fmt: skip
    """Write a collected run of eight ranks (TP 2 × PP 2 × DP 2) on two hosts, one of them slow."""
    sizes = {"tp": 2, "pp": 2, "dp": dp, "steps": steps, "microbatches": 2, "ranks_per_host": 4}
    write_run(_job(faults, seed, sizes), path, form=form, framework=framework)  # type: ignore[arg-type]
    return path


def _job(faults: tuple[str, ...], seed: int, sizes: dict[str, int]) -> SimulatedJob:
    return simulate(JobSpec(**sizes), [parse_scenario(one) for one in faults], seed=seed)


def captures(run: Path) -> list[Path]:
    """Return the directories of all captures, by rank."""
    return sorted(run.rglob("*_ascend_*"), key=_rank_of)


def file_of(run: Path, rank: int, name: str) -> Path:
    """Return a parsed file of one rank."""
    return captures(run)[rank] / "ASCEND_PROFILER_OUTPUT" / name


def real(name: str) -> Path:
    """Return a folder of real captures; skips where they are not."""
    path = REAL_DATA / name
    if not path.is_dir():
        pytest.skip(f"no real captures at {path}")
    return path


def digests(folder: Path, keep: Callable[[Path], bool] = lambda path: True) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and keep(path)
    }


def _rank_of(capture: Path) -> int:
    (info,) = capture.glob("profiler_info_*.json")
    return int(info.stem.rpartition("_")[2])
