"""The event-driven model of a job: its truth by hand, its files by the reader that users have."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.models.streams import model
from benchmarks.models.streams.events import run
from benchmarks.models.streams.job import Fault, Job, Schedule, Varying
from benchmarks.models.streams.program import Program
from benchmarks.models.streams.scenarios import FAMILIES, with_noise
from benchmarks.models.streams.schedules import turns
from tests.benchmarks.written import assert_read_as_made, assert_written_alike
from tests.layers import PACKAGES, imports_of, is_in, modules

#: Nothing varies, nothing contends, the host never holds anybody up.
EVEN = Varying(
    kernel_sigma=0,
    device_sigma=0,
    tail_share=0,
    step_sigma=0,
    link_sigma=0,
    call_sigma=0,
    contended_share=0,
    pause_share=0,
)
SIMPLEST = Job(
    dp=4,
    layers=4,
    layer_us=10_000.0,
    launch_us=1.0,
    input_ms=1e-3,
    idle_share=0.0,
    kernel_contention=0.0,
    transfer_contention=0.0,
    data="at_end",
    gradient_mb=10.0,
    steps=4,
    varying=EVEN,
)


def test_a_slow_device_costs_what_its_kernels_take_longer() -> None:
    # Four layers, forward 10 ms and backward 20 ms, and half a layer of optimizer, 20 % of it; the exits'
    # jitter is 15 us.
    program = Program(SIMPLEST, seed=1)
    lost_us = run(program, [Fault("slow_rank", 1.2, ranks=(2,))]) - run(program)
    assert lost_us == pytest.approx(0.2 * (4 * 30_000 + 5_000), rel=0.003)


def test_gradients_at_the_end_take_what_a_ring_takes() -> None:
    with_gradients = run(Program(SIMPLEST, seed=1))
    without = run(Program(Job(**{**vars(SIMPLEST), "gradient_mb": 1e-9}), seed=1))
    # One host, so a mesh: each of 12 links carries 2 / 4 of 40 MB at 19 GB/s, 0.4 % by its nature.
    assert with_gradients - without == pytest.approx(20 / 19 * 1000, rel=0.02)


def test_input_that_comes_late_costs_what_it_is_late() -> None:
    program = Program(SIMPLEST, seed=1)
    late = Fault("slow_host", factor=1.0001, add_ms=30.0, cause="input", ranks=(0, 1, 2, 3))
    assert run(program, [late]) - run(program) == pytest.approx(30_000, rel=0.01)


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "interleaved", "zero_bubble"])
def test_every_schedule_does_all_work_once(schedule: Schedule) -> None:
    job = Job(pp=4, microbatches=8, chunks=2 if schedule == "interleaved" else 1, schedule=schedule)
    backward = {"b", "W"} if schedule == "zero_bubble" else {"B"}
    wanted = {(what, m, c) for what in {"F", *backward} for m in range(8) for c in range(job.chunks)}
    for stage in range(4):
        done = turns(job, stage)
        assert len(done) == len(wanted)
        assert set(done) == wanted


def test_a_pipeline_takes_its_bubble() -> None:
    # GPipe on even stages: (m + p - 1) forwards and as many backwards; messages take 0.3 ms each.
    job = Job(pp=4, microbatches=4, layers=1, layer_us=30_000.0, schedule="gpipe", launch_us=1.0,
              idle_share=0.0, activation_mb=1e-6, norm=False, varying=EVEN, steps=2)  # fmt: skip
    assert run(Program(job, seed=1)) == pytest.approx((4 + 4 - 1) * 90_000 + 15_000, rel=0.01)


@pytest.mark.many
@pytest.mark.parametrize("mode", ["plain", "hard"])
@pytest.mark.parametrize("family", FAMILIES[1:], ids=lambda one: one.__name__)
def test_no_job_waits_for_itself(family: object, mode: str) -> None:
    for seed in range(2):
        dice = random.Random(f"{mode}/{seed}")
        job = replace(with_noise(family(dice), mode, dice), steps=1)  # type: ignore[operator]
        assert run(Program(job, seed)) > 0


@pytest.mark.slow
def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    def write(run: Path) -> None:
        hard = with_noise(Job(tp=2, dp=2, pp=2, microbatches=2), "hard", random.Random(1))
        model.made(hard, [Fault("slow_rank", 1.2, ranks=(1,))], 5, run)

    assert_written_alike(write, tmp_path)


def test_files_are_read_without_a_problem_and_the_step_is_what_was_run(tmp_path: Path) -> None:
    slow = Fault("slow_rank", 1.2, ranks=(1,))
    known = model.made(Job(tp=2, dp=2, pp=2, microbatches=2), [slow], 5, tmp_path)
    assert_read_as_made(tmp_path, known, "ascend_pt/text")


def test_models_share_no_code_with_the_simulator_or_the_analysis() -> None:
    inside = [path for name, path in modules().items() if is_in(name, "benchmarks.models")]
    ours = {
        one
        for path in inside
        for one in imports_of(path)
        if is_in(one, "cluster_run") or one.partition(".")[0] in PACKAGES[1:-1]
    }
    assert inside
    assert ours <= {"cluster_run.findings", "cluster_run.findings.Finding"}
