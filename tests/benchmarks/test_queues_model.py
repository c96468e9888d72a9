"""The model of queues that hosts launch into: its truth by hand, its files by the real reader."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.models.queues import model
from benchmarks.models.queues.events import Mended, Run, Trouble
from benchmarks.models.queues.job import Job
from benchmarks.models.queues.model import FAULT_CLASSES, Fault, drawn
from benchmarks.models.queues.shape import Shape
from tests.benchmarks.written import assert_read_as_made, assert_written_alike, read

#: One replica a rank, no scatter: 3 layers of 6 ms forwards and 12 ms backwards, and 2 ms of update.
EVEN = Shape(
    data=4, microbatches=1, layers=(3,), are_gradients_beside=False, kernel_sigma=0, device_sigma=0,
    device_tail=0, hiccups=0, late_launches=0, slow_singles=0, input_ms=0.01,
    steps=3,
)  # fmt: skip
LAYERS_MS = 3 * (6 + 12) + 2


def step_ms(shape: Shape, *troubles: Trouble, mended: Mended | None = None) -> float:
    return Run(Job(shape, 1), troubles, mended).course_of_all().step_ms(shape.steps)


def test_a_slow_device_costs_what_its_kernels_take_longer() -> None:
    slow = Trouble("computes", 0.2, ranks=frozenset([2]))
    assert step_ms(EVEN, slow) - step_ms(EVEN) == pytest.approx(0.2 * LAYERS_MS, rel=0.05)


def test_a_slow_host_is_hidden_until_its_devices_run_dry() -> None:
    # Launching takes 0.3 of the layers' time: twice as slow is hidden, four times as slow is not.
    def cost_ms(size: float) -> float:
        return step_ms(EVEN, Trouble("launches", size, ranks=frozenset([0]))) - step_ms(EVEN)

    assert cost_ms(1.0) < 0.02 * LAYERS_MS
    assert cost_ms(3.0) > 0.1 * LAYERS_MS


def test_gradients_beside_the_backward_cost_less_than_after_it() -> None:
    beside = replace(EVEN, are_gradients_beside=True)
    assert step_ms(beside) < step_ms(EVEN) - 5


def test_a_mended_device_costs_nothing() -> None:
    slow = Trouble("computes", 0.2, ranks=frozenset([2]))
    mended = step_ms(EVEN, slow, mended=Mended(ranks=frozenset([2])))
    assert mended == pytest.approx(step_ms(EVEN), rel=0.03)


@pytest.mark.many
@pytest.mark.parametrize("fault_class", FAULT_CLASSES)
def test_no_job_waits_for_itself(fault_class: str) -> None:
    for seed in range(2):
        job = Job(replace(drawn(random.Random(f"{seed}"), "hard", fault_class), steps=1), seed)
        assert Run(job).course_of_all().step_ms(job.shape.steps) > 0


@pytest.mark.parametrize("form", ["text", "database"])
def test_files_are_read_without_a_problem_and_the_step_is_what_was_run(tmp_path: Path, form: str) -> None:
    shape = Shape(tensor=2, data=4, stages=2, layers=(2, 2), form=form)
    known = model.made(Job(shape, 3), [], tmp_path)
    assert_read_as_made(tmp_path, known, f"ascend_pt/{'text' if form == 'text' else 'db'}")


@pytest.mark.parametrize("form", ["text", "database"])
def test_the_same_seed_writes_the_same_bytes(tmp_path: Path, form: str) -> None:
    shape = Shape(tensor=2, data=2, stages=2, layers=(2, 2), form=form)
    slow = Fault(Trouble("computes", 0.2, ranks=frozenset([1])), "slow_rank", 1.0)
    assert_written_alike(lambda run: model.made(Job(shape, 5), [slow], run), tmp_path)


@pytest.mark.slow
def test_gradients_beside_the_last_backward_of_a_short_pipeline_are_replayed_beside_it(
    tmp_path: Path,
) -> None:
    shape = Shape(
        data=8, stages=2, layers=(3, 3), head=0.2, work_ms=8.0, gradients_mb=400.0, length_sigma=0.1
    )
    model.made(Job(shape, 3), [], tmp_path)
    document = read(tmp_path)
    assert document.replay["error_share"] < 0.005
