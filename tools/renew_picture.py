"""Takes the README's picture: the report of the demo's job in Chromium, so that the picture never lies.

python -m tools.renew_picture [docs/images/report.png]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from demo.__main__ import FAULTS, JOB

PICTURE = Path("docs/images/report.png")
#: Wide enough for the page's full layout; the README shows it at about this size.
WIDTH, HEIGHT = 1180, 1025
#: For a machine that does other things too.
TIMEOUT_MS = 60_000


def take_picture(picture: Path) -> None:
    """Simulate and analyse the demo's job, open its report with the first finding, write a PNG."""
    scenario = [argument for fault in FAULTS for argument in ("--scenario", fault)]
    with tempfile.TemporaryDirectory() as directory:
        _command(directory, "cluster_simulate", "run1", *JOB, *scenario)
        _command(directory, "cluster_analysis", "run1")
        report = Path(directory, "run1", "cluster_analysis_output", "report.html")
        picture.parent.mkdir(parents=True, exist_ok=True)
        _screenshot(report, picture)


def _screenshot(report: Path, picture: Path) -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (only this function needs a browser)

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("chromium is missing: apt-get install chromium")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, locale="en-GB")
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(report.as_uri())
        page.wait_for_function("() => window.clusterReport && window.clusterReport.drawn")
        page.locator("details.finding summary").first.click()
        # The browser reports an opened finding some time after the click; only then is its evidence drawn.
        page.locator("details.finding[data-drawn=yes] .drawn canvas").first.wait_for()
        page.mouse.move(0, 0)
        page.screenshot(path=picture)
        browser.close()


def _command(directory: str, module: str, *arguments: str) -> None:
    subprocess.run(  # noqa: S603 (our own modules)
        [sys.executable, "-m", module, *arguments], cwd=directory, capture_output=True, check=True
    )


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    take_picture(target)
    print(f"{target}: {target.stat().st_size // 1000} kB")
