"""A job is read when its profiler has parsed what it captured."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from cluster_hook.follow import captures
from cluster_hook.follow.captures import wait_until_parsed
from cluster_run.layout import PARSED_MARK_NAME
from tests.commands import HANGS_S


def a_capture(root: Path, rank: int, *, done: bool, age_s: float = 0.0) -> Path:
    output = root / f"node_{rank}_20261122_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    for name in ("trace_view.json", *([PARSED_MARK_NAME] if done else [])):
        (output / name).touch()
    for path in (*output.iterdir(), output):
        os.utime(path, (time.time() - age_s,) * 2)
    return output


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How often it was waited."""
    slept: list[float] = []
    monkeypatch.setattr(captures.time, "sleep", slept.append)
    return slept


def test_a_capture_that_is_being_parsed_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_capture(tmp_path, 0, done=True)
    late = a_capture(tmp_path, 1, done=False)
    monkeypatch.setattr(captures, "_LOOK_S", 0.01)
    waiting = threading.Thread(target=wait_until_parsed, args=(tmp_path,))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    (late / PARSED_MARK_NAME).touch()
    waiting.join(HANGS_S)
    assert not waiting.is_alive()


@pytest.mark.parametrize(
    ("first", "second", "age_s"), [(True, True, 0.0), (False, False, 0.0), (True, False, 100.0)]
)
def test_nobody_waits_for_what_is_parsed_or_leaves_no_mark_or_is_given_up(
    tmp_path: Path, looks: list[float], first: bool, second: bool, age_s: float
) -> None:
    a_capture(tmp_path, 0, done=first)
    a_capture(tmp_path, 1, done=second, age_s=age_s)
    wait_until_parsed(tmp_path)
    assert looks == []


def test_nobody_waits_for_ever(tmp_path: Path, looks: list[float]) -> None:
    a_capture(tmp_path, 0, done=True)
    a_capture(tmp_path, 1, done=False)
    wait_until_parsed(tmp_path, patience_s=0.05)
    assert looks
