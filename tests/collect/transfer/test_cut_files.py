"""One large file that is cut off: what has come of it is not fetched again, and is right in the end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from demo.sshd import SshLab, SshServer
from demo.tcp_proxy import Mischief, TcpProxy
from tests.collect.helpers import PLAIN, Recorder, collected, host_tree, only_host, spec_for, through, tree

pytestmark = pytest.mark.slow  # tens of MB each

MIB = 1 << 20
LARGE = 40 * MIB
#: What a cut costs: what was on its way, in the buffers of both ends and of the proxy.
ON_ITS_WAY = 14 * MIB
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


def trace_of(root: Path) -> Path:
    return next(root.rglob("trace_view.json"))


def cuts_in(run: Path) -> list[Path]:
    return [path for path in run.rglob(".*") if path.name.startswith((".cut-", ".part-"))]


def with_one_cut(
    lab: SshLab, server: SshServer, spec: HostSpec, run: Path, share: float
) -> tuple[Recorder, int]:
    """Collect through a link that is cut once; return what was said and the bytes that the server sent."""
    watch = Recorder()
    mischief = (Mischief(cut_after_bytes=int(LARGE * share)),)
    with TcpProxy(server.address, server.port, mischief=mischief) as proxy:
        outcome = only_host(collected(through(spec, proxy, lab, server), run, PLAIN, watch))
        assert outcome.state == "complete", outcome.reason
        assert proxy.n_connections == 2
        return watch, proxy.n_bytes


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_file_cut_in_the_middle_is_gone_on_with_and_not_begun_anew(
    lab: SshLab, server: SshServer, root: Path, tmp_path: Path, share: float
) -> None:
    watch, n_sent = with_one_cut(lab, server, spec_for(lab, server, root), tmp_path / "run", share)
    assert n_sent < LARGE + ON_ITS_WAY
    assert host_tree(tmp_path / "run") == tree(root)
    assert cuts_in(tmp_path / "run") == []
    assert len(watch.stored) == len(set(watch.stored)) == 6


@pytest.mark.parametrize("transport", ["asyncssh", "paramiko"])
def test_it_is_gone_on_with_over_sftp_too(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str
) -> None:
    server = own_lab.start("127.0.0.4", settings={"ForceCommand": "internal-sftp"})
    spec = spec_for(own_lab, server, root, transport=transport)
    _, n_sent = with_one_cut(own_lab, server, spec, tmp_path / "run", 0.8)
    assert n_sent < LARGE + ON_ITS_WAY
    assert host_tree(tmp_path / "run") == tree(root)
    assert cuts_in(tmp_path / "run") == []


def _size_bytes(part: Path) -> int:
    """How much of a file is here; 0 if it got its final name a moment ago."""
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def killed_within_the_file(spec: HostSpec, run: Path, at_least: int) -> Path:
    """Collect in another process, and kill it when so much of the large file is here; return that part."""
    specs = run.with_suffix(".json")
    specs.write_text(json.dumps([asdict(spec)]))
    command = [sys.executable, "-m", "tests.collect.transfer.child", str(specs), str(run), str(5 * MIB)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=REPOSITORY)
    try:
        while not (parts := [part for part in cuts_in(run) if _size_bytes(part) >= at_least]):
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    return parts[0]


def bytes_fetched(lab: SshLab, server: SshServer, spec: HostSpec, run: Path) -> int:
    with TcpProxy(server.address, server.port) as proxy:
        outcome = only_host(collected(through(spec, proxy, lab, server), run, PLAIN))
        assert outcome.state == "complete", outcome.reason
        assert cuts_in(run) == []
        return proxy.n_bytes


def test_after_kill_9_in_the_middle_of_a_file_the_next_call_goes_on_with_it(
    lab: SshLab, server: SshServer, root: Path, tmp_path: Path
) -> None:
    spec = spec_for(lab, server, root)
    part = killed_within_the_file(spec, tmp_path / "run", 9 * MIB)
    n_here = part.stat().st_size
    assert bytes_fetched(lab, server, spec, tmp_path / "run") < LARGE - n_here + MIB
    assert host_tree(tmp_path / "run") == tree(root)


def touched(part: Path, root: Path) -> None:
    os.utime(trace_of(root), ns=(1, 1))


def from_before_a_reboot(part: Path, root: Path) -> None:
    part.rename(part.with_name(part.name.replace(part.name[5:13], "00000000")))


def longer_than_the_file(part: Path, root: Path) -> None:
    with part.open("ab") as stream:
        stream.truncate(LARGE + 1)


@pytest.mark.parametrize("trouble", [touched, from_before_a_reboot, longer_than_the_file])
def test_the_beginning_of_another_version_is_not_believed(
    lab: SshLab, server: SshServer, root: Path, tmp_path: Path, trouble: Callable[[Path, Path], None]
) -> None:
    spec = spec_for(lab, server, root)
    part = killed_within_the_file(spec, tmp_path / "run", 9 * MIB)
    part.write_bytes(b"not what the host has".ljust(part.stat().st_size, b"!"))
    trouble(part, root)
    assert bytes_fetched(lab, server, spec, tmp_path / "run") >= LARGE
    assert host_tree(tmp_path / "run") == tree(root)


def test_a_file_that_became_shorter_meanwhile_is_fetched_as_it_is_now(
    lab: SshLab, server: SshServer, root: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "host"
    trace = copy / trace_of(root).relative_to(root)
    trace.parent.mkdir(parents=True)
    trace.write_bytes(trace_of(root).read_bytes())
    spec = spec_for(lab, server, copy)
    killed_within_the_file(spec, tmp_path / "run", 9 * MIB)
    trace.write_bytes(b"short")
    assert bytes_fetched(lab, server, spec, tmp_path / "run") < MIB
    assert host_tree(tmp_path / "run") == tree(copy)
