"""Hosts, trees and watchers that the collector's tests share."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from benchmarks.tcp_proxy import TcpProxy
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transfer.pool import collect
from cluster_run.ids import HostId, ServerId
from cluster_run.layout import host_directory
from cluster_run.manifest import CollectedFile, HostOutcome, Manifest
from demo.sshd import SshLab, SshServer

#: Short pauses between tries; long deadlines, for a loaded machine: tests of hosts that hang set their own.
QUICK = CollectOptions(
    n_attempts=3,
    backoff_first_s=0.05,
    backoff_most_s=0.2,
    connect_deadline_s=90.0,
    login_deadline_s=90.0,
    listing_deadline_s=90.0,
    progress_deadline_s=90.0,
    min_free_bytes=0,
)
FULL = replace(QUICK, what=("full",))
PLAIN = replace(FULL, compression="none")
#: Logins of the tests may be those of root.
COLUMNS = replace(QUICK, what=("columns",), columns_as_root=True)
TRUSTING = replace(FULL, accept_new_host_keys=True)

BOTH = pytest.mark.parametrize("transport", ["asyncssh", "paramiko"])


def spec_for(
    lab: SshLab, server: SshServer, root: Path | str, number: int = 1, **changes: object
) -> HostSpec:
    spec = HostSpec(
        host=HostId(str(number)),
        server_id=ServerId(f"server-{number}"),
        address=server.address,
        port=server.port,
        user=lab.user,
        identity_file=str(lab.identity_file),
        known_hosts=str(lab.known_hosts),
        profiler_root=str(root),
        ssh_config=os.devnull,
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


@dataclass
class Recorder(ProgressListener):
    """Keeps what it is told."""

    n_planned: list[int] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    retries: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    finished: list[HostOutcome] = field(default_factory=list)

    def plan_known(self, host: HostId, n_files: int, n_bytes: int) -> None:
        self.n_planned.append(n_files)

    def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
        self.stored.append(path)

    def retrying(self, host: HostId, reason: str, wait_s: float) -> None:
        self.retries.append(reason)

    def noted(self, host: HostId, text: str) -> None:
        self.notes.append(text)

    def host_finished(self, outcome: HostOutcome) -> None:
        self.finished.append(outcome)


def collected(
    specs: Sequence[HostSpec] | HostSpec,
    run: Path,
    options: CollectOptions = QUICK,
    watch: ProgressListener | None = None,
    rank_table: Path | None = None,
) -> Manifest:
    hosts = [specs] if isinstance(specs, HostSpec) else specs
    return asyncio.run(collect(hosts, run, options, rank_table, watch or ProgressListener()))


def make_capture(root: Path, rank: int = 0, size_bytes: int = 20_000, n_more: int = 0) -> Path:
    """A PyTorch capture with some of everything; content depends on the rank only."""
    capture = root / f"worker_{rank}_20240101000000_ascend_pt"
    output = capture / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    chance = random.Random(rank)
    (capture / f"profiler_info_{rank}.json").write_text("{}")
    (capture / "profiler_metadata.json").write_text('{"ENV_VARIABLES": {}}')
    (output / "step_trace_time.csv").write_text("Step,Computing\n1,2\n")
    (output / "communication.json").write_bytes(chance.randbytes(size_bytes))
    (output / "communication_matrix.json").write_bytes(b"{}" * 1000)
    (output / "trace_view.json").write_bytes(b'[{"ph": "X"}]' * 1000)
    (capture / "PROF_000001_1_A" / "device_0").mkdir(parents=True)
    (capture / "PROF_000001_1_A" / "device_0" / "data.bin").write_bytes(chance.randbytes(3000))
    (capture / "PROF_000001_1_A" / "device_0" / "info.json.0").write_text("{}")
    for number in range(n_more):
        (output / f"minddata_{number}.csv").write_bytes(chance.randbytes(200 + number))
    return capture


def tree(root: Path) -> dict[str, bytes]:
    """Relative paths and contents of all files below a directory."""
    return {
        os.path.relpath(os.path.join(directory, name), root): Path(directory, name).read_bytes()
        for directory, _, names in os.walk(root)
        for name in names
    }


def host_tree(run: Path, number: int = 1) -> dict[str, bytes]:
    return tree(host_directory(run, HostId(str(number))))


def only_host(manifest: Manifest) -> HostOutcome:
    assert len(manifest.hosts) == 1
    return manifest.hosts[0]


@dataclass(frozen=True)
class OneHost:
    """A host of a test: what lies below its `root` is collected into `run`."""

    spec: HostSpec
    root: Path
    run: Path
    server: SshServer | None = None

    def having(self, **changes: object) -> OneHost:
        """The same host with another line in the inventory."""
        return replace(self, spec=replace(self.spec, **changes))  # type: ignore[arg-type]

    def through(self, proxy: TcpProxy, lab: SshLab) -> OneHost:
        assert self.server is not None
        return replace(self, spec=through(self.spec, proxy, lab, self.server))

    def collect(self, options: CollectOptions = FULL, watch: ProgressListener | None = None) -> HostOutcome:
        return only_host(collected(self.spec, self.run, options, watch))

    def landed(self) -> dict[str, bytes]:
        return host_tree(self.run, int(self.spec.host))

    def collect_all(
        self, options: CollectOptions = FULL, watch: ProgressListener | None = None
    ) -> HostOutcome:
        """Collect, and check that all of it came, as it is, and that nothing else lies there."""
        outcome = self.collect(options, watch)
        assert (outcome.state, outcome.reason) == ("complete", "")
        assert self.landed() == tree(self.root)
        assert no_leftovers(self.run)
        return outcome

    def planned(self, options: CollectOptions = FULL) -> int:
        """How many files another call would fetch: it fetches them."""
        watch = Recorder()
        self.collect(options, watch)
        return watch.n_planned[-1]


def local_host(root: Path, run: Path) -> OneHost:
    """A directory of a shared file system, as a host."""
    return OneHost(HostSpec(HostId("1"), ServerId("s"), local=str(root), transport="local"), root, run)


def rank_table(path: Path, ranks: Mapping[str, Sequence[int]]) -> Path:
    """Write a rank table: the ranks of each server, on its devices from 0."""
    servers = [
        {
            "server_id": server,
            "device": [{"device_id": str(at), "rank_id": str(rank)} for at, rank in enumerate(of_server)],
        }
        for server, of_server in ranks.items()
    ]
    path.write_text(json.dumps({"version": "1.0", "status": "completed", "server_list": servers}))
    return path


def file_of(outcome: HostOutcome, ending: str) -> CollectedFile:
    found = [file for file in outcome.files if file.source.endswith(ending)]
    assert len(found) == 1, [file.source for file in outcome.files]
    return found[0]


def through(spec: HostSpec, proxy: TcpProxy, lab: SshLab, server: SshServer) -> HostSpec:
    lab.trust("127.0.0.1", proxy.port, server.host_key)
    return replace(spec, address="127.0.0.1", port=proxy.port)


def no_leftovers(run: Path) -> bool:
    return not [path for path in run.rglob("*") if ".part" in path.name]
