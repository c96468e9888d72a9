"""What is taken of an archive of a host: files that were asked for, once, and not much larger than listed."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_collect.entries import RemoteEntry
from cluster_collect.faults import HostileDataError
from cluster_collect.progress_events import ProgressListener
from cluster_collect.remote.tar_stream import TarParser
from cluster_collect.selection.select import PlacedFile
from cluster_collect.store.journal import Journal
from cluster_collect.store.writer import RunWriter
from cluster_collect.transfer.ways.intake import Intake, TarIntake
from cluster_run.ids import HostId, ServerId
from tests.collect.remote.test_tar_stream import archive, entry


def taken(run: Path, data: bytes, listed: Mapping[bytes, int], piece: int = 1 << 20) -> dict[bytes, int]:
    """Feed an archive; return the size of each file that came whole, also of those that wait aside."""
    run.mkdir(exist_ok=True)
    files = [PlacedFile(RemoteEntry(name, "f", size, 0), name) for name, size in listed.items()]
    with Journal(run) as journal, closing(RunWriter(run, 0)) as writer:
        intake = Intake(
            HostId("1"), ServerId("s"), "host", writer=writer, journal=journal,
            watch=ProgressListener(),
        )  # fmt: skip
        with TarIntake(files, intake) as sink:
            parser = TarParser(sink)
            for begin in range(0, len(data), piece):
                parser.feed(data[begin : begin + piece])
        intake.drop_held()
        return {name: one.size_bytes for name, one in {**intake.stored, **intake.mismatched}.items()}


@pytest.mark.parametrize("name", ["../a", "/etc/cron.d/x", "b", "a/../../b", "./../a", "a/"])
def test_names_that_were_not_asked_for_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(HostileDataError, match="not asked for"):
        taken(tmp_path / "run", archive({name: b"x"}, prefix=""), {b"a": 1})


def test_a_name_may_come_once(tmp_path: Path) -> None:
    with pytest.raises(HostileDataError, match="twice"):
        taken(tmp_path / "run", archive({"a": b"1"})[:1024] + archive({"a": b"2"}), {b"a": 1})


def test_a_file_may_grow_but_not_without_bound(tmp_path: Path) -> None:
    assert taken(tmp_path / "run", archive({"a": b"x" * 30}), {b"a": 20}) == {b"a": 30}
    with pytest.raises(HostileDataError, match="announced with 10 bytes"):
        taken(tmp_path / "run", entry(tarfile.REGTYPE, "a", size=200 << 20), {b"a": 10})


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    flips=st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 255)), min_size=1, max_size=6),
    piece=st.sampled_from([3, 512, 10_000]),
)
def test_damaged_archives_end_in_our_error_or_in_whole_requested_files(
    tmp_path: Path, flips: list[tuple[int, int]], piece: int
) -> None:
    files = {"a/b": b"x" * 700, "c": b"", "long" * 40: b"y"}
    data = bytearray(archive(files))
    for position, value in flips:
        data[position % len(data)] = value
    listed = {name.encode(): len(content) for name, content in files.items()}
    with suppress(HostileDataError):
        assert taken(tmp_path / "run", bytes(data), listed, piece).keys() <= listed.keys()
