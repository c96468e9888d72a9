"""The output folder: replaced when everything new is there, and never before.

New files grow in a hidden directory inside the folder, so that nothing else of the run is touched and
renaming them is instant. Only names that this program writes are ever removed, and only to be
replaced: a shorter call must not undo a longer one. Where no findings lie beside them, files of these
names are another program's (msprof-analyze has the same default folder): they are renamed, and stay.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cluster_run.errors import InputError, UsageError, spoken
from cluster_run.files import lock_file
from cluster_run.layout import ANALYSIS_OUTPUT_NAME, FINDINGS_NAME, PARTS_INDEX_NAME

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
#: Held while files are renamed.
_LOCK_NAME = ".cluster-analyse.lock"
#: In the directory of a call: held as long as the call lives.
_ALIVE_NAME = ".alive"
#: In it too: older output that is being replaced, and that was.
_RETIRED_NAME = ".old"
_REPLACED_NAME = ".replaced"
#: Ends the name of another program's file whose name is needed.
RENAMED_SUFFIX = ".before"


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
        raise InputError(
            f"{folder}: {f'cannot be made: {existing}: ' if existing != resolved else ''}cannot be written",
            "name another directory with --output",
        )


@contextmanager
def new_output(folder: Path, owned: Sequence[Sequence[str]]) -> Iterator[Path]:
    """Give a directory to write into; when the block ends well, what is in it replaces the older output.

    After an error the older output is as it was. Files that are not written anew stay. Of several calls
    at once each replaces all of what the others wrote, the last one to end last.

    Args:
        folder: the output folder; it is made where it is missing.
        owned: names in it that are ours, put in place in this order. Those that are one thing stand
            together: where one of them is written, older ones of the others are removed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            staging = Path(tempfile.mkdtemp(prefix=_STAGING_PREFIX, dir=folder))
            alive = _lock(staging / _ALIVE_NAME, wait=False)
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        yield staging
        with _alone(folder):
            _replace(folder, staging, owned)
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        _remove(staging, alive)


def of_other_programs(folder: Path, staging: Path, owned: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return what another program wrote under names that are needed now: with ours there are findings.

    Caches are of what is replaced, whoever wrote that.
    """
    if any((folder / name).exists() for name in (FINDINGS_NAME, PARTS_INDEX_NAME)):
        return ()
    needed = (name for name in _needed(staging, owned) if name not in INSIGHT_CACHE_NAMES)
    return tuple(name for name in needed if os.path.lexists(folder / name))


def _needed(staging: Path, owned: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of what is written, and of what is one thing with it."""
    written = (names for names in owned if any((staging / name).exists() for name in names))
    return [name for names in written for name in names]


def _renamed(folder: Path, name: str) -> Path:
    return folder / f"{name}{RENAMED_SUFFIX}"


def _unwritable(folder: Path, error: OSError) -> InputError:
    why = spoken(error)
    return InputError(f"{folder}: cannot be written: {why}", "name another directory with --output")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let no other call make its directory in `folder`, or rename anything in it, during the block.

    Before that, what dead calls left is put back and removed. On a file system without locks nothing is
    removed: there it is unknown which calls still run.
    """
    path = folder / _LOCK_NAME
    descriptor = _lock(path, wait=True)
    try:
        if descriptor is not None:
            _remove_leftovers(folder)
        yield
    finally:
        if descriptor is not None:
            path.unlink(missing_ok=True)
            os.close(descriptor)


def _lock(path: Path, *, wait: bool) -> int | None:
    try:
        return lock_file(path, wait=wait)
    except OSError:
        return None


def _remove_leftovers(folder: Path) -> None:
    for left in folder.glob(f"{_STAGING_PREFIX}*"):
        descriptor = _lock(left / _ALIVE_NAME, wait=False)
        if descriptor is not None:
            with suppress(OSError):
                _put_back(folder, left)
            _remove(left, descriptor)


def _remove(staging: Path, alive: int | None) -> None:
    """Remove the directory of a call, unless it holds older output that could not be put back.

    Its lock is let go first: on NFS a file that is open stays in its directory by another name.
    """
    if alive is not None:
        os.close(alive)
    retired = staging / _RETIRED_NAME
    if not (retired.is_dir() and any(retired.iterdir())):
        shutil.rmtree(staging, ignore_errors=True)


def _replace(folder: Path, staging: Path, owned: Sequence[Sequence[str]]) -> None:
    """Rename everything into place, or nothing. The last rename says that it is done."""
    retired = staging / _RETIRED_NAME
    retired.mkdir()
    others = of_other_programs(folder, staging, owned)
    placed: list[str] = []
    try:
        for name in _needed(staging, owned):
            if os.path.lexists(folder / name):
                (folder / name).rename(_renamed(folder, name) if name in others else retired / name)
            if (staging / name).exists():
                (staging / name).rename(folder / name)
                placed.append(name)
        retired.rename(staging / _REPLACED_NAME)
    except BaseException:
        for name in placed:
            (folder / name).rename(staging / name)
        for name in (name for name in others if not os.path.lexists(folder / name)):
            _renamed(folder, name).rename(folder / name)
        _put_back(folder, staging)
        raise


def _put_back(folder: Path, staging: Path) -> None:
    """Put back what a call that did not end had taken away."""
    retired = staging / _RETIRED_NAME
    for old in list(retired.iterdir()) if retired.is_dir() else ():
        place = folder / old.name
        if os.path.lexists(place):
            place.rename(staging / old.name)
        old.rename(place)
