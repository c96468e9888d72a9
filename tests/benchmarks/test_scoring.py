"""What counts as found, as wrong, and as false reassurance."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.detection.__main__ import chosen, judge_job, main, parser
from benchmarks.detection.no_matrix import SUFFIX
from benchmarks.detection.scoring import Said, score
from benchmarks.detection.stored import judge_stored
from benchmarks.executed.__main__ import run, steps_ms
from benchmarks.executed.kineto import RankTrace, write_run
from benchmarks.models.truth import KnownFault, KnownJob
from cluster_analysis import judging, pipeline
from cluster_analysis.options import AnalyseOptions
from cluster_run.findings import Finding, Severity
from cluster_run.kinds import Kind

SLOW = KnownFault("slow_rank", ("slow_rank",), (3,), (), (), cost_ms=10.0, marginal_ms=10.0)


def _job(*faults: KnownFault, saving_ms: float = 0.0) -> KnownJob:
    lost_ms = sum(one.cost_ms for one in faults)
    return KnownJob(Path(), "plain", 1, "a class", "", 8, 100.0, lost_ms, faults, lambda _: saving_ms)


def _finding(
    ranks: tuple[int, ...], cost_ms: float | None, kind: Kind = "slow_rank", severity: Severity = "critical"
) -> Finding:
    return Finding(
        id=f"{kind}-{ranks}", kind=kind, severity=severity, ranks=ranks, hosts=(), links=(), cause="compute",
        pattern="persistent", steps=(), cost_ms_per_step=cost_ms,
        cost_share=None if cost_ms is None else cost_ms / 100, cumulative_saving_ms=None, confidence="high",
        evidence=(),
    )  # type: ignore[arg-type]  # fmt: skip


def _said(*findings: Finding, verdict: str = "degraded") -> Said:
    return Said(verdict, findings, None, {})


def test_the_right_rank_is_found_and_its_cost_is_held_against_the_truth() -> None:
    outcome = score("a model", _job(SLOW), _said(_finding((3,), 11.0)))
    assert (outcome.n_found, outcome.n_wrong, outcome.first_is_right) == (1, 0, True)
    assert outcome.cost_error_shares == pytest.approx((0.01,))


def test_a_line_of_information_is_no_find() -> None:
    outcome = score("a model", _job(SLOW), _said(_finding((3,), 10.0, severity="info"), verdict="healthy"))
    assert (outcome.n_found, outcome.is_reassured) == (0, True)


def test_another_rank_is_wrong_and_the_same_place_by_another_name_is_a_wrong_kind() -> None:
    elsewhere = score("a model", _job(SLOW), _said(_finding((4,), 10.0)))
    assert (elsewhere.n_found, elsewhere.n_wrong, elsewhere.n_wrong_kind) == (0, 1, 0)
    host = score("a model", _job(SLOW, saving_ms=10.0), _said(_finding((2, 3), 10.0, "slow_host")))
    assert (host.n_found, host.n_wrong, host.n_wrong_kind) == (0, 1, 1)


def test_an_alarm_on_a_healthy_job_is_false_unless_what_it_names_truly_costs_time() -> None:
    alarm = _said(_finding((5,), 2.0))
    assert score("a model", _job(), alarm).n_wrong == 1
    by_nature = score("a model", _job(saving_ms=2.0), alarm)
    assert (by_nature.n_wrong, by_nature.n_alarms) == (0, 1)


def test_of_two_faults_that_hide_each_other_any_cost_between_alone_and_last_is_true() -> None:
    twins = (
        KnownFault("slow_rank", ("slow_rank",), (3,), (), (), cost_ms=10.0, marginal_ms=0.0),
        KnownFault("slow_rank", ("slow_rank",), (4,), (), (), cost_ms=10.0, marginal_ms=0.0),
    )
    outcome = score("a model", _job(*twins), _said(_finding((3,), 12.0), _finding((4,), 4.0)))
    assert outcome.n_found == 2
    assert outcome.cost_error_shares == pytest.approx((0.02, 0.0))


def test_a_cost_that_is_not_quoted_is_counted_and_no_error() -> None:
    outcome = score("a model", _job(SLOW), _said(_finding((3,), None)))
    assert (outcome.n_found, outcome.n_without_cost, outcome.cost_error_shares) == (1, 1, ())


def test_healthy_is_false_where_a_fault_costs_a_twentieth_of_the_step() -> None:
    assert score("a model", _job(SLOW), _said(verdict="healthy")).is_reassured
    assert not score("a model", _job(SLOW), _said(verdict="unknown")).is_reassured


def test_a_host_that_is_a_stage_is_told_where_the_stage_is_named_with_its_cost() -> None:
    both = ("slow_host", "stage_imbalance")
    host = KnownFault("slow_host", both, (4, 5, 6, 7), ("2",), (), cost_ms=5.0, marginal_ms=5.0)
    told = _finding((4, 5, 6, 7), 3.0, "stage_imbalance", "info")
    assert score("a model", _job(host), _said(told)).n_found == 1
    too_little = _finding((4, 5, 6, 7), 0.1, "stage_imbalance", "info")
    assert score("a model", _job(host), _said(too_little)).n_found == 0


@pytest.mark.parametrize(("told_ms", "is_reassured"), [(6.0, False), (0.1, True)])
def test_work_that_is_split_unevenly_may_be_healthy_where_its_cost_is_told(
    told_ms: float, is_reassured: bool
) -> None:
    stage = KnownFault("stage_imbalance", ("stage_imbalance",), (4, 5, 6, 7), (), (), 6.0, 6.0)
    told = _finding((4, 5, 6, 7), told_ms, "stage_imbalance", "info")
    assert score("a model", _job(stage), _said(told, verdict="healthy")).is_reassured == is_reassured
    assert score("a model", _job(stage, SLOW), _said(told, verdict="healthy")).is_reassured


# What `python -m benchmarks.detection` is asked for, and what it says of classes that are not there.
def test_a_class_that_no_source_has_is_an_error_that_lists_the_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--model", "queues", "--class", "foo", "--healthy", "0"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "--class 'foo' is none of these: device and host; device, a third of the steps;" in said
    assert "slow_rank:1.05" not in said


def test_faults_are_counted_before_a_class_is_taken_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    options_of = parser(None)
    asked = ["--model", "streams", "--mode", "plain", "--healthy", "0", "--class", "link"]
    options = options_of.parse_args([*asked, "--faults", "44"])
    assert [fault_class for *_, fault_class in chosen(options, options_of)] == ["link", "link"]
    with pytest.raises(SystemExit):
        main([*asked, "--faults", "5"])
    assert "none of 5 --faults is of --class 'link': ask for more" in capsys.readouterr().err
    assert "with --class the others are left out" in " ".join(options_of.format_help().split())


# A job that is judged from the store gets the findings that it got when it was read.
@pytest.mark.slow
def test_a_stored_job_is_judged_as_when_it_was_read(tmp_path: Path) -> None:
    work = ("simulator", "plain", 1_025, "slow_rank:1.2")
    at_first, from_store = judge_stored(tmp_path, work), judge_stored(tmp_path, work)
    assert at_first == from_store
    whole = judge_job(work)
    assert (whole.n_found, whole.cost_error_shares) == (at_first[0].n_found, at_first[0].cost_error_shares)
    assert "slow_rank" in at_first[1]


@pytest.mark.slow
def test_a_mode_without_matrix_has_the_same_job_and_no_links(tmp_path: Path) -> None:
    for source, seed, fault_class in (("simulator", 1_025, "slow_nic:10"), ("paths", 1_002, "network card")):
        whole, bare = (
            judge_stored(tmp_path, (source, f"plain{suffix}", seed, fault_class)) for suffix in ("", SUFFIX)
        )
        assert bare[0].n_material == whole[0].n_material
        assert "no_communication_matrix" in bare[1]
        assert "no_communication_matrix" not in whole[1]
    assert len(list(tmp_path.iterdir())) == 4, "the store has one file a job"


# Kineto's traces of CPU jobs mapped to a run directory: by hand, and where torch is of ranks that ran.
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
    # A step begins every 100 ms: its device idles for 10 of them. Before the first step nobody knows.
    assert document.run.step_ms == pytest.approx((90.0 + 100.0) / 2, rel=0.02)


@pytest.mark.slow
def test_a_rank_that_really_sleeps_longer_lengthens_the_job_that_really_runs(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch here: pip install torch")
    plan = {"kind": "data", "ranks": 2, "steps": 2, "layers": 2, "work_ms": 20.0, "input_ms": 1.0}
    without = run({**plan, "delays": {}}, sys.executable, tmp_path / "without")
    slow = run({**plan, "delays": {"1": {"computes": 2.0}}}, sys.executable, tmp_path / "with")
    assert min(steps_ms(slow)) > 1.5 * min(steps_ms(without))
    assert {one.what for one in slow[0].calls} == {"allReduce"}
