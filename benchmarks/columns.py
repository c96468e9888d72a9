"""What reading on the hosts saves the centre: `make bench-columns`, or `python -m benchmarks.columns HOSTS`.

One simulated job, eight ranks a host, is collected from SSH servers on loopback and analysed twice in one
run: as files, the baseline, and as columns. Processor time is that of cluster-collect and cluster-analyse;
that of servers and readers, which hosts would have, is told apart. Memory is the largest of each command.
A single host has 64 ranks, which are 130 MB of JSON: whether columns are there as soon as files are.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.jobs import FULL, THIN, simulated_job, size_bytes, work_directory
from benchmarks.measure import MIB, Measured, measure
from demo.sshd import SshLab

_RANKS_A_HOST, _RANKS_OF_ONE, _N_STEPS = 8, 64, 5
#: All hosts are this machine: on a busy one none of them answers soon.
_PATIENT = [
    argument
    for name in ("connect", "login", "listing", "progress")
    for argument in (f"--{name}-deadline", "1200")
] + ["--give-up", "1200"]
_SHAPES = {"full": FULL, "thin": THIN}


@dataclass(frozen=True)
class Cost:
    """What one way took at the centre: processor seconds by stage, and the rest."""

    collected: Measured
    analysed: Measured
    stages_s: dict[str, float]
    wire_bytes: int
    stored_bytes: int

    @property
    def analyse_s(self) -> float:
        """Processor seconds of the analysis."""
        return sum(self.stages_s.values())


def main() -> None:
    """Print what both ways cost."""
    parser = argparse.ArgumentParser(prog="benchmarks.columns", description=__doc__)
    parser.add_argument("hosts", nargs="?", type=int, default=128, help="1, or a multiple of 4")
    parser.add_argument("--job", choices=_SHAPES, default="full", help="operators a rank and step: 360 or 40")
    given = parser.parse_args()
    n_ranks = _RANKS_OF_ONE if given.hosts == 1 else given.hosts * _RANKS_A_HOST
    job = simulated_job(n_ranks, _SHAPES[given.job])
    with tempfile.TemporaryDirectory(dir=work_directory()) as name, SshLab(Path(name) / "lab") as lab:
        inventory = _inventory(lab, Path(name), job, given.hosts)
        print(f"{size_bytes(job, '*.json') / 1e6:.0f} MB of JSON", file=sys.stderr)
        costs = {what: _cost(what, inventory, Path(name)) for what in ("analysis", "columns")}
        hosts_s = lab_seconds(lab)
    _print(costs, n_ranks, given.hosts, hosts_s)


def lab_seconds(lab: SshLab) -> float:
    """End the servers and return what they and all that they started took, processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    lab.__exit__(None, None, None)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _inventory(lab: SshLab, work: Path, job: Path, n_hosts: int) -> Path:
    lines = ["version: 1", "defaults:", f"  user: {lab.user}", f"  identity_file: {lab.identity_file}"]
    lines += [f"  known_hosts: {lab.known_hosts}", "hosts:"]
    for number in range(1, n_hosts + 1):
        server = lab.start(f"127.0.1.{number}")
        all_roots = job / "cluster_profiler"
        root = all_roots if n_hosts == 1 else all_roots / str(number) / "profiler"
        lines += [f"  - address: {server.address}", f"    port: {server.port}", f"    profiler_root: {root}"]
    path = work / "hosts.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def _cost(what: str, inventory: Path, work: Path) -> Cost:
    run = work / what
    command = ["-m", "cluster_collect", "--inventory", str(inventory), "--output", str(run), "-q"]
    command += ["--what", what, *_PATIENT]
    if what == "columns":
        command.append("--columns-as-root")
    began_s = time.monotonic()
    collected = measure([sys.executable, *command], work / "collect.log")
    print(f"{what}: collected in {time.monotonic() - began_s:.0f} s", file=sys.stderr)
    if collected.exit_code:
        raise SystemExit(f"cluster-collect ended with {collected.exit_code}:\n{collected.output[-2000:]}")
    stages = [sys.executable, "-m", "benchmarks.stages", str(run), str(work / "output")]
    analysed = measure(stages, work / "stages.log")
    if analysed.exit_code:
        raise SystemExit(f"the analysis ended with {analysed.exit_code}:\n{analysed.output[-2000:]}")
    hosts = json.loads((run / "manifest.json").read_bytes())["hosts"]
    raw = [host["raw_because"] for host in hosts if host["raw_because"]]
    if raw:
        print(f"{what}: {len(raw)} hosts sent files: {raw[0]}")
    stored_bytes = sum(file.stat().st_size for file in run.rglob("*") if file.is_file())
    shutil.rmtree(run)
    wire_bytes = sum(host["wire_bytes"] for host in hosts)
    stages_s = json.loads(analysed.output.splitlines()[-1])
    return Cost(collected, analysed, stages_s, wire_bytes, stored_bytes)


def _print(costs: dict[str, Cost], n_ranks: int, n_hosts: int, hosts_s: float) -> None:
    files, columns = costs["analysis"], costs["columns"]
    print(f"{n_ranks} ranks of {n_hosts} hosts, {_N_STEPS} steps; the hosts took {hosts_s:.0f} s in both")
    print(f"{'':34}{'files':>12}{'columns':>12}{'ratio':>8}")
    rows = [("collect, CPU", files.collected.cpu_s, columns.collected.cpu_s, "s")]
    rows += [(f"analyse: {name}", one, columns.stages_s[name], "s") for name, one in files.stages_s.items()]
    rows += [
        ("analyse, CPU", files.analyse_s, columns.analyse_s, "s"),
        (
            "both, CPU",
            files.collected.cpu_s + files.analyse_s,
            columns.collected.cpu_s + columns.analyse_s,
            "s",
        ),
        ("collect, wall", files.collected.wall_s, columns.collected.wall_s, "s"),
        (
            "collect, memory",
            files.collected.peak_bytes / MIB,
            columns.collected.peak_bytes / MIB,
            "MiB",
        ),
        (
            "both, wall",
            files.collected.wall_s + files.analysed.wall_s,
            columns.collected.wall_s + columns.analysed.wall_s,
            "s",
        ),
        ("analyse, wall", files.analysed.wall_s, columns.analysed.wall_s, "s"),
        ("analyse, memory", files.analysed.peak_bytes / MIB, columns.analysed.peak_bytes / MIB, "MiB"),
        ("on the wire", files.wire_bytes / 1e6, columns.wire_bytes / 1e6, "MB"),
        (
            "on the wire, a rank and step",
            files.wire_bytes / n_ranks / _N_STEPS / 1e3,
            columns.wire_bytes / n_ranks / _N_STEPS / 1e3,
            "kB",
        ),
        ("stored", files.stored_bytes / 1e6, columns.stored_bytes / 1e6, "MB"),
    ]
    for name, one, other, unit in rows:
        ratio = f"{other / one:8.2f}" if one > 0 else ""
        print(f"{name:34}{one:8.2f} {unit:3}{other:8.2f} {unit:3}{ratio}")


if __name__ == "__main__":
    main()
