"""The model of flows that share a network: its truth by hand, its files by the real reader."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.models.flows import model
from benchmarks.models.flows.draw import LAYOUTS, drawn
from benchmarks.models.flows.faults import CLASSES, Fault
from benchmarks.models.flows.ops import phases_of
from benchmarks.models.flows.program import Program
from benchmarks.models.flows.rows import RankRows, owned
from benchmarks.models.flows.run import Course, Mended, Run, Trouble
from benchmarks.models.flows.shape import Shape
from benchmarks.models.flows.sharing import Flow, Sharing
from benchmarks.models.flows.wiring import CARD, FAR, HCCS, Wiring
from tests.benchmarks.written import assert_read_as_made, assert_written_alike

#: Two layers of 5 ms forwards and 10 ms backwards, 0.5 ms of norm and 2 ms of update; nothing scatters.
EVEN = Shape(
    data=8, micros=1, steps=2, idle_ms=1e-9, input_ms=1e-9, kernel_sigma=0, device_sigma=0, host_sigma=0,
    dispatch_sigma=0, link_sigma=0, call_sigma=0, slow_singles=0, hiccups=0, gradients_mb=1.0,
)  # fmt: skip
KERNELS_MS = 2 * (5 + 10) + 0.5 + 2


def course_of(shape: Shape, *troubles: Trouble) -> tuple[Program, Course]:
    program = Program(shape, 1)
    return program, Run(program, troubles).course_of_all()


def step_ms(shape: Shape, *troubles: Trouble, mended: Mended | None = None) -> float:
    program = Program(shape, 1)
    return Run(program, troubles, mended).course_of_all().step_ms(program)


def flow(*path: int) -> Flow:
    return Flow(path, 10.0, (0, 0, 1, 10.0))


def test_what_one_flow_cannot_use_of_its_share_goes_to_the_others() -> None:
    net = Sharing([10.0, 4.0])
    through, first, second = flow(0, 1), flow(0), flow(1)
    net.begin([through, first, second], 0.0)
    assert (through.rate, second.rate, first.rate) == pytest.approx((2.0, 2.0, 8.0))
    net.end([second], 1.0)
    assert (through.rate, first.rate) == pytest.approx((4.0, 6.0))
    assert (through.left, first.left) == pytest.approx((8.0, 2.0))


def test_flows_of_other_jobs_take_their_share() -> None:
    net = Sharing([12.0])
    net.strangers[0] = 2
    one = flow(0)
    net.begin([one], 0.0)
    assert one.rate == pytest.approx(4.0)


@given(
    capacities=st.lists(st.floats(0.5, 50), min_size=4, max_size=4),
    paths=st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=1, max_size=12),
)
def test_each_flow_is_held_up_by_a_full_part_in_which_none_is_faster(
    capacities: list[float], paths: list[set[int]]
) -> None:
    net = Sharing(capacities)
    flows = [flow(*sorted(path)) for path in paths]
    net.begin(flows, 0.0)
    used = [sum(one.rate for one in net.users[part]) for part in range(4)]
    assert all(one <= most * (1 + 1e-6) for one, most in zip(used, capacities, strict=True))
    for one in flows:
        assert any(
            used[part] >= capacities[part] * (1 - 1e-6)
            and one.rate >= max(other.rate for other in net.users[part]) * (1 - 1e-6)
            for part in one.path
        )


def test_a_collective_goes_through_the_mesh_then_the_fabric_then_the_network() -> None:
    wiring = Wiring(Shape(data=32, per_host=16, per_mesh=8))
    kinds = [
        {wiring.transport(a, b) for a, b, _ in phase}
        for phase in phases_of("allReduce", range(32), 64.0, wiring)
    ]
    assert kinds == [{"HCCS"}, {"PCIE"}, {"RDMA"}, {"RDMA"}, {"PCIE"}, {"HCCS"}]
    # What one device sends: seven parts of an eighth, half of one, half of what two sum up.
    sent = [
        sum(size for a, _, size in phase if a == 0)
        for phase in phases_of("reduceScatter", range(32), 64.0, wiring)
    ]
    assert sent == pytest.approx([56.0, 4.0, 2.0])


def test_a_mesh_of_even_devices_has_other_neighbours_than_a_mesh_of_the_first() -> None:
    blocks = Wiring(Shape(data=16, per_host=8, per_mesh=4))
    striped = Wiring(Shape(data=16, per_host=8, per_mesh=4, is_mesh_striped=True))
    assert [blocks.transport(0, one) for one in (1, 4, 8)] == ["HCCS", "PCIE", "RDMA"]
    assert [striped.transport(0, one) for one in (1, 2, 8)] == ["PCIE", "HCCS", "RDMA"]
    assert blocks.capacity(("link", 0, 1)) == HCCS
    assert blocks.capacity(("link", 0, 4)) == FAR
    assert blocks.capacity(("host out", 0)) == pytest.approx(8 * CARD)


def test_a_slow_device_costs_what_its_kernels_take_longer() -> None:
    slow = Trouble("computes", 0.2, ranks=frozenset([2]))
    assert step_ms(EVEN, slow) - step_ms(EVEN) == pytest.approx(0.2 * KERNELS_MS, rel=0.02)
    assert step_ms(EVEN, slow, mended=Mended(frozenset([2]))) == pytest.approx(step_ms(EVEN))


def test_idle_time_before_a_side_call_costs_all_of_it_once_the_main_stream_waits() -> None:
    idle = Trouble("holds back", 20.0, ranks=frozenset([2]))
    assert step_ms(EVEN, idle) - step_ms(EVEN) == pytest.approx(20.0, rel=0.01)


def test_a_card_that_is_slow_one_way_slows_what_passes_it_that_way_only() -> None:
    shape = replace(EVEN, data=16, gradients_mb=400.0)
    program, course = course_of(shape, Trouble("carries", 1.0, parts=(("card out", 3),)))
    rates: dict[tuple[int, int], float] = {}
    for key, rows in course.moved.items():
        for source, target, size, began, ended in rows:
            if key < 0 and program.wiring.transport(source, target) == "RDMA":
                rates[source, target] = size / (ended - began)
    assert rates.pop((3, 11)) == pytest.approx(CARD / 2, rel=0.01)
    assert all(rate == pytest.approx(CARD, rel=0.01) for rate in rates.values())


def test_a_congested_rack_holds_up_all_that_leaves_it() -> None:
    shape = replace(EVEN, data=32, gradients_mb=400.0, hosts_per_rack=2)
    slow = Trouble("carries", 3.0, parts=(("rack out", 0),))
    assert step_ms(shape, slow) > 1.05 * step_ms(shape)
    assert step_ms(shape, replace(slow, steps=frozenset())) == pytest.approx(step_ms(shape))


def test_a_rank_of_a_ring_waits_for_its_neighbours_only_and_only_in_the_end_for_all() -> None:
    shape = replace(EVEN, context=4, data=2, ring_mb=1.0, layers=1)
    program, course = course_of(shape, Trouble("computes", 1.0, ranks=frozenset([0])))
    first = [next(n for n in own if program.ops[n].what == "batchSendRecv") for own in owned(program)[:4]]
    rounds = [[n for n in own if program.ops[n].what == "batchSendRecv"] for own in owned(program)[:4]]
    assert [len(one) for one in rounds] == [2 * 2 * 3] * 4
    # Nobody has worked yet when the first round begins; in the backward all come later than they could.
    assert max(course.end[n] for n in first) < 1.0
    assert course.end[rounds[1][3]] > course.start[rounds[1][3]] + 4.0


@pytest.mark.many
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_parts_of_each_ranks_steps_sum_up_to_all_its_time(name: str) -> None:
    shape = replace(LAYOUTS[name], steps=2, micros=max(1, LAYOUTS[name].stages))
    program, course = course_of(shape)
    for rank, own in enumerate(owned(program)):
        rows = RankRows(program, course, rank, own)
        whole_us = 0.0
        for step in range(shape.steps):
            computing, alone, overlapped, communication, free, stage, bubble, rest, preparing = (
                rows.step_times(step)
            )
            assert computing + alone + free == pytest.approx(stage + bubble)
            assert alone + overlapped == pytest.approx(communication)
            assert rest == pytest.approx(alone - bubble)
            assert min(computing, alone, free, preparing) >= -1e-6
            whole_us += stage + bubble + preparing
        lasted_ms = max(course.end[n] for n in own) - course.start[own[0]]
        assert whole_us == pytest.approx(1000 * lasted_ms)


def test_a_fused_kernel_counts_as_computing_while_it_waits() -> None:
    shape = replace(EVEN, experts=8, is_fused=True)
    program, course = course_of(shape, Trouble("computes", 0.5, ranks=frozenset([0])))
    own = owned(program)
    slow, other = (RankRows(program, course, rank, own[rank]) for rank in (0, 1))
    assert other.step_times(0)[0] == pytest.approx(slow.step_times(0)[0], rel=0.05)
    # The table of operators tells who works and who waits.
    assert slow.kernels()["MatMulV3"][1] == pytest.approx(1.5 * other.kernels()["MatMulV3"][1])
    assert other.kernels()["MoeDistributeDispatchV2"][1] > 2 * slow.kernels()["MoeDistributeDispatchV2"][1]


def test_what_a_fault_costs_is_the_job_without_it(tmp_path: Path) -> None:
    program = Program(replace(EVEN, data=16, gradients_mb=400.0), 1)
    slow, card = Trouble("computes", 0.2, frozenset([2])), Trouble("carries", 2.0, parts=(("card in", 9),))
    faults = [Fault(slow, "slow_rank", 1.0, ranks=(2,)), Fault(card, "slow_nic", 1.0, ranks=(9,))]
    known = model.made(program, faults, tmp_path)
    both, clean = step_ms(program.shape, slow, card), step_ms(program.shape)
    assert known.step_ms == pytest.approx(both)
    assert known.cost_ms == pytest.approx(both - clean)
    assert [one.cost_ms for one in known.faults] == pytest.approx(
        [step_ms(program.shape, slow) - clean, step_ms(program.shape, card) - clean]
    )
    assert [one.marginal_ms for one in known.faults] == pytest.approx(
        [both - step_ms(program.shape, card), both - step_ms(program.shape, slow)]
    )


@pytest.mark.slow
@pytest.mark.parametrize("fault_class", CLASSES)
def test_each_class_of_faults_has_a_place_in_the_jobs_it_is_drawn_for(fault_class: str) -> None:
    picks, layouts = CLASSES[fault_class]
    dice = random.Random(fault_class)
    program = Program(replace(drawn(dice, "hard", fault_class, layouts), micros=4, steps=2), 3)
    for pick in picks:
        fault = pick(program, dice)
        assert set(fault.ranks) <= set(range(program.shape.n_ranks))
        parts = {part for call in program.calls for phase in call.phases for a, b, _ in phase
                 for part in program.wiring.path(a, b)}  # fmt: skip
        parts |= {part for one in program.messages for part in program.wiring.path(one.source, one.target)}
        assert not fault.trouble.parts or parts & set(fault.trouble.parts)


@pytest.mark.many
@pytest.mark.parametrize("form", ["text", "database"])
def test_files_are_read_without_a_problem_and_the_step_is_what_was_run(tmp_path: Path, form: str) -> None:
    shape = replace(LAYOUTS["context 4 data 8"], steps=2, micros=1, form=form)
    known = model.made(Program(shape, 3), [], tmp_path)
    assert_read_as_made(tmp_path, known, f"ascend_pt/{'text' if form == 'text' else 'db'}")


@pytest.mark.parametrize("form", ["text", "database"])
def test_the_same_seed_writes_the_same_bytes(tmp_path: Path, form: str) -> None:
    shape = Shape(tensor=2, data=2, stages=2, steps=2, form=form, lost_share=0.1)
    slow = Fault(Trouble("computes", 0.2, frozenset([1])), "slow_rank", 1.0, ranks=(1,))
    assert_written_alike(lambda run: model.made(Program(shape, 5), [slow], run), tmp_path)


def test_even_samples_and_even_experts_hold_as_much_work_as_uneven_ones() -> None:
    def work_ms(shape: Shape, *troubles: Trouble, mended: Mended | None = None) -> float:
        return sum(Run(Program(shape, 1), troubles, mended).course_of_all().busy)

    uneven = replace(EVEN, length_sigma=0.3)
    even = Mended(are_samples_even=True)
    assert work_ms(uneven, mended=even) == pytest.approx(work_ms(uneven))
    assert step_ms(uneven, mended=even) < step_ms(uneven)
    mixed = replace(EVEN, experts=8)
    hot = Trouble("is hot", 0.3, ranks=frozenset([3]))
    assert work_ms(mixed, hot) == pytest.approx(work_ms(mixed))
    assert step_ms(mixed, hot) > step_ms(mixed)


def test_who_ends_the_pauses_of_many_or_evens_experts_does_so_for_the_job_s_own_as_well() -> None:
    shape = replace(EVEN, hiccups=0.2)
    assert step_ms(shape, mended=Mended(pauses_nobody=True)) < step_ms(shape)
    uneven = replace(EVEN, data=16, experts=8, expert_sigma=0.1)
    assert step_ms(uneven, mended=Mended(are_experts_even=True)) < step_ms(uneven)
