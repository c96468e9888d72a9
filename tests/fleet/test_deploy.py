"""The rules fire for what the metrics say, the dashboard asks for metrics that are written, the hook adds."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from cluster_fleet.metrics import MEANINGS, PREFIX
from cluster_fleet.store import Fleet
from cluster_hook.follow.fleet import remember
from cluster_hook.isolation import child_environment
from tests.commands import ran
from tests.hook.jobs import a_job

DEPLOY = Path(__file__).parents[2] / "deploy" / "prometheus"


def test_dashboard_and_rules_ask_for_metrics_that_are_written() -> None:
    dashboard = json.loads((DEPLOY / "cluster_fleet.dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    names = set(
        re.findall(rf"{PREFIX}\w+", " ".join(asked) + (DEPLOY / "cluster_fleet.rules.yml").read_text())
    )
    assert names <= set(MEANINGS)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed: apt install prometheus"
)
def test_a_slow_device_fires_its_alert() -> None:
    argv = ["promtool", "test", "rules", "cluster_fleet.rules.test.yml"]
    ended = ran(argv, cwd=DEPLOY)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow
def test_the_hook_adds_where_a_database_is_named(
    tmp_path: Path, runs: list[Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    job, results = a_job(began_s=1000.0, ended_s=1000.0 + 5 * 3600), runs[0] / "cluster_analysis_output"
    monkeypatch.delenv("CLUSTER_FLEET", raising=False)
    remember(job, runs[0], results)
    monkeypatch.setenv("CLUSTER_FLEET", str(tmp_path / "fleet.db"))
    remember(job, runs[0], results)
    remember(job, runs[0], results)
    assert capfd.readouterr().err == ""
    with Fleet(tmp_path / "fleet.db") as fleet:
        assert [run.hours for run in fleet.runs()] == [5.0]
    monkeypatch.setenv("CLUSTER_FLEET", str(tmp_path / "no" / "such" / "fleet.db"))
    remember(job, runs[0], results)
    assert "does not remember this run" in capfd.readouterr().err


def test_a_password_of_the_database_reaches_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    from cluster_hook.isolation import Identity  # noqa: PLC0415

    fields = {"uid": 1000, "gid": 1000, "name": "u", "home": "/home/u", "groups": ()}
    user = Identity(**{name: fields.get(name) for name in Identity.__dataclass_fields__})  # type: ignore[arg-type]
    for where, is_given in (
        ("/srv/f.db", True),
        ("postgresql://a@h/d", True),
        ("postgresql://a@h:5432/d?connect_timeout=3", True),
        ("postgresql:///d?host=/run/postgresql", True),
        ("postgresql://a:b@h/d", False),
        ("postgresql://a:b/c@h/d", False),
        ("postgresql://a:b@c/d@h/d", False),
        ("postgresql://a@h/d?password=b", False),
    ):
        monkeypatch.setenv("CLUSTER_FLEET", where)
        assert ("CLUSTER_FLEET" in child_environment(identity=user)) == is_given
