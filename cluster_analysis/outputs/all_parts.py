"""Judges all parts of a tree one after the other: an output folder each, and one page with links to them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.engine.read_ranks import Progress
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.output_folder import INSIGHT_NAMES, new_output
from cluster_analysis.outputs.everything import Kept, kept_files, write_everything
from cluster_analysis.outputs.registry import FILES
from cluster_analysis.pipeline import examined
from cluster_analysis.reports import runs_page
from cluster_analysis.reports.runs_page import ListedRun
from cluster_analysis.result import AnalysisResult, Reported
from cluster_analysis.sentences import verdicts
from cluster_run.errors import InputError
from cluster_run.layout import PARTS_INDEX_NAME, PARTS_NAME, REPORT_NAME

_NOT_IN_NAMES = re.compile(r"[^\w.-]+")
#: `cluster-analyse --all-parts` writes this form of parts.json.
SCHEMA = "cluster-parts/1"


class Parts(Struct, frozen=True):
    """Results of each part by name, or the reason for none; and files that stay."""

    outcomes: dict[str, Reported | str]
    kept: Kept

    def results(self) -> dict[str, AnalysisResult]:
        """Return what was found of the parts that could be analysed."""
        return {name: one.result for name, one in self.outcomes.items() if isinstance(one, Reported)}


def judge_all(
    options: AnalyseOptions, names: Sequence[str], on_progress: Progress, remark: Callable[[str], None] | None
) -> Parts:
    """Judge each part, and write all of it at once.

    Raises:
        InputError: no part could be analysed, or the output folder cannot be written.
    """
    outcomes: dict[str, Reported | str] = {}
    folders = _folders(names)
    owned = (INSIGHT_NAMES, *((one.owned,) for one in FILES), (PARTS_NAME, PARTS_INDEX_NAME))
    with new_output(options.output_folder, owned) as staging:
        for name in names:
            own = replace(options, part=name, output=staging / PARTS_NAME / folders[name])
            try:
                with examined(own, on_progress, remark) as one:
                    outcomes[name] = write_everything(one, on_progress).reported
            except InputError as error:
                outcomes[name] = str(error)
        if all(isinstance(outcome, str) for outcome in outcomes.values()):
            raise InputError(f"{options.run}: no part could be analysed: {next(iter(outcomes.values()))}")
        (staging / PARTS_INDEX_NAME).write_text(_index(outcomes, folders), "utf-8")
        if options.write_report:
            (staging / REPORT_NAME).write_bytes(_page(options.run, outcomes, folders))
        kept = kept_files(options.output_folder, staging, owned)
    return Parts(outcomes, kept)


def _folders(names: Sequence[str]) -> dict[str, str]:
    """Return the name of a folder for each part, no two the same."""
    folders: dict[str, str] = {}
    for number, name in enumerate(names):
        plain = _NOT_IN_NAMES.sub("-", name).strip(".-") or "part"
        folders[name] = plain if plain not in folders.values() else f"{plain}-{number}"
    return folders


def _index(outcomes: dict[str, Reported | str], folders: dict[str, str]) -> str:
    parts = [
        {
            "name": name,
            "folder": f"{PARTS_NAME}/{folders[name]}",
            "verdict": one.result.document.verdict if isinstance(one, Reported) else "unknown",
            "says": _says(one),
        }
        for name, one in outcomes.items()
    ]
    return json.dumps({"schema": SCHEMA, "parts": parts}, indent=1, ensure_ascii=False) + "\n"


def _says(outcome: Reported | str) -> str:
    """Return the verdict in one sentence, or why there is none."""
    return outcome if isinstance(outcome, str) else verdicts.verdict_sentence(outcome.result.document).en


def _page(run: Path, outcomes: dict[str, Reported | str], folders: dict[str, str]) -> bytes:
    listed = [
        ListedRun(
            name or ".",
            f"{PARTS_NAME}/{quote(folders[name])}/{REPORT_NAME}",
            one if isinstance(one, str) else one.result,
        )
        for name, one in outcomes.items()
    ]
    return runs_page.render(listed, runs_page.title_of_parts(run.resolve().name, len(listed)))
