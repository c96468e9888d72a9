"""Size and load time of report.html: simulated jobs of 32 and 1024 ranks, and 10 240 ranks made by hand.

    python -m benchmarks.report [--quick]

The baseline is in the last table: one matrix of 1024 × 1024 from packed columns on our own canvas, from JSON
numbers on the same canvas, and with an SVG rectangle a cell, opened by the same browser in the same run.
`--quick` leaves out the simulation of 1024 ranks, which takes a minute; tables made by hand stand for it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.jobs import THIN
from cluster_analysis.judging import judged
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.pipeline import examined
from cluster_analysis.reports import html
from cluster_analysis.reports.page.packing import pack
from cluster_analysis.result import AnalysisResult, Reported
from cluster_simulate.cli import main as simulate
from tests.analysis.reports import builder
from tools.chromium import ARGUMENTS, MISSING, find_chromium

ROUNDS = 3
TIMEOUT_MS = 120_000


def main() -> int:
    """Print one row a page: size, time to render in Python, time until it answers and until all is drawn."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    chromium = find_chromium()
    if chromium is None:
        print(MISSING, file=sys.stderr)
        return 1
    is_quick = "--quick" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        folder = Path(directory)
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        print(f"{'page':34} {'size MB':>8} {'render s':>9} {'ready ms':>8} {'drawn ms':>8} {'heap MB':>8}")
        for name, result in results(folder, is_quick):
            started = time.perf_counter()
            ((_, page),) = html.files(Reported(result))
            print_row(browser, folder, name, page, time.perf_counter() - started)
        print(f"\n{'1024 × 1024 matrix (baseline)':34} {'size MB':>8} {'':>9} {'drawn ms':>8}")
        for name, page in matrices().items():
            path = folder / "matrix.html"
            path.write_bytes(page)
            times = [open_page(browser, path)["drawn"] for _ in range(ROUNDS)]
            print(f"{name:34} {len(page) / 1e6:8.2f} {'':>9} {min(times):8.0f}")
        browser.close()
    return 0


def results(folder: Path, is_quick: bool) -> list[tuple[str, AnalysisResult]]:
    """Return the jobs whose pages are measured."""
    small = simulated(folder / "small", ["--tp", "4", "--pp", "2", "--dp", "4", "--steps", "5"])
    rows = [("32 ranks × 5 steps, simulated", small)]
    if not is_quick:
        # The page has ranks, steps, links and groups, and of the operators but the slowest: few will do.
        sizes = ["--tp", "8", "--pp", "4", "--dp", "32", "--steps", "10", *THIN]
        large = simulated(folder / "large", sizes)
        rows.append(("1024 ranks × 10 steps, simulated", large))
    by_hand = {
        "1024 ranks × 10 steps, by hand": builder.Job(tp=8, dp=32, pp=4, n_steps=10),
        "10 240 ranks × 10 steps, by hand": builder.Job(tp=8, dp=160, pp=8, n_steps=10),
        "10 240 ranks × 100 steps, by hand": builder.Job(tp=8, dp=160, pp=8, n_steps=100),
    }
    return [*rows, *((name, builder.degraded(job)) for name, job in by_hand.items())]


def simulated(run: Path, sizes: list[str]) -> AnalysisResult:
    """Simulate a job with a slow rank and a slow link, and analyse it."""
    faults = ["--scenario", "slow_rank:1.25", "--scenario", "slow_link:3"]
    code = simulate([str(run), *sizes, *faults, "-q"])
    if code != 0:
        raise SystemExit(f"cluster-simulate ended with {code}")
    with examined(AnalyseOptions(run=run)) as one:
        result = judged(one)
    shutil.rmtree(run)
    return result


def print_row(browser: Any, folder: Path, name: str, page: bytes, render_s: float) -> None:
    """Open a page ROUNDS times; the shortest times count, as the machine does other things too."""
    path = folder / "report.html"
    path.write_bytes(page)
    opened = [open_page(browser, path) for _ in range(ROUNDS)]
    times = " ".join(f"{min(one[name] for one in opened):8.0f}" for name in ("ready", "drawn", "heap"))
    print(f"{name:34} {len(page) / 1e6:8.2f} {render_s:9.2f} {times}", flush=True)


def open_page(browser: Any, path: Path) -> dict[str, float]:
    """Return ms from the start of loading until the page answers and is drawn, by its clock; heap in MB."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(TIMEOUT_MS)
    page.goto(path.as_uri())
    page.wait_for_function("() => performance.getEntriesByName('drawn').length > 0")
    marks = "performance.getEntriesByType('mark').map((one) => [one.name, one.startTime])"
    heap_mb = page.evaluate("performance.memory ? performance.memory.usedJSHeapSize / 1e6 : 0")
    found = {**dict(page.evaluate(marks)), "heap": heap_mb}
    page.close()
    return found


DRAW = """
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1024;
  document.body.append(canvas);
  const paint = canvas.getContext("2d"), image = paint.createImageData(1024, 1024);
  values.forEach((value, i) => {
    const shade = Math.min(255, value * 6);
    image.data.set([shade, shade, 255 - shade, 255], i * 4);
  });
  paint.putImageData(image, 0, 0);
  performance.mark("drawn");
"""
UNPACK = """
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  new Response(stream).arrayBuffer().then((content) => {
    const length = new DataView(content).getUint32(0, true), start = 8 + Math.ceil(length / 8) * 8;
    const values = new Float32Array(content, start, 1048576);
    DRAW
  });
"""


def matrices() -> dict[str, bytes]:
    """The same full matrix in three ways of drawing."""
    values = np.random.default_rng(1).gamma(9.0, 2.2, (1024, 1024)).astype(np.float32)
    data = f"<script type=text/plain id=data>{pack({}, {'v': values})}</script>"
    packed = f"<body>{data}<script>{UNPACK.replace('DRAW', DRAW)}</script>"
    numbers = json.dumps([round(float(value), 2) for value in values.reshape(-1)])
    plain = f"<body><script>const values = {numbers}; {DRAW}</script>"
    # A quarter of the rows: all of them keep the browser busy for minutes.
    cells = "".join(
        f'<rect x="{x}" y="{y}" width="1" height="1" fill="rgb({min(255, int(value * 6))} 90 120)"/>'
        for y, row in enumerate(values[:256])
        for x, value in enumerate(row)
    )
    svg = f'<body><svg width="1024" height="1024">{cells}</svg><script>performance.mark("drawn")</script>'
    return {
        "own canvas, packed columns": packed.encode(),
        "own canvas, JSON numbers": plain.encode(),
        "SVG, 256 of 1024 rows": svg.encode(),
    }


if __name__ == "__main__":
    raise SystemExit(main())
