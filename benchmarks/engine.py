"""`make bench`: the whole analysis against the peer's script, on the same jobs, in turn.

The peer is msprof-analyze from PyPI in an environment of its own, run by its script, which is three to
four times as fast as its command. Both start cold as a process; the files are in the page cache. Ours is
measured with Insight's large files, without them (the peer cannot leave its own out), with the JSON read by
Python alone, and from databases of the same job.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.jobs import FULL, simulated_job, size_bytes, work_directory
from benchmarks.measure import MIB, Measured, measure
from cluster_analysis.sources.compiled.reader import CHOICE, in_use

_BARE = ("--no-insight",)
_WAYS: tuple[tuple[str, Sequence[str], Mapping[str, str]], ...] = (
    ("cluster-analyse", ("--insight",), {}),
    ("… without Insight's", _BARE, {}),
    ("… and JSON by Python", _BARE, {CHOICE: "python"}),
)
_PEER = "msprof-analyze"
_PEER_SCRIPT = "msprof_analyze/cluster_analyse/cluster_analysis.py"


def main(argv: Sequence[str]) -> int:
    """Print one line a program and size, and the ratio."""
    parser = argparse.ArgumentParser(prog="benchmarks.engine", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 256])
    parser.add_argument(
        "--repeat", type=int, default=3, help="runs of ours; the median counts (the peer runs once)"
    )
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--databases", action="store_true", help="measure databases of the same jobs too")
    arguments = parser.parse_args(argv)
    work = work_directory()
    print(in_use())
    print(f"{'':26}{'wall':>9}{'CPU':>9}{'peak memory':>13}{'read':>10}")
    for n_ranks in arguments.ranks:
        job = simulated_job(n_ranks, FULL)
        size = size_bytes(job)
        _warm(job)
        peer = None if arguments.no_peer else _peer(job, work)
        print(f"{n_ranks} ranks, {size / MIB:.0f} MiB of communication files")
        if peer is not None:
            _print("peer's script", peer, size)
        for name, options, environment in _WAYS:
            ours = _ours(job, work, arguments.repeat, options, environment)
            _print(name, ours, size)
            if peer is not None:
                print(
                    f"  {'… ratio':24}{peer.wall_s / ours.wall_s:8.1f}×{peer.cpu_s / ours.cpu_s:8.1f}×"
                    f"{peer.peak_bytes / ours.peak_bytes:12.1f}×"
                )
        if arguments.databases:
            databases = simulated_job(n_ranks, FULL, "db")
            _warm(databases)
            own_size = size_bytes(databases, "*.db")
            _print("databases, no Insight", _ours(databases, work, arguments.repeat, _BARE, {}), own_size)
    return 0


def _print(name: str, one: Measured, size: int) -> None:
    print(
        f"  {name:24}{one.wall_s:7.2f} s{one.cpu_s:7.2f} s{one.peak_bytes / MIB:9.0f} MiB"
        f"{size / MIB / one.wall_s:5.0f} MiB/s" + ("" if one.exit_code == 0 else f"  exit {one.exit_code}")
    )


def _warm(job: Path) -> None:
    for path in job.rglob("*"):
        if path.is_file():
            path.read_bytes()


def _ours(
    job: Path, work: Path, repeat: int, options: Sequence[str], environment: Mapping[str, str]
) -> Measured:
    output = work / "output-ours"
    runs = []
    for _ in range(repeat):
        shutil.rmtree(output, ignore_errors=True)
        command = [sys.executable, "-m", "cluster_analysis", str(job), "--output", str(output)]
        runs.append(measure([*command, *options], work / "ours.log", **environment))
    median = statistics.median_low([run.wall_s for run in runs])
    chosen = next(run for run in runs if run.wall_s == median)
    if chosen.exit_code != 0:
        print(chosen.output, file=sys.stderr)
    return chosen


def _peer(job: Path, work: Path) -> Measured:
    python = _peer_python(work)
    script = next((python.parents[1] / "lib").glob(f"python*/site-packages/{_PEER_SCRIPT}"))
    output = work / "output-peer"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    found = measure(
        [str(python), str(script), "-d", str(job), "-m", "all", "-o", str(output)], work / "peer.log"
    )
    if not list(output.rglob("cluster_communication.json")):
        raise SystemExit(f"the peer wrote nothing; see {work / 'peer.log'}")
    return found


def _peer_python(work: Path) -> Path:
    environment = work / "peer"
    python = environment / "bin" / "python"
    if not python.exists():
        print(f"installing {_PEER} …", file=sys.stderr)
        venv.create(environment, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", _PEER], check=True)
    return python


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
