"""Writes the output of `cluster-analyse`: the files of all reports, and those for MindStudio Insight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from msgspec import Struct

from cluster_analysis.engine.read_ranks import Progress
from cluster_analysis.insight.files import (
    collectives_by_step,
    is_database_job,
    ranks_without_operators,
    write_database,
    write_text_files,
)
from cluster_analysis.judging import compared, judged
from cluster_analysis.output_folder import INSIGHT_NAMES, new_output, of_other_programs
from cluster_analysis.outputs.registry import FILES
from cluster_analysis.pipeline import Examined
from cluster_analysis.result import Reported
from cluster_analysis.run_header import now
from cluster_run.ids import Rank
from cluster_run.layout import PARTS_NAME

#: Files that show an earlier call's findings if they are left.
_TELL_OF_FINDINGS = (*(one.owned for one in FILES), PARTS_NAME)


class Kept(Struct, frozen=True):
    """Files of the output folder that this call did not write; directories end in a slash.

    Attributes:
        older: an earlier call wrote them.
        of_others: another program did; they are renamed, as their names are needed.
    """

    older: tuple[str, ...] = ()
    of_others: tuple[str, ...] = ()


class Written(Struct, frozen=True):
    """Findings, and the changes since the baseline if one was named."""

    reported: Reported
    #: Size that the files for Insight would have had, where they were left out because of it.
    left_out_bytes: int | None = None
    #: Ranks with totals in the communication file for Insight, and no single operators.
    ranks_without_operators: tuple[Rank, ...] = ()
    kept: Kept = Kept()


def write_everything(examined: Examined, on_progress: Progress) -> Written:
    """Judge, and write the output folder; it changes only when every file of it could be written.

    Raises:
        InputError: it cannot be written, the baseline cannot be analysed, or the input changes.
    """
    options = examined.options
    owned = (INSIGHT_NAMES, *((one.owned,) for one in FILES))
    with new_output(options.output_folder, owned) as folder:
        size_bytes = sum(source.size_bytes for source in examined.sources)
        wants_insight = options.wants_insight(size_bytes)
        insight = (lambda: _write_for_insight(examined, folder)) if wants_insight else _nothing
        with _meanwhile(insight, examined.engine.n_workers > 1) as wait_for_it:
            on_progress("detecting", 0, 1)
            result = judged(examined)
            comparison = compared(examined, result, on_progress)
            examined.let_graph_go()

            def collectives() -> Sequence[pa.Table]:
                wait_for_it()  # the engine does one work at a time
                return list(collectives_by_step(examined))

            reported = Reported(result, comparison, now(), collectives)
            _write_reports(reported, examined, folder, on_progress)
            if wants_insight:
                on_progress("writing files for Insight", 0, 1)
        kept = kept_files(options.output_folder, folder, owned)
    return Written(
        reported,
        size_bytes if options.write_insight is None and not wants_insight else None,
        ranks_without_operators(examined.sources) if wants_insight else (),
        kept,
    )


def judge_only(examined: Examined, on_progress: Progress) -> Written:
    """Judge, and write nothing."""
    on_progress("detecting", 0, 1)
    result = judged(examined)
    return Written(Reported(result, compared(examined, result, on_progress), now()))


def kept_files(folder: Path, staging: Path, owned: Sequence[Sequence[str]]) -> Kept:
    """Return what stays. To be asked inside the block of `new_output`, when all is written."""

    def shown(name: str) -> str:
        return f"{name}/" if (folder / name).is_dir() else name

    older = (name for name in _TELL_OF_FINDINGS if (folder / name).exists() and not (staging / name).exists())
    return Kept(tuple(map(shown, older)), tuple(map(shown, of_other_programs(folder, staging, owned))))


def _write_reports(reported: Reported, examined: Examined, folder: Path, on_progress: Progress) -> None:
    for report in FILES:
        if not report.is_wanted(examined.options):
            continue
        on_progress(f"writing {report.owned}", 0, 1)
        for name, content in report.files(reported):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _nothing() -> None:
    """Write no files for Insight."""


@contextmanager
def _meanwhile(work: Callable[[], None], in_parallel: bool) -> Iterator[Callable[[], None]]:
    """Do `work` in parallel with the block, or after it; the workers do most of it either way.

    The block gets a function that waits until that is finished.
    """
    if not in_parallel:
        yield _nothing
        work()
        return
    with ThreadPoolExecutor(1, thread_name_prefix="insight") as thread:
        pending = thread.submit(work)
        yield pending.result
        pending.result()


def _write_for_insight(examined: Examined, folder: Path) -> None:
    write = write_database if is_database_job(examined.sources) else write_text_files
    write(examined, folder)
