"""The page on paper: read back from the PDF that the browser prints."""

import shutil
import subprocess
from functools import partial

import numpy as np
import pytest

from tests.analysis.reports import builder
from tests.analysis.reports.pages import page_of
from tests.browser.pages import JOBS, several_runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def printed_shares(path):
    """Return how far down each sheet of a PDF something is printed, as a share of its height."""
    pages = subprocess.run(["pdftoppm", "-r", "12", "-gray", path], capture_output=True, check=True).stdout
    shares = []
    while pages:
        _, size, _, pages = pages.split(b"\n", 3)
        width, height = map(int, size.split())
        sheet = np.frombuffer(pages[: width * height], np.uint8).reshape(height, width)
        shares.append((np.flatnonzero((sheet < 235).any(axis=1)).max(initial=0) + 1) / height)
        pages = pages[width * height :]
    return shares


PAGES = {
    **{
        f"{job.n_ranks}-ranks": partial(lambda one: page_of(builder.degraded(one), builder.comparison()), job)
        for job in JOBS.values()
    },
    "several-runs": several_runs,
}


def test_charts_are_drawn_before_the_listeners_of_printing_return(viewer):
    # Firefox prints what stands there then.
    page = viewer.open(PAGES["32-ranks"]())
    legends = page.evaluate("""() => {
      dispatchEvent(new Event("beforeprint"));
      return [...document.querySelectorAll(".u-legend")].map((one) => one.textContent);
    }""")

    assert legends
    assert [one for one in legends if "ms" not in one] == []


@pytest.mark.parametrize(
    ("name", "language"),
    [("32-ranks", "en-GB"), ("120-ranks", "zh-CN"), ("several-runs", "zh-CN"), ("several-runs", "en-GB")],
)
def test_no_heading_stands_alone_at_the_end_of_a_printed_sheet(viewer, name, language, tmp_path):
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed (Debian: apt-get install poppler-utils)")
    page = viewer.open(PAGES[name](), locale=language)
    headings = {text for text in page.locator("h2, h3").all_inner_texts() if text.strip()}
    page.emulate_media(media="print")  # the tab shows it as on a screen, and would print that
    path = tmp_path / "printed.pdf"
    page.pdf(path=path, format="A4", print_background=True)
    done = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True)
    sheets = [sheet.strip().splitlines() for sheet in done.stdout.split("\f") if sheet.strip()]

    assert len(sheets) >= (1 if name == "several-runs" else 3)
    assert [share for share in printed_shares(path)[:-1] if share < 0.5] == []
    assert [sheet[-1] for sheet in sheets if sheet[-1].strip() in headings] == []
