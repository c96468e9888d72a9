"""The model of longest paths: its truth by hand, its two forms of files by the reader that users have."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.models.paths import model
from benchmarks.models.paths.cases import JOBS, Make, varied
from benchmarks.models.paths.job import Job
from benchmarks.models.paths.scripts import orders
from benchmarks.models.paths.shape import Form, Shape, Spread, Trouble, Way
from tests.benchmarks.written import assert_read_as_made, assert_written_alike

EVEN = Spread(blocks=0, chip=0, rack=0, gap=0.001, wire=0, wire_each=0, hiccups=0, exit_us=0)
SIMPLEST = Shape(
    data=4, blocks=3, microbatches=1, block_ms=10.0, gap_ms=0.0, input_ms=0.0, steps=4, spread=EVEN
)


def test_a_slow_chip_costs_what_its_blocks_take_longer() -> None:
    # Three forwards of 10 ms, three backwards of 21 ms, and 6 ms of update before and after the gather.
    solve = Job(SIMPLEST, seed=1).durations.solved
    lost_ms = solve([Trouble("slow_rank", "chip", 1.2, ranks=(2,))]).step_ms - solve().step_ms
    assert lost_ms == pytest.approx(0.2 * (3 * 31 + 2 * 6), rel=1e-4)


def test_gradients_beside_the_backward_cost_only_what_is_left_of_them() -> None:
    # Two pieces of three go beside; each takes less than the backward that follows it.
    shape = replace(SIMPLEST, gradients="pieces", beside=0.6, gradients_mb=300.0, input_ms=0.0)
    step_ms = Job(shape, seed=1).durations.solved().step_ms
    piece_ms = 2 * 100 / 4 / 19.1 + 0.002
    computing_ms = 3 * 31 + 6
    assert step_ms == pytest.approx(computing_ms + piece_ms, abs=0.3)


@pytest.mark.parametrize("way", ["1f1b", "gpipe", "bidirectional"])
def test_every_way_through_a_pipeline_does_all_work_once(way: Way) -> None:
    places = orders(4, 8, way)
    assert all(len(tasks) == len(set(tasks)) == 16 for tasks in places)
    assert {task.pipe for task in places[0]} == ({0, 1} if way == "bidirectional" else {0})


@pytest.mark.many
@pytest.mark.parametrize("make", JOBS[1:], ids=lambda one: one.__name__)
def test_no_job_waits_for_itself(make: Make) -> None:
    for seed in range(2):
        dice = random.Random(f"{seed}")
        shape = replace(varied(make(dice), "hard", dice), steps=1)
        assert Job(shape, seed).durations.solved().step_ms > 0


@pytest.mark.parametrize("form", ["text", "database"])
def test_the_same_seed_writes_the_same_bytes(tmp_path: Path, form: Form) -> None:
    def write(run: Path) -> None:
        shape = varied(Shape(data=2, stages=2, microbatches=2), "hard", random.Random(1))
        model.made(replace(shape, form=form), [Trouble("slow_rank", "chip", 1.2, ranks=(1,))], 5, run)

    assert_written_alike(write, tmp_path)


@pytest.mark.parametrize("form", ["text", "database"])
def test_files_are_read_and_the_step_is_what_was_solved(tmp_path: Path, form: Form) -> None:
    """Its databases have no shapes of kernels, which is told."""
    shape = Shape(tensor=2, data=4, stages=2, microbatches=2, blocks=1, steps=3, form=form)
    known = model.made(shape, [], 3, tmp_path)
    if form == "text":
        assert_read_as_made(tmp_path, known, "ascend_ms/text")
    else:
        shapes = ("COMPUTE_TASK_INFO.inputShapes", "COMPUTE_TASK_INFO.outputShapes")
        assert_read_as_made(tmp_path, known, "ascend_ms/db", shapes)
