"""Counters as evidence: a low clock explains a slow device, retries confirm lost packets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from cluster_analysis.api import Run, analyse
from cluster_analysis.judge.reasons import with_counters
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import build_view
from cluster_analysis.tables.schema import COUNTERS
from cluster_run.findings import Evidence, Finding, Link
from cluster_run.ids import Rank
from cluster_simulate.api import JobSpec, parse_scenario, simulate, write_run
from cluster_words.checks import next_check
from cluster_words.findings import summary
from tests.analysis.copies import replace
from tests.analysis.totals import evidence_of_computing, on_hosts, peers_agree

N_RANKS = 8
SLOW = 2
WHERE = on_hosts(N_RANKS, 2)
VIEW = build_view(evidence_of_computing(peers_agree(N_RANKS, 3), WHERE), WHERE)


def suspect(kind: str, *, ranks: tuple[int, ...] = (SLOW,), slower: float = 1.25, **more: object) -> Suspect:
    plain = Suspect(
        key=f"{kind}-{ranks[0]}",
        kind=kind,  # type: ignore[arg-type]
        ranks=tuple(map(Rank, ranks)),
        hosts=(),
        cause="compute",
        pattern="persistent",
        step_positions=(0, 1, 2),
        evidence=(Evidence("computing_us", slower * 1e5, 1e5, 100.0, N_RANKS - 1),),
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def counters(metric: str, values: dict[int, float], label: str = "") -> pa.Table:
    rows = [
        {"rank": rank, "metric": metric, "label": label, "value": value} for rank, value in values.items()
    ]
    return pa.Table.from_pylist(rows, schema=COUNTERS)


def clocks(values: dict[int, float]) -> pa.Table:
    """Mean clocks: 1800 MHz but for some ranks."""
    return counters("aicore_frequency_mhz", {**dict.fromkeys(range(N_RANKS), 1800.0), **values}, "mean")


def retries(values: dict[int, float]) -> pa.Table:
    return counters("retry_operators_count", {**dict.fromkeys(range(N_RANKS), 0.0), **values})


def kinds(one: Suspect) -> list[str]:
    return [fact.kind for fact in one.facts]


def test_a_clock_below_the_peers_is_evidence_for_a_slow_device() -> None:
    (one,) = with_counters(clocks({SLOW: 1440.0}), VIEW, [suspect("slow_rank")])
    assert one.evidence[1:] == (Evidence("aicore_frequency_mhz", 1440.0, 1800.0, 0.0, N_RANKS - 1),)
    assert kinds(one) == ["clock_below_peers"]


def test_clocks_of_a_host_are_compared_with_those_of_other_hosts() -> None:
    of_host = suspect("slow_host", ranks=(0, 1))
    (one,) = with_counters(clocks({0: 1400.0, 1: 1480.0}), VIEW, [of_host])
    assert one.evidence[1:] == (Evidence("aicore_frequency_mhz", 1440.0, 1800.0, 0.0, N_RANKS - 2),)


LINK = (Link(Rank(SLOW), Rank(6), "RDMA"),)


@pytest.mark.parametrize("kind", ["retransmission", "slow_link", "slow_nic"])
def test_retries_above_the_peers_confirm_lost_packets(kind: str) -> None:
    (one,) = with_counters(retries({SLOW: 4.0}), VIEW, [suspect(kind, ranks=(SLOW, 6), links=LINK)])
    assert one.evidence[1:] == (Evidence("retry_operators_count", 4.0, 0.0, 0.0, N_RANKS - 2),)
    assert kinds(one) == ["sent_again"]


UNEVEN = {rank: 1500.0 + 100.0 * rank for rank in range(N_RANKS) if rank != SLOW}
INSIDE = suspect("slow_link", ranks=(2, 3), links=(Link(Rank(2), Rank(3), "HCCS"),))
AGAIN = suspect("retransmission", ranks=(SLOW, 6), links=LINK)


@pytest.mark.parametrize(
    ("table", "one"),
    [
        pytest.param(clocks({SLOW: 1700.0}), suspect("slow_rank"), id="less than half of the slowness"),
        pytest.param(clocks({**UNEVEN, SLOW: 1600.0}), suspect("slow_rank", slower=1.1), id="within scatter"),
        pytest.param(
            counters("aicore_frequency_mhz", {0: 1800.0, 1: 1800.0, SLOW: 1440.0}, "mean"),
            suspect("slow_rank"),
            id="clocks of fewer than three peers",
        ),
        pytest.param(clocks({SLOW: 1440.0}), suspect("slow_rank", cause="dispatch"), id="a late host"),
        pytest.param(clocks({SLOW: 1440.0}), suspect("slow_rank", cause="input"), id="late input"),
        pytest.param(retries(dict.fromkeys(range(N_RANKS), 4.0)), AGAIN, id="retries that all ranks have"),
        pytest.param(retries({}), AGAIN, id="no retries"),
        pytest.param(retries({2: 4.0}), INSIDE, id="a link inside a host loses no packets"),
    ],
)
def test_counters_that_explain_nothing_leave_a_suspect_as_it_was(table: pa.Table, one: Suspect) -> None:
    assert with_counters(table, VIEW, [one]) == [one]


def found_in(folder: Path, scenario: str) -> tuple[Run, Finding]:
    """Analyse a simulated job of databases, which hold both counters; return its first finding."""
    spec = JobSpec(tp=2, pp=1, dp=4, steps=4, microbatches=2, ranks_per_host=2)
    write_run(simulate(spec, [parse_scenario(scenario)], seed=5), folder, form="db")
    run = analyse(folder, scheduler="threads")
    return run, run.document.findings[0]


def test_a_database_capture_of_a_throttled_device_says_that_its_clock_is_low(tmp_path: Path) -> None:
    _, finding = found_in(tmp_path, "slow_rank:1.3@3")
    assert (finding.kind, finding.ranks) == ("slow_rank", (3,))
    row = next(one for one in finding.evidence if one.metric == "aicore_frequency_mhz")
    assert row.value < 0.85 * row.peers_median
    assert "MHz" in summary(finding).en
    assert "MHz" in summary(finding).zh
    assert next_check(finding).en.startswith("Find out why the clock of rank 3 (host 2) is low")
    assert "频率低的原因" in next_check(finding).zh


def test_a_device_that_is_slow_at_the_clock_of_its_peers_is_not_blamed_on_its_clock(tmp_path: Path) -> None:
    run, _ = found_in(tmp_path, "slow_rank:1.4@3,op=vector")
    (finding,) = [one for one in run.document.findings if one.is_alarm]
    assert (finding.kind, finding.ranks) == ("slow_rank", (3,))
    assert all(one.metric != "aicore_frequency_mhz" for one in finding.evidence)


def test_a_database_capture_of_a_retransmission_is_confirmed_by_its_retries(tmp_path: Path) -> None:
    _, finding = found_in(tmp_path, "retransmission:4000@1-3")
    assert finding.kind == "retransmission"
    row = next(one for one in finding.evidence if one.metric == "retry_operators_count")
    assert row.value >= 1 > row.peers_median
    assert "The profiler confirms it" in summary(finding).en
    assert "证实" in summary(finding).zh
    assert "RoCE" in next_check(finding).en


def counted(metric: str, values: dict[int, float]) -> pa.Table:
    """A counter in two columns of each rank, as tables of cards have it: 3 each, but for some ranks."""
    every = {**dict.fromkeys(range(N_RANKS), 3.0), **values}
    return pa.concat_tables([counters(metric, every, label) for label in ("sent", "received")])


@pytest.mark.parametrize(
    "metric", ["roce_resent_packets_count", "mac_pause_frames_count", "nic_dropped_count"]
)
def test_what_a_network_card_counts_above_others_is_evidence_of_its_link(metric: str) -> None:
    table = counted(metric, {SLOW: 40.0})
    (one,) = with_counters(table, VIEW, [suspect("slow_nic", ranks=(SLOW,), links=LINK)])
    assert one.evidence[1:] == (Evidence(metric, 80.0, 6.0, 0.0, N_RANKS - 2),)
    assert kinds(one) == ["card_counted"]
    assert with_counters(table, VIEW, [INSIDE]) == [INSIDE]


@pytest.mark.parametrize(("transport", "metric"), [("HCCS", "hccs"), ("UB", "ub"), ("UBoE", "ub")])
def test_a_port_below_those_of_others_at_its_best_confirms_a_slow_link(transport: str, metric: str) -> None:
    links = (Link(Rank(SLOW), Rank(3), transport),)
    slow = suspect("slow_link", ranks=(SLOW, 3), links=links)
    name = f"{metric}_peak_bytes_per_s"
    (one,) = with_counters(counted(name, {SLOW: 1.5}), VIEW, [slow])
    assert one.evidence[1:] == (Evidence(name, 1.5, 3.0, 0.0, N_RANKS - 2),)
    assert [fact.kind for fact in one.facts] == ["port_below_peers"]
    assert with_counters(counted(name, {SLOW: 2.9}), VIEW, [slow]) == [slow]
    assert with_counters(counted(name, {SLOW: 1.5}), VIEW, [suspect("slow_rank")]) == [suspect("slow_rank")]
