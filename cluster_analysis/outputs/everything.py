"""What `cluster-analyse` leaves behind, file by file."""

from __future__ import annotations

from pathlib import Path

from cluster_analysis.findings import document_to_json
from cluster_analysis.insight.files import is_database_job, write_database, write_text_files
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.outputs.folder import new_output
from cluster_analysis.pipeline import Examined, Progress
from cluster_analysis.reports import parquet
from cluster_run.layout import FINDINGS_NAME, REPORT_NAME, TABLES_NAME


def write_everything(examined: Examined, options: AnalyseOptions, tell: Progress) -> None:
    """Write the output folder; it changes only when every file of it could be written.

    Raises:
        InputError: it cannot be written.
    """
    with new_output(options.output_folder) as folder:
        tell("writing tables", 0, 1)
        parquet.write(examined.result, folder / TABLES_NAME)
        tell("writing files for Insight", 0, 1)
        if is_database_job(examined.sources):
            write_database(examined, options.selection, folder)
        else:
            write_text_files(examined, options.selection, folder)
        if options.write_report:
            tell("writing the report", 0, 1)
            _write_report(examined, folder / REPORT_NAME)
        (folder / FINDINGS_NAME).write_text(document_to_json(examined.result.document), encoding="ascii")


def _write_report(examined: Examined, path: Path) -> None:
    # Imported late: without a report nobody pays for the templates.
    from cluster_analysis.reports import html  # noqa: PLC0415

    path.write_bytes(html.render(examined.result))
