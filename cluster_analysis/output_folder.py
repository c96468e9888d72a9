"""The output folder: replaced when everything new is there, and never before.

New files grow in a hidden directory inside the folder, so that nothing else of the run is touched and
renaming them is instant. Only names that this program writes are ever removed, and only to be
replaced: the folder may be somebody's own, and a shorter call must not undo a longer one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cluster_run.errors import InputError, UsageError
from cluster_run.layout import ANALYSIS_OUTPUT_NAME

INSIGHT_TEXT_NAMES = (
    "cluster_step_trace_time.csv",
    "cluster_communication.json",
    "cluster_communication_matrix.json",
    "communication_group.json",
)
INSIGHT_DATABASE_NAME = "cluster_analysis.db"
#: MindStudio Insight keeps what it once read in these and does not notice that the files have changed.
INSIGHT_CACHE_NAMES = ("cluster.db", "cluster.db-wal", "cluster.db-shm")
INSIGHT_NAMES = (*INSIGHT_TEXT_NAMES, INSIGHT_DATABASE_NAME, *INSIGHT_CACHE_NAMES)
_STAGING_PREFIX = ".new-"


def check_output_folder(folder: Path, run: Path) -> None:
    """Refuse a folder that must not or cannot be written, before any work is done.

    Raises:
        UsageError: it lies inside the data that is analysed.
        InputError: it cannot be written.
    """
    resolved, resolved_run = folder.resolve(), run.resolve()
    own = resolved_run / ANALYSIS_OUTPUT_NAME
    if resolved != own and resolved.is_relative_to(resolved_run):
        raise UsageError(
            f"--output {folder} lies inside the data that is analysed",
            f"leave it out to write to {ANALYSIS_OUTPUT_NAME}, or name a directory outside of {run}",
        )
    existing = next(path for path in (resolved, *resolved.parents) if path.exists())
    if not existing.is_dir():
        raise InputError(f"{existing}: not a directory", "name another one with --output")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"{existing}: cannot be written", "name another directory with --output")


@contextmanager
def new_output(folder: Path, owned: Sequence[Sequence[str]]) -> Iterator[Path]:
    """Give a directory to write into; when the block ends well, what is in it replaces the older output.

    After an error the older output is as it was. Files that are not written anew stay.

    Args:
        folder: the output folder; it is made where it is missing.
        owned: names in it that are ours, put in place in this order. Those that are one thing stand
            together: where one of them is written, older ones of the others are removed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=_STAGING_PREFIX, dir=folder))
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written: {error.strerror}", "name another directory with --output"
        ) from error
    try:
        yield staging
        _replace(folder, staging, owned)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def left_of_earlier(folder: Path, staging: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Return which of `names` an earlier call wrote and this one does not; directories end in a slash.

    To be asked inside the block of `new_output`, when all is written.
    """
    return tuple(
        f"{name}/" if (folder / name).is_dir() else name
        for name in names
        if (folder / name).exists() and not (staging / name).exists()
    )


def _replace(folder: Path, staging: Path, owned: Sequence[Sequence[str]]) -> None:
    retired = staging / ".old"
    retired.mkdir()
    written = [names for names in owned if any((staging / name).exists() for name in names)]
    for name in (name for names in written for name in names):
        old, new = folder / name, staging / name
        if new.is_dir() or (old.is_dir() and not old.is_symlink()):
            # A directory cannot be renamed onto another one that is not empty.
            if old.exists():
                old.rename(retired / name)
            if new.exists():
                new.rename(old)
        elif new.exists():
            new.replace(old)
        else:
            old.unlink(missing_ok=True)
