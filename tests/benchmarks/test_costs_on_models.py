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


#: What a job of a model is drawn from, which finding its fault is told as, and by which share of a step the
#: cost of that may be off.
FAULTS = [
    # What the ranks of a late host idle together: they wait for the latest of their tensor-parallel peers;
    # are three calls behind their data-parallel peers; idle in one gap of each step; pause in every second
    # step; lack a record in another step; are later than calls of which members leave 0.1 ms apart.
    ("streams", "plain", 21_008, "host, dispatch", None, "slow_host-2", 0.01),
    ("paths", "hard", 121_063, "host, dispatch", None, "slow_host-4", 0.01),
    ("streams", "hard", 115_046, "host, dispatch", None, "slow_host-4", 0.01),
    ("streams", "hard", 131_040, "host, dispatch", None, "slow_host-3", 0.01),
    ("streams", "hard", 171_080, "host, dispatch", None, "slow_host-3", 0.015),
    ("paths", "hard", 101_909, "rank, dispatch", None, "slow_rank-24", 0.005),
    # What a rank loses in the steps in which it is slow: no straight line; it lacks messages, and nobody is
    # like it; two of four such steps are alike; gaps behind one gathering of weights agree by chance.
    ("streams", "plain", 13_016, "rank, intermittent", None, "slow_rank-15", 0.01),
    ("streams", "hard", 113_059, "rank, one step", None, "slow_rank-0", 0.01),
    ("paths", "hard", 848_032, "rank, intermittent", None, "slow_rank-30", 0.01),
    ("paths", "plain", 25_051, "rank, sharded", None, "slow_rank-9", 0.01),
    ("paths", "plain", 25_059, "rank, dispatch", None, "slow_rank-31", 0.01),
    # What others wait, and what communication hides, counts once: one of four groups of experts waits, or all
    # do.
    ("flows", "plain", 1707, "device, fused kernels", 3, "slow_rank-10", 0.01),
    ("flows", "hard", 103_533, "device, fused kernels", 3, "slow_rank-10", 0.01),
    ("flows", "plain", 27_051, "device, fused kernels", 3, "slow_rank-14", 0.01),
    # Links: sums hide computing, of which samples make more on some ranks; a group on two streams; all ranks
    # of a ring wait for foreign traffic in turn; single calls take longer for lost packets.
    ("paths", "hard", 101_947, "uplink", None, "slow_uplink-2", 0.005),
    ("streams", "hard", 115_010, "host pair", None, "slow_link-7-8", 0.01),
    ("flows", "hard", 122_028, "foreign traffic", None, "slow_uplink-1-2", 0.01),
    ("streams", "plain", 22_004, "lost packets", None, "retransmission", 0.001),
    ("streams", "hard", 122_005, "lost packets", None, "retransmission", 0.001),
    # What is the work's own: a stage that calls its group half as often again, or whose ranks exchange more;
    # samples beside experts and pauses; a hot expert beside samples.
    ("queues", "hard", 115_007, "stage, too many layers", 3, "stage_imbalance", 0.002),
    ("queues", "hard", 115_027, "stage, too many layers", 3, "stage_imbalance", 0.002),
    ("flows", "hard", 842_018, "samples", None, "data_imbalance", 0.005),
    ("flows", "hard", 843_228, "samples", None, "data_imbalance", 0.005),
    ("flows", "hard", 101_503, "hot expert", None, "expert_imbalance", 0.005),
    # Pauses of many ranks: some lie before a call of a second stream alone, or beside calls that hide them;
    # who waits inside fused kernels does so no longer, in groups of four, twice in a step, or as one group.
    ("flows", "hard", 116_011, "ranks, pauses", None, "periodic_pause-by-turns", 0.01),
    ("flows", "plain", 16_033, "ranks, pauses", None, "periodic_pause-by-turns", 0.01),
    ("flows", "plain", 3515, "ranks, pauses", 3, "periodic_pause-by-turns", 0.01),
    ("flows", "plain", 744_425, "ranks, pauses", None, "periodic_pause-by-turns", 0.01),
    ("flows", "plain", 21_116, "ranks, pauses", None, "periodic_pause-by-turns", 0.01),
    ("flows", "hard", 121_193, "ranks, pauses", None, "periodic_pause-by-turns", 0.01),
    # A pause lies in one gap, whichever else are longer; a late rank's own record is lost.
    ("simulated", "hard", 134_017, "periodic_pause:200,every=2", None, "periodic_pause-31", 0.005),
    ("simulated", "hard", 134_008, "periodic_pause:200,every=2", None, "periodic_pause-14", 0.005),
    ("simulated", "hard", 133_013, "slow_nic:10", None, "slow_nic-56", 0.005),
]
#: These are the work's own, or nobody's fault.
NO_ALARM = ("stage_imbalance", "data_imbalance", "expert_imbalance", "periodic_pause-by-turns")


@pytest.mark.parametrize(("source", "mode", "seed", "drawn", "n_steps", "named", "off"), FAULTS)
def test_what_is_wrong_costs_what_it_truly_does(
    source: str, mode: str, seed: int, drawn: str, n_steps: int | None, named: str, off: float
) -> None:
    if source == "simulated":
        known, said = simulated.judge(mode, seed, drawn)
    else:
        known, said = modelled.judge(source, mode, seed, drawn, **({"n_steps": n_steps} if n_steps else {}))
    (fault,) = known.faults
    (found,) = [one for one in said.findings if named in (one.id, one.kind)]
    assert found.is_alarm == (named not in NO_ALARM)
    assert said.verdict == "unknown" or named != "periodic_pause-by-turns"
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=off * known.step_ms)
    if found.kind == "retransmission":
        assert [(int(one.src), int(one.dst)) for one in found.links] == list(fault.links)
    assert found.kind != "stage_imbalance" or found.confidence == "high"


def test_a_late_host_may_have_ranks_that_lose_nothing() -> None:
    known, said = modelled.judge("streams", "plain", 18_042, "two hosts of four")
    alarms = [set(one.hosts) for one in said.findings if one.is_alarm]
    assert all(set(fault.hosts) in alarms for fault in known.faults)


@pytest.mark.parametrize(
    ("mode", "seed", "fault_class", "most"),
    [
        ("hard", 171_042, "link", 0.005),  # the last sends of a step are lost behind a message
        ("hard", 176_054, "host is a stage", 0.005),  # in one step ends of stages coincide 4 ms apart
        ("plain", 76_044, "rank, some kernels", 0.01),  # most batches wait for nobody
        ("hard", 176_061, "healthy", 0.005),  # a busy network's long sends, and no send waits
        ("hard", 115_010, "host pair", 0.005),  # a group is on two streams
    ],
)
def test_jobs_are_replayed_as_they_were(mode: str, seed: int, fault_class: str, most: float) -> None:
    said = modelled.judge("streams", mode, seed, None if fault_class == "healthy" else fault_class)[1]
    assert said.replay_error_share is not None
    assert said.replay_error_share < most


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
