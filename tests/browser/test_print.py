"""The page on paper: read back from the PDF that the browser prints."""

import shutil
import subprocess

import pytest

from cluster_analysis.reports import html
from tests.analysis.reports import builder
from tests.browser.conftest import SCREENSHOTS
from tests.browser.pages import JOBS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
@pytest.mark.parametrize("job", JOBS.values(), ids=lambda job: f"{job.n_ranks}-ranks")
def test_no_heading_stands_alone_at_the_end_of_a_printed_sheet(viewer, job, language):
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed (Debian: apt-get install poppler-utils)")
    page = viewer.open(html.render(builder.degraded(job), builder.comparison()), locale=language)
    headings = {text for text in page.locator("h2, h3").all_inner_texts() if text.strip()}
    path = SCREENSHOTS / f"printed-{job.n_ranks}-{language}.pdf"
    page.pdf(path=path, format="A4", print_background=True)
    done = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True)
    sheets = [sheet.strip().splitlines() for sheet in done.stdout.split("\f") if sheet.strip()]

    assert len(sheets) >= 3
    assert [sheet[-1] for sheet in sheets if sheet[-1].strip() in headings] == []
