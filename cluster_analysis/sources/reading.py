"""Reading one rank's files one by one: a bad one becomes a problem, and the next candidate is tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.tables.model import RankSource
from cluster_run.problem import Problem

_T = TypeVar("_T")
_UNFORESEEN = (ValueError, TypeError, ArithmeticError, LookupError)
#: More sentences about one file say nothing new.
_MAX_REMARKS_OF_FILE = 20


@dataclass
class Reading:
    """What could not be read of one rank, collected while its files are read."""

    source: RankSource
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def first(self, *candidates: tuple[str, Callable[[Path, Remark], _T | None]]) -> _T | None:
        """Return what the first of `(role, read)` gives that is there, readable and not None.

        A file that is bad becomes a problem; the value of a later candidate then stands in for it.
        """
        for role, read in candidates:
            if role not in self.source.files:
                continue
            path = Path(self.source.files[role])
            n_problems = len(self.problems)
            try:
                value = read(path, self._remark(path))
            except BadFileError as error:
                # What was remarked on its parts may be why the whole file is refused.
                remarked = [one.reason for one in self.problems[n_problems:] if one.file == path.name]
                del self.problems[n_problems:]
                reason = f"{error.message} ({'; '.join(remarked)})" if remarked else error.message
                self.problem(reason, path.name, error.advice)
                continue
            except _UNFORESEEN as error:
                # A damaged file can hold anything; whatever a reader did not foresee costs this file only.
                del self.problems[n_problems:]
                detail = " ".join(str(error).split())[:200]
                self.problem(f"holds what it should not: {type(error).__name__}: {detail}", path.name)
                continue
            if value is not None:
                return value
        return None

    def problem(self, reason: str, file: str = "", advice: str = "") -> None:
        """Add a problem of this rank."""
        problem = Problem(reason, file=file, rank=self.source.rank, host=self.source.host, advice=advice)
        if problem not in self.problems:
            self.problems.append(problem)

    def note(self, role: str) -> Remark:
        """Return what takes sentences about a file that cost nothing."""
        name = Path(self.source.files.get(role, role)).name
        return lambda text: self.notes.append(f"rank {self.source.rank}, {name}: {text}")

    def _remark(self, path: Path) -> Remark:
        def remark(reason: str) -> None:
            if sum(problem.file == path.name for problem in self.problems) < _MAX_REMARKS_OF_FILE:
                self.problem(reason, path.name)

        return remark


def or_empty(table: pa.Table | None, schema: pa.Schema) -> pa.Table:
    """Return the table, or one without rows."""
    return schema.empty_table() if table is None else table
