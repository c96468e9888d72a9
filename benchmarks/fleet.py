"""How long a large fleet takes to add a run and to be asked: `python -m benchmarks.fleet`.

Each run measures how fast all devices compute; a hundredth of them turns slow half way. Of `add` it is the
part of the database, of `status` the whole command; with `--run` the whole `add` of an analysed run as well.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from cluster_fleet.identity import Known
from cluster_fleet.records import RunRecord, Series
from cluster_fleet.store import Fleet

_DAY_S = 86400.0
_DEVICES_A_HOST = 8
_ERROR = 0.002


def _units(n_devices: int) -> tuple[list[Known], list[Known]]:
    n_hosts = -(-n_devices // _DEVICES_A_HOST)
    hosts = [Known(f"host:{at}", f"node{at:05}", f"host:{at}") for at in range(n_hosts)]
    devices = [
        Known(f"vdie:{at}", f"device {at % _DEVICES_A_HOST}", f"{at}", hosts[at // _DEVICES_A_HOST].key)
        for at in range(n_devices)
    ]
    return hosts, devices


def fill(where: Path, n_runs: int, n_devices: int) -> list[float]:
    """Add the runs; return the seconds of each."""
    hosts, devices = _units(n_devices)
    keys = [one.key for one in devices]
    chance = np.random.default_rng(1)
    born = chance.normal(0, 0.005, n_devices)
    turns = chance.random(n_devices) < 0.01
    errors = np.full(n_devices, _ERROR)
    took_s = []
    with Fleet(where) as fleet:
        for at in range(n_runs):
            slower = 0.05 * turns * (at >= n_runs // 2)
            values = born + slower + chance.normal(0, _ERROR, n_devices)
            series = [Series("compute", keys, values, errors)]
            run = RunRecord(
                f"capture-{at}", f"run{at}", at * _DAY_S, 2.0, 500.0, "healthy", series=series,
                units=[*hosts, *devices],
            )  # fmt: skip
            begin_s = time.perf_counter()
            fleet.add(run)
            took_s.append(time.perf_counter() - begin_s)
    return took_s


def main() -> None:
    """Fill a database, ask it three times, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--run", type=Path, help="a run directory that cluster-analyse has read")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch) / "fleet.db"
        took_s = fill(where, options.runs, options.devices)
        print(f"add: median {np.median(took_s):.2f} s, most {max(took_s):.2f} s of {len(took_s)} runs")
        print(f"the database: {where.stat().st_size / 1e6:.0f} MB")
        commands = {"status": (["status"], where)}
        if options.run is not None:
            commands["add RUN"] = (["add", str(options.run)], Path(scratch) / "one.db")
        for name, (argv, database) in commands.items():
            for _ in range(3):
                if name != "status":
                    database.unlink(missing_ok=True)
                begin_s = time.perf_counter()
                command = [sys.executable, "-m", "cluster_fleet", *argv, "--db", str(database)]
                subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
                print(f"{name}: {time.perf_counter() - begin_s:.2f} s")


if __name__ == "__main__":
    main()
