"""What `cluster-analyse` leaves behind, file by file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from cluster_analysis.findings import document_to_json
from cluster_analysis.insight.files import is_database_job, write_database, write_text_files
from cluster_analysis.outputs.folder import new_output
from cluster_analysis.pipeline import Examined, Progress, judged
from cluster_analysis.reports import parquet
from cluster_analysis.result import AnalysisResult
from cluster_run.layout import FINDINGS_NAME, REPORT_NAME, TABLES_NAME


def write_everything(examined: Examined, tell: Progress) -> AnalysisResult:
    """Judge, and write the output folder; it changes only when every file of it could be written.

    Raises:
        InputError: it cannot be written, or the input changes under our eyes.
    """
    with new_output(examined.options.output_folder) as folder:
        with _meanwhile(lambda: _write_for_insight(examined, folder), examined.engine.n_workers > 1):
            tell("detecting", 0, 1)
            result = judged(examined)
            tell("writing tables", 0, 1)
            parquet.write(result, folder / TABLES_NAME)
            if examined.options.write_report:
                tell("writing the report", 0, 1)
                _write_report(result, folder / REPORT_NAME)
            tell("writing files for Insight", 0, 1)
        (folder / FINDINGS_NAME).write_text(document_to_json(result.document), encoding="ascii")
    return result


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


def _write_report(result: AnalysisResult, path: Path) -> None:
    # Imported late: without a report nobody pays for the templates.
    from cluster_analysis.reports import html  # noqa: PLC0415

    path.write_bytes(html.render(result))
