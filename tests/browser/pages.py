"""Pages that several tests open: rendered once, as the largest takes a second."""

from __future__ import annotations

from functools import cache

from cluster_analysis.reports import html
from tests.analysis.reports import builder

#: What is promised is held at both sizes.
JOBS = {32: builder.Job(), 1024: builder.Job(tp=8, dp=32, pp=4, n_steps=10)}


@cache
def degraded(n_ranks: int = 32) -> bytes:
    """Return the page of a job with a slow rank and a slow link."""
    return html.render(builder.degraded(JOBS[n_ranks]))
