"""Other people's files in a directory that is to become a run directory."""

from __future__ import annotations

from pathlib import Path

from cluster_collect.store.journal import JOURNAL_NAME, PREVIOUS_NAME
from cluster_collect.store.lock import LOCK_NAME
from cluster_collect.wording import printable
from cluster_run.layout import MANIFEST_NAME, MAPPING_NAME, PROFILER_TREE_NAME

#: What only a run directory has: with one of them the rest belongs to it.
_MARKS = {MANIFEST_NAME, MAPPING_NAME, PROFILER_TREE_NAME, JOURNAL_NAME, PREVIOUS_NAME}
_N_NAMED = 3


def strangers_warning(run: Path) -> str:
    """Return what to say of a directory that holds something, but nothing that a collection left."""
    try:
        names = sorted(path.name for path in run.iterdir())
    except OSError:
        return ""  # not there yet, or told when it is written
    others = [name for name in names if name != LOCK_NAME]
    if not others or _MARKS & set(others):
        return ""
    named = ", ".join(others[:_N_NAMED]) + (", …" if len(others) > _N_NAMED else "")
    return (
        f"{run} is no run directory and holds other files ({printable(named)}): "
        "what is collected is put beside them; an empty directory, or a new one, keeps them apart"
    )
