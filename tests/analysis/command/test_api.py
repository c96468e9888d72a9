"""The analysis from Python: DataFrames, a step, a short HTML; and the tutorial notebook."""

import json
import subprocess
import sys
from pathlib import Path

import dask.dataframe as dd
import pandas as pd
import pytest

import cluster_analysis as ca
from cluster_analysis.cli import main as analyse
from cluster_run.errors import InputError
from cluster_simulate.cli import main as simulate
from tools.renew_tutorial import executed

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("api") / "run1"
    sizes = ("--tp", "2", "--pp", "2", "--dp", "4", "--steps", "5")
    assert simulate([str(path), *sizes, "--scenario", "slow_rank:1.3@5", "-q"]) == 0
    return path


@pytest.fixture(scope="module")
def run(path):
    return ca.analyse(path)


def test_findings_are_those_of_the_command_as_a_frame(path, run, tmp_path):
    assert analyse([str(path), "--output", str(tmp_path), "--no-report", "-q"]) == 0
    written = json.loads((tmp_path / "findings.json").read_text())["findings"]
    assert isinstance(run.findings, pd.DataFrame)
    for name in ("id", "kind", "severity", "cost_ms_per_step", "summary", "next_check"):
        column = run.findings[name].astype(object)
        assert list(column.where(column.notna(), None)) == [finding[name] for finding in written]
    assert run.verdict == "degraded"
    assert run.findings.places[0] == ["rank 5 = host 1 / device 5"]


def test_tables_are_frames_with_units_in_their_columns(run):
    for frame in (run.ranks, run.steps, run.links, run.collectives, run.operators):
        assert isinstance(frame, pd.DataFrame)
        assert len(frame)
    assert "computing_us" in run.steps
    assert "bandwidth_gbps" in run.links
    assert set(run.tables) >= {"ranks", "steps", "links", "matched", "operators"}


def test_what_the_ranks_recorded_is_a_dask_frame_that_reads_when_it_is_computed(path, run):
    calls = run.ddf("calls")
    assert isinstance(calls, dd.DataFrame)
    busy_us = calls.groupby("rank").elapse_us.sum().compute(scheduler="synchronous")
    assert sorted(busy_us.index) == list(range(16))
    assert run.ddf("matrix").size_bytes.sum().compute(scheduler="synchronous") > 0
    with pytest.raises(KeyError, match="kernels"):
        run.ddf("kernels")


def test_a_step_is_a_row_a_rank(run):
    step = run.step(12)
    assert list(step.index) == list(range(16))
    assert step["computing_us"].idxmax() == 5
    with pytest.raises(KeyError, match="step 99 is not there"):
        run.step(99)


def test_a_notebook_shows_the_verdict_and_the_findings(run):
    html = run._repr_html_()
    assert "Degraded" in html
    assert "rank 5 = host 1 / device 5" in html
    assert len(html) < 4000
    assert repr(run).startswith("<Run run1: Degraded")


def test_analysing_from_python_writes_nothing(path, run):
    assert not (path / "cluster_analysis_output").exists()


def test_options_of_the_command_are_arguments(path):
    few = ca.analyse(path, steps=[11, 12], ranks=range(8), workers=1)
    assert set(few.steps["step"]) == {11, 12}
    assert set(few.steps["rank"]) == set(range(8))
    with pytest.raises(InputError, match="no such directory"):
        ca.analyse(path / "nowhere")


def test_importing_the_package_imports_nothing_else():
    program = "import sys, cluster_analysis\nprint({'pyarrow', 'pandas', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_tutorial_is_stored_with_what_its_cells_show(tmp_path):
    stored = json.loads((DOCS / "tutorial.ipynb").read_text("utf-8"))
    made = executed(stored, tmp_path)
    assert said(stored) == said(made), "make gold renews it"
    pictures = [one for one in outputs(stored) if "image/png" in one.get("data", {})]
    assert len(pictures) >= 2
    assert any("computes 25 % slower" in one.get("text", "") for one in outputs(stored))
    assert sum("<table" in one.get("data", {}).get("text/html", "") for one in outputs(stored)) >= 5


def outputs(notebook):
    return [one for cell in notebook["cells"] for one in cell.get("outputs", ())]


def said(notebook):
    """The words and numbers that cells show: how wide pandas sets them is its own."""
    texts = (one.get("text") or one["data"]["text/plain"] for one in outputs(notebook))
    return [text.split() for text in texts]
