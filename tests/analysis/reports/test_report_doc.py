"""docs/report.md says what the code does."""

import re
from importlib.resources import files
from pathlib import Path

from cluster_analysis.reports import prometheus
from cluster_analysis.reports.page import cube, traffic
from cluster_analysis.reports.timeline import perfetto
from cluster_hook.telling.metrics import labelled
from tests.analysis.reports import builder

DOC = (Path(__file__).parents[3] / "docs" / "report.md").read_text("utf-8")


def grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def test_every_metric_is_in_the_table_and_the_table_has_no_other():
    text = labelled(prometheus.render(builder.degraded(), 0.0), "42", 1.0)
    written = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))

    assert set(re.findall(r"^\| `(cluster_analysis_\w+)`", DOC, re.MULTILINE)) == written


def test_limits_of_the_page_are_those_of_the_code():
    assert f"up to {grouped(cube.MAX_CELLS)} ranks × steps" in DOC
    assert f"Up to {grouped(traffic.MAX_LINKS)} links" in DOC
    assert f"More than {grouped(perfetto.MAX_SLICES)} operators" in DOC


def test_version_of_the_chart_library_is_that_of_the_file():
    script = files("cluster_analysis.reports").joinpath("assets/uplot/uPlot.iife.min.js").read_text("utf-8")

    assert re.search(r"v([\d.]+)", script).group(1) in DOC
