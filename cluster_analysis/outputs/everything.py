"""What `cluster-analyse` leaves behind, file by file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_analysis.engine.read_ranks import Progress
from cluster_analysis.findings_json import document_to_json
from cluster_analysis.insight.files import (
    collectives_by_step,
    is_database_job,
    write_database,
    write_text_files,
)
from cluster_analysis.output_folder import COMPARISON_NAME, TIMELINE_NAME, new_output
from cluster_analysis.pipeline import Examined, compared, judged
from cluster_analysis.reports import changes, parquet, wording
from cluster_analysis.result import AnalysisResult
from cluster_analysis.run_header import now
from cluster_run.layout import FINDINGS_NAME, REPORT_NAME, TABLES_NAME

if TYPE_CHECKING:
    from cluster_analysis.judge.baseline import Comparison
    from cluster_analysis.judge.told_before import Matched

#: The files for Insight are about as large as what they are made of; larger ones only on demand.
MAX_INSIGHT_BYTES = 512_000_000
#: Version of comparison.json.
COMPARISON_SCHEMA = "cluster-comparison/1"


@dataclass(frozen=True)
class Written:
    """What was found, and what changed since the baseline if one was named."""

    result: AnalysisResult
    comparison: Comparison | None
    #: Size that the files for Insight would have had, where they were left out because of it.
    left_out_bytes: int | None = None


def write_everything(examined: Examined, tell: Progress) -> Written:
    """Judge, and write the output folder; it changes only when every file of it could be written.

    Raises:
        InputError: it cannot be written, the baseline cannot be analysed, or the input changes.
    """
    options = examined.options
    with new_output(options.output_folder) as folder:
        size_bytes = sum(source.size_bytes for source in examined.sources)
        is_too_large = options.write_insight is None and size_bytes > MAX_INSIGHT_BYTES
        wants_insight = options.write_insight if options.write_insight is not None else not is_too_large
        insight = (lambda: _write_for_insight(examined, folder)) if wants_insight else _nothing
        with _meanwhile(insight, examined.engine.n_workers > 1):
            tell("detecting", 0, 1)
            result = judged(examined)
            comparison = compared(examined, result, tell)
            tell("writing tables", 0, 1)
            parquet.write(result, folder / TABLES_NAME)
            if options.write_report:
                tell("writing the report", 0, 1)
                _write_report(result, comparison, folder / REPORT_NAME)
            if wants_insight:
                tell("writing files for Insight", 0, 1)
        if options.write_timeline:
            tell("writing the timeline", 0, 1)
            _write_timeline(examined, result, folder / TIMELINE_NAME)
        if comparison is not None:
            (folder / COMPARISON_NAME).write_text(_comparison_json(comparison), encoding="ascii")
        (folder / FINDINGS_NAME).write_text(document_to_json(result.document), encoding="ascii")
    return Written(result, comparison, size_bytes if is_too_large else None)


def _nothing() -> None:
    """Write no files for Insight."""


@contextmanager
def _meanwhile(work: Callable[[], None], in_parallel: bool) -> Iterator[None]:
    """Do `work` beside the block, or after it; the workers do most of it either way."""
    if not in_parallel:
        yield
        work()
        return
    with ThreadPoolExecutor(1, thread_name_prefix="insight") as thread:
        pending = thread.submit(work)
        yield
        pending.result()


def _write_for_insight(examined: Examined, folder: Path) -> None:
    if is_database_job(examined.sources):
        write_database(examined, folder)
    else:
        write_text_files(examined, folder)


def _write_report(result: AnalysisResult, comparison: Comparison | None, path: Path) -> None:
    # Imported late: without a report nobody pays for the templates.
    from cluster_analysis.reports import html  # noqa: PLC0415

    path.write_bytes(html.render(result, comparison, now()))


def _write_timeline(examined: Examined, result: AnalysisResult, path: Path) -> None:
    from cluster_analysis.reports.timeline import perfetto  # noqa: PLC0415

    path.write_bytes(perfetto.render(result, list(collectives_by_step(examined))))


def _comparison_json(comparison: Comparison) -> str:
    matched = {
        state: [_matched_plain(one) for one in comparison.findings if one.state == state]
        for state in ("fixed", "still", "new")
    }
    document = {
        "schema": COMPARISON_SCHEMA,
        "changes": [asdict(one) for one in comparison.changes],
        "summary": [one.en for one in changes.summary(comparison)],
        "refusals": [one.en for one in changes.refusals(comparison)],
        **matched,
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _matched_plain(one: Matched) -> dict[str, object]:
    return {
        "id": one.finding.id,
        "kind": one.finding.kind,
        "what": wording.subject(one.finding),
        "before_ms": one.before.cost_ms_per_step if one.before else None,
        "after_ms": one.after.cost_ms_per_step if one.after else None,
    }
