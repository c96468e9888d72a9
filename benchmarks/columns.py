"""What reading on the hosts saves the centre: `python -m benchmarks.columns [HOSTS] [--per-host N]`.

One simulated job is collected from SSH servers on loopback and analysed twice: as files, the baseline, and
as columns. Processor time is that of cluster-collect and cluster-analyse; servers and readers are the hosts'.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cluster_simulate.api import JobSpec, parse_scenario, simulate, write_run
from demo.sshd import SshLab

_N_STEPS = 5
#: Some 360 operators a rank and step, as real jobs have.
_N_SEGMENTS = 20


def main() -> None:
    """Print what both cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hosts", nargs="?", type=int, default=4)
    parser.add_argument("--per-host", type=int, default=8)
    given = parser.parse_args()
    n_ranks = given.hosts * given.per_host
    with tempfile.TemporaryDirectory() as name, SshLab(Path(name) / "lab") as lab:
        work = Path(name)
        spec = JobSpec(
            tp=2, pp=2, dp=n_ranks // 4, steps=_N_STEPS, segments=_N_SEGMENTS, ranks_per_host=given.per_host
        )
        write_run(simulate(spec, [parse_scenario("slow_rank:1.25@3")], seed=1), work / "job")
        inventory = work / "hosts.yaml"
        lines = ["version: 1", "defaults:"]
        lines += [f"  user: {lab.user}", f"  identity_file: {lab.identity_file}"]
        lines += [f"  known_hosts: {lab.known_hosts}", "hosts:"]
        for number in range(1, given.hosts + 1):
            server = lab.start(f"127.0.1.{number}")
            root = work / "job" / "cluster_profiler" / str(number) / "profiler"
            lines += [
                f"  - address: {server.address}",
                f"    port: {server.port}",
                f"    profiler_root: {root}",
            ]
        inventory.write_text("\n".join(lines) + "\n")
        measured = {what: _measured(what, inventory, work) for what in ("analysis", "columns")}
    print(f"{n_ranks} ranks of {given.hosts} hosts, {_N_STEPS} steps")
    print(f"{'':10}{'collect':>20}{'analyse':>20}{'wire':>24}")
    for what, (collected, analysed, wire_bytes) in measured.items():
        per_step = wire_bytes / n_ranks / _N_STEPS / 1000
        spent = "".join(f"{cpu_s:9.2f} s cpu {wall_s:5.1f}" for cpu_s, wall_s in (collected, analysed))
        print(f"{what:10}{spent}{wire_bytes / 1e6:10.2f} MB, {per_step:.2f} kB a rank and step")


def _measured(what: str, inventory: Path, work: Path) -> tuple[tuple[float, float], tuple[float, float], int]:
    """Return processor and wall time of both commands, and the bytes on the wire."""
    run = work / what
    collect = ["cluster_collect", "--inventory", str(inventory), "--output", str(run), "--what", what, "-q"]
    if what == "columns":
        collect.append("--columns-as-root")
    collected = _run(collect)
    analysed = _run(["cluster_analysis", str(run), "-q", "--no-report"])
    hosts = json.loads((run / "manifest.json").read_bytes())["hosts"]
    raw = [host["raw_because"] for host in hosts if host["raw_because"]]
    if raw:
        print(f"{what}: {len(raw)} hosts sent files: {raw[0]}")
    return collected, analysed, sum(host["wire_bytes"] for host in hosts)


def _run(command: list[str]) -> tuple[float, float]:
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([sys.executable, "-m", *command], stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{command[0]} ended with {done.returncode}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, time.monotonic() - began_s


if __name__ == "__main__":
    main()
