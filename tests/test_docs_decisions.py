"""The numbers of the pages on judging are those that decide."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from cluster_analysis.judge.gates import RULES
from cluster_analysis.numeric.stats import PRIOR_DF
from cluster_analysis.thresholds import calls, common, judging, limits
from cluster_run.findings import WARNING_COST_SHARE

LAB = Path(__file__).parents[1] / "docs" / "lab"
JUDGING = " ".join((LAB / "decisions.md").read_text("utf-8").split())
PAGE = " ".join((LAB.parent / "how-it-decides.md").read_text("utf-8").split())
GRAPH = " ".join((LAB / "from-calls-to-a-graph.md").read_text("utf-8").split())
AS_GIVEN = limits.Thresholds()
WORDS = {n: str(n) for n in range(100)} | {2: "two", 3: "three", 4: "four", 5: "five", 8: "eight"}
#: How probably a single healthy device is 6 % slower.
OF_NATURE = AS_GIVEN.natural_share * math.exp(-0.06 / AS_GIVEN.natural_tail)


def percent(share: float) -> str:
    """A share as the documents write it."""
    return f"{share * 100:g} %"


@pytest.mark.parametrize(
    "said",
    [
        f"The floor is {percent(AS_GIVEN.floor)} of computing or of the step",
        f"the {percent(judging.HEALTHY_SIGMA)} by which healthy devices scatter, "
        f"each worth {PRIOR_DF:g} degrees of freedom",
        f"level improbable over all ranks (Student t, {percent(AS_GIVEN.listed_p_value)}), "
        f"over {percent(common.MOSTLY)} of the steps on the slow side "
        f"(with more than {WORDS[AS_GIVEN.min_steps_confident]} steps: of fewer the middle says as much)",
        f"≥ 2 steps above {common.FAR_SIGMAS:g} sigma (of steps, of that step's peers, of levels) "
        f"and {percent(AS_GIVEN.device_effect)} "
        f"(idle time: {percent(common.TWICE * AS_GIVEN.local_effect_share_of_step)} of the step)",
        f"*n* · {AS_GIVEN.natural_share:g} · exp(-*x* / {percent(AS_GIVEN.natural_tail)})",
        f"SC'22: {percent(AS_GIVEN.natural_effect)} in all",
        f"counts as the least one, {percent(WARNING_COST_SHARE)}",
        f"(their events + ½) / (their steps + {0.5 / judging.ACCIDENTS:g}), "
        f"as healthy ones have accidents in {percent(judging.ACCIDENTS)} of their steps",
        f"by which the events differ, if that is {percent(judging.IDLE_SIGMA)} at most",
        f"{percent(common.CLEAR_SIGMAS * judging.IDLE_SIGMA)} of what stages usually idle",
        f"by itself ({percent(AS_GIVEN.listed_p_value)}; {percent(AS_GIVEN.doubted_p_value)} "
        f"if it costs {percent(AS_GIVEN.open_cost_share)} of the step)",
        f"a host that is not slow beyond doubt ({percent(AS_GIVEN.costly_p_value)} over all hosts)",
        f"a factor of {1 + judging.IDLE_SIGMA:g} (one sigma) between healthy hosts",
        f"idle time of over {percent(common.TOLERANCE_SHARE)} of computing beyond the peers'",
        f"that scatter by {percent(judging.STEADY_SIGMA)} at most, where there are no experts",
        f"where types scatter by more than {percent(common.HALFWAY * judging.STEADY_SIGMA)}",
        f"A rank that computes {percent(AS_GIVEN.single_step_device_effect)} longer is named with low",
        f"It is an alarm from {percent(AS_GIVEN.sure_cost_share)} of the step on",
        f"within {percent(judging.LINK_EFFECT)} of the {percent(judging.HEALTHY_QUANTILE)} quantile",
        f"Below {judging.SMALL_BYTES / 1e3:g} kB nothing counts",
        f"slow links explained − {judging.PRICE_OF_PART:g} − {judging.PRICE_OF_HEALTHY:g} × healthy links",
        f"by {percent(WARNING_COST_SHARE)} of the mean step or more",
        f"Above {percent(AS_GIVEN.replay_refuse)} costs are upper bounds only",
        f"within {percent(AS_GIVEN.replay_mean_doubt)} (`replay.mean_error_share`)",
        f"gaps over {percent(calls.GAP_TOLERANCE)} longer than their rank computed and idled",
        f"the long ones ({calls.LONG_SEND:g} times the quick quarter)",
        f"of them only {WORDS[int(calls.HELD_UP_FACTOR)]} times as long is long",
        f"The {WORDS[judging.N_IN_TURN]} hosts that may lose most are replayed",
        f"by {percent(AS_GIVEN.stage_effect)} from place to place in steps of equal length",
    ],
)
def test_the_rules_of_judging_are_told_with_the_numbers_that_decide(said: str) -> None:
    assert said.lower() in JUDGING.lower()


@pytest.mark.parametrize(
    "said",
    [
        f"({percent(calls.REGULAR_CALLS)} of a kind's calls, on a fifth of its ranks)",
        f"({percent(calls.CHANCE_P_VALUE)} of the time since the main stream's last call)",
        f"Ranks with fewer than {WORDS[calls.ENOUGH_PEERS]} peers wait where most",
        f"a rank that lacks more than {calls.MAX_MISSING} of a group",
        f"where it explains {percent(calls.LEAST_EXPLAINED_SHARE)} of the waiting",
        f"a sum of less than {judging.SMALL_BYTES / 1e3:g} kB",
        f"were in it for {calls.STOOD_STILL_US / 1e6:g} s longer than usual",
        f"Steps whose replay is off by more than {percent(judging.GOOD_ERROR)}",
    ],
)
def test_the_rules_of_the_graph_are_told_with_the_numbers_that_decide(said: str) -> None:
    assert said in GRAPH


@pytest.mark.parametrize(
    "said",
    [
        f"{percent(AS_GIVEN.device_effect)} of computing, {percent(AS_GIVEN.link_effect)} of a link's time, "
        f"{percent(AS_GIVEN.local_effect_share_of_step)} of the step for idle time",
        f"costly enough: {percent(WARNING_COST_SHARE)} of the step",
        f"An alarm that costs {percent(AS_GIVEN.sure_cost_share)} of the step may be raised falsely in one "
        f"healthy job of {1 / (AS_GIVEN.chance_per_cost * AS_GIVEN.sure_cost_share):g}",
        f"over {percent(common.MOSTLY)} of the steps are slow",
        f"the loss grows over {WORDS[AS_GIVEN.min_steps_intermittent]} steps or more",
        f"A loss of {percent(AS_GIVEN.open_cost_share)} of the step stands in the headline",
        f"6 % slower is an alarm among 16 devices, and is information among 128 unless it costs more than "
        f"{percent(round(128 * OF_NATURE / AS_GIVEN.chance_per_cost, 3))} of the step",
        f"not named and costs {percent(AS_GIVEN.sure_cost_share)} of the step, it is information",
        f"Ranks with fewer than {WORDS[AS_GIVEN.min_peers]} peers",
        f"takes {percent(judging.LINK_EFFECT)} longer or more",
        f"Messages below {judging.SMALL_BYTES / 1e3:g} kB",
        f"by {percent(WARNING_COST_SHARE)} of the mean step or more, is a `retransmission`",
        f"Above a median error of {percent(AS_GIVEN.replay_refuse)}, costs are upper bounds only",
        f"mean step is off by more than {percent(AS_GIVEN.replay_mean_doubt)}, no cost has high confidence",
        f"the costliest first, {WORDS[judging.N_IN_TURN]} at most",
        f"The {WORDS[judging.N_CHAINS]} costliest alarms have a chain",
        f"of other faults the {WORDS[AS_GIVEN.max_info]} costliest",
        f"inside fused kernels for {percent(AS_GIVEN.open_cost_share)} of the step",
        f"from {percent(AS_GIVEN.exposed_share)} of the step on. Its cost",
        f"no rank has {WORDS[AS_GIVEN.min_peers]} peers whose times could be read",
        f"A question is open if {percent(AS_GIVEN.open_cost_share)} of the step may be lost",
        f"{judging.WIDE_INTERVAL:g} times the lower one, "
        f"and higher by {percent(WARNING_COST_SHARE)} of the step",
        f"misses the measured steps by more than {percent(AS_GIVEN.replay_refuse)}",
    ],
)
def test_the_page_on_judging_tells_the_numbers_that_decide(said: str) -> None:
    assert said in PAGE


def test_the_rules_that_make_a_finding_are_listed_in_their_order() -> None:
    listed = re.findall(r"^\| `(\w+)` \| ", (LAB / "decisions.md").read_text("utf-8"), re.MULTILINE)
    assert listed == [rule.__name__ for rule in RULES]
