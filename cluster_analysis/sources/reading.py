"""Reading one rank's files one by one: a bad one becomes a problem, and the next candidate is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field

from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.tables.model import RankSource
from cluster_run.facts import Fact, fact
from cluster_run.layout import unpacked_name
from cluster_run.problem import Problem

_T = TypeVar("_T")
#: A file's role, and what reads it; the best first.
Candidate: TypeAlias = "tuple[str, Callable[[Path, Remark], _T | None]]"
Candidates: TypeAlias = "tuple[Candidate[_T], ...]"
#: What gives each table of a rank's databases: see `db.of_rank`.
Databases: TypeAlias = "Mapping[str, Candidates[Any]]"
#: What reads the file of a rank.
Reader: TypeAlias = "Callable[[Path, int, Remark], _T]"
_DATABASE_SUFFIX = "_db"
_UNFORESEEN = (ValueError, TypeError, ArithmeticError, LookupError)
#: More problems of one file say nothing new.
_MAX_REMARKS_OF_FILE = 20


class Reading(Struct):
    """Problems of one rank, collected while its files are read; all steps of them, whichever are wanted.

    `steps` are the wanted ones; None is all.
    """

    source: RankSource
    steps: frozenset[int] | None = None
    problems: list[Problem] = field(default_factory=list)
    notes: list[Fact] = field(default_factory=list)
    _made: dict[Any, Any] = field(default_factory=dict)

    def first(self, *candidates: Candidate[_T]) -> _T | None:
        """Return the first value of `(role, read)` whose file is there and readable, and that is not None.

        A file that is bad becomes a problem; the value of a later candidate then stands in for it.
        """
        for role, read in candidates:
            if role not in self.source.files:
                continue
            file = self.source.files[role]
            path = Path(file)
            if unpacked_name(path.name) != path.name:
                self.problem(fact("archive"), path.name, "unpack")
                continue
            n_problems = len(self.problems)
            try:
                value = read(path, self._remark(path))
            except BadFileError as error:
                # Remarks on its parts may be why the whole file is refused.
                remarked = [one for one in self.problems[n_problems:] if one.file == path.name]
                del self.problems[n_problems:]
                also = [why for one in remarked for why in (one.why, *one.also)]
                self.problem(error.why, path.name, error.advice_kind, *error.also, *also)
                continue
            except _UNFORESEEN as error:
                # A damaged file can hold anything; whatever a reader did not foresee costs this file only.
                del self.problems[n_problems:]
                detail = " ".join(str(error).split())[:200]
                self.problem(fact("unforeseen_content", error=type(error).__name__, detail=detail), path.name)
                continue
            if value is not None:
                return value
        return None

    def once(self, read: Callable[[Path, Remark], _T], path: Path, remark: Remark) -> _T:
        """Return what `read` makes of a file, for all tables that it feeds; once, unless it raises."""
        if read not in self._made:
            self._made[read] = read(path, remark)
        made: _T = self._made[read]
        return made

    def joined(self, *readers: Candidate[list[_T]]) -> list[_T]:
        """Return what each of `(role, read)` gives that is there and readable, one behind the other."""
        return [value for one in readers for value in self.first(one) or ()]

    def problem(self, why: Fact, file: str = "", advice: str | None = None, *also: Fact) -> None:
        """Add a problem of this rank."""
        problem = Problem(why, file, self.source.rank, self.source.host, advice, also)
        if problem not in self.problems:
            self.problems.append(problem)

    def note(self, role: str) -> Remark:
        """Return a function that takes facts about a file; they are no problem."""
        place = (("rank", self.source.rank), ("file", Path(self.source.files.get(role, role)).name))

        def note(why: Fact, *also: Fact) -> None:
            self.notes.extend(Fact(one.kind, (*place, *one.values)) for one in (why, *also))

        return note

    def _remark(self, path: Path) -> Remark:
        def remark(why: Fact, *also: Fact) -> None:
            if sum(problem.file == path.name for problem in self.problems) < _MAX_REMARKS_OF_FILE:
                self.problem(why, path.name, None, *also)

        return remark


def of_rank(read: Reader[_T], rank: int) -> Callable[[Path, Remark], _T]:
    """Return what reads a file of this rank."""
    return lambda path, remark: read(path, rank, remark)


def of_steps(table: pa.Table, steps: frozenset[int]) -> pa.Table:
    """Return the rows of some steps."""
    return table.filter(pc.is_in(table["step"], pa.array(sorted(steps), pa.int64())))


def or_empty(table: pa.Table | None, kind: pa.Schema) -> pa.Table:
    """Return the table, or one without rows."""
    return kind.empty_table() if table is None else table


def has_databases(roles: Iterable[str]) -> bool:
    """Return whether one of the files with these roles is a database."""
    return any(role.endswith(_DATABASE_SUFFIX) for role in roles)
