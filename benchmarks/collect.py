"""Collecting from eight hosts, against scp, sftp, rsync, ssh tar and paramiko: `make bench-collect`.

All servers are real OpenSSH on loopback addresses of this machine and share its processors with the
clients; every host serves a copy of one tree (the same files would be fetched once). Targets lie on a
memory file system where there is one, so that nobody's disk is measured (cluster-collect alone flushes
what it stored before its manifest). Wall time is the best of the runs, processor seconds are the mean.
Rivals take turns.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.measure import MIB, measure
from benchmarks.rivals import (
    OURS,
    PARAMIKO,
    RIVALS,
    SCP,
    SSH_TAR,
    Cost,
    Rival,
    environment,
    run_once,
)
from benchmarks.tcp_proxy import TcpProxy
from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab, SshServer

_STACK = ";\\r\\n".join(
    f"/usr/lib/python3.9/site-packages/torch/nn/modules/module_{depth}.py({depth * 37}): forward_{depth}"
    for depth in range(9)
)


def write_ranks(root: Path, n_ranks: int, host_mib: float) -> None:
    """Write captures like those of torch_npu at level 1: the trace is nearly everything, as in real ones."""
    trace_bytes = int(host_mib * 2**20 / n_ranks * 0.9)
    for rank in range(n_ranks):
        output = root / f"worker-{rank}_2024010100000{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output.parent / f"profiler_info_{rank}.json").write_text("{}")
        (output / "step_trace_time.csv").write_text("Step,Computing\n1,2\n")
        chance = random.Random(rank)
        with (output / "trace_view.json").open("w") as stream:
            stream.write("[")
            ts = 1_736_408_883_688_177.0
            while stream.tell() < trace_bytes:
                events = []
                for _ in range(1000):
                    ts += chance.expovariate(0.05)
                    name = f"aten::op_{chance.randrange(60)}"
                    events.append(
                        f'{{"ph": "X", "name": "{name}", "pid": 3096504, "tid": {chance.randrange(4)}, '
                        f'"ts": "{ts:.3f}", "dur": {chance.random() * 200:.2f}, "cat": "cpu_op", "args": '
                        f'{{"Sequence number": -1, "Call stack": "{_STACK}"}}}}'
                    )
                stream.write(",".join(events) + ",")
            stream.write("{}]")
        for name in ("communication.json", "kernel_details.csv"):
            with (output / name).open("w") as stream:
                while stream.tell() < trace_bytes / 18:
                    lines = (f"{chance.random():.4f},MatMul_{n % 40},AI_CORE,{n * 7}" for n in range(2000))
                    stream.write("\n".join(lines))


def write_small(root: Path, n_files: int, n_bytes: int = 10_000) -> None:
    """Write one capture of many small files."""
    directory = root / "worker_1_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    directory.mkdir(parents=True)
    chance = random.Random(1)
    for number in range(n_files):
        text = "".join(f"{chance.random():.6f},op_{n % 30},{n}\n" for n in range(n_bytes // 16))
        (directory / f"part_{number:05d}.csv").write_text(text[:n_bytes].ljust(n_bytes))


def compare(
    rivals: Sequence[Rival], specs: Sequence[HostSpec], place: Path, servers: Sequence[SshServer], n_runs: int
) -> dict[str, Cost]:
    """Run the rivals in turns; return the best wall time and the mean processor time of each."""
    costs: dict[str, list[Cost]] = {rival.name: [] for rival in rivals}
    pids = [server.process_id for server in servers]
    for _ in range(n_runs):
        for rival in rivals:
            costs[rival.name].append(run_once(rival, specs, place / "target", place, pids))
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {
        name: Cost(
            min(cost.wall_s for cost in runs),
            sum(cost.client_cpu_s for cost in runs) / len(runs),
            sum(cost.server_cpu_s for cost in runs) / len(runs),
        )
        for name, runs in costs.items()
    }


def show(title: str, costs: dict[str, Cost], n_bytes: int) -> None:
    """Print one comparison. CPU is of both ends together: other load disturbs it less than wall time."""
    print(f"\n{title}")
    columns = ("wall s", "MB/s", "client CPU s", "server CPU s", "wall / ours", "CPU / ours")
    print(" " * 32 + "".join(f"{column:>14}" for column in columns))
    ours = costs[OURS]
    for name, cost in costs.items():
        both = (cost.client_cpu_s + cost.server_cpu_s) / (ours.client_cpu_s + ours.server_cpu_s)
        print(
            f"{name:32}{cost.wall_s:14.2f}{n_bytes / 1e6 / cost.wall_s:14.0f}{cost.client_cpu_s:14.2f}"
            f"{cost.server_cpu_s:14.2f}{cost.wall_s / ours.wall_s:14.2f}{both:14.2f}"
        )


def tree_bytes(root: Path) -> int:
    """Return the size of all files below a directory."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def bytes_on_the_wire(
    rivals: Sequence[Rival], lab: SshLab, server: SshServer, root: Path, place: Path
) -> None:
    """Count what the server sends to fetch one host, through a proxy that only counts."""
    n_bytes = tree_bytes(root)
    print(f"\nBytes on the wire, one host, {n_bytes / 1e6:.0f} MB of profiler text")
    for rival in rivals:
        with TcpProxy(server.address, server.port) as proxy:
            lab.trust("127.0.0.1", proxy.port, server.host_key)
            spec = replace(spec_of(lab, server, root, 1), address="127.0.0.1", port=proxy.port)
            run_once(rival, [spec], place / "target", place, [])
            print(f"{rival.name:32}{proxy.n_bytes / 1e6:8.1f} MB  1/{n_bytes / proxy.n_bytes:.1f}")


