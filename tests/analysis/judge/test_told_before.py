"""Findings of two runs, matched: fixed, still there, new."""

from cluster_analysis.judge.told_before import match_findings
from tests.analysis.copies import replace
from tests.analysis.reports import builder

RANK, LINK = builder.degraded().document.findings


def states(before, after):
    return [(one.state, one.finding.id) for one in match_findings(before, after)]


def test_what_is_gone_is_fixed_and_what_was_not_there_is_new():
    assert states([RANK], [LINK]) == [("new", LINK.id), ("fixed", RANK.id)]


def test_the_same_finding_is_still_there_with_both_costs():
    cheaper = replace(RANK, cost_ms_per_step=2.0)
    (one,) = match_findings([RANK], [cheaper])

    assert one.state == "still"
    assert (one.before.cost_ms_per_step, one.after.cost_ms_per_step) == (12.3, 2.0)


def test_a_link_told_from_its_other_end_is_the_same_link():
    assert states([LINK], [replace(LINK, id="slow_link-10-2")]) == [("still", "slow_link-10-2")]


def test_the_same_kind_at_another_rank_is_another_finding():
    other = replace(RANK, id="slow_rank-9", ranks=(9,), hosts=("2",))

    assert states([RANK], [other]) == [("new", "slow_rank-9"), ("fixed", RANK.id)]


def test_what_never_was_an_alarm_is_not_told():
    small = replace(RANK, severity="info")

    assert states([small], [small]) == []
    assert states([small], [RANK]) == [("still", RANK.id)]
