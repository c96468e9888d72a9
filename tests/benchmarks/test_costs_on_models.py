"""What is quoted for late hosts and slow ranks, on jobs of models that the analysis knows nothing of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.detection import modelled, simulated
from benchmarks.models.flows.faults import Fault
from benchmarks.models.flows.run import Trouble
from benchmarks.models.flows.shape import Shape
from benchmarks.models.queues import model as queues
from benchmarks.models.queues.events import Trouble as Stumble
from benchmarks.models.queues.job import Job
from benchmarks.models.queues.shape import Shape as QueueShape
from cluster_run.findings import Finding
from tests.benchmarks.test_conservation import DATA, SLOW, judged
from tests.benchmarks.written import read

#: Whole analyses of whole jobs: half a second to four each.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("source", "mode", "seed"),
    [
        ("streams", "plain", 21_008),  # its ranks wait for the latest of their tensor-parallel peers
        ("paths", "hard", 121_063),  # its ranks are three calls behind their data-parallel peers
        ("streams", "hard", 115_046),  # one gap holds all of a step: it is no pause because it is long
        ("streams", "hard", 131_040),  # all ranks pause every second step
    ],
)
def test_a_host_that_launches_late_costs_what_its_ranks_idle_together(
    source: str, mode: str, seed: int
) -> None:
    known, said = modelled.judge(source, mode, seed, "host, dispatch")
    (fault,) = known.faults
    (found,) = [one for one in said.findings if one.kind == "slow_host"]
    assert set(found.hosts) == set(fault.hosts)
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=0.01 * known.step_ms)


def test_a_late_host_may_have_ranks_that_lose_nothing() -> None:
    known, said = modelled.judge("streams", "plain", 18_042, "two hosts of four")
    alarms = [set(one.hosts) for one in said.findings if one.is_alarm]
    assert all(set(fault.hosts) in alarms for fault in known.faults)


def test_a_group_that_is_on_two_streams_hides_no_slow_link() -> None:
    known, said = modelled.judge("streams", "hard", 115_010, "host pair")
    assert said.replay_error_share is not None
    assert said.replay_error_share < 0.005
    found = next(one for one in said.findings if one.is_alarm)
    assert found.cost_ms_per_step == pytest.approx(known.faults[0].cost_ms, abs=0.01 * known.step_ms)


@pytest.mark.parametrize(
    ("source", "mode", "seed", "fault_class"),
    [
        (
            "streams",
            "plain",
            13_016,
            "rank, intermittent",
        ),  # slow in the last four steps of ten: no straight line
        (
            "streams",
            "hard",
            113_059,
            "rank, one step",
        ),  # a rank that lacks two messages waits where nobody is like it
        ("paths", "hard", 848_032, "rank, intermittent"),  # two of its four slow steps are very much alike
    ],
)
def test_a_slow_rank_costs_what_it_loses_in_the_steps_in_which_it_is_slow(
    source: str, mode: str, seed: int, fault_class: str
) -> None:
    known, said = modelled.judge(source, mode, seed, fault_class)
    (fault,) = known.faults
    (found,) = [one for one in said.findings if one.kind == "slow_rank"]
    assert tuple(found.ranks) == fault.ranks
    assert found.is_alarm
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=0.01 * known.step_ms)


@pytest.mark.parametrize(
    ("seed", "fault_class"),
    [
        (101_909, "rank, dispatch"),  # members leave each of many exchanges of tokens 0.1 ms apart
        (101_947, "uplink"),  # slow sums hide computing, of which samples make more on some ranks
    ],
)
def test_what_is_repaired_beside_calls_costs_what_it_truly_does(seed: int, fault_class: str) -> None:
    known, said = modelled.judge("paths", "hard", seed, fault_class)
    (fault,) = known.faults
    found = next(one for one in said.findings if one.is_alarm)
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=0.005 * known.step_ms)


@pytest.mark.parametrize(
    "seed",
    [
        134_017,  # ranks lack calls, so that peers cannot be laid beside in all steps
        134_008,  # samples are of unlike length, so that other gaps are longer than the peers' too
    ],
)
def test_a_pause_is_taken_from_one_gap(seed: int) -> None:
    known, said = simulated.judge("hard", seed, "periodic_pause:200,every=2")
    (fault,) = known.faults
    (found,) = [one for one in said.findings if tuple(one.ranks) == fault.ranks]
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=0.005 * known.step_ms)


def test_a_slow_link_is_not_taken_for_waiting_where_the_late_rank_lost_its_record() -> None:
    known, said = simulated.judge("hard", 133_013, "slow_nic:10")
    (fault,) = known.faults
    found = next(one for one in said.findings if one.is_alarm)
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=0.005 * known.step_ms)


@pytest.mark.parametrize(
    ("mode", "seed", "fault_class"),
    [
        ("hard", 171_042, "link"),  # the last sends of a step are lost, and a message is what comes before
        ("hard", 176_054, "host is a stage"),  # in one step ends of two stages coincide 4 ms apart, too
        ("plain", 76_044, "rank, some kernels"),  # most batches wait for nobody
        ("hard", 176_061, "healthy"),  # a busy network's long sends, and no send waits
    ],
)
def test_pipelines_are_replayed_as_they_were(mode: str, seed: int, fault_class: str) -> None:
    said = modelled.judge("streams", mode, seed, None if fault_class == "healthy" else fault_class)[1]
    assert said.replay_error_share is not None
    assert said.replay_error_share < 0.01


def test_a_lost_record_of_a_late_host_does_not_hide_what_its_ranks_lose_in_other_steps() -> None:
    known, said = modelled.judge("streams", "hard", 171_080, "host, dispatch")
    (fault,) = known.faults
    found = next(one for one in said.findings if one.is_alarm)
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=0.015 * known.step_ms)


@pytest.mark.parametrize(
    ("mode", "seed", "fault_class"),
    [
        ("plain", 3507, "device and port"),  # links to another board pass it as fast as ever
        ("plain", 3543, "port out"),  # seven links, and each hides behind the others
        ("plain", 1541, "port out"),  # an operator has phases that no slow link is in
        ("hard", 103519, "link between hosts"),
    ],
)
def test_what_a_slow_part_costs_is_its_own_share_of_operators_of_several_phases(
    mode: str, seed: int, fault_class: str
) -> None:
    known, said = modelled.judge("flows", mode, seed, fault_class, n_steps=3)
    fault = known.faults[-1]
    (found,) = [one for one in said.findings if one.is_alarm and one.cause == "bandwidth"]
    low, high = sorted((fault.cost_ms, fault.marginal_ms))
    assert low - 0.01 * known.step_ms <= (found.cost_ms_per_step or 0.0) <= high + 0.01 * known.step_ms


def test_ranks_that_wait_inside_kernels_are_not_idle_and_their_host_is_not_late() -> None:
    _, said = modelled.judge("flows", "plain", 3512, None)
    assert not [one.id for one in said.findings if one.cause == "dispatch"]


def test_foreign_traffic_costs_what_all_ranks_of_a_ring_wait_for_its_slow_link_in_turn() -> None:
    known, said = modelled.judge("flows", "hard", 122_028, "foreign traffic")
    (fault,) = known.faults
    (found,) = [one for one in said.findings if one.is_alarm and one.cause == "bandwidth"]
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=0.01 * known.step_ms)


@pytest.mark.parametrize(
    ("mode", "seed", "fault_class"),
    [
        ("plain", 1707, "device, fused kernels"),  # of four groups of experts one waits for it
        ("hard", 103533, "device, fused kernels"),
        ("plain", 27051, "device, fused kernels"),  # all 16 ranks do: later they wait for each other
        ("plain", 3515, "ranks, pauses"),  # three of 32 pauses lie beside calls that hide them
    ],
)
def test_what_others_wait_or_communication_hides_counts_once(mode: str, seed: int, fault_class: str) -> None:
    known, said = modelled.judge("flows", mode, seed, fault_class, n_steps=3)
    (fault,) = known.faults
    found = next(one for one in said.findings if one.kind == fault.kind)
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=0.01 * known.step_ms)


@pytest.mark.parametrize(("seed", "fault_class"), [(25_051, "rank, sharded"), (25_059, "rank, dispatch")])
def test_a_rank_whose_gaps_agree_by_chance_behind_one_gathering_of_weights_loses_time_behind_each(
    seed: int, fault_class: str
) -> None:
    known, said = modelled.judge("paths", "plain", seed, fault_class)
    (fault,) = known.faults
    (found,) = [one for one in said.findings if one.is_alarm]
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=0.01 * known.step_ms)


# What hides from a comparison of peers has its cost, or leaves a question: on small jobs of a model.
FUSED = replace(DATA, experts=4, is_fused=True)
EXPERTS = replace(DATA, experts=8, work_ms=8.0)
SHARED_CARDS = replace(DATA, devices_per_card=2, gradients_mb=120.0)
STAGES = replace(DATA, data=4, stages=3, micros=4)


def told(shape: Shape, fault: Fault, folder: Path) -> tuple[Finding, float, float, str]:
    """Return the costliest finding, its cost and the true one as shares of the step, and the verdict."""
    job, _, found = judged(shape, folder, fault, seed=7)
    one = max(found.findings, key=lambda finding: finding.cost_ms_per_step or 0.0)
    return (
        one,
        (one.cost_ms_per_step or 0.0) / job.step_ms,
        job.faults[0].cost_ms / job.step_ms,
        found.verdict,
    )


def test_ranks_that_wait_inside_fused_kernels_wait_less_once_the_late_one_is_repaired(tmp_path: Path) -> None:
    fault = Fault(Trouble("computes", 0.4, frozenset([SLOW])), "slow_rank", 0.0, ranks=(SLOW,))
    finding, cost, true, verdict = told(FUSED, fault, tmp_path)
    assert (finding.kind, finding.ranks, verdict) == ("slow_rank", (SLOW,), "degraded")
    assert cost == pytest.approx(true, abs=0.03)
    assert finding.confidence == "low"  # nobody knows how long they wait for each other then


def test_a_card_that_two_devices_share_is_one_part_with_the_cost_of_both_links(tmp_path: Path) -> None:
    fault = Fault(Trouble("carries", 5.0, parts=(("card in", 2),)), "slow_nic", 0.0, ranks=(2, 3))
    finding, cost, true, verdict = told(SHARED_CARDS, fault, tmp_path)
    assert {2, 3} <= set(finding.ranks)
    assert (finding.cause, verdict) == ("bandwidth", "degraded")
    assert cost == pytest.approx(true, abs=0.02)


def test_a_slow_network_between_the_only_two_hosts_is_not_called_healthy(tmp_path: Path) -> None:
    parts = (("hosts", 0, 1), ("hosts", 1, 0))
    fault = Fault(Trouble("carries", 20.0, parts=parts), "slow_host_pair", 0.0, hosts=(0, 1))
    job, _, found = judged(SHARED_CARDS, tmp_path, fault, seed=7)
    assert job.cost_ms > 0.05 * job.step_ms
    assert found.verdict == "unknown"
    assert "uncompared_network" in {note.kind for note in found.notes}


def test_a_stage_that_is_one_host_costs_what_it_is_longer_than_the_other_stages(tmp_path: Path) -> None:
    ranks = (4, 5, 6, 7)
    fault = Fault(Trouble("computes", 0.3, frozenset(ranks)), "slow_host", 0.0, ranks=ranks, hosts=(1,))
    finding, cost, true, verdict = told(STAGES, fault, tmp_path)
    assert (finding.kind, verdict) == ("stage_imbalance", "unknown")
    assert finding.confidence == "low"  # less is saved if it is the work, and is dealt anew
    assert cost == pytest.approx(true, abs=0.02)


@pytest.mark.parametrize(
    "seed",
    [
        115_007,  # without kernels: a stage that is one host calls its tensor group half as often again
        115_027,  # what its ranks exchange, and the idle time between kernels, come with its layers
    ],
)
def test_a_stage_with_more_layers_costs_its_calls_too_and_is_not_taken_for_its_host(seed: int) -> None:
    known, said = modelled.judge("queues", "hard", seed, "stage, too many layers", n_steps=3)
    (found,) = [one for one in said.findings if one.kind == "stage_imbalance"]
    assert found.confidence == "high"
    assert found.cost_ms_per_step == pytest.approx(known.faults[0].cost_ms, abs=0.002 * known.step_ms)


@pytest.mark.parametrize("beside", [{}, {"length_sigma": 0.15, "hiccups": 0.02}])
def test_a_hot_expert_costs_what_is_longer_while_it_has_tokens(
    beside: dict[str, float], tmp_path: Path
) -> None:
    """Samples of unequal length and pauses make other gaps longer, or some steps."""
    fault = Fault(
        Trouble("is hot", 0.5, frozenset([SLOW])), "expert_imbalance", 0.0, ranks=(SLOW,), is_of_many=True
    )
    finding, cost, true, _ = told(replace(EXPERTS, **beside), fault, tmp_path)
    assert finding.kind == "expert_imbalance"
    assert cost == pytest.approx(true, abs=0.008)


@pytest.mark.parametrize(("mode", "seed"), [("hard", 842_018), ("hard", 843_228)])
def test_samples_cost_neither_what_experts_do_nor_pauses(mode: str, seed: int) -> None:
    known, said = modelled.judge("flows", mode, seed, "samples")
    (found,) = [one for one in said.findings if one.kind == "data_imbalance"]
    assert found.cost_ms_per_step == pytest.approx(known.faults[0].cost_ms, abs=0.005 * known.step_ms)


@pytest.mark.parametrize(("mode", "seed"), [("hard", 116_011), ("plain", 16_033)])
def test_pauses_of_many_ranks_are_taken_from_where_they_lie(mode: str, seed: int) -> None:
    """Hardly any rank is without one; samples differ; some lie before a call of a second stream alone."""
    known, said = modelled.judge("flows", mode, seed, "ranks, pauses")
    (found,) = [one for one in said.findings if one.id == "periodic_pause-by-turns"]
    assert found.cost_ms_per_step == pytest.approx(known.faults[0].cost_ms, abs=0.01 * known.step_ms)
    assert said.verdict == "unknown"


@pytest.mark.parametrize(
    ("mode", "seed"),
    [
        ("plain", 744_425),  # groups of four experts
        ("plain", 21_116),  # two ranks of one group in one step
        ("hard", 121_193),  # all ranks are one group, so that no peer shows what is usual
    ],
)
def test_who_waits_inside_fused_kernels_for_a_pause_does_so_no_longer(mode: str, seed: int) -> None:
    """Their computing holds it: a repair of the pause alone saves next to nothing."""
    known, said = modelled.judge("flows", mode, seed, "ranks, pauses")
    (found,) = [one for one in said.findings if one.id == "periodic_pause-by-turns"]
    assert found.cost_ms_per_step == pytest.approx(known.faults[0].cost_ms, abs=0.01 * known.step_ms)
    assert said.verdict == "unknown"


def test_a_rank_that_pauses_costs_what_others_wait_for_it_inside_fused_kernels() -> None:
    """It writes checkpoints; all others pause as well, each at another time."""
    known, said = modelled.judge("flows", "hard", 121_013, "ranks, pauses")
    (found,) = [one for one in said.findings if one.id == "periodic_pause-0"]
    assert found.cost_ms_per_step == pytest.approx(known.saving_ms(found), abs=0.002 * known.step_ms)


def test_pauses_of_many_ranks_count_beside_a_host_that_may_be_late_by_chance() -> None:
    known, said = modelled.judge("flows", "hard", 842_225, "ranks, pauses")
    (found,) = [one for one in said.findings if one.id == "periodic_pause-by-turns"]
    assert found.cost_ms_per_step == pytest.approx(known.faults[0].cost_ms, rel=0.25)


@pytest.mark.parametrize(("seed", "name"), [(848_013, "host dispatches"), (846_012, "host, input")])
def test_a_host_that_all_wait_for_inside_fused_kernels_may_cost_what_it_idles_longer(
    seed: int, name: str
) -> None:
    known, said = modelled.judge("flows", "hard", seed, name)
    (found,) = [one for one in said.findings if one.id == "slow_host-2"]
    assert found.cost_low_ms is not None
    assert found.cost_high_ms is not None
    assert found.cost_low_ms < known.faults[0].cost_ms < found.cost_high_ms
    assert found.confidence == "low"


def test_samples_of_which_ranks_wait_inside_fused_kernels_leave_a_question(tmp_path: Path) -> None:
    shape = replace(FUSED, length_sigma=0.3)
    everyone = tuple(range(shape.n_ranks))
    fault = Fault(Trouble("samples", 1.0), "data_imbalance", 0.0, ranks=everyone, is_of_many=True)
    job, _, found = judged(shape, tmp_path, fault, seed=7)
    assert job.cost_ms > 0.05 * job.step_ms
    assert found.verdict == "unknown"
    assert "waited_inside" in {note.kind for note in found.notes}


@pytest.mark.parametrize(("seed", "late", "is_asked"), [(2, 1.31, True), (2, 0.0, False)])
def test_a_host_that_holds_up_its_ranks_in_no_pattern_is_not_called_healthy(
    seed: int, late: float, *, is_asked: bool, tmp_path: Path
) -> None:
    """None of its ranks stands out, and neither does their middle; what they would cost together does."""
    shape = QueueShape(
        tensor=4, data=8, layers=(3,), steps=4, input_ms=6, kernel_sigma=0.015, device_sigma=0.006,
        device_tail=0.004, hiccups=0.01, late_launches=0.01, microbatches=1, form="database",
    )  # fmt: skip
    ranks = frozenset(range(8, 16))
    fault = queues.Fault(Stumble("launches", late, ranks=ranks), "slow_host", 12.0, host=1)
    job = queues.made(Job(shape, seed), [fault] if is_asked else [], tmp_path)
    document = read(tmp_path)
    asked = [one for one in document.notes if one.kind == "host_may_cost"]
    assert [set(dict(one.values)["ranks"]) for one in asked] == ([ranks] if is_asked else [])
    if is_asked:
        assert document.verdict == "unknown"
        assert dict(asked[0].values)["step_share"] == pytest.approx(job.cost_ms / job.step_ms, abs=0.03)


@pytest.mark.parametrize(
    ("mode", "seed", "fault_class", "kind", "verdict"),
    [
        ("plain", 3_517, "host dispatches", "host_bound", "degraded"),
        ("hard", 103_538, "host computes", "stage_imbalance", "unknown"),
    ],
)
def test_a_host_without_peers_costs_no_more_than_all_that_it_loses_and_that_decides(
    mode: str, seed: int, fault_class: str, kind: str, verdict: str, tmp_path: Path
) -> None:
    """No peer shows in which gaps a host that is a whole stage loses its time."""
    job = modelled.made("flows", mode, seed, fault_class, tmp_path, n_steps=3)
    document = read(tmp_path)
    (found,) = [one for one in document.findings if one.kind == kind]
    assert set(found.ranks) == set(job.faults[0].ranks)
    assert found.cost_ms_per_step < job.cost_ms < found.cost_high_ms
    assert document.verdict == verdict


@pytest.mark.parametrize(
    ("mode", "seed"),
    [
        ("plain", 22_004),  # 7 ms of 220 a step
        ("hard", 122_005),  # 11 ms of 182
    ],
)
def test_packets_lost_on_one_link_cost_what_its_single_calls_take_longer(mode: str, seed: int) -> None:
    known, said = modelled.judge("streams", mode, seed, "lost packets")
    (fault,) = known.faults
    (found,) = [one for one in said.findings if one.is_alarm]
    assert found.kind == "retransmission"
    assert [(int(one.src), int(one.dst)) for one in found.links] == list(fault.links)
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=0.001 * known.step_ms)
