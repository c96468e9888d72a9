"""report.html: one file that works offline.

What has to be read without a script (verdict, step, findings, problems) is plain HTML. Everything drawn is in
a compressed payload. Text reaches the page escaped by the template or as base64, never as markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache

from msgspec.structs import asdict

from cluster_analysis.findings_json import document_to_json
from cluster_analysis.judge.baseline import Comparison
from cluster_analysis.reports import markdown
from cluster_analysis.reports.commands import commands, naming_command
from cluster_analysis.reports.page.assembly import ASSETS, DRAWING, STYLES, assembled, words_of_scripts
from cluster_analysis.reports.page.bubbles import build_bubbles
from cluster_analysis.reports.page.cube import build_cube
from cluster_analysis.reports.page.described import advice_rows, described_sections
from cluster_analysis.reports.page.drawn import device_map, memory_curves, packet_bars
from cluster_analysis.reports.page.packing import pack
from cluster_analysis.reports.page.per_rank import build_per_rank
from cluster_analysis.reports.page.replayed import build_lanes, build_who_waits
from cluster_analysis.reports.page.sections import FULL_SHARE, is_nearly_full, sections_of
from cluster_analysis.reports.page.traffic import build_traffic
from cluster_analysis.reports.step_time import (
    FAR_OF_PART,
    FAR_OF_STEP,
    blamed,
    cost_of_imbalance,
    step_parts,
    unusual_steps,
)
from cluster_analysis.result import AnalysisResult, Reported
from cluster_analysis.sentences import changes, costs, phrases, subjects, verdicts
from cluster_run.kinds import HOST_KINDS, UNIT_KINDS
from cluster_run.layout import REPORT_NAME
from cluster_words.checks import next_check, page_of
from cluster_words.findings import chain, summary
from cluster_words.headings import counted, say
from cluster_words.notes import TOLD, note, reasons
from cluster_words.pages import templates
from cluster_words.problems import advice, reason

_SCRIPTS = (
    *DRAWING, "js/evidence.js", "js/stacks.js", "js/bars.js", "js/trend.js", "js/heat.js",
    "js/lanes.js", "js/grid.js", "js/whowaits.js", "js/bubbles.js", "js/memory.js", "js/map.js",
    "js/matrix.js", "js/tables.js", "js/baseline.js", "js/panel.js", "js/rank.js", "js/search.js",
    "js/opening.js", "js/main.js",
)  # fmt: skip


def files(given: Reported) -> Iterator[tuple[str, bytes]]:
    """Give the page; with a baseline it shows before, after and what moved."""
    result, baseline = given.result, given.comparison
    parts = step_parts(result)
    sections = sections_of(result)
    values = {
        "result": result,
        "commands": lambda finding: commands(finding, result),
        "naming_command": lambda host: naming_command(host, result),
        "locate": subjects.locator(result),
        "shown": sections.shown,
        "absent": sections.absent,
        "is_full": is_nearly_full(result),
        "reasons": reasons(result.document),
        "told": TOLD,
        "document": result.document,
        "baseline": baseline,
        "since": changes.since(baseline) if baseline else (),
        "problems": phrases.problem_groups(result.document),
        "parts": parts,
        "named": blamed(result.document),
        "unusual_steps": unusual_steps(result),
        "imbalance": cost_of_imbalance(result.document),
        "parts_us": sum(part.mean_us for part in parts),
        "payload": _payload(result, baseline, markdown.ticket_of(given)),
        "analysed": phrases.moment(result.document.run.analysed or given.analysed),
        "captured": phrases.moment(result.document.run.captured),
    }
    styles, vendored = ("uplot/uPlot.min.css", *STYLES), ("uplot/uPlot.iife.min.js",)
    yield REPORT_NAME, assembled(_filled(), _SCRIPTS, styles, values, vendored)


@cache
def _filled() -> Callable[..., str]:
    """Return what makes the page of values: compiled once a process, with what it calls for any result."""
    environment = templates(ASSETS)
    environment.globals.update(
        say=say, counted=counted, phrases=phrases, subjects=subjects, verdicts=verdicts, costs=costs,
        described_sections=described_sections, advice_rows=advice_rows, memory_curves=memory_curves,
        packet_bars=packet_bars, device_map=device_map, summary=summary, next_check=next_check, chain=chain,
        note=note, page_of=page_of, reason=reason, advice=advice, changes=changes,
    )  # fmt: skip
    return environment.get_template("report.html.j2").render


def _payload(result: AnalysisResult, baseline: Comparison | None, ticket: str) -> str:
    cube = build_cube(result)
    drawn = [build(result) for build in (build_traffic, build_lanes, build_who_waits, build_bubbles)]
    per_rank = build_per_rank(result, cube.ranks)
    topology = result.topology
    header = {
        **{name: value for one in drawn for name, value in one.header.items()},
        "document": json.loads(document_to_json(result.document)),
        "addresses": dict(result.addresses),
        "ranks": list(cube.ranks),
        "bins": [list(steps) for steps in cube.bins],
        "metrics": list(cube.values),
        "places": [list(topology.place_of(rank)) for rank in topology.ranks],
        "placed": list(topology.ranks),
        "changes": [asdict(change) for change in baseline.changes] if baseline else [],
        **per_rank.header,
        "ticket": ticket,
        "metric_names": dict(phrases.METRIC_NAMES),
        "unit_kinds": sorted(UNIT_KINDS),
        "host_kinds": sorted(HOST_KINDS),
        "words": words_of_scripts(),
        "limits": {"full": FULL_SHARE, "far_of_part": FAR_OF_PART, "far_of_step": FAR_OF_STEP},
    }
    columns = {
        name: values for one in (drawn[0], per_rank, *drawn[1:]) for name, values in one.columns.items()
    }
    return pack(header, {**cube.values, **columns})
