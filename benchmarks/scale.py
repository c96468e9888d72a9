"""`make bench-scale`: cost a rank as the job grows: full files to 1024 ranks, thin ones to 10 240."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from benchmarks.jobs import FULL, THIN, simulated_job, size_bytes, work_directory
from benchmarks.measure import MIB, measure

_SIZES = ((FULL, 64), (FULL, 256), (FULL, 1024), (THIN, 1024), (THIN, 10240))


def main(argv: Sequence[str]) -> int:
    """Print one line a size, and how the cost a rank at 10 240 thin ranks compares with 1024."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__)
    parser.add_argument("--largest", type=int, default=10240, help="leave out larger jobs")
    arguments = parser.parse_args(argv)
    work = work_directory()
    costs: dict[tuple[str, int], float] = {}
    print(
        f"{'':18}{'read':>10}{'wall':>10}{'CPU':>10}{'peak memory':>14}{'wall a rank':>14}{'CPU a rank':>13}"
    )
    for kind, n_ranks in _SIZES:
        if n_ranks > arguments.largest:
            continue
        name = "full" if kind is FULL else "thin"
        job = simulated_job(n_ranks, kind)
        size = size_bytes(job)
        output = work / "output-scale"
        shutil.rmtree(output, ignore_errors=True)
        command = [sys.executable, "-m", "cluster_analysis", str(job), "--output", str(output), "-v"]
        one = measure(command, work / "scale.log")
        costs[name, n_ranks] = one.wall_s / n_ranks
        print(
            f"{n_ranks:6} ranks {name:5}{size / MIB:6.0f} MiB{one.wall_s:8.2f} s{one.cpu_s:8.2f} s"
            f"{one.peak_bytes / MIB:10.0f} MiB{1e3 * one.wall_s / n_ranks:11.2f} ms"
            f"{1e3 * one.cpu_s / n_ranks:10.2f} ms"
            + ("" if one.exit_code == 0 else f"  exit {one.exit_code}"),
            flush=True,
        )
        shutil.rmtree(output, ignore_errors=True)
    if ("thin", 10240) in costs:
        ratio = costs["thin", 10240] / costs["thin", 1024]
        print(f"cost a rank at 10240 thin ranks: {ratio:.2f} times that at 1024 thin ranks")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