@contextmanager
def delayed(server: SshServer, delay_ms: float) -> Iterator[int]:
    """A port that leads to the server with a delay each way; the proxy has a process of its own."""
    command = [sys.executable, "-m", "benchmarks.tcp_proxy", f"{server.address}:{server.port}"]
    process = subprocess.Popen([*command, "--delay-ms", str(delay_ms)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def spec_of(lab: SshLab, server: SshServer, root: Path, number: int) -> HostSpec:
    """Return the host that a server plays."""
    return HostSpec(
        host=HostId(str(number)),
        server_id=ServerId(f"host-{number}"),
        address=server.address,
        port=server.port,
        user=lab.user,
        identity_file=str(lab.identity_file),
        known_hosts=str(lab.known_hosts),
        profiler_root=str(root),
        ssh_config=os.devnull,
    )


def verdict(what: str, value: float, target: float, at_least: bool = True) -> None:
    """Print one target and whether it is met."""
    good = value >= target if at_least else value <= target
    sign = "at least" if at_least else "at most"
    print(f"  {'met   ' if good else 'MISSED'} {what}: {value:.2f} ({sign} {target:g})")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--ranks", type=int, default=8, help="a host")
    parser.add_argument("--host-mib", type=float, default=100.0, help="size of a host's profiler data")
    parser.add_argument("--small-files", type=int, default=2000, help="files of 10 KB a host")
    parser.add_argument("--delayed-files", type=int, default=300, help="files of 10 KB over the slow link")
    parser.add_argument("--delay-ms", type=float, default=20.0, help="round trip of the slow link")
    parser.add_argument("--many", type=int, default=200, help="hosts of 1000 files that send at once")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument(
        "--rivals", nargs="+", help="only these, and cluster-collect, by parts of their names"
    )
    parser.add_argument(
        "--bare-login", action="store_true", help="without what this login's ~/.bashrc starts"
    )
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers and data are removed
    memory = Path("/dev/shm")
    directory = tempfile.mkdtemp(prefix="bench-collect-", dir=memory if memory.is_dir() else None)
    try:
        benchmark(arguments, Path(directory))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def benchmark(arguments: argparse.Namespace, place: Path) -> None:
    """Make the data, run the chosen comparisons, print figures and targets."""
    write_ranks(place / "big" / "1", arguments.ranks, arguments.host_mib)
    write_small(place / "small" / "1", arguments.small_files)
    write_small(place / "few" / "1", arguments.delayed_files)
    for part in ("big", "small", "few"):
        for number in range(2, arguments.hosts + 1):
            copy = place / part / str(number)
            shutil.copytree(place / part / "1", copy, copy_function=shutil.copyfile)
    load = os.getloadavg()[0]
    print(f"load before: {load:.1f} on {os.cpu_count()} processors; data in {place}", flush=True)
    with SshLab(place / "lab") as lab:
        settings = {"MaxStartups": "1000", "MaxSessions": "100"}
        if arguments.bare_login:
            settings["SetEnv"] = "SHLVL=1"  # a shell inside of another: bash reads no ~/.bashrc then
        servers = [lab.start(f"127.0.0.{10 + n}", settings=settings) for n in range(arguments.hosts)]
        # Once unmeasured: the first run after an installation compiles the modules.
        for rival in RIVALS:
            if rival.name in (OURS, PARAMIKO):
                run_once(rival, _specs(lab, servers[:1], place / "few"), place / "target", place, [])
        for part in arguments.parts:
            _RUN[part](arguments, lab, servers, place)
    print(f"\nload after: {os.getloadavg()[0]:.1f}")


def _specs(lab: SshLab, servers: Sequence[SshServer], root: Path) -> list[HostSpec]:
    return [spec_of(lab, server, root / str(number), number) for number, server in enumerate(servers, 1)]


def _rivals(arguments: argparse.Namespace) -> list[Rival]:
    here = [rival for rival in RIVALS if "rsync" not in rival.name or shutil.which("rsync")]
    wanted = arguments.rivals
    asked = (OURS, SSH_TAR, SCP)
    return [r for r in here if not wanted or r.name in asked or any(part in r.name for part in wanted)]


def _big(arguments: argparse.Namespace, lab: SshLab, servers: Sequence[SshServer], place: Path) -> None:
    specs = _specs(lab, servers, place / "big")
    n_bytes = tree_bytes(place / "big" / "1") * len(specs)
    costs = compare(_rivals(arguments), specs, place, servers, arguments.runs)
    show(f"{len(specs)} hosts, {arguments.ranks} ranks each, {n_bytes / 1e6:.0f} MB in all", costs, n_bytes)
    verdict("throughput over ssh tar's", costs[SSH_TAR].wall_s / costs[OURS].wall_s, 0.9)
    ratio = costs[OURS].client_cpu_s / costs[SSH_TAR].client_cpu_s
    verdict("client CPU, of ssh tar's", ratio, 0.5, at_least=False)


def _one(arguments: argparse.Namespace, lab: SshLab, servers: Sequence[SshServer], place: Path) -> None:
    n_bytes = tree_bytes(place / "big" / "1")
    costs = compare(
        _rivals(arguments), _specs(lab, servers[:1], place / "big"), place, servers, arguments.runs
    )
    show(f"1 host, {n_bytes / 1e6:.0f} MB", costs, n_bytes)
    verdict("throughput over ssh tar's", costs[SSH_TAR].wall_s / costs[OURS].wall_s, 0.9)


def _small(arguments: argparse.Namespace, lab: SshLab, servers: Sequence[SshServer], place: Path) -> None:
    specs = _specs(lab, servers, place / "small")
    costs = compare(_rivals(arguments), specs, place, servers, arguments.runs)
    title = f"{len(specs)} hosts, {arguments.small_files} files of 10 KB each"
    show(title, costs, tree_bytes(place / "small" / "1") * len(specs))
    _against_scp(costs, 5, place)


def _slow(arguments: argparse.Namespace, lab: SshLab, servers: Sequence[SshServer], place: Path) -> None:
    with delayed(servers[0], arguments.delay_ms / 2) as port:
        lab.trust("127.0.0.1", port, servers[0].host_key)
        far = replace(spec_of(lab, servers[0], place / "few" / "1", 1), address="127.0.0.1", port=port)
        costs = compare(_rivals(arguments), [far], place, servers, 1)
    title = f"1 host at {arguments.delay_ms:g} ms round trip, {arguments.delayed_files} files of 10 KB"
    show(title, costs, tree_bytes(place / "few" / "1"))
    _against_scp(costs, 10, place)


def _against_scp(costs: dict[str, Cost], target: float, place: Path) -> None:
    start_s = _start_up_s(place)
    verdict("times scp -r", costs[SCP].wall_s / costs[OURS].wall_s, target)
    without = costs[SCP].wall_s / max(0.01, costs[OURS].wall_s - start_s)
    print(f"         without {start_s:.2f} s for the interpreter and imports: {without:.2f}")


def _wire(arguments: argparse.Namespace, lab: SshLab, servers: Sequence[SshServer], place: Path) -> None:
    chosen = [rival for rival in _rivals(arguments) if rival.name in (OURS, SSH_TAR, "rsync -az", SCP)]
    bytes_on_the_wire(chosen, lab, servers[0], place / "big" / "1", place)


def _start_up_s(place: Path) -> float:
    """Return the time until a collection could begin: the interpreter and all imports."""
    modules = ("cli", "transfer.pool", "transports.ssh.by_asyncssh.dialer")
    imports = f"import {', '.join(f'cluster_collect.{module}' for module in modules)}"
    times_s = []
    for _ in range(3):
        began_s = time.monotonic()
        subprocess.run([sys.executable, "-c", imports], check=True, env=environment(place))
        times_s.append(time.monotonic() - began_s)
    return min(times_s)


def _many(arguments: argparse.Namespace, lab: SshLab, servers: Sequence[SshServer], place: Path) -> None:
    n_hosts, n_files = arguments.many, 1000
    for number in range(1, n_hosts + 1):
        write_small(place / "many" / str(number), n_files, 500)
    roots = [place / "many" / str(number) for number in range(1, n_hosts + 1)]
    specs = [spec_of(lab, servers[n % len(servers)], root, n) for n, root in enumerate(roots, 1)]
    (command,) = RIVALS[0].commands(specs, place / "target", place)
    done = measure([*command, "--jobs", str(n_hosts)], place / "many.log", **environment(place))
    if done.exit_code:
        raise SystemExit(done.output[-2000:])
    peak_mib = done.peak_bytes / MIB
    shutil.rmtree(place / "target")
    shutil.rmtree(place / "many")
    print(f"\n{n_hosts} hosts × {n_files} files, all at once: {peak_mib:.0f} MiB at the most")
    verdict("MiB of memory", peak_mib, 150, at_least=False)


_RUN = {"big": _big, "one": _one, "small": _small, "slow": _slow, "wire": _wire, "many": _many}
_PARTS = list(_RUN)


if __name__ == "__main__":
    main()
