"""What Prometheus reads: held against its own parsers, and against a real node_exporter."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from cluster_run.errors import ExitCode
from cluster_tell.metrics import (
    labelled,
    metrics_of_a_failure,
    place_drain_metrics,
    place_metrics,
    prune_metrics,
)
from cluster_tell.outcome import Outcome
from cluster_tell.teller import Teller, TellOptions
from tests.commands import ran

_METRICS = """\
# HELP cluster_analysis_verdict 1 for the verdict that holds, 0 for the others.
# TYPE cluster_analysis_verdict gauge
cluster_analysis_verdict{verdict="healthy"} 1
cluster_analysis_verdict{verdict="degraded"} 0
# HELP cluster_analysis_step_seconds Mean time of a training step.
# TYPE cluster_analysis_step_seconds gauge
cluster_analysis_step_seconds 0.2827
"""
_FAILED = Outcome("12", "train", "FAILED", "failed", ExitCode.FAILED, reason="no data")


def tell(outcome: Outcome, options: TellOptions) -> list[str]:
    """Tell an outcome; return what went wrong."""
    troubles: list[str] = []
    with Teller(options, lambda _, trouble: troubles.append(trouble)) as teller:
        teller.tell(outcome.job, outcome)
    return troubles


def parsed(text: str) -> Mapping[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the samples as Prometheus' own client reads them."""
    parser = pytest.importorskip(
        "prometheus_client.parser", reason="prometheus_client is not installed here: pip install '.[dev]'"
    )
    samples = [one for family in parser.text_string_to_metric_families(text) for one in family.samples]
    return {(one.name, frozenset(one.labels.items())): one.value for one in samples}


def values(path: Path) -> Mapping[str, float]:
    """Return the values of a job's file by name, without those of the verdict."""
    return {name: value for (name, _), value in parsed(path.read_text()).items()}


def test_the_metrics_of_a_job_are_what_prometheus_parser_reads(tmp_path: Path) -> None:
    place_metrics(_METRICS, '1"2', tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name == "cluster_analysis_1_2.prom"
    found = parsed(path.read_text())
    job = ("job_id", '1"2')
    assert found["cluster_analysis_verdict", frozenset({job, ("verdict", "healthy")})] == 1
    assert found["cluster_analysis_step_seconds", frozenset({job})] == 0.2827
    assert found["cluster_analysis_failed", frozenset({job})] == 0


def test_help_and_type_name_the_metric_and_nothing_else() -> None:
    comments = [line for line in labelled(_METRICS, "4711", 0.0).splitlines() if line.startswith("#")]
    assert comments
    assert not [line for line in comments if "{" in line]


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed: apt install prometheus"
)
@pytest.mark.parametrize("text", [_METRICS, metrics_of_a_failure(1_700_000_000.0)])
def test_promtool_finds_nothing_to_complain_about(text: str) -> None:
    ended = ran(["promtool", "check", "metrics"], input=labelled(text, "4711", 1_700_000_000.0))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "line",
    [
        "root:x:0:0",
        "up 1",
        "cluster_analysis_unheard_of 1",
        "cluster_analysis_ranks{} 1",
        "cluster_analysis_ranks 1; 2",
        "cluster_analysis_ranks one",
        'cluster_analysis_ranks{a="b} 1',
        'cluster_analysis_ranks{a="b"c="d"} 1',
        'cluster_analysis_ranks{job_id="another"} 1',
        "cluster_analysis_step_seconds 2",
    ],
)
def test_a_file_that_is_not_our_metrics_never_reaches_the_collector(tmp_path: Path, line: str) -> None:
    outcome = Outcome("12", "t", "", "analysed", ExitCode.DONE, metrics=_METRICS + line + "\n")
    (trouble,) = tell(outcome, TellOptions(prometheus_dir=tmp_path))
    assert "job 12" in trouble
    assert list(tmp_path.iterdir()) == []


def test_metrics_without_their_directory_are_a_trouble_and_no_failure(tmp_path: Path) -> None:
    outcome = Outcome("12", "t", "", "analysed", ExitCode.DONE, metrics=_METRICS)
    (trouble,) = tell(outcome, TellOptions(prometheus_dir=tmp_path / "missing"))
    assert "missing" in trouble


def test_a_job_that_could_not_be_analysed_has_a_metric_of_its_own(tmp_path: Path) -> None:
    tell(_FAILED, TellOptions(prometheus_dir=tmp_path))
    assert values(tmp_path / "cluster_analysis_12.prom")["cluster_analysis_failed"] == 1


def test_the_metrics_of_a_job_say_when_they_end_and_then_they_do(tmp_path: Path) -> None:
    place_metrics(_METRICS, "gone", tmp_path, keep_s=-1.0)
    place_metrics(_METRICS, "here", tmp_path, keep_s=60.0)
    (tmp_path / "other.prom").write_text("up 1\n")
    left = values(tmp_path / "cluster_analysis_here.prom")["cluster_analysis_expires_timestamp_seconds"]
    assert left > time.time()
    prune_metrics(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"cluster_analysis_here.prom", "other.prom"}


def test_a_later_failure_of_another_job_ends_them_too(tmp_path: Path) -> None:
    place_metrics(_METRICS, "gone", tmp_path, keep_s=-1.0)
    tell(_FAILED, TellOptions(prometheus_dir=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["cluster_analysis_12.prom"]


def test_the_drain_says_that_it_looked_and_how_many_requests_there_are(tmp_path: Path) -> None:
    place_drain_metrics({"pending": 2, "failed": 0}, tmp_path)
    found = parsed((tmp_path / "cluster_hook.prom").read_text())
    assert found["cluster_hook_requests", frozenset({("area", "pending")})] == 2
    assert ("cluster_hook_drain_looked_timestamp_seconds", frozenset[tuple[str, str]]()) in found
