"""The ways to pull a directory from many hosts at once that `make bench-collect` compares."""

from __future__ import annotations

import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_collect.spec import HostSpec

_CIPHER = "aes128-gcm@openssh.com"
Commands = list[list[str]]


@dataclass(frozen=True)
class Rival:
    """One way: `commands(specs, target, scratch)` are started at once; each host lands below target/<N>."""

    name: str
    commands: Callable[[Sequence[HostSpec], Path, Path], Commands]


@dataclass(frozen=True)
class Cost:
    """What one run took. `client_cpu_s` is of all processes on our side, start-up included."""

    wall_s: float
    client_cpu_s: float
    server_cpu_s: float


def ssh_options(spec: HostSpec, port_flag: str = "-p") -> list[str]:
    """Return the options with which the OpenSSH clients connect as we do."""
    return [
        "-F", "none", "-i", str(spec.identity_file), "-o", "IdentitiesOnly=yes",
        "-o", f"UserKnownHostsFile={spec.known_hosts}", "-o", "StrictHostKeyChecking=yes",
        "-o", f"Ciphers={_CIPHER}", port_flag, str(spec.port),
    ]  # fmt: skip


def _target(target: Path, spec: HostSpec) -> str:
    directory = target / spec.host
    directory.mkdir(parents=True)
    return str(directory)


def _place(spec: HostSpec) -> str:
    return f"{spec.user}@{spec.address}:{spec.profiler_root}/."


def _scp(specs: Sequence[HostSpec], target: Path, _: Path) -> Commands:
    return [["scp", "-q", "-r", *ssh_options(s, "-P"), _place(s), _target(target, s)] for s in specs]


def _sftp(specs: Sequence[HostSpec], target: Path, _: Path) -> Commands:
    return [["sftp", "-q", "-r", *ssh_options(s, "-P"), _place(s), _target(target, s)] for s in specs]


def _rsync(flags: str) -> Callable[[Sequence[HostSpec], Path, Path], Commands]:
    def commands(specs: Sequence[HostSpec], target: Path, _: Path) -> Commands:
        return [
            ["rsync", flags, "-e", shlex.join(["ssh", *ssh_options(s)]), f"{_place(s)}/", _target(target, s)]
            for s in specs
        ]

    return commands


def _tar(pack: str = "", unpack: str = "") -> Callable[[Sequence[HostSpec], Path, Path], Commands]:
    def commands(specs: Sequence[HostSpec], target: Path, _: Path) -> Commands:
        def command(spec: HostSpec) -> str:
            remote = f"tar -C {shlex.quote(spec.profiler_root)} -cf - .{pack}"
            ssh = shlex.join(["ssh", *ssh_options(spec), f"{spec.user}@{spec.address}", remote])
            return f"{ssh}{unpack} | tar -C {shlex.quote(_target(target, spec))} -xf -"

        return [["sh", "-c", command(spec)] for spec in specs]

    return commands


def _ours(*options: str) -> Callable[[Sequence[HostSpec], Path, Path], Commands]:
    return lambda specs, target, scratch: _collecting(specs, target, scratch, options)


def _collecting(specs: Sequence[HostSpec], target: Path, scratch: Path, options: Sequence[str]) -> Commands:
    inventory = scratch / "inventory.json"  # JSON is YAML
    hosts = [
        {
            "address": s.address, "port": s.port, "server_id": str(s.server_id), "user": s.user,
            "identity_file": s.identity_file, "known_hosts": s.known_hosts, "profiler_root": s.profiler_root,
        }
        for s in specs
    ]  # fmt: skip
    inventory.write_text(json.dumps({"version": 1, "hosts": hosts}))
    command = [sys.executable, "-m", "cluster_collect", "--inventory", str(inventory), "--what", "full"]
    return [[*command, "--output", str(target), "-q", *options]]


OURS = "cluster-collect"
SSH_TAR = "ssh tar | tar, aes128-gcm"
SSH_TAR_ZSTD = "ssh tar | zstd | tar"
SCP = "scp -r"
PARAMIKO = "  same, transport: paramiko"
RIVALS = (
    Rival(OURS, _ours()),
    Rival("  same, no compression", _ours("--compression", "none")),
    Rival(PARAMIKO, _ours("--set", "transport=paramiko")),
    Rival(SSH_TAR, _tar()),
    Rival(SSH_TAR_ZSTD, _tar(" | zstd -1 -q -c", " | zstd -d -q -c")),
    Rival("rsync -a", _rsync("-a")),
    Rival("rsync -az", _rsync("-az")),
    Rival(SCP, _scp),
    Rival("sftp -r", _sftp),
)


def environment(scratch: Path) -> dict[str, str]:
    """Return an environment in which Python keeps compiled modules, as it does where it is installed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(scratch / "bytecode")}


def run_once(
    rival: Rival, specs: Sequence[HostSpec], target: Path, scratch: Path, server_pids: Sequence[int]
) -> Cost:
    """Run one rival on all hosts at once and check that every file came."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    commands = rival.commands(specs, target, scratch)
    servers_before = _servers_cpu_s(server_pids)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began_s = time.monotonic()
    processes = [
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(scratch),
        )
        for command in commands
    ]
    for process in processes:
        _, errors = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"{rival.name}: exit {process.returncode}: {errors.decode()[-500:]}")
    wall_s = time.monotonic() - began_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    client_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    time.sleep(0.3)  # the servers have to reap their children before those count
    servers_s = _servers_cpu_s(server_pids) - servers_before
    _check(rival, specs, target)
    shutil.rmtree(target)
    return Cost(wall_s, client_s, servers_s)


def _servers_cpu_s(pids: Sequence[int]) -> float:
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _sizes(root: Path) -> list[int]:
    return sorted(
        os.path.getsize(os.path.join(directory, name))
        for directory, _, names in os.walk(root)
        for name in names
        if name not in ("manifest.json", "host_ips_mapping.txt")
    )


def _check(rival: Rival, specs: Sequence[HostSpec], target: Path) -> None:
    wanted = sorted(_sizes(Path(specs[0].profiler_root)) * len(specs))
    if _sizes(target) != wanted:
        raise SystemExit(f"{rival.name}: not every file came")
