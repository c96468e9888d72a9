"""What was sent again is seen in the entry of its link, also where no operator shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from cluster_analysis.judge.detection import detect
from cluster_analysis.judge.measures.link_events import link_events
from cluster_analysis.tables.schema import LINKS
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.findings import Link
from cluster_run.ids import Rank
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.jobs import judged
from tests.analysis.said import summary
from tests.analysis.totals import STEP_US, evidence_of_computing, on_hosts, peers_agree

LOST_US = 4e6
PAIRS = ((0, 1), (1, 2), (2, 3), (3, 0))
HIT = Link(Rank(2), Rank(3), "RDMA")


def entries(
    *hits: tuple[int, int, float], n_steps: int = 5, variant: str = "top1", is_p2p: bool = False,
    pairs: Sequence[tuple[int, int]] = PAIRS,
) -> pa.Table:  # fmt: skip
    """A ring's links in some steps; `hits` are (pair, step, µs more)."""
    more = {(pair, step): time_us for pair, step, time_us in hits}
    return pa.Table.from_pylist(
        [
            {
                "rank": src, "step": step, "group": "g", "is_p2p": is_p2p, "op_type": "allreduce",
                "variant": variant, "op_name": "", "src_local": src, "dst_local": dst, "src_rank": src,
                "dst_rank": dst, "transport": "RDMA", "size_bytes": 1e7,
                "time_us": 1000.0 + more.get((pair, step), 0.0),
            }
            for step in range(n_steps)
            for pair, (src, dst) in enumerate(pairs)
        ],
        schema=LINKS,
    )  # fmt: skip


def test_an_entry_of_seconds_among_milliseconds_is_an_event_of_its_link_and_step() -> None:
    ((key, event),) = link_events(entries((2, 3, LOST_US)), Thresholds()).items()
    assert key == ("g", 3)
    assert (event.links, event.usual_us, event.n_others) == ((HIT,), 1000.0, 19)
    assert event.time_us == LOST_US + 1000.0


def test_healthy_links_a_moment_of_contention_and_links_that_always_take_long_are_no_events() -> None:
    assert link_events(entries(), Thresholds()) == {}
    assert link_events(entries((2, 3, 15e3)), Thresholds()) == {}
    always = [(pair, step, LOST_US) for pair in range(4) for step in range(5)]
    assert link_events(entries(*always), Thresholds()) == {}


def test_links_hit_in_one_step_are_one_event_and_the_longest_is_named_first() -> None:
    (event,) = link_events(entries((0, 3, LOST_US), (2, 3, 2 * LOST_US)), Thresholds()).values()
    assert event.links == (HIT, Link(Rank(0), Rank(1), "RDMA"))


def test_sums_count_only_where_nothing_finer_is_known() -> None:
    sums = entries((2, 3, LOST_US), variant="total")
    assert list(link_events(sums, Thresholds())) == [("g", 3)]
    assert link_events(pa.concat_tables([sums, entries()]), Thresholds()) == {}


def test_the_entry_of_a_message_may_hold_its_receivers_delay() -> None:
    assert link_events(entries((2, 3, LOST_US), is_p2p=True), Thresholds()) == {}


def test_without_operators_the_link_is_named_and_the_length_of_its_step_is_its_weight() -> None:
    where = on_hosts(4, 2)
    evidence = evidence_of_computing(peers_agree(4, 5, share=0.5), where)
    table = evidence.step_table
    at = table.schema.get_field_index("communication_not_overlapped_us")
    longer = np.asarray(table["communication_not_overlapped_us"]) + np.where(
        np.asarray(table["step"]) == 3, LOST_US, 0.0
    )
    table = table.set_column(at, table.schema.field(at), pa.array(longer))
    found = detect(replace(evidence, step_table=table, links=entries((2, 3, LOST_US))), where)
    (finding,) = (one for one in found.findings if one.kind == "retransmission")
    assert (finding.severity, finding.links, finding.steps) == ("critical", (HIT,), (3,))
    assert finding.cost_ms_per_step is None
    assert found.step_ms is not None
    assert found.step_ms > STEP_US / 1e3


def test_the_events_of_a_link_are_one_finding_in_as_many_steps() -> None:
    where = on_hosts(4, 2)
    evidence = evidence_of_computing(peers_agree(4, 30, share=0.5), where)
    links = entries(*((2, step, LOST_US + step) for step in range(0, 30, 10)), n_steps=30)
    found = detect(replace(evidence, links=links), where)
    (finding,) = (one for one in found.findings if one.kind == "retransmission")
    assert (finding.steps, finding.pattern) == ((0, 10, 20), "intermittent")
    assert "in steps " in summary(finding)
    assert len(finding.steps) == 3


def test_of_many_links_eight_are_named_and_the_others_are_counted() -> None:
    pairs = [(rank, (rank + 1) % 12) for rank in range(12)]
    where = on_hosts(12, 2)
    evidence = evidence_of_computing(peers_agree(12, 30, share=0.5), where)
    hit = entries(*((rank, rank, LOST_US - rank) for rank in range(12)), n_steps=30, pairs=pairs)
    found = detect(replace(evidence, links=hit), where)
    named = [one for one in found.findings if one.kind == "retransmission"]
    assert sorted(one.steps[0] for one in named) == list(range(8))
    assert "4 more links" in summary(min(named, key=lambda one: one.steps))


def test_of_a_job_that_lost_records_the_link_is_named_and_not_who_waited_for_it() -> None:
    spec = JobSpec(tp=4, pp=2, dp=4, steps=5, microbatches=4, healthy=Healthy(missing_records=0.01))
    for seed in (11, 12, 13):
        case = judged(spec, "retransmission:4000", seed=seed)
        (true,) = case.job.faults
        (alarm,) = case.alarms
        assert alarm.kind == "retransmission"
        assert [(int(one.src), int(one.dst)) for one in alarm.links] == list(true.links)
