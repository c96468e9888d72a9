"""report.html: one file that works offline. The only module that knows jinja2."""

from __future__ import annotations

import jinja2

from cluster_analysis.reports import wording
from cluster_analysis.result import AnalysisResult


def render(result: AnalysisResult, baseline: object | None = None) -> bytes:
    """Return the page as UTF-8; with a baseline it shows before, after and what moved."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cluster_analysis.reports", "assets"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("report.html.j2")
    return template.render(result=result, document=result.document, words=wording).encode()
