"""Who is acted on: by budget, once, never on one run alone, and nobody in a healthy fleet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cluster_act.cases import cases_of_fleet, devices_of
from cluster_act.plan import planned
from cluster_act.values import Case
from cluster_fleet.identity import Known
from cluster_fleet.store import Fleet
from cluster_words.phrase import Phrase
from tests.fleet.test_store import elsewhere, record, runs_of

CASE = Case(
    "vdie:5",
    "device 1 of node001",
    "node001",
    1,
    Phrase("device 1 of node001: slow", "慢"),
    Phrase("3 h", "3 时"),
    True,
    devices=(1,),
)


def action(
    case: Case, *, state: str = "done", at_s: float = 0.0, undone_s: float | None = None
) -> dict[str, object]:
    return {
        "way": "slurm", "node": case.node, "unit": case.unit, "state": state,
        "at_s": at_s, "undone_s": undone_s,
    }  # fmt: skip


def decided(cases: list[Case], past: list[dict[str, object]], **more: object) -> list[str]:
    options = {"budget": 2, "now_s": 100.0, "unconfirmed": False, **more}
    plan = planned(cases, past, "slurm", **options)  # type: ignore[arg-type]
    return ["do" if one.why_not is None else "skip" for one in plan]


def on(node: str) -> Case:
    return replace(CASE, node=node, unit=node)


def test_a_probe_confirms_what_one_run_says_and_clears_what_many_say_for_a_week() -> None:
    unconfirmed = replace(CASE, is_confirmed=False)

    def probe(state: str, at_s: float = 0.0) -> dict[str, object]:
        return {**action(CASE, state=state, at_s=at_s), "way": "probe", "unit": "node001:1"}

    assert decided([unconfirmed], [probe("slow")]) == ["do"]
    assert decided([CASE], [probe("not slow")]) == ["skip"]
    # The newest probe counts; one that left it open says nothing, nor does one of another device.
    assert decided([CASE], [probe("not slow"), probe("slow", 1.0)]) == ["do"]
    assert decided([unconfirmed], [probe("open")]) == ["skip"]
    assert decided([replace(CASE, device=2)], [probe("not slow")]) == ["do"]
    assert decided([CASE], [probe("not slow")], now_s=8 * 86400.0) == ["do"]
    assert decided([unconfirmed], [probe("slow")], now_s=8 * 86400.0) == ["skip"]


def test_a_confirmed_case_is_acted_on_and_one_of_one_run_only_if_told() -> None:
    assert decided([CASE], []) == ["do"]
    assert decided([replace(CASE, is_confirmed=False)], []) == ["skip"]
    assert decided([replace(CASE, is_confirmed=False)], [], unconfirmed=True) == ["do"]


def test_no_more_nodes_than_the_budget_of_a_day() -> None:
    assert decided([on("a"), on("b"), on("c")], []) == ["do", "do", "skip"]
    assert decided([on("a"), on("b")], [action(on("x"), at_s=50.0)]) == ["do", "skip"]
    assert decided([on("a"), on("b")], [action(on("x"), at_s=50.0)], now_s=90_000.0) == ["do", "do"]
    # What was refused cost nothing; a second device of a node costs no second node.
    assert decided([on("a"), on("b")], [action(on("x"), state="refused")]) == ["do", "do"]
    assert decided([on("a"), replace(on("a"), unit="2"), on("b")], []) == ["do", "do", "do"]


def test_what_is_done_is_not_done_again_and_what_was_begun_is() -> None:
    assert decided([CASE], [action(CASE)]) == ["skip"]
    assert decided([CASE], [action(CASE, state="intended")], budget=1) == ["do"]
    assert decided([CASE], [action(CASE, undone_s=3.0)]) == ["do"]


def test_a_node_without_a_name_is_not_acted_on() -> None:
    assert decided([on("host-0a1b2c3d"), on("-x"), on("a b")], []) == ["skip"] * 3


def test_a_fleet_with_a_slow_device_gives_its_case(tmp_path: Path) -> None:
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(30):
            fleet.add(one)
        (case,) = cases_of_fleet(fleet)
    assert (case.unit, case.node, case.device, case.is_confirmed) == ("vdie:5", "node001", 1, True)
    assert case.devices == (1,)
    assert "slow since" in case.evidence.en
    assert "device-hours" in case.cost.en


def test_a_device_is_told_by_its_driver_s_number_and_a_host_by_those_of_its_devices() -> None:
    host = Known("host:1", "node001", "host:1")
    units = [
        host,
        Known("vdie:4", "device 0 of node001", "a", "host:1", physical=4),
        Known("vdie:7", "device 1 of node001", "b", "host:1", physical=7),
        Known("place:c", "device 2 of node001", "c", "host:1"),
        Known("vdie:0", "device 0 of node002", "d", "host:2", physical=0),
    ]
    assert devices_of("vdie:7", units) == (7,)
    assert devices_of("place:c", units) == (2,)
    assert devices_of("host:1", units) == (2, 4, 7)
    assert devices_of("host:3", units) == ()


@pytest.mark.slow
def test_nobody_is_acted_on_in_300_healthy_runs(tmp_path: Path) -> None:
    chance = np.random.default_rng(7)
    with Fleet(tmp_path / "fleet.db") as fleet:
        own = chance.normal(0, 0.004, 40)
        for at in range(300):
            # Heavy tails, and accidents that last for a capture; its finding names a device all the same.
            values = own + 0.005 * chance.standard_t(4, 40)
            values[chance.random(40) < 0.02] += 0.15
            fleet.add(record(at, values, day=float(at)))
            if at % 30 == 29:
                assert cases_of_fleet(fleet) == []


def test_a_node_whose_name_is_another_host_s_too_is_not_acted_on(tmp_path: Path) -> None:
    with Fleet(tmp_path / "fleet.db") as fleet:
        for one in runs_of(20):
            fleet.add(one)
        (case,) = cases_of_fleet(fleet)
        assert decided([case], []) == ["do"]
        fleet.add(elsewhere(runs_of(20)[15]))
        (case,) = cases_of_fleet(fleet)
        assert decided([case], []) == ["skip"]
