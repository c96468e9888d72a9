"""Pages of real captures: little ranks, few steps, missing hosts; and the largest page that is promised."""

from pathlib import Path

import pytest

from cluster_analysis.cli import main as analyse
from tests.analysis.reports import builder
from tests.analysis.reports.pages import page_of
from tests.browser.acting import expect, open_every_finding, open_finding, wait_for_tip

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

DATA = Path(__file__).parents[3] / "shared" / "data"
CAPTURES = ["qwen3-4ranks-pt", "gpt3-16ranks-pt", "mindspore-r1-4ranks", "resnet-2of8-pt-db"]


@pytest.mark.parametrize("name", CAPTURES)
def test_page_of_a_real_capture_opens_and_draws_without_an_error(viewer, tmp_path, name):
    if not (DATA / name).is_dir():
        pytest.skip(f"the shared capture {name} is not beside the repository")
    analyse([str(DATA / name), "--output", str(tmp_path), "-q"])
    page = viewer.open((tmp_path / "report.html").read_bytes())
    open_every_finding(page)

    expect(page.locator(".badge")).to_have_text("Could not tell")


def test_page_of_ten_thousand_ranks_draws_and_keeps_the_slow_rank_visible(viewer):
    page = viewer.open(page_of(builder.degraded(builder.Job(tp=8, dp=160, pp=8, n_steps=10))))
    open_finding(page)
    page.locator("#bars-sort").select_option("compute_only")
    page.locator("#bars-top").select_option("16")
    page.locator("#bars canvas").hover(position={"x": 92, "y": 200})

    wait_for_tip(page, f"rank {builder.SLOW_RANK} = ")
