"""What `make bench-collect` runs in own processes: `python -m benchmarks.collecting.driver MODE …`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import shlex
import stat
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from cluster_collect.spec import CollectOptions, HostSpec


def _specs(path: str) -> list[HostSpec]:
    return [HostSpec(**fields) for fields in json.loads(Path(path).read_text())]


def collect(specs: list[HostSpec], target: Path, options: CollectOptions) -> None:
    """Collect with options that the command line does not have."""
    from cluster_collect.progress_events import SilentListener  # noqa: PLC0415
    from cluster_collect.transfer.pool import collect as collect_all  # noqa: PLC0415 - counted as start-up

    manifest = asyncio.run(collect_all(specs, target, options, None, SilentListener()))
    failed = [host.reason for host in manifest.hosts if host.state != "complete"]
    if failed:
        raise SystemExit(failed[0])


def paramiko_sftp(specs: list[HostSpec], target: Path) -> None:
    """The usual script with paramiko: a thread a host, `get` for each file, only the key checked."""
    import paramiko  # noqa: PLC0415

    def get(client: paramiko.SFTPClient, remote: str, local: Path) -> None:
        local.mkdir(parents=True, exist_ok=True)
        for attributes in client.listdir_attr(remote):
            source, copy = f"{remote}/{attributes.filename}", local / attributes.filename
            if stat.S_ISDIR(attributes.st_mode or 0):
                get(client, source, copy)
            else:
                client.get(source, str(copy))

    def host(spec: HostSpec) -> None:
        ssh = paramiko.SSHClient()
        ssh.load_host_keys(str(spec.known_hosts))
        ssh.connect(
            spec.address, spec.port or 22, spec.user, key_filename=spec.identity_file, look_for_keys=False
        )
        get(ssh.open_sftp(), spec.profiler_root, target / spec.host)
        ssh.close()

    threads = [threading.Thread(target=host, args=(spec,)) for spec in specs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def bare(specs: list[HostSpec], target: Path) -> None:
    """The least that a client in Python can do: asyncssh, zstandard, and `tar -x`; nothing is checked."""
    import subprocess  # noqa: PLC0415 - counted as start-up, as all that follows

    import zstandard  # noqa: PLC0415

    from cluster_collect.transports.ssh.by_asyncssh.library import asyncssh  # noqa: PLC0415

    class Session(asyncssh.SSHClientSession):  # type: ignore[type-arg]
        def __init__(self, sink: IO[bytes]) -> None:
            self._unpack = zstandard.ZstdDecompressor().stream_writer(sink, closefd=False)

        def data_received(self, data: Any, datatype: int | None) -> None:
            if datatype is None:
                self._unpack.write(data)

    async def host(spec: HostSpec) -> None:
        place = target / spec.host
        place.mkdir(parents=True)
        unpack = ["tar", "-C", str(place), "-xf", "-"]
        tar = subprocess.Popen(unpack, stdin=subprocess.PIPE)  # noqa: ASYNC220 - as simple as can be
        assert tar.stdin is not None
        async with asyncssh.connect(
            spec.address,
            spec.port or 22,
            username=spec.user or "",
            client_keys=[spec.identity_file or ""],
            known_hosts=spec.known_hosts,
            config=None,
            encryption_algs=["aes128-gcm@openssh.com"],
        ) as connection:
            command = f"tar -C {shlex.quote(spec.profiler_root)} -cf - . | zstd -1 -q -c"
            sink = tar.stdin
            channel, _ = await connection.create_session(
                lambda: Session(sink), command, encoding=None, window=8 << 20
            )
            await channel.wait_closed()
        tar.stdin.close()
        if tar.wait() != 0:
            raise SystemExit("tar -x failed")

    async def work() -> None:
        await asyncio.gather(*map(host, specs))

    asyncio.run(work())


def hold(specs: list[HostSpec], n_hosts: int) -> None:
    """Log in to `n_hosts` hosts, hold all connections, and print the time and the memory that takes."""
    from cluster_collect.progress_events import SilentListener  # noqa: PLC0415
    from cluster_collect.transports.bounds import Bounds  # noqa: PLC0415
    from cluster_collect.transports.ssh.by_asyncssh.dialer import AsyncsshDialer  # noqa: PLC0415

    async def work() -> None:
        options = CollectOptions(login_deadline_s=120.0, connect_deadline_s=60.0)
        bounds = Bounds(options.n_connecting, options.n_handshakes_per_gateway, options.n_jobs)
        dialer = AsyncsshDialer(options, bounds, SilentListener())
        before_kib = _rss_kib()
        began_s = time.monotonic()
        chosen = [specs[number % len(specs)] for number in range(n_hosts)]
        held = await asyncio.gather(*(dialer.dial(spec) for spec in chosen))
        result = {"n": len(held), "seconds": time.monotonic() - began_s, "rss_mib": _rss_kib() / 1024}
        result["kib_each"] = (_rss_kib() - before_kib) / n_hosts
        print(json.dumps(result), flush=True)
        await asyncio.gather(*(connection.close() for connection in held))
        await dialer.close()

    asyncio.run(work())


def peak(argv: list[str]) -> None:
    """Run cluster-collect in this process, and print the most memory that it took, in MiB."""
    from cluster_collect.cli import main as collect_all  # noqa: PLC0415

    with contextlib.redirect_stdout(sys.stderr):
        code = collect_all(argv)
    if code:
        raise SystemExit(code)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _rss_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def main() -> None:
    """Run one mode."""
    mode = sys.argv[1]
    if mode == "peak":
        peak(sys.argv[2:])
        return
    specs = _specs(sys.argv[2])
    options = CollectOptions(what=("full",))
    if mode == "hold":
        hold(specs, int(sys.argv[3]))
        return
    target = Path(sys.argv[3])
    if mode == "bare":
        bare(specs, target)
    elif mode == "paramiko-sftp":
        paramiko_sftp(specs, target)
    elif mode == "paramiko":
        collect([replace(spec, transport="paramiko") for spec in specs], target, options)
    elif mode == "uncompressed":
        collect(specs, target, replace(options, compression="none", remote_niceness=0))
    else:
        collect(specs, target, replace(options, remote_niceness=0))


if __name__ == "__main__":
    main()
