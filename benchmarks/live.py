"""Captures of a running job on 16 hosts: how many hold identical steps, against asking for the next step.

    python -m benchmarks.live [--captures 100] [--hosts 16] [--at-next 20]

Hosts are loopback SSH servers with a /dev/shm and processes of their own; ranks run the dynamic profiler of
the released torch-npu wheel. Steps become longer and shorter, and hosts lag behind by up to two. In
every fifth capture one host, another each time, is lost on purpose: its monitor is stopped. It must be named,
and no other.
The baseline is what people do today: `start_step: -1` in every host's file at the same moment.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

from cluster_collect.live.collected import Hosts, taken
from cluster_collect.live.options import LiveOptions
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions
from cluster_run.errors import ClusterError
from demo.sshd import SshLab
from tests.collect.live.hosts import Cluster, Job, need_namespaces
from tests.collect.live.profiler_wheel import profiler_package

_STEPS = 3
_EVERY = 5


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--captures", type=int, default=100)
    parser.add_argument("--hosts", type=int, default=16)
    parser.add_argument("--at-next", type=int, default=20)
    parser.add_argument("--step-ms", type=float, default=100.0)
    given = parser.parse_args()
    need_namespaces()
    package = profiler_package()
    with tempfile.TemporaryDirectory() as folder, SshLab(Path(folder) / "ssh") as lab:
        cluster = Cluster(Path(folder), lab, package)
        try:
            cluster.add(given.hosts)
            job = cluster.job(n_ranks=1, step_s=given.step_ms / 1e3).start()
            time.sleep(5)
            _ours(cluster, given.captures)
            _at_next(cluster, job, given.at_next)
            job.end()
        finally:
            cluster.end()


def _ours(cluster: Cluster, n: int) -> None:
    good, named, seconds = 0, 0, []
    n_hosts = len(cluster.hosts)
    for number in range(n):
        lost = number % n_hosts if number % _EVERY == 0 else None
        monitor = None if lost is None else monitor_of(cluster, lost)
        if monitor is not None:
            os.kill(monitor, signal.SIGSTOP)
        began_s = time.monotonic()
        try:
            live = LiveOptions(n_steps=_STEPS, quorum=n_hosts - 1)
            hosts = Hosts(cluster.specs(), CollectOptions(min_free_bytes=0))
            run = cluster.directory / f"run{number}"
            result = asyncio.run(taken(hosts, live, run, ProgressListener(), lambda _: None)).captured
        except ClusterError as error:
            print(number, error, flush=True)
            continue
        finally:
            if monitor is not None:
                os.kill(monitor, signal.SIGCONT)
        seconds.append(time.monotonic() - began_s)
        names = sorted(result.lost)
        wanted = [] if lost is None else [str(lost + 1)]
        named += names == wanted
        files = list(run.rglob("step_trace_time.csv"))
        steps = {tuple(line.split(",")[1] for line in path.read_text().splitlines()[1:]) for path in files}
        is_good = len(files) == n_hosts - len(wanted) and steps == {tuple(map(str, result.steps))}
        good += is_good
        if not is_good or names != wanted:
            print(number, "lost", {host: why.reason for host, why in result.lost.items()}, steps, flush=True)
        print(f"{number + 1}: {good} identical, {named} named, {seconds[-1]:.1f} s", flush=True)
    print(
        f"by a common start: {good} of {n} captures with identical steps on all hosts but those lost; "
        f"the lost host, and no other, was named in {named} of {n}; "
        f"median {statistics.median(seconds):.1f} s a capture"
    )


def monitor_of(cluster: Cluster, number: int) -> int:
    """Return the process that reads the configuration on a host, as this machine counts it."""
    inner = cluster.hosts[number].inner
    namespace = os.readlink(f"/proc/{inner}/ns/pid")
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            here = os.readlink(f"/proc/{name}/ns/pid") == namespace
            if here and Path(f"/proc/{name}/comm").read_text().strip() == "DynMonitorProc":
                return int(name)
        except OSError:
            continue
    raise SystemExit(f"no monitor on host {number}")


def _at_next(cluster: Cluster, job: Job, n: int) -> None:
    """Ask every host for its next step at the same moment, as scripts do today."""
    same, spreads = 0, []
    for number in range(n):
        for host in cluster.hosts:
            path = host.configuration / "profiler_config.json"
            document = json.loads(path.read_text())
            directory = str(host.directory / "prof" / f"next{number}")
            document.update(start_step=-1, active=_STEPS, warmup=0, is_rank=False, prof_dir=directory)
            (path.parent / ".next").write_text(json.dumps(document))
            (path.parent / ".next").rename(path)
        time.sleep(6)
        firsts = []
        for host in cluster.hosts:
            for path in (host.directory / "prof" / f"next{number}").rglob("recorded.json"):
                firsts.append(json.loads(path.read_text())["steps"][0])
        same += len(set(firsts)) == 1 and len(firsts) == len(cluster.hosts)
        spreads.append(max(firsts) - min(firsts) if firsts else 0)
    print(
        f"by -1 on each host: {same} of {n} with identical steps; the first steps are "
        f"{statistics.median(spreads):.0f} apart (median), {max(spreads)} at most"
    )


if __name__ == "__main__":
    main()
