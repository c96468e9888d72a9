"""The analysis from Python: DataFrames, a step, a short HTML, pictures; columns by name; the notebook."""

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest
from mypy import api as mypy

import cluster_analysis as ca
from cluster_analysis.tables import columns
from cluster_run.errors import InputError
from tests.analysis.reports import builder
from tools.renew_tutorial import executed

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def run(analysed):
    return analysed


def test_findings_are_those_of_the_command_as_a_frame(run, slow_output):
    written = json.loads((slow_output / "findings.json").read_text())["findings"]
    assert isinstance(run.findings, pd.DataFrame)
    for name in ("id", "kind", "severity", "cost_ms_per_step", "summary", "next_check"):
        column = run.findings[name].astype(object)
        assert list(column.where(column.notna(), None)) == [finding[name] for finding in written]
    assert run.verdict == "degraded"
    assert run.findings.set_index("id").places["slow_rank-3"] == ["rank 3 = host 1 / device 3"]


def test_tables_are_frames_with_units_in_their_columns(run):
    for frame in (run.ranks, run.steps, run.links, run.collectives, run.operators):
        assert isinstance(frame, pd.DataFrame)
        assert len(frame)
    assert "computing_us" in run.steps
    assert "bandwidth_gbps" in run.links


def test_what_the_ranks_recorded_is_a_dask_frame_that_reads_when_it_is_computed(run):
    import dask.dataframe as dd  # noqa: PLC0415  (at the top each worker would load it, for half a second)

    calls = run.ddf("calls")
    assert isinstance(calls, dd.DataFrame)
    busy_us = calls.groupby("rank").elapse_us.sum().compute(scheduler="synchronous")
    assert sorted(busy_us.index) == list(range(8))
    assert run.ddf("matrix").size_bytes.sum().compute(scheduler="synchronous") > 0
    with pytest.raises(KeyError, match="no Dask frame 'kernels'; there are calls, matrix"):
        run.ddf("kernels")


def test_an_output_that_was_loaded_says_that_it_keeps_no_records(slow_output):
    with pytest.raises(InputError, match="keeps no records"):
        ca.load(slow_output).ddf("calls")


def test_a_step_is_a_row_a_rank(run):
    step = run.step(12)
    assert list(step.index) == list(range(8))
    assert step["computing_us"].idxmax() == 3
    with pytest.raises(KeyError, match="step 99 is not there"):
        run.step(99)


def test_a_notebook_shows_the_verdict_and_the_findings(run):
    html = run._repr_html_()
    assert "Degraded" in html
    assert "rank 3 = host 1 / device 3" in html
    assert len(html) < 4000
    assert repr(run).startswith("<Run run1: Degraded")


def test_analysing_from_python_writes_nothing(slow_run, run):
    assert not (slow_run / "cluster_analysis_output").exists()


def test_options_of_the_command_are_arguments(slow_run):
    few = ca.analyse(slow_run, steps=[11, 12], ranks=range(4), workers=1)
    assert set(few.steps["step"]) == {11, 12}
    assert set(few.steps["rank"]) == set(range(4))
    with pytest.raises(InputError, match="no such directory"):
        ca.analyse(slow_run / "nowhere")


def test_the_api_shows_and_explains_itself(run, slow_output):
    assert {"Run", "analyse", "analyze", "load", "__version__"} <= set(dir(ca))
    assert ca.analyze is ca.analyse
    again = ca.load(slow_output)
    with pytest.raises(KeyError, match="there are 10-12"):
        again.step(99)
    with pytest.raises(KeyError, match="there are advice"):
        again.frame("nope")
    with pytest.raises(InputError, match="no such directory"):
        ca.load(slow_output / "gone")


def test_importing_the_package_imports_nothing_else():
    program = "import sys, cluster_analysis\nprint({'pyarrow', 'pandas', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.slow
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


# What editors complete and type checkers check is what a run has.


def declared(name):
    return getattr(columns, name.title().replace("_", ""))


def test_a_run_has_the_tables_of_the_list_with_their_schemas(run):
    names = get_args(columns.TableName)
    assert set(run.tables) == set(names)
    differ = [name for name in names if not run.tables[name].schema.equals(declared(name).schema)]
    assert differ == []


def test_the_names_of_columns_are_those_of_the_frames(run):
    for name, frame in (("Findings", run.findings), *((one, run.frame(one)) for one in run.tables)):
        names = {
            key: one for key, one in vars(declared(name)).items() if isinstance(one, str) and key[0] != "_"
        }
        assert list(names) == list(frame.columns) == list(names.values()), name


@pytest.mark.slow
def test_a_type_checker_refuses_a_table_or_column_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # mypy does not follow what an editable installation imports by.
    monkeypatch.setenv("MYPYPATH", str(DOCS.parent))
    user = tmp_path / "user.py"
    user.write_text(
        "from cluster_analysis.tables.columns import Steps, TableName\n"
        "good: TableName = 'steps'\n"
        "bad: TableName = 'stepss'\n"
        "print(Steps.computing_us, Steps.computng_us)\n"
    )
    # Of what these import nothing says which columns there are, and reading it takes ten times as long.
    tables = map(str, (DOCS.parent / "cluster_analysis" / "tables").glob("[ct]*.py"))
    options = ("--strict", "--follow-imports", "skip", "--cache-dir", "/dev/null", "--config-file", "")
    found, _, _ = mypy.run([*options, str(user), *tables])
    errors = [
        line.split(":")[1] for line in found.splitlines() if line.startswith("user.py") or str(user) in line
    ]
    assert errors == ["3", "4"], found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lanes", "steps", "ranks", "waits"])
def test_each_picture_is_a_figure_with_axes_that_a_notebook_shows(run, name):
    picture = getattr(run.plot, name)()
    axes = picture.axes[0]
    assert axes.get_title()
    assert axes.get_xlabel()
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_bars_of_ranks_are_as_high_as_the_times_of_the_table(run):
    bars = run.plot.ranks().axes[0].containers[0]
    heights = [bar.get_height() for bar in bars]
    assert heights == pytest.approx((run.steps.groupby("rank")["computing_us"].mean() / 1e3).tolist())
    assert max(range(8), key=lambda rank: heights[rank]) == 3


def test_what_was_not_replayed_has_no_lanes_and_says_so():
    with pytest.raises(InputError, match="the table lanes is empty"):
        ca.Run(builder.degraded()).plot.lanes()
