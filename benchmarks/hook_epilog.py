"""How long the epilog holds a job, against a shell that does nothing: `python -m benchmarks.hook_epilog`.

slurmctld keeps a job in COMPLETING until its epilog returns. Both are started alike, by turns, as slurmctld
starts an epilog: with Slurm's variables only.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

EPILOG = Path(__file__).parents[1] / "deploy" / "slurm" / "epilog_slurmctld.sh"
_VARIABLES = {
    "SLURM_CLUSTER_NAME": "lab",
    "SLURM_JOB_NAME": "train",
    "SLURM_JOB_USER": "ada",
    "SLURM_JOB_UID": "1001",
    "SLURM_JOB_NODELIST": "node[0001-1024]",
    "SLURM_JOB_WORK_DIR": "/home/ada",
    "SLURM_JOB_COMMENT": "profile_dir=prof",
    "SLURM_JOB_EXIT_CODE2": "0:0",
    "SLURM_JOB_RESTART_COUNT": "0",
}


def measure_ms(argv: Sequence[str | Path], environment: Mapping[str, str]) -> float:
    """Return how long one call takes, in milliseconds."""
    begin_s = time.perf_counter()
    subprocess.run(argv, env=dict(environment), check=True, stdin=subprocess.DEVNULL)
    return (time.perf_counter() - begin_s) * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300)
    n_calls = parser.parse_args().calls
    times_ms: dict[str, list[float]] = {
        "sh that does nothing": [],
        "job that does not ask": [],
        "job that asks": [],
    }
    with tempfile.TemporaryDirectory() as spool:
        (Path(spool) / "pending").mkdir()
        for number in range(n_calls):
            asks = {**_VARIABLES, "CLUSTER_HOOK_SPOOL": spool, "SLURM_JOB_ID": str(number)}
            times_ms["sh that does nothing"].append(measure_ms(["/bin/sh", "-c", "exit 0"], asks))
            times_ms["job that does not ask"].append(measure_ms([EPILOG], {**asks, "SLURM_JOB_COMMENT": ""}))
            times_ms["job that asks"].append(measure_ms([EPILOG], asks))
        n_requests = len(list((Path(spool) / "pending").glob("*.job")))
    print(f"{n_calls} calls each, {n_requests} requests dropped; milliseconds")
    print(f"{'':24}{'median':>8}{'p99':>8}{'slowest':>9}")
    for name, values in times_ms.items():
        p99 = statistics.quantiles(values, n=100)[98]
        print(f"{name:24}{statistics.median(values):8.1f}{p99:8.1f}{max(values):9.1f}")


if __name__ == "__main__":
    main()
