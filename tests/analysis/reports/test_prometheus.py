import shutil
from pathlib import Path

import pytest

from cluster_analysis.reports import prometheus
from tests.analysis.reports import builder
from tests.analysis.reports.gold import assert_gold
from tests.analysis.reports.test_terminal import RESULTS
from tests.commands import ran

DEPLOY = Path(__file__).parents[3] / "deploy" / "prometheus"
FINISHED_AT_S = 1_700_000_000.0
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian: apt-get install prometheus)"
)


@pytest.mark.parametrize("name", list(RESULTS))
def test_metrics_are_as_agreed(name):
    assert_gold(f"metrics-{name}.prom", prometheus.render(RESULTS[name]().document, FINISHED_AT_S))


def test_a_quote_in_a_label_is_escaped():
    changed = builder.finds(builder.slow(hosts=('a"b\\c' + "\n" + "d",)))
    assert r'hosts="a\"b\\c\nd"' in prometheus.render(changed.document, FINISHED_AT_S)


@needs_promtool
@pytest.mark.parametrize("name", list(RESULTS))
def test_promtool_finds_nothing_to_complain_about(name):
    text = prometheus.render(RESULTS[name]().document, FINISHED_AT_S)
    done = ran(["promtool", "check", "metrics"], input=text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_promtool
def test_alert_rules_are_valid_and_fire_when_they_should():
    for how, name in (("check", "cluster_analysis.rules.yml"), ("test", "cluster_analysis.rules.test.yml")):
        done = ran(["promtool", how, "rules", DEPLOY / name])
        assert done.returncode == 0, done.stdout + done.stderr
