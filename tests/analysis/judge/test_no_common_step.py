"""Ranks that recorded no step in common cannot be compared, and that is said."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np

from cluster_analysis.judge.measures.deviation import deviation_of
from cluster_analysis.judging import judged
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.pipeline import examined
from cluster_run.facts import fact
from tests.analysis.runs import file_of, write_small_run


def test_a_rank_without_a_common_step_is_a_problem_and_named_and_no_verdict(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    for name in ("step_trace_time.csv", "communication.json", "communication_matrix.json"):
        path = file_of(run, 0, name)
        text = path.read_text()
        if path.suffix == ".csv":
            lines = [
                re.sub(r"^(\d+),(\d+),", lambda cell: f"{cell[1]},{int(cell[2]) + 100},", one)
                for one in text.splitlines()
            ]
            path.write_text("\n".join(lines) + "\n")
        else:
            path.write_text(re.sub(r'"step(\d+)"', lambda cell: f'"step{int(cell[1]) + 100}"', text))
    with examined(AnalyseOptions(run, tmp_path / "out")) as one:
        result = judged(one)
    why = fact("no_common_step", ranks=(0,))
    assert [one for one in result.document.problems if one.why == why]
    assert why in result.document.notes
    assert result.document.verdict != "healthy"


def test_a_unit_that_is_known_in_one_step_alone_tells_nothing_of_how_far_it_scatters() -> None:
    series = np.random.default_rng(0).normal(size=(6, 5))
    series[2, 1:], series[3] = np.nan, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = deviation_of(
            series, np.zeros(6, np.int32), np.full(6, 0.01), is_relative=True, is_alone=True, healthy=0.0
        )
    assert np.isfinite(found.scale).all()
