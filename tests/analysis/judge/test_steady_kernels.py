"""Kernels that know no samples tell devices from samples: from totals and statistics written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.judge.case import build_case
from cluster_analysis.judge.detection import detect
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.stats import shortest_half_sigma
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import OPERATORS
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.findings import Finding
from cluster_run.ids import Rank
from tests.analysis.copies import replace
from tests.analysis.jobs import small_topology
from tests.analysis.totals import STEP_US, evidence_of_computing, on_hosts

N_RANKS, N_STEPS = 32, 5
WHERE = on_hosts(N_RANKS, 8)
PAIRS = replace(WHERE, stages={Rank(rank): rank // 2 for rank in range(N_RANKS)})
CHANCE = np.random.default_rng(5)
#: What a rank's samples of each step lengthen its computing by.
SAMPLES = np.exp(CHANCE.normal(0.0, 0.15, (N_RANKS, N_STEPS)))
DEVICES = np.exp(CHANCE.normal(0.0, 0.004, N_RANKS))
EQUAL = np.ones(N_RANKS)
#: What the samples lengthen, and what they do not, as shares of computing.
KERNELS = {"MatMulV3": 0.65, "FlashAttentionScore": 0.27, "Add": 0.05, "ApplyAdamWV2": 0.03}


def alarms(
    slower: FloatArray, *, with_kernels: bool = True, where: Topology = WHERE,
    by_step: FloatArray | float = 1.0, **alone: FloatArray,
) -> list[Finding]:  # fmt: skip
    """Judge ranks (R,) so many times slower in all they compute, and in kernels of one type `alone`.

    Or so many times in each step: `by_step` (R, S), among samples that are alike.
    """
    samples = SAMPLES if isinstance(by_step, float) else 1.0
    evidence = computed(slower, samples, where=where, by_step=by_step, **alone)
    if not with_kernels:
        evidence = replace(evidence, operators=OPERATORS.empty_table())
    return [one for one in detect(evidence, where).findings if one.is_alarm]


def computed(
    slower: FloatArray, samples: FloatArray | float, *, where: Topology = WHERE,
    by_step: FloatArray | float = 1.0, calls: FloatArray = EQUAL, **alone: FloatArray,
) -> JobEvidence:  # fmt: skip
    """What is known of ranks (R,) so many times slower, whose samples (R, S) take so many times as long.

    They call kernels so many times more often (`calls`, R).
    """
    spent = {
        name: 0.6 * STEP_US * share * (slower * DEVICES * alone.get(name, 1.0))[:, None]
        * by_step * (1.0 if name == "ApplyAdamWV2" else samples)
        for name, share in KERNELS.items()
    }  # fmt: skip
    rows = [
        {
            "rank": rank,
            "op_type": name,
            "core_type": "AI_CORE",
            "n_calls": 100 * N_STEPS,
            "total_us": float(total),
        }
        for name, us in spent.items()
        for rank, total in enumerate(np.broadcast_to(us, SAMPLES.shape).sum(axis=1))
    ]
    for row in rows:
        row["n_calls"] = round(row["n_calls"] * float(calls[row["rank"]]))
    evidence = evidence_of_computing(
        np.sum([np.broadcast_to(us, SAMPLES.shape) for us in spent.values()], 0), where
    )
    return replace(evidence, operators=pa.Table.from_pylist(rows, schema=OPERATORS))


def slow(ranks: range, factor: float) -> FloatArray:
    return np.where(np.isin(np.arange(N_RANKS), ranks), factor, 1.0)


def test_a_device_behind_unequal_samples_is_known_by_kernels_that_know_no_samples() -> None:
    device = slow(range(22, 23), 1.3)
    (alarm,) = alarms(device)
    assert (alarm.kind, alarm.ranks) == ("slow_rank", (22,))
    row = alarm.evidence[0]
    assert row.value / row.peers_median == pytest.approx(1.3, abs=0.02)


def test_a_device_with_a_single_peer_is_known_by_what_all_its_kernels_have_in_common() -> None:
    heavy = slow(range(10, 12), 1.5)  # a stage with longer kernels of one type
    (alarm,) = alarms(slow(range(22, 23), 1.3), where=PAIRS, MatMulV3=heavy)
    assert (alarm.kind, alarm.ranks) == ("slow_rank", (22,))


def test_a_device_with_a_single_peer_is_known_by_one_type_of_kernels_that_is_slow_on_it_alone() -> None:
    (alarm,) = alarms(
        np.ones(N_RANKS), where=PAIRS, by_step=np.ones(SAMPLES.shape),
        MatMulV3=slow(range(22, 23), 1.3) * slow(range(10, 12), 1.5),
    )  # fmt: skip
    assert (alarm.kind, alarm.ranks) == ("slow_rank", (22,))


def test_a_type_of_kernels_without_times_on_a_rank_does_not_hide_its_device() -> None:
    slower = slow(range(22, 23), 1.3)
    evidence = computed(slower, SAMPLES)
    rows = evidence.operators.to_pylist()
    for row in rows:
        if (row["rank"], row["op_type"]) == (22, "Add"):
            row["total_us"] = 0.0
    untimed = replace(evidence, operators=pa.Table.from_pylist(rows, schema=OPERATORS))
    (alarm,) = (one for one in detect(untimed, WHERE).findings if one.is_alarm)
    assert (alarm.kind, alarm.ranks) == ("slow_rank", (22,))


def test_unequal_samples_of_two_peers_are_nobody_s_fault() -> None:
    assert not alarms(np.ones(N_RANKS), where=PAIRS)


@pytest.mark.parametrize(("longer", "is_told"), [(1.11, False), (1.4, True)])
def test_one_long_step_is_judged_by_itself_though_it_makes_kernels_slower_on_the_whole(
    longer: float, *, is_told: bool
) -> None:
    by_step = np.ones(SAMPLES.shape)
    by_step[[3, 9, 22], [0, 2, 3]] = 1.1, 1.1, longer
    found = alarms(np.ones(N_RANKS), by_step=by_step)
    assert [(one.ranks, one.pattern) for one in found] == [((22,), "transient")] * is_told


def test_several_ranks_with_one_very_long_step_each_leave_the_question_open() -> None:
    by_step = np.ones(SAMPLES.shape)
    by_step[[3, 9, 22], [0, 2, 3]] = 1.5
    found = detect(computed(np.ones(N_RANKS), 1.0, by_step=by_step), WHERE)
    assert found.verdict == "unknown"
    assert {one.ranks for one in found.findings if one.record.is_fault} == {(3,), (9,), (22,)}


def test_what_a_device_with_a_single_peer_loses_follows_its_own_course_over_the_steps() -> None:
    course = np.array([1.0, 1.0, 1.5, 1.8, 1.8])
    (alarm,) = alarms(
        np.ones(N_RANKS), where=PAIRS, by_step=np.where(np.arange(N_RANKS)[:, None] == 22, course, 1.0)
    )
    assert alarm.ranks == (22,)
    assert alarm.steps == (2, 3, 4)


def test_matrix_kernels_alone_that_are_slow_are_known_by_the_others_that_follow_the_same_samples() -> None:
    (alarm,) = alarms(np.ones(N_RANKS), MatMulV3=slow(range(22, 23), 1.4))
    assert (alarm.kind, alarm.ranks) == ("slow_rank", (22,))
    row = alarm.evidence[0]
    assert row.value / row.peers_median == pytest.approx(1.0 + 0.65 * 0.4, abs=0.03)


@pytest.mark.parametrize(
    ("ranks", "named"),
    [
        pytest.param([4], [(4,)], id="a device"),
        pytest.param([4, 12, 20, 28], [], id="all who hold the same experts"),
    ],
)
def test_kernels_that_are_longer_on_all_who_hold_the_same_experts_follow_their_load(
    ranks: list[int], named: list[tuple[int, ...]]
) -> None:
    groups = {str(first): tuple(range(first, first + 8)) for first in range(0, N_RANKS, 8)}
    where = replace(WHERE, groups=small_topology(groups, dict.fromkeys(groups, "ep")).groups)
    longer = EQUAL.copy()
    longer[ranks] = 1.4
    assert [one.ranks for one in alarms(EQUAL, where=where, MatMulV3=longer)] == named


def test_two_slow_hosts_of_four_are_both_known_behind_unequal_samples() -> None:
    found = alarms(slow(range(8), 1.15) * slow(range(16, 24), 1.12))
    assert {(one.kind, one.hosts) for one in found} == {("slow_host", ("1",)), ("slow_host", ("3",))}


def test_ranks_of_one_host_tell_steady_kernels_though_two_hosts_of_four_are_unlike_slow() -> None:
    """Four ranks share their samples, and each host holds two such replicas: their optimizers agree."""
    case = build_case(computed(np.ones(N_RANKS), SAMPLES), WHERE, Thresholds())
    assert case.kernels is not None
    optimizer = np.array([0.10, 0.10, 0.04, 0.04, -0.04, -0.04, -0.04, -0.04])
    products = np.array([-0.01, 0.16, 0.01, 0.01, -0.12, 0.01, -0.10, -0.09])
    is_product = np.array([name != "ApplyAdamWV2" for name, _ in case.kernels.types])
    longer = np.repeat(np.where(is_product, products[:, None], optimizer[:, None]), 4, axis=0)
    longer += np.random.default_rng(1).normal(0.0, 0.005, (N_RANKS, 1))
    of_device = replace(case.kernels, longer=longer).of_device(case.view)
    assert of_device is not None
    assert np.median(of_device[:8]) - np.median(of_device[16:]) == pytest.approx(0.14, abs=0.01)


def test_a_slow_host_is_known_by_its_optimizers_where_all_kernels_scatter_alike() -> None:
    """The first host has long samples too. Those of the others came out even, so that no scatter tells."""
    replicas = np.array([0.08, 0.0, 0.004, -0.004])[:, None]
    chance = CHANCE.normal(0.0, 0.06, (4, N_STEPS))
    samples = np.repeat(replicas + chance - chance.mean(axis=1, keepdims=True), 8, axis=0)
    evidence = computed(slow(range(8), 1.15), np.exp(samples))
    (alarm,) = [one for one in detect(evidence, WHERE).findings if one.is_alarm]
    assert alarm.id == "slow_host-1"
    row = alarm.evidence[0]
    assert row.value / row.peers_median == pytest.approx(1.15, abs=0.02)


@pytest.mark.parametrize(("scatter", "is_told"), [(0.005, True), (0.03, False)])
def test_kernels_know_no_samples_only_where_samples_could_not_make_them_scatter_as_they_do(
    scatter: float, is_told: bool
) -> None:
    samples = np.exp(np.random.default_rng(2).normal(0.0, scatter, SAMPLES.shape))
    case = build_case(computed(np.ones(N_RANKS), samples), WHERE, Thresholds())
    assert case.kernels is not None
    # No type differs from another one: hosts of unlike samples that last, or slow hosts.
    chance = np.random.default_rng(3).normal(0.0, 0.005, N_RANKS)
    of_rank = np.repeat([0.02, -0.02, 0.02, -0.02], 8) + chance
    longer = np.repeat(of_rank[:, None], len(KERNELS), axis=1)
    types = [("MatMulV3", "AI_CORE")] * len(KERNELS)
    of_device = replace(case.kernels, longer=longer, types=types).of_device(case.view)
    assert of_device is not None
    assert (np.ptp(of_device) > 0.01) == is_told


def test_unequal_samples_alone_are_nobody_s_fault() -> None:
    assert not alarms(np.ones(N_RANKS))


def test_a_slow_rank_of_a_slow_host_has_no_finding_of_its_own() -> None:
    (alarm,) = alarms(slow(range(8, 16), 1.15) * slow(range(10, 11), 1.3), by_step=np.ones(SAMPLES.shape))
    assert alarm.id == "slow_host-2"


def test_two_slow_ranks_that_make_their_host_look_slow_by_chance_are_what_is_named() -> None:
    """The other ranks of the host have longer samples than most in most steps, as chance has it."""
    samples = np.ones((N_RANKS, N_STEPS))
    samples[8:16] *= np.exp(np.random.default_rng(3).normal(0.035, 0.03, (8, N_STEPS)))
    found = detect(computed(slow(range(8, 10), 1.3), SAMPLES * samples), WHERE).findings
    assert {one.id for one in found if one.is_alarm} == {"slow_rank-8", "slow_rank-9"}
    assert "slow_host-2" not in {one.id for one in found}


def test_ranks_of_a_slow_host_are_not_accused_where_they_are_all_as_slow() -> None:
    (alarm,) = alarms(slow(range(8, 16), 1.15), by_step=np.ones(SAMPLES.shape))
    assert alarm.kind == "slow_host"


@pytest.mark.many
@pytest.mark.parametrize("draw", range(12, 17))
def test_hosts_that_hold_a_replica_each_are_not_accused_where_few_peers_agree_by_chance(draw: int) -> None:
    chance = np.random.default_rng(draw)
    samples = np.repeat(np.exp(chance.normal(0.0, 0.15, (4, N_STEPS))), 8, axis=0)
    devices = np.exp(chance.normal(0.0, 0.006, N_RANKS))
    stages = replace(WHERE, stages={Rank(rank): rank % 8 // 2 for rank in range(N_RANKS)})
    evidence = computed(devices, samples, where=stages)
    assert not [one for one in detect(evidence, stages).findings if one.is_alarm]


def test_attention_that_grows_faster_than_its_samples_is_nobody_s_fault() -> None:
    assert not alarms(np.ones(N_RANKS), FlashAttentionScore=SAMPLES.mean(axis=1) ** 0.5)


def test_a_rank_that_holds_more_of_the_optimizer_is_no_slow_device() -> None:
    assert not alarms(np.ones(N_RANKS), ApplyAdamWV2=slow(range(4, 5), 1.6))


@pytest.mark.parametrize(("more_calls", "named"), [(1.2, []), (1.0, ["slow_host-2"])])
def test_a_host_whose_ranks_call_kernels_more_often_has_more_work(
    more_calls: float, named: list[str]
) -> None:
    host = slow(range(8, 16), 1.2)
    evidence = computed(host, 1.0, calls=slow(range(8, 16), more_calls))
    assert [one.id for one in detect(evidence, WHERE).findings if one.is_alarm] == named


@pytest.mark.parametrize(("shortest", "named"), [(1.0, []), (1.15, ["slow_rank-22"])])
def test_a_rank_with_a_few_long_calls_more_is_slow_only_if_its_shortest_calls_are_longer_too(
    shortest: float, named: list[str]
) -> None:
    """A model of rewards on some ranks: each call of it takes longer than any other."""
    evidence = computed(slow(range(22, 23), 1.15), 1.0)
    rows = evidence.operators.to_pylist()
    for row in rows:
        mean_us, is_own = row["total_us"] / row["n_calls"], row["rank"] == 22
        row |= {"min_us": mean_us * (shortest / 1.15 if is_own else 1.0), "max_us": 20 * mean_us}
        row["n_calls"] += N_STEPS * is_own
    evidence = replace(evidence, operators=pa.Table.from_pylist(rows, schema=OPERATORS))
    found = detect(evidence, WHERE).findings
    assert [one.id for one in found if one.is_alarm] == named


@pytest.mark.parametrize(("of_optimizer", "are_named"), [(False, False), (True, True)])
def test_hosts_that_may_hold_a_replica_each_are_slow_only_if_their_optimizer_is_too(
    of_optimizer: bool, are_named: bool
) -> None:
    by_host = np.repeat([1.0, 1.25, 0.8, 0.9], 8)
    longer = dict.fromkeys(KERNELS, by_host) | {"ApplyAdamWV2": by_host if of_optimizer else EQUAL}
    where = replace(WHERE, dp_index={})
    found = detect(computed(EQUAL, 1.0, where=where, **longer), where).findings
    assert any(one.is_alarm for one in found) == are_named


@pytest.mark.parametrize(("steps", "pattern"), [([1, 3], "intermittent"), (range(5), "persistent")])
def test_a_host_known_by_its_kernels_is_slow_in_the_steps_whose_totals_say_so(
    steps: Sequence[int], pattern: str
) -> None:
    by_step = np.ones((N_RANKS, N_STEPS))
    by_step[8:16, list(steps)] = 1.25
    (alarm,) = alarms(EQUAL, by_step=by_step)
    assert (alarm.id, alarm.pattern, alarm.steps) == ("slow_host-2", pattern, tuple(steps))
    assert alarm.cost_ms_per_step == pytest.approx(0.25 * 0.6 * STEP_US / 1e3 * len(steps) / N_STEPS, rel=0.1)


def job_of_stages(
    slower: dict[str, float], *, often: float = 1.0, has_kernels: bool = True, all_calls: bool = False,
    without_shortest: bool = False, head: float = 0.0, stage: int = 1, on_host: int = 8,
) -> tuple[JobEvidence, Topology]:  # fmt: skip
    """Stages that are hosts, of so many ranks; on the second one kernels of some types take so much longer.

    Not their shortest call, but with `all_calls`. Or they are called so much more `often`. The last stage has
    a head of so much more computing. Without kernels there is less to tell.
    """
    where = on_hosts(N_RANKS, on_host)
    where = replace(where, stages={rank: int(rank) // on_host for rank in where.ranks})
    here = slow(range(on_host * stage, on_host * (stage + 1)), 1.0 + 1e-9) > 1.0
    n_calls = slow(range(8, 16), often)
    rows = [
        {
            "rank": rank, "op_type": name, "core_type": "AI_CORE", "n_calls": round(100 * n_calls[rank]),
            "total_us": share * STEP_US * DEVICES[rank] * n_calls[rank]
            * (slower.get(name, 1.0) if here[rank] else 1.0),
            "min_us": share * DEVICES[rank] * (slower.get(name, 1.0) if here[rank] and all_calls else 1.0)
            * (not (here[rank] and without_shortest)),
        }
        for name, share in {**KERNELS, "MatMulV2": head}.items()
        for rank in range(24 if name == "MatMulV2" else 0, N_RANKS)
    ]  # fmt: skip
    spent = np.zeros(N_RANKS)
    for row in rows:
        spent[int(row["rank"])] += 0.5 * float(row["total_us"])
    evidence = evidence_of_computing(np.repeat(spent[:, None], N_STEPS, axis=1), where)
    if has_kernels:
        evidence = replace(evidence, operators=pa.Table.from_pylist(rows, schema=OPERATORS))
    return evidence, where


def of_stages(slower: dict[str, float], **options: bool | float) -> list[Finding]:
    """What is told of stages."""
    evidence, where = job_of_stages(slower, **options)  # type: ignore[arg-type]
    return [one for one in detect(evidence, where).findings if one.kind == "stage_imbalance"]


@pytest.mark.parametrize("on_host", [8, 16])
def test_a_host_that_is_a_stage_and_slow_in_all_kernels_is_told_as_host_or_work(on_host: int) -> None:
    """Where it is one of two hosts, the middle of all ranks lies halfway to it."""
    (finding,) = of_stages(dict.fromkeys(KERNELS, 1.07), on_host=on_host)
    assert (finding.id, finding.hosts, finding.is_alarm) == ("stage_imbalance-host-2", ("2",), False)
    assert finding.facts[0]["slower_share"] == pytest.approx(0.07, abs=0.01)


def test_a_stage_with_longer_products_but_the_same_optimizer_is_no_slow_host() -> None:
    assert not [one for one in of_stages({"MatMulV3": 1.3, "FlashAttentionScore": 1.3}) if one.hosts]


@pytest.mark.parametrize(("all_calls", "confidence"), [(True, "low"), (False, "high")])
def test_a_stage_that_is_a_host_may_be_slow_where_all_calls_of_its_products_are_and_not_where_some_are(
    all_calls: bool, confidence: str
) -> None:
    """A power limit slows products alone; the head of a model has a few long ones."""
    (finding,) = of_stages({"MatMulV3": 1.5, "FlashAttentionScore": 1.4}, all_calls=all_calls)
    assert (finding.id, finding.confidence, finding.is_alarm) == ("stage_imbalance", confidence, False)


@pytest.mark.parametrize(
    ("slower", "stage", "is_work"),
    [
        pytest.param(1.0, 3, True, id="no kernel of all stages takes longer there"),
        pytest.param(1.1, 3, False, id="the host of the head is slow"),
        pytest.param(1.1, 1, False, id="a slow host may hide behind the head"),
    ],
)
def test_a_stage_that_is_a_host_has_more_work_where_kernels_of_all_stages_take_as_long_on_each(
    slower: float, stage: int, is_work: bool
) -> None:
    evidence, where = job_of_stages({"MatMulV3": slower}, head=0.3, stage=stage, all_calls=True)
    assert build_case(evidence, where, Thresholds()).is_known_work("stage") == is_work


def test_a_shortest_call_of_no_time_says_nothing_for_a_host_that_may_be_slow() -> None:
    (finding,) = of_stages({"MatMulV3": 1.5, "FlashAttentionScore": 1.4}, without_shortest=True)
    assert finding.confidence == "low"


@pytest.mark.parametrize("has_kernels", [True, False])
def test_a_stage_whose_kernels_are_called_more_often_is_more_work_though_it_is_one_host(
    has_kernels: bool,
) -> None:
    """Without kernels it may be the host, so that the cost is of low confidence."""
    (finding,) = of_stages({}, often=1.5, has_kernels=has_kernels)
    assert (finding.id, finding.confidence) == ("stage_imbalance", "high" if has_kernels else "low")
    row = finding.evidence[0]
    assert row.value / row.peers_median == pytest.approx(1.5, rel=0.02)


def test_nearly_half_of_the_values_may_lie_elsewhere_and_the_shortest_half_still_scatters_little() -> None:
    values = np.r_[np.linspace(-0.01, 0.01, 17), np.linspace(0.4, 0.6, 15)][:, None]
    assert float(shortest_half_sigma(values)[0]) < 0.02
