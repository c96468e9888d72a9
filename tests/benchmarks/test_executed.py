"""Kineto's traces of CPU jobs mapped to a run directory: by hand, and where torch is of ranks that ran."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.executed.__main__ import run, steps_ms
from benchmarks.executed.kineto import RankTrace, write_run
from cluster_analysis import judging, pipeline
from cluster_analysis.options import AnalyseOptions


def event(name: str, start_us: float, end_us: float) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": start_us, "dur": end_us - start_us}


def trace(rank: int, late_us: float = 0.0) -> RankTrace:
    """Two steps of 100 ms: 60 of work, of which an all-reduce covers 20, and a batch of messages."""
    events = []
    for step, begun in enumerate((0.0, 100_000.0)):
        events += [
            event(f"ProfilerStep#{step}", begun, begun + 100_000),
            event("kernel/forward", begun + 2_000, begun + 22_000 + late_us),
            event("gloo:send", begun + 22_000 + late_us, begun + 22_100 + late_us),
            event("gloo:recv", begun + 22_050 + late_us, begun + 30_000),
            event("kernel/backward", begun + 30_000, begun + 70_000),
            event("gloo:all_reduce", begun + 50_000, begun + 90_000),
        ]
    return RankTrace(rank, {"traceEvents": events}, {"dp": [0, 1], "pp": [0, 1]})


def test_step_times_are_those_that_the_spans_add_up_to() -> None:
    computing, alone, overlapped, communication, free, stage, bubble, rest, preparing = trace(0).step_times(1)
    assert (computing, communication, overlapped, alone) == pytest.approx((60_000, 48_000, 20_000, 28_000))
    assert (free, stage, bubble, rest, preparing) == pytest.approx((0, 88_000, 0, 28_000, 2_000))


def test_a_send_and_a_receive_at_once_are_one_batch_and_alone_they_are_themselves() -> None:
    assert [one.what for one in trace(0).calls] == ["batchSendRecv", "allReduce"] * 2
    alone = [event("gloo:recv", 0, 10), event("gloo:send", 20, 30)]
    assert [one.what for one in RankTrace(0, {"traceEvents": alone}, {}).calls] == ["receive", "send"]


def test_the_files_are_read_as_the_job_that_ran(tmp_path: Path) -> None:
    write_run([trace(0), trace(1, 500.0)], tmp_path, per_host=1)
    options = AnalyseOptions(run=tmp_path, scheduler="threads", n_workers=1, write_report=False)
    with pipeline.examined(options) as examined:
        document = judging.judged(examined).document
    assert (document.run.ranks, document.run.hosts, document.run.steps) == (2, 2, (0, 1))
    assert document.run.step_ms == pytest.approx(90.0, rel=0.02)


@pytest.mark.slow
def test_a_rank_that_really_sleeps_longer_lengthens_the_job_that_really_runs(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch here: pip install torch")
    plan = {"kind": "data", "ranks": 2, "steps": 2, "layers": 2, "work_ms": 20.0, "input_ms": 1.0}
    without = run({**plan, "delays": {}}, sys.executable, tmp_path / "without")
    slow = run({**plan, "delays": {"1": {"computes": 2.0}}}, sys.executable, tmp_path / "with")
    assert min(steps_ms(slow)) > 1.5 * min(steps_ms(without))
    assert {one.what for one in slow[0].calls} == {"allReduce"}
