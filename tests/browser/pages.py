"""Pages that several tests open: rendered once, as the largest takes a second."""

from __future__ import annotations

from functools import cache

from cluster_analysis.reports import runs_page
from tests.analysis.reports import builder
from tests.analysis.reports.pages import page_of

#: What is promised is held at both sizes: beyond 64 ranks and 12 hosts all are built alike.
LARGE = 120
JOBS = {32: builder.Job(), LARGE: builder.Job(tp=8, dp=5, pp=3, n_steps=10)}


@cache
def degraded(n_ranks: int = 32) -> bytes:
    """Return the page of a job with a slow rank and a slow link."""
    return page_of(builder.degraded(JOBS[n_ranks]))


@cache
def several_runs() -> bytes:
    """Return the page of four runs; one could not be judged, one not be read."""
    results = (builder.degraded(), builder.healthy(), builder.unknown(), "no capture is in it")
    listed = [
        runs_page.ListedRun(f"run{i}", f"run{i}/report.html", one) for i, one in enumerate(results, start=1)
    ]
    return runs_page.render(listed, runs_page.title_of_change(listed))
