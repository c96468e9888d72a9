"""Jobs whose files tell nothing of single links: the profiler wrote no communication_matrix.json.

The mode of such a job has a suffix, so that tables count it apart from jobs whose files are whole.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

SUFFIX = " without matrix"


def has_matrix(mode: str) -> bool:
    """Whether jobs of a mode tell of single links."""
    return not mode.endswith(SUFFIX)


def mode_of_model(mode: str) -> str:
    """Return the mode by which a model makes the job: its files are whole at first."""
    return mode.removesuffix(SUFFIX)


def remove_matrix(run: Path) -> None:
    """Take away what ranks wrote of single links, in both forms of files."""
    for path in run.rglob("communication_matrix.json"):
        path.unlink()
    for path in run.rglob("*.db"):
        with contextlib.closing(sqlite3.connect(path)) as database:
            known = database.execute("SELECT name FROM sqlite_master WHERE name = 'CommAnalyzerMatrix'")
            if known.fetchone():
                database.execute("DROP TABLE CommAnalyzerMatrix")
                database.commit()
