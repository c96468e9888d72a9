"""Windows without steps: unlike numbers of iterations are told and evened out, unlike speeds are kept;
and steps are one window where operators know none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from cluster_analysis.cli import main as analyse
from cluster_analysis.tables.schema import LINKS, MATCHED, OPERATORS, RANK_TIMES, STEPS, TOTALS
from cluster_analysis.trace.evidence import StepEvidence, StepOperators
from cluster_analysis.windows.cut_steps import is_last_cut
from cluster_analysis.windows.iterations import as_many_iterations, as_one_window
from cluster_run.facts import Fact
from cluster_run.ids import Step
from tests.analysis.runs import simulated

KINDS = {"MatMulV2": 400, "Attention": 100, "Add": 50, "RmsNorm": 200, "Cast": 10}


def windows(
    computing_us: Sequence[float], counts: Sequence[Mapping[str, int]], step: int = 0, free_us: float = 100.0
) -> tuple[pa.Table, tuple[Fact, ...]]:
    """Ranks 0, 1, … that computed for so long, and ran operators so often."""
    nothing = dict.fromkeys(STEPS.names, 0.0)
    steps = [
        {**nothing, "rank": rank, "step": step, "computing_us": one, "free_us": free_us}
        for rank, one in enumerate(computing_us)
    ]
    none = dict.fromkeys(OPERATORS.names)
    operators = [
        {**none, "rank": rank, "op_type": kind, "n_calls": n}
        for rank, own in enumerate(counts)
        for kind, n in own.items()
    ]
    return as_many_iterations(pa.Table.from_pylist(steps, STEPS), pa.Table.from_pylist(operators, OPERATORS))


def times(n: float, **more: int) -> dict[str, int]:
    return {**{kind: round(count * n) for kind, count in KINDS.items()}, **more}


def told(found: tuple[pa.Table, tuple[Fact, ...]]) -> list[tuple[str, object]]:
    return [(one.kind, one["ranks"]) for one in found[1]]


def test_ranks_that_ran_more_iterations_are_compared_as_if_they_had_run_as_many() -> None:
    found = windows([1000.0, 1000.0, 1700.0, 1000.0], [times(1), times(1), times(1.7), times(1)], free_us=0.0)
    assert told(found) == [("windows_unlike", (2,))]
    assert found[0]["computing_us"].to_pylist() == pytest.approx([1000.0] * 4)


def test_one_kind_of_operator_that_depends_on_data_does_not_hide_the_number_of_iterations() -> None:
    odd = times(2, Add=77)
    assert told(windows([1000.0, 1000.0, 2100.0], [times(1), times(1), odd])) == [("windows_unlike", (2,))]


def test_a_rank_that_took_longer_for_as_many_iterations_stays_slow() -> None:
    found = windows([1000.0, 1000.0, 1700.0, 1000.0], [times(1)] * 4)
    assert found[1] == ()
    assert found[0]["computing_us"].to_pylist() == [1000.0, 1000.0, 1700.0, 1000.0]


def test_a_stage_that_does_more_work_in_the_same_time_is_left_alone() -> None:
    assert windows([1000.0, 1000.0, 1010.0], [times(1), times(1), times(1.5)])[1] == ()


@pytest.mark.parametrize("counts", [{}, {"Other": 5}, {kind: 17 * at for at, kind in enumerate(KINDS, 1)}])
def test_a_window_of_another_length_that_cannot_be_counted_is_not_compared(counts: dict[str, int]) -> None:
    found = windows([1000.0, 1000.0, 1700.0], [times(1), times(1), counts])
    assert told(found) == [("windows_not_compared", (2,))]
    assert found[0]["rank"].to_pylist() == [0, 1]


def test_steps_that_are_numbered_are_no_windows() -> None:
    assert windows([1000.0, 1700.0], [times(1), times(1.7)], step=7)[1] == ()


# A last step that the end of the recording cut is left out; a last step that is merely different is not.
def steps(*each: tuple[int, Sequence[float]]) -> list[StepEvidence]:
    """Steps with so many operators, and how long each rank took."""
    found = []
    for number, (n_operators, lengths) in enumerate(each):
        nothing = dict.fromkeys(STEPS.names, 0.0)
        rows = [
            {**nothing, "rank": rank, "step": number, "computing_us": length}
            for rank, length in enumerate(lengths)
        ]
        matched = pa.Table.from_pylist([dict.fromkeys(MATCHED.names)] * n_operators, MATCHED)
        found.append(
            StepEvidence(
                Step(number),
                pa.Table.from_pylist(rows, STEPS),
                matched,
                RANK_TIMES.empty_table(),
                LINKS.empty_table(),
                None,
            )
        )
    return found


WHOLE = (36, [100.0, 101.0])


@pytest.mark.parametrize(
    ("last", "is_cut"),
    [
        ((22, [55.0, 56.0]), True),
        ((9, [20.0, 21.0]), True),
        ((36, [55.0, 56.0]), False),  # whole, and quick
        ((22, [55.0, 99.0]), False),  # one rank took as long as ever
        ((40, [150.0, 150.0]), False),
    ],
)
def test_only_a_step_with_fewer_operators_and_less_time_is_cut(
    last: tuple[int, list[float]], is_cut: bool
) -> None:
    assert is_last_cut(steps(WHOLE, WHOLE, WHOLE, last)) == is_cut


def test_steps_that_differ_before_tell_nothing_of_the_last() -> None:
    assert not is_last_cut(steps(WHOLE, (20, [60.0, 61.0]), WHOLE, (22, [55.0, 56.0])))


def test_one_step_before_is_too_few() -> None:
    assert not is_last_cut(steps(WHOLE, (22, [55.0, 56.0])))


def ending(n_micro_batches: int, *last: str, number: int) -> StepEvidence:
    """A step of two ranks: a sum of `tp` for each micro-batch, then the `last` ones."""
    groups = ("all", "dp", "tp")
    calls = ["tp"] * n_micro_batches + list(last)
    one = steps((2 * len(calls), [10.0 * len(calls)] * 2))[0]
    n, nothing = 2 * len(calls), np.zeros(0)
    no_ids, no_flags = nothing.astype(np.int32), nothing.astype(bool)
    operators = StepOperators(
        np.array([4, 5]), nothing, nothing, np.repeat([0, 1], len(calls)), np.arange(n), *[no_ids] * 5,
        nothing, nothing, *[no_flags] * 5, np.array([groups.index(name) for name in 2 * calls]),
        np.zeros(n, np.int32), no_ids, nothing, nothing, groups, ("allreduce",),
    )  # fmt: skip
    return replace(one, step=Step(number), operators=operators)


@pytest.mark.parametrize(
    ("last", "is_cut"),
    [
        ((3, "dp", "dp", "all"), False),  # fewer micro-batches
        ((5, "dp"), True),
        ((3,), True),
    ],
)
def test_a_step_with_less_work_that_ends_as_others_do_is_whole(last: tuple[int, str], is_cut: bool) -> None:
    whole = [ending(8, "dp", "dp", "all", number=number) for number in range(3)]
    assert is_last_cut([*whole, ending(*last, number=3)]) == is_cut


def test_a_step_that_ends_with_a_call_it_has_fewer_of_is_cut() -> None:
    assert is_last_cut([*(ending(8, number=number) for number in range(3)), ending(5, number=3)])


NO_SUMS = {"Transit Size(MB)": 0.0, "Transit Time(ms)": 0.0}


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
        whole: dict[str, Any] = {}
        for step in json.loads(path.read_text()).values():
            for (kind, own), name in ((one, name) for one in step.items() for name in one[1]):
                for ends, link in own[name].items():
                    sums = (
                        whole.setdefault(kind, {}).setdefault(name, {}).setdefault(ends, {**link, **NO_SUMS})
                    )
                    for column in NO_SUMS:
                        sums[column] += link[column]
        path.write_text(json.dumps({"step0": whole}))
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
