"""All reports. A new one is a module, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from cluster_analysis import findings_json
from cluster_analysis.options import FORMATS, AnalyseOptions
from cluster_analysis.outputs import comparison_json
from cluster_analysis.reports import html, markdown, parquet, terminal
from cluster_analysis.reports.timeline import perfetto
from cluster_analysis.result import Reported, Shown
from cluster_run.layout import COMPARISON_NAME, FINDINGS_NAME, REPORT_NAME, TABLES_NAME, TIMELINE_NAME


@dataclass(frozen=True)
class FileReport:
    """A report in files.

    Attributes:
        files: gives each file: its name in the output folder, and its content.
        owned: the file or directory of the output folder that is this report's; an older one is removed.
        holds: what it is, for docs/commands.md.
        is_wanted: whether a run with these options writes it.
    """

    files: Callable[[Reported], Iterator[tuple[str, bytes]]]
    owned: str
    holds: str
    is_wanted: Callable[[AnalyseOptions], bool] = lambda _: True


#: Reports for stdout, by their name for `--format`: each gives a text that ends with a newline.
TEXTS: Mapping[str, Callable[[Reported, Shown], str]] = dict(
    zip(FORMATS, (terminal.text, findings_json.text, markdown.text), strict=True)
)
#: The files of the output, in the order of their writing. Findings come last: if they exist, all else does.
FILES: tuple[FileReport, ...] = (
    FileReport(parquet.files, TABLES_NAME, "all numbers: [tables and columns](api.md#tables-and-columns)"),
    FileReport(html.files, REPORT_NAME, "[the page](report.md)", lambda options: options.write_report),
    FileReport(
        perfetto.files,
        TIMELINE_NAME,
        "with `--timeline`: for Perfetto",
        lambda options: options.write_timeline,
    ),
    FileReport(comparison_json.files, COMPARISON_NAME, "with `--baseline`: [what changed](fields.md)"),
    FileReport(findings_json.files, FINDINGS_NAME, "verdict and findings: [fields](fields.md)"),
)
