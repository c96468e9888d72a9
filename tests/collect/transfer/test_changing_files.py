"""Files that change, grow or vanish on the host while they are collected."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import (
    FULL,
    Recorder,
    collected,
    file_of,
    host_tree,
    make_capture,
    only_host,
    spec_for,
    tree,
)

pytestmark = pytest.mark.slow  # many servers are started


class Meddler(Recorder):
    """Does something on the host between its listing and the transfer, once or each time."""

    def __init__(self, meddle: Callable[[], None]) -> None:
        super().__init__()
        self._meddle = meddle

    def plan_known(self, host: HostId, n_files: int, n_bytes: int) -> None:
        super().plan_known(host, n_files, n_bytes)
        self._meddle()


@pytest.mark.parametrize("method", ["tar", "local"])
@pytest.mark.parametrize("content", [b"longer than it was before" * 2000, b"short"])
def test_a_file_that_changes_after_the_listing_is_fetched_again(
    lab: SshLab, server: SshServer, tmp_path: Path, method: str, content: bytes
) -> None:
    capture = make_capture(tmp_path / "host")
    changing = capture / "ASCEND_PROFILER_OUTPUT" / "communication.json"
    watch = Meddler(lambda: changing.write_bytes(content) and None)
    spec = spec_for(lab, server, tmp_path / "host")
    if method == "local":
        spec = HostSpec(HostId("1"), ServerId("s"), local=str(tmp_path / "host"), transport="local")
    outcome = only_host(collected(spec, tmp_path / "run", FULL, watch))
    assert outcome.state == "complete", outcome.reason
    assert file_of(outcome, "communication.json").size_bytes == len(content)
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Path]:
    """A file that somebody keeps appending to."""
    capture = make_capture(tmp_path / "host")
    path = capture / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    path.write_bytes(b"x" * 1000)
    stopped = threading.Event()

    def append() -> None:
        while not stopped.wait(0.001):
            with path.open("ab") as stream:
                stream.write(b"more\n")

    thread = threading.Thread(target=append)
    thread.start()
    yield path
    stopped.set()
    thread.join()


def test_a_file_that_is_still_being_written_is_stored_and_called_unstable(
    lab: SshLab, server: SshServer, growing: Path, tmp_path: Path
) -> None:
    outcome = only_host(collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run", FULL))
    file = file_of(outcome, "kernel_details.csv")
    assert (outcome.state, file.state) == ("partial", "unstable")
    assert "1 file still being written" in outcome.reason
    assert os.stat(tmp_path / "run" / file.path).st_size == file.size_bytes
    assert {other.state for other in outcome.files if other != file} == {"stored"}


def test_a_file_that_is_removed_after_the_listing_costs_only_itself(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    capture = make_capture(tmp_path / "host")
    doomed = capture / "profiler_metadata.json"
    watch = Meddler(doomed.unlink)
    outcome = only_host(collected(spec_for(lab, server, tmp_path / "host"), tmp_path / "run", FULL, watch))
    assert outcome.state == "partial"
    assert file_of(outcome, doomed.name).reason == "removed on the host before it could be read"
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")
