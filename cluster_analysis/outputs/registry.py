"""All reports. A new one is a module, and a line here.

Reports stand here by the names of their modules, which are imported when they are asked for: `--help`, and a
run without a page, do not pay for what draws the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

from cluster_run.layout import COMPARISON_NAME, FINDINGS_NAME, REPORT_NAME, TABLES_NAME, TIMELINE_NAME

if TYPE_CHECKING:
    from cluster_analysis.options import AnalyseOptions
    from cluster_analysis.result import FileReporter, TextReporter


def _always(options: AnalyseOptions) -> bool:
    return True


class FileReport(NamedTuple):
    """A report in files. `--help` needs it, which need not wait for what makes Structs.

    Attributes:
        module: dotted name of a `FileReporter`.
        owned: the file or directory of the output folder that is this report's; an older one is removed.
        is_wanted: whether a run with these options writes it.
        by_arrow: whether Arrow does most of the work, so that the interpreter can do another one meanwhile.
    """

    module: str
    owned: str
    is_wanted: Callable[[AnalyseOptions], bool] = _always
    by_arrow: bool = False

    def reporter(self) -> FileReporter:
        """Return the module."""
        return cast("FileReporter", import_module(self.module))


#: Reports for stdout, by their name for `--format`: each a `TextReporter`. The first one is the default.
TEXTS: Mapping[str, str] = {
    "terminal": "cluster_analysis.reports.terminal",
    "json": "cluster_analysis.findings_json",
    "markdown": "cluster_analysis.reports.markdown",
}
#: The files of the output, in the order of their writing. Findings come last: if they exist, all else does.
FILES: tuple[FileReport, ...] = (
    FileReport("cluster_analysis.reports.parquet", TABLES_NAME, by_arrow=True),
    FileReport("cluster_analysis.reports.html", REPORT_NAME, lambda options: options.write_report),
    FileReport(
        "cluster_analysis.reports.timeline.perfetto", TIMELINE_NAME, lambda options: options.write_timeline
    ),
    FileReport("cluster_analysis.outputs.comparison_json", COMPARISON_NAME),
    FileReport("cluster_analysis.findings_json", FINDINGS_NAME),
)


def text_reporter(name: str) -> TextReporter:
    """Return the module that shows a result in the form of this name."""
    return cast("TextReporter", import_module(TEXTS[name]))
