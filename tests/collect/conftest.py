"""What holds for all tests of the collector, and the SSH servers and profiler trees that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from demo.sshd import SshLab, SshServer, make_key
from tests.collect.helpers import OneHost, make_capture, spec_for
from tests.needed import need_sshd


@pytest.fixture(scope="session")
def _shared_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    need_sshd()
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
    need_sshd()
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


@pytest.fixture
def host(lab: SshLab, server: SshServer, root: Path, tmp_path: Path) -> OneHost:
    """A host with one capture, behind a server that all tests share."""
    return OneHost(spec_for(lab, server, root), root, tmp_path / "run", server)


#: Starts a server with settings of its own; its host has one capture.
Start = Callable[..., OneHost]


@pytest.fixture
def start(lab: SshLab, root: Path, tmp_path: Path) -> Iterator[Start]:
    servers: list[SshServer] = []

    def started(
        settings: Mapping[str, str] | None = None,
        address: str = "127.0.0.4",
        *,
        known: bool = True,
        host_key: Path | None = None,
        inside: Sequence[str] = (),
        **changes: object,
    ) -> OneHost:
        server = lab.start(address, settings=settings, known=known, host_key=host_key, inside=inside)
        servers.append(server)
        return OneHost(spec_for(lab, server, root, **changes), root, tmp_path / "run", server)

    yield started
    for server in servers:
        lab.stop(server)
