"""Files that are reduced side by side: the time that is given ends at any moment."""

from __future__ import annotations

import os
from itertools import chain, repeat
from pathlib import Path

import pytest

from cluster_reduce import workers
from cluster_reduce.workers import Workers


def test_time_that_ends_just_before_a_wait_costs_no_file_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = os.fsencode(tmp_path / "communication.json")
    asked, asker = os.pipe()
    # The time is not over when it is looked at, and over when the wait begins.
    clock = chain([0.0], repeat(2.0))
    monkeypatch.setattr(workers, "_STDIN", asked)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    reading = Workers([name], 1, 2 << 30, end_s=1.0)
    try:
        done = reading.take(0.0) or reading.take(0.0)
    finally:
        reading.close()
        os.close(asked)
        os.close(asker)
    assert done is not None
    assert (done.name, done.content) == (name, None)
