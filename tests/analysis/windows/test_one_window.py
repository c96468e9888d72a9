"""Operators in no step, beside step times: all steps are compared as one window, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from cluster_analysis.cli import main as analyse
from cluster_analysis.tables.schema import STEPS, TOTALS
from cluster_analysis.windows.iterations import as_one_window
from tests.analysis.runs import simulated


def as_in_graph_mode(run: Path) -> Path:
    """Write what MindSpore writes with jit_level O2: steps in step_trace_time.csv alone."""
    for path in run.rglob("communication.json"):
        steps = json.loads(path.read_text()).values()
        ops = {kind: {} for kind in ("p2p", "collective")}  # type: ignore[var-annotated]
        for one in steps:
            for kind, own in one.items():
                ops[kind] |= {name: op for name, op in own.items() if not name.startswith("Total")}
        path.write_text(json.dumps({"step0": ops}))
    for path in run.rglob("communication_matrix.json"):
        path.write_text(json.dumps({"step0": next(iter(json.loads(path.read_text()).values()))}))
    return run


def analysed(run: Path, out: Path) -> dict[str, object]:
    assert analyse([str(run), "--output", str(out), "--no-report", "--no-insight", "--quiet"]) == 0
    return dict(json.loads((out / "findings.json").read_text()))


def tables(steps: Sequence[int], elapse_us: float, group: str = "") -> tuple[pa.Table, pa.Table]:
    """Two ranks with these steps, which communicate 100 µs in each, and operators of so long in no step."""
    nothing = dict.fromkeys(STEPS.names, 0.0)
    own = {"computing_us": 300.0, "communication_us": 100.0, "preparing_us": 5.0}
    rows = [{**nothing, **own, "rank": rank, "step": step} for rank in (0, 1) for step in steps]
    none = dict.fromkeys(TOTALS.names)
    sums = [{**none, "rank": r, "step": 0, "group": group or f"{r}", "elapse_us": elapse_us} for r in (0, 1)]
    return pa.Table.from_pylist(rows, STEPS), pa.Table.from_pylist(sums, TOTALS)


def test_steps_of_which_no_operator_is_are_one_window() -> None:
    window, told = as_one_window(*tables([5, 6, 7], 300.0, "world"))
    assert [(one.kind, one["steps"]) for one in told] == [("steps_in_one_window", (5, 6, 7))]
    assert window.select(["rank", "step", "computing_us", "preparing_us"]).to_pylist() == [
        {"rank": rank, "step": 0, "computing_us": 900.0, "preparing_us": 5.0} for rank in (0, 1)
    ]


@pytest.mark.parametrize(
    ("steps", "elapse_us", "group"),
    [([0], 100.0, "world"), ([0, 1, 2], 100.0, "world"), ([5, 6, 7], 300.0, "")],
    ids=["one step", "operators of step 0 alone", "operators that no two ranks share"],
)
def test_steps_stay_where_operators_are_of_one_of_them_or_are_not_compared(
    steps: list[int], elapse_us: float, group: str
) -> None:
    given, totals = tables(steps, elapse_us, group)
    kept, told = as_one_window(given, totals)
    assert (kept.to_pylist(), told) == (given.to_pylist(), ())


def test_steps_are_one_window_where_one_of_them_is_called_0_too() -> None:
    assert as_one_window(*tables([0, 1, 2], 310.0, "world"))[1]


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["slow_rank:1.3@5", "slow_link:4@1-3"])
def test_a_fault_costs_in_graph_mode_what_it_costs_else(tmp_path: Path, fault: str) -> None:
    sizes = {"tp": 2, "pp": 2, "dp": 4, "steps": 5, "ranks_per_host": 4}
    run = simulated(tmp_path / "run", fault, framework="ms", **sizes)
    usual = analysed(run, tmp_path / "usual")
    found = analysed(as_in_graph_mode(run), tmp_path / "out")
    assert (found["problems"], found["verdict"]) == ([], usual["verdict"])
    first, wanted = found["findings"][0], usual["findings"][0]  # type: ignore[index]
    assert (first["kind"], first["ranks"]) == (wanted["kind"], wanted["ranks"])
    assert first["cost_share"] == pytest.approx(wanted["cost_share"], rel=0.05)
