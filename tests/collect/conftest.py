"""What holds for all tests of the collector, and the SSH servers and profiler trees that they share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.sshd import SshLab, SshServer, find_sshd, make_key
from tests.collect.helpers import make_capture


@pytest.fixture(scope="session")
def _shared_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    if find_sshd() is None:
        pytest.skip("no sshd on this machine: install openssh-server")
    with SshLab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture(scope="session")
def two_servers(_shared_lab: SshLab) -> tuple[SshServer, SshServer]:
    return _shared_lab.start("127.0.0.2"), _shared_lab.start("127.0.0.3")


@pytest.fixture(scope="session")
def server(two_servers: tuple[SshServer, SshServer]) -> SshServer:
    return two_servers[0]


@pytest.fixture
def lab(_shared_lab: SshLab) -> SshLab:
    return _shared_lab


@pytest.fixture
def own_lab(tmp_path: Path) -> Iterator[SshLab]:
    """A lab whose known_hosts and keys a test may change."""
    if find_sshd() is None:
        pytest.skip("no sshd on this machine: install openssh-server")
    with SshLab(tmp_path / "own_lab") as lab:
        yield lab


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A host key and a user key."""
    return make_key(tmp_path / "host_key"), make_key(tmp_path / "user_key")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The profiler root of a host, with one capture in it."""
    make_capture(tmp_path / "host")
    return tmp_path / "host"
