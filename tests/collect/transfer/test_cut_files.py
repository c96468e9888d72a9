"""One large file that is cut off: what has come of it is not fetched again, and is right in the end."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest

from benchmarks.tcp_proxy import Mischief, TcpProxy
from cluster_run.ids import HostId
from demo.sshd import SshLab, SshServer
from tests.collect.conftest import Start
from tests.collect.helpers import PLAIN, OneHost, Recorder, spec_for
from tests.commands import wait_until

pytestmark = pytest.mark.slow  # tens of MB each

MIB = 1 << 20
LARGE = 20 * MIB
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profiler root with one large file among small ones."""
    root = tmp_path_factory.mktemp("large") / "host"
    capture = root / "worker_0_20240101000000_ascend_pt"
    capture.mkdir(parents=True)
    (capture / "trace_view.json").write_bytes(random.Random(1).randbytes(LARGE))
    for number in range(5):
        (capture / f"small_{number}.csv").write_bytes(b"%d\n" % number * 100)
    return root


@pytest.fixture
def host(lab: SshLab, server: SshServer, root: Path, tmp_path: Path) -> OneHost:
    return OneHost(spec_for(lab, server, root), root, tmp_path / "run", server)


def trace_of(root: Path) -> Path:
    return next(root.rglob("trace_view.json"))


def cuts_in(run: Path) -> list[Path]:
    return [path for path in run.rglob(".*") if path.name.startswith((".cut-", ".part-"))]


def _size_bytes(part: Path) -> int:
    """How much of a file is here; 0 if it got its final name a moment ago."""
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


@dataclass
class Kept(Recorder):
    """Remembers how much of a file is here, and what has been sent, when another attempt begins."""

    run: Path = Path()
    proxy: TcpProxy | None = None
    n_here: int = 0
    n_sent: int = 0

    def retrying(self, host: HostId, reason: str, wait_s: float) -> None:
        super().retrying(host, reason, wait_s)
        self.n_here = sum(map(_size_bytes, cuts_in(self.run)))
        self.n_sent = self.proxy.n_bytes if self.proxy else 0


def with_one_cut(host: OneHost, lab: SshLab, share: float) -> Recorder:
    """Collect through a link that is cut once: what has come before is not sent again."""
    server = host.server
    mischief = (Mischief(cut_after_bytes=int(LARGE * share)),)
    with TcpProxy(server.address, server.port, mischief=mischief) as proxy:
        watch = Kept(run=host.run, proxy=proxy)
        host.through(proxy, lab).collect_all(PLAIN, watch)
        assert proxy.n_connections == 2
        # What was on its way, in the buffers of both ends, comes again: how much that is, nobody knows.
        assert 0 < watch.n_here < LARGE
        assert proxy.n_bytes - watch.n_sent < LARGE - watch.n_here + MIB
    assert cuts_in(host.run) == []
    return watch


def test_a_file_cut_in_the_middle_is_gone_on_with_and_not_begun_anew(host: OneHost, lab: SshLab) -> None:
    watch = with_one_cut(host, lab, 0.6)
    assert len(watch.stored) == len(set(watch.stored)) == 6


@pytest.mark.parametrize("transport", ["asyncssh", "paramiko"])
def test_it_is_gone_on_with_over_sftp_too(start: Start, lab: SshLab, transport: str) -> None:
    with_one_cut(start({"ForceCommand": "internal-sftp"}, transport=transport), lab, 0.8)


def killed_within_the_file(host: OneHost) -> Path:
    """Collect in another process, and kill it when 9 MiB of the large file are here; return that part."""
    run, at_least = host.run, 9 * MIB
    specs = run.with_suffix(".json")
    specs.write_text(json.dumps([asdict(host.spec)]))
    command = [sys.executable, "-m", "tests.collect.transfer.child", str(specs), str(run), str(5 * MIB)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=REPOSITORY)
    try:
        parts = wait_until(lambda: [one for one in cuts_in(run) if _size_bytes(one) >= at_least], process)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    return parts[0]


def bytes_fetched(host: OneHost, lab: SshLab) -> int:
    with TcpProxy(host.server.address, host.server.port) as proxy:
        host.through(proxy, lab).collect_all(PLAIN)
        assert cuts_in(host.run) == []
        return proxy.n_bytes


def test_after_kill_9_in_the_middle_of_a_file_the_next_call_goes_on_with_it(
    host: OneHost, lab: SshLab
) -> None:
    n_here = killed_within_the_file(host).stat().st_size
    assert bytes_fetched(host, lab) < LARGE - n_here + MIB


def touched(part: Path, root: Path) -> None:
    os.utime(trace_of(root), ns=(1, 1))


def from_before_a_reboot(part: Path, root: Path) -> None:
    part.rename(part.with_name(part.name.replace(part.name[5:13], "00000000")))


def longer_than_the_file(part: Path, root: Path) -> None:
    with part.open("ab") as stream:
        stream.truncate(LARGE + 1)


@pytest.mark.parametrize("trouble", [touched, from_before_a_reboot, longer_than_the_file])
def test_the_beginning_of_another_version_is_not_believed(
    host: OneHost, lab: SshLab, trouble: Callable[[Path, Path], None]
) -> None:
    part = killed_within_the_file(host)
    part.write_bytes(b"not what the host has".ljust(part.stat().st_size, b"!"))
    trouble(part, host.root)
    assert bytes_fetched(host, lab) >= LARGE


def test_a_file_that_became_shorter_meanwhile_is_fetched_as_it_is_now(
    host: OneHost, lab: SshLab, tmp_path: Path
) -> None:
    copy = shutil.copytree(host.root, tmp_path / "host")
    changing = replace(host.having(profiler_root=str(copy)), root=copy)
    killed_within_the_file(changing)
    trace_of(copy).write_bytes(b"short")
    assert bytes_fetched(changing, lab) < MIB
