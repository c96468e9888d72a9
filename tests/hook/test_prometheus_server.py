"""A real node_exporter reads the files, a real Prometheus the rules and every question of the dashboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from cluster_analysis.findings_json import read_document
from cluster_tell.metrics import (
    metrics_of_a_failure,
    place_drain_metrics,
    place_metrics,
    write_metrics,
)
from tests.commands import HANGS_S, wait_until

DEPLOY = Path(__file__).parents[2] / "deploy" / "prometheus"
DASHBOARD = json.loads((DEPLOY / "cluster_analysis.dashboard.json").read_text())
RULES = DEPLOY / "cluster_analysis.rules.yml"
QUESTIONS = [
    pytest.param(target["expr"], id=panel["title"])
    for panel in DASHBOARD["panels"]
    for target in panel["targets"]
]
_PROGRAMS = ("prometheus", "prometheus-node-exporter")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(shutil.which(program) is None for program in _PROGRAMS),
        reason="Prometheus is not installed: apt install prometheus prometheus-node-exporter",
    ),
]

_CONFIGURATION = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: node
    static_configs: [{{targets: ["{target}"]}}]
"""


def fetch(address: str, path: str) -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=HANGS_S) as answer:
        return str(answer.read().decode())


def answers(address: str, path: str) -> bool:
    with suppress(OSError):
        return bool(fetch(address, path))
    return False


@contextmanager
def running(argv: list[str], log: Path) -> Iterator[str]:
    """Run a server on a port that it chooses; yields its address."""
    with log.open("w") as stream:
        process = subprocess.Popen([*argv, "--web.listen-address=127.0.0.1:0"], stderr=stream)
    try:
        listens = re.compile(r'"Listening on" address=(\S+)')
        yield wait_until(lambda: listens.search(log.read_text()), process, log.read_text)[1]
    finally:
        process.terminate()
        process.wait(HANGS_S)


@pytest.fixture(scope="module")
def exporter(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node_exporter over the files of a job with a slow rank, of one that failed, and of the drain."""
    directory, results = tmp_path_factory.mktemp("textfile"), tmp_path_factory.mktemp("results")
    command = [sys.executable, "-m", "cluster_analysis", simulated, f"--output={results}", "-q"]
    subprocess.run([*command, "--format=json"], check=True, timeout=HANGS_S, stdout=subprocess.DEVNULL)
    place_metrics(write_metrics(read_document(results / "findings.json"), results), "4711", directory)
    place_metrics(metrics_of_a_failure(time.time()), "4712", directory)
    place_drain_metrics({"pending": 1, "active": 0, "failed": 1}, directory)
    collector = ["--collector.disable-defaults", "--collector.textfile"]
    argv = [_PROGRAMS[1], *collector, f"--collector.textfile.directory={directory}"]
    with running(argv, results / "log") as address:
        yield address


@pytest.fixture(scope="module")
def prometheus(exporter: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that scrapes it and has read the rules."""
    root = tmp_path_factory.mktemp("prometheus")
    (root / "prometheus.yml").write_text(_CONFIGURATION.format(rules=RULES, target=exporter))
    argv = [_PROGRAMS[0], f"--config.file={root}/prometheus.yml", f"--storage.tsdb.path={root}/data"]
    with running(argv, root / "log") as address:
        wait_until(lambda: answers(address, "/-/ready"))
        wait_until(lambda: asked(address, "cluster_analysis_verdict"))
        yield address


def asked(address: str, question: str) -> list[Any]:
    """Return what Prometheus answers to a question of PromQL."""
    answer = json.loads(fetch(address, "/api/v1/query?" + urllib.parse.urlencode({"query": question})))
    assert answer["status"] == "success"
    return list(answer["data"]["result"])


def test_node_exporter_reads_the_files_of_all_jobs_together(exporter: str) -> None:
    lines = fetch(exporter, "/metrics").splitlines()
    assert "node_textfile_scrape_error 0" in lines
    assert 'cluster_analysis_verdict{job_id="4711",verdict="degraded"} 1' in lines
    assert 'cluster_analysis_failed{job_id="4712"} 1' in lines


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_of_the_dashboard_has_an_answer(prometheus: str, question: str) -> None:
    assert asked(prometheus, question.replace("$job_id", ".*"))


def test_every_alert_is_loaded_and_those_that_should_fire_begin_to(prometheus: str) -> None:
    def rules() -> dict[str, Any]:
        (group,) = json.loads(fetch(prometheus, "/api/v1/rules"))["data"]["groups"]
        return {rule["name"]: rule for rule in group["rules"]}

    def states(*names: str) -> set[str]:
        return {rules()[name]["state"] for name in names}

    begun = ("TrainingJobDegraded", "TrainingJobAnalysisFailed")
    wait_until(lambda: states(*begun) == {"pending"}, otherwise=rules)
    assert {rule["health"] for rule in rules().values()} == {"ok"}
    assert states("TrainingJobNotJudged", "ClusterHookDrainStalled") == {"inactive"}


def test_the_dashboard_asks_for_metrics_that_the_hook_writes_and_uses_its_own_variables() -> None:
    text = json.dumps(DASHBOARD)
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", text)) == variables
