"""The whole way: a simulated job, analysed by the command, its report opened in a browser."""

import gzip
import json
import re
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from cluster_analysis.cli import main as analyse
from cluster_analysis.simulation.cli import main as simulate
from tests.browser.acting import expect, open_every_finding, show_all
from tests.browser.conftest import SCREENSHOTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    run = tmp_path_factory.mktemp("simulated") / "run1"
    faults = ["--scenario", "slow_rank:1.25@13", "--scenario", "slow_link:3"]
    assert simulate([str(run), "--tp", "4", "--pp", "2", "--dp", "4", "--steps", "5", *faults, "-q"]) == 0
    assert analyse([str(run), "-q"]) == 0
    return run / "cluster_analysis_output"


def test_page_of_a_simulated_job_shows_what_findings_json_and_the_tables_say(viewer, output):
    page = viewer.open((output / "report.html").read_bytes())
    findings = json.loads((output / "findings.json").read_text())

    assert page.evaluate("clusterReport.run.document") == findings
    shown = page.locator("details.finding")
    expect(shown).to_have_count(len(findings["findings"]))
    for index, finding in enumerate(findings["findings"]):
        expect(shown.nth(index)).to_contain_text(finding["summary"])
    rows = pq.read_table(output / "tables" / "steps.parquet").to_pylist()
    values = page.evaluate(
        """asked => { const run = clusterReport.run;
            const bin = (step) => run.bins.findIndex((one) => one[0] === step);
            return asked.map(([rank, step]) => run.value("computing", rank, bin(step))); }""",
        [[row["rank"], row["step"]] for row in rows],
    )
    assert values == pytest.approx([row["computing_us"] for row in rows], rel=1e-6)
    links = pq.read_table(output / "tables" / "links.parquet").num_rows
    assert page.evaluate("clusterReport.run.linksTotal") == links


def test_page_of_a_simulated_job_names_the_slow_rank_first_and_draws_everything(viewer, output):
    page = viewer.open((output / "report.html").read_bytes())
    page.screenshot(path=SCREENSHOTS / "simulated-first-screen.png")
    show_all(page)

    expect(page.locator("h1")).to_contain_text("slow rank 13")
    open_every_finding(page)
    expect(page.locator(".waiting tr").first).to_have_text(re.compile("^TP · ranks 12-15"))
    page.screenshot(path=SCREENSHOTS / "simulated-32-ranks.png", full_page=True)


def test_timeline_and_comparison_of_a_simulated_job_hold_every_rank(viewer, output, tmp_path):
    argv = [
        str(output.parent),
        "--baseline",
        str(output.parent),
        "--timeline",
        "--output",
        str(tmp_path),
        "-q",
    ]
    assert analyse(argv) == 0
    (timeline,) = tmp_path.glob("*.json.gz")
    document = json.loads(gzip.decompress(timeline.read_bytes()))
    slices = [event for event in document["traceEvents"] if event.get("cat") == "communication"]
    page = viewer.open((tmp_path / "report.html").read_bytes())
    show_all(page)

    assert {event["args"]["rank"] for event in slices} == set(range(32))
    assert len(document["otherData"]["clocks"]) == 4
    assert all(clock["error_us"] < 1000 for clock in document["otherData"]["clocks"].values())
    # A run beside itself: nothing moved.
    expect(page.locator("#changes tbody tr")).to_have_count(1)
    expect(page.locator("#changes")).to_contain_text("within noise")


def test_the_picture_of_the_readme_is_made_by_the_script_and_small(browser, tmp_path):
    # Playwright's synchronous interface allows one loop a thread: another process takes the picture.
    picture = tmp_path / "report.png"
    argv = [sys.executable, "-m", "tools.renew_picture", str(picture)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=200)

    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 300_000
