"""`make bench-large`: captures that are large another way than by ranks: many steps, and many kernels a rank.

3076 steps: 8 ranks, 245 MB of communication.json and 276 MB of communication_matrix.json. Kernels: 100 MB of
kernel_details.csv a rank (300 000 rows of 1200 kinds), one file that all ranks have by hard links, so that
the disk holds it once; every rank reads and sums all of it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.jobs import THIN, made, simulated, size_bytes, work_directory
from benchmarks.measure import MIB, measure

MB = 1e6
_N_STEPS = 3076
_N_KINDS = 1200
_HEADER = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),"
    "Duration(us),Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,"
    "Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID,aicore_time(us),"
    "aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),aic_scalar_ratio,cube_utilization(%)"
)
_TYPES = ("MatMulV2", "Add", "Cast", "FlashAttentionScore", "RmsNorm", "Mul")


def main(argv: Sequence[str]) -> int:
    """Print a line a capture."""
    parser = argparse.ArgumentParser(prog="benchmarks.large", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[16, 64], help="ranks with kernels")
    parser.add_argument("--megabytes", type=int, default=100, help="kernel_details.csv of a rank")
    parser.add_argument("--only", choices=("steps", "kernels"), help="one of both")
    arguments = parser.parse_args(argv)
    print(f"{'':42}{'read':>10}{'wall':>10}{'CPU':>10}{'MB/s of CPU':>13}{'peak memory':>14}")
    if arguments.only != "kernels":
        line(f"{_N_STEPS} steps of 8 ranks", long_job(), "communication*.json")
    if arguments.only != "steps":
        for n_ranks in arguments.ranks:
            for kind in ("with op_statistic.csv", "without"):
                job = kernels_job(n_ranks, arguments.megabytes, with_statistic=kind != "without")
                line(f"kernels of {n_ranks} ranks, {kind}", job, "kernel_details.csv")
    return 0


def line(name: str, job: Path, pattern: str) -> None:
    """Analyse one capture and print what it took."""
    work = work_directory()
    output = work / "output-large"
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "cluster_analysis", str(job), "--output", str(output), "-v"]
    one = measure(command, work / "large.log")
    size = size_bytes(job, pattern)
    report = size_bytes(output, "report.html")
    shutil.rmtree(output, ignore_errors=True)
    print(
        f"{name:42}{size / MB:7.0f} MB{one.wall_s:8.1f} s{one.cpu_s:8.1f} s{size / MB / one.cpu_s:13.0f}"
        f"{one.peak_bytes / MIB:10.0f} MiB  page {report / MB:.1f} MB"
        + ("" if one.exit_code in (0, 3) else f"  exit {one.exit_code}"),
        flush=True,
    )


def long_job() -> Path:
    """Return a capture of thousands of steps."""
    sizes = ("--tp", "1", "--pp", "4", "--dp", "2", "--microbatches", "2", "--segments", "1")
    return made(f"long-{_N_STEPS}", lambda path: simulated(path, *sizes, "--steps", str(_N_STEPS)))


def kernels_job(n_ranks: int, megabytes: int, *, with_statistic: bool) -> Path:
    """Return a job whose ranks have many kernels, in five steps."""
    table = made(f"kernels-{megabytes}.csv", lambda path: _write_kernels(path, megabytes * MB))

    def make(path: Path) -> None:
        replicas = str(n_ranks // 8)
        simulated(path, "--tp", "4", "--pp", "2", "--dp", replicas, "--steps", "5", *THIN)
        for output in path.rglob("ASCEND_PROFILER_OUTPUT"):
            (output / "kernel_details.csv").unlink(missing_ok=True)
            os.link(table, output / "kernel_details.csv")
            if not with_statistic:
                (output / "op_statistic.csv").unlink()
        # What the manifest says of these files is no longer so.
        (path / "manifest.json").unlink(missing_ok=True)

    return made(f"kernels-{n_ranks}-{megabytes}{'' if with_statistic else '-alone'}", make)


def _write_kernels(path: Path, size: float) -> None:
    """Write rows as the profiler does, each kind in turn, until there are enough bytes."""
    rest = "N/A,12.34,123456,1.5,0.12,0.3,0.02,87.5"
    with path.open("w") as stream:
        stream.write(_HEADER + "\n")
        written, row = 0, 0
        while written < size:
            kind = row % _N_KINDS
            name = _TYPES[kind % len(_TYPES)]
            length = 64 * (1 + kind // len(_TYPES))
            start, time = f"1764246877{row:06d}.640", f"{20 + (row * 37) % 400}.{kind % 1000:03d}"
            written += stream.write(
                f"{10 + row % 5},0,4294967295,{row},2,aclnn{name}_{kind}_{name}AiCore_{name},{name},dynamic,"
                f'AI_CORE,{start}\t,{time},0.5,40,0,NO,"""{length},1024;1024,4096""",DT_BF16;DT_BF16,ND;ND,'
                f'"""{length},4096""",DT_BF16,ND,{rest}\n'
            )
            row += 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
