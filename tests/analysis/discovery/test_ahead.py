"""Looking for captures in another process finds what looking in this one finds."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cluster_analysis.discovery.ahead import Ahead
from cluster_analysis.discovery.discover import discover
from cluster_run.errors import InputError
from tests.analysis.runs import write_small_run

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def test_both_find_the_same(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    ahead = Ahead(run, None)
    assert ahead.found(run, None) == discover(run)
    assert ahead.found(run, None) == discover(run)  # asked again, with nobody who looked ahead


def test_what_is_wrong_is_said_here(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a directory"):
        Ahead(tmp_path / "nothing", None).found(tmp_path / "nothing", None)


def test_another_run_is_looked_for_here(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    assert Ahead(tmp_path, "no such capture").found(run, None) == discover(run)


def test_a_process_that_was_killed_costs_only_time(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    ahead = Ahead(run, None)
    if ahead._child:
        os.kill(ahead._child, signal.SIGKILL)
    assert ahead.found(run, None) == discover(run)


def test_it_ends_when_nobody_listens_any_more(tmp_path: Path) -> None:
    # Paths so long that what is found does not fit into a pipe.
    run = write_small_run(tmp_path.joinpath(*["x" * 200] * 7))
    ahead = Ahead(run, None)
    if ahead._child:
        os.close(ahead._reader)
        _, status = os.waitpid(ahead._child, 0)
        assert os.waitstatus_to_exitcode(status) == 1
