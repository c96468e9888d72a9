"""Links that somebody laid into the run directory: nothing is written, replaced or removed behind them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from cluster_collect.store.journal import Journal
from cluster_collect.store.writer import FileRefusedError, RunWriter
from cluster_run.errors import ClusterError
from cluster_run.layout import JOURNAL_NAME

NAME = "cluster_profiler/1/profiler/a_ascend_pt/deep/b.csv"


def stored(writer: RunWriter, name: str, content: bytes, mtime_ns: int) -> str:
    file = writer.begin(name)
    file.write(content)
    return file.commit(mtime_ns)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A directory outside with a file whose name the collection will use."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "b.csv").write_text("untouched")
    (victim / "journal").write_text("untouched\n")
    return victim


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    return run


def laid(run: Path, depth: int, victim: Path) -> None:
    """Put a link in the place of one directory on the way."""
    way = Path(NAME).parts[:-1]
    link = run.joinpath(*way[: depth + 1])
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(victim)


@pytest.mark.parametrize("depth", range(5))
@pytest.mark.parametrize("version", ["", "version"])
def test_no_file_is_written_through_a_link(run: Path, victim: Path, depth: int, version: str) -> None:
    laid(run, depth, victim)
    before = {path.name: path.read_text() for path in victim.iterdir()}
    with closing(RunWriter(run, min_free_bytes=0)) as writer:
        with pytest.raises(FileRefusedError, match="symbolic link"):
            stored(writer, NAME, b"evil", 10**9)
        with pytest.raises(FileRefusedError, match="symbolic link"):
            writer.begin(NAME, version)
        writer.remove(NAME)
    assert {path.name: path.read_text() for path in victim.iterdir()} == before


def test_a_link_that_is_laid_while_a_file_comes_is_not_followed(run: Path, victim: Path) -> None:
    with closing(RunWriter(run, min_free_bytes=0)) as writer:
        incoming = writer.begin(NAME)
        incoming.write(b"evil")
        directory = (run / NAME).parent
        directory.rename(directory.with_name("moved"))
        directory.symlink_to(victim)
        incoming.commit(10**9)
    assert (victim / "b.csv").read_text() == "untouched"
    assert (directory.with_name("moved") / "b.csv").read_text() == "evil"


def test_a_link_in_the_place_of_a_file_is_replaced(run: Path, victim: Path) -> None:
    (run / NAME).parent.mkdir(parents=True)
    (run / NAME).symlink_to(victim / "b.csv")
    with closing(RunWriter(run, min_free_bytes=0)) as writer:
        stored(writer, NAME, b"mine", 10**9)
    assert (run / NAME).read_text() == "mine"
    assert not (run / NAME).is_symlink()
    assert (victim / "b.csv").read_text() == "untouched"


def test_a_link_in_the_place_of_the_journal_is_refused(run: Path, victim: Path) -> None:
    (run / JOURNAL_NAME).symlink_to(victim / "journal")
    with pytest.raises(ClusterError, match="journal"):
        Journal(run)
    assert (victim / "journal").read_text() == "untouched\n"


def test_leftovers_behind_a_link_are_left_alone(run: Path, victim: Path) -> None:
    (victim / ".part-1-1").write_text("of somebody else")
    (run / "cluster_profiler").symlink_to(victim)
    RunWriter(run, min_free_bytes=0).remove_leftovers()
    assert (victim / ".part-1-1").exists()


def test_directories_that_are_empty_go_with_their_last_file(run: Path) -> None:
    with closing(RunWriter(run, min_free_bytes=0)) as writer:
        stored(writer, NAME, b"mine", 10**9)
        stored(writer, "cluster_profiler/1/other.csv", b"mine", 10**9)
        writer.remove(NAME, with_empty=True)
        assert [path.name for path in (run / "cluster_profiler" / "1").iterdir()] == ["other.csv"]
        stored(writer, NAME, b"again", 10**9)
    assert (run / NAME).read_text() == "again"
