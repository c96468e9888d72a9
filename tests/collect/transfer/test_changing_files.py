"""Files that change, grow or vanish on the host while they are collected."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster_run.ids import HostId
from tests.collect.helpers import OneHost, Recorder, file_of, local_host

pytestmark = pytest.mark.slow


class Meddler(Recorder):
    """Does something on the host between its listing and the transfer, once or each time."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__()
        self._meddle = meddle

    def plan_known(self, host: HostId, n_files: int, n_bytes: int) -> None:
        super().plan_known(host, n_files, n_bytes)
        self._meddle()


@pytest.mark.parametrize("method", ["tar", "local"])
@pytest.mark.parametrize(
    "content", [b"longer than it was before" * 2000, b"short"], ids=["longer", "shorter"]
)
def test_a_file_that_changes_after_the_listing_is_fetched_again(
    host: OneHost, method: str, content: bytes
) -> None:
    changing = next(host.root.rglob("communication.json"))
    one = host if method == "tar" else local_host(host.root, host.run)
    outcome = one.collect_all(watch=Meddler(lambda: changing.write_bytes(content)))
    assert file_of(outcome, "communication.json").size_bytes == len(content)


@pytest.fixture
def growing(root: Path) -> Iterator[Path]:
    """A file that somebody keeps appending to."""
    path = next(root.glob("*/ASCEND_PROFILER_OUTPUT")) / "kernel_details.csv"
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
    growing: Path, host: OneHost
) -> None:
    outcome = host.collect()
    file = file_of(outcome, "kernel_details.csv")
    assert (outcome.state, file.state) == ("partial", "unstable")
    assert "1 file still being written" in outcome.reason
    assert os.stat(host.run / file.path).st_size == file.size_bytes
    assert {other.state for other in outcome.files if other != file} == {"stored"}


def test_a_file_that_is_removed_after_the_listing_costs_only_itself(host: OneHost) -> None:
    doomed = next(host.root.rglob("profiler_metadata.json"))
    outcome = host.collect(watch=Meddler(doomed.unlink))
    assert outcome.state == "partial"
    assert file_of(outcome, doomed.name).reason == "removed on the host before it could be read"
    assert doomed.name not in str(host.landed())
