"""Reading one rank's files one by one: a bad one becomes a problem, and the next candidate is tried.

Nothing here knows SQLite: who reads databases is a candidate too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field

from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.tables import schema
from cluster_analysis.tables.model import RankMetadata, RankSource
from cluster_analysis.tables.schema import Counter
from cluster_run.facts import AdviceKind, Fact, fact
from cluster_run.problem import Problem

_T = TypeVar("_T")
#: A file's role, and what reads it; the best first.
Candidate: TypeAlias = "tuple[str, Callable[[Path, Remark], _T | None]]"
Candidates: TypeAlias = "tuple[Candidate[_T], ...]"
_DATABASE_SUFFIX = "_db"
#: The files of the ranks that are read together.
_MOST_PATHS = 1 << 10
_UNFORESEEN = (ValueError, TypeError, ArithmeticError, LookupError)
#: More problems of one file say nothing new.
_MAX_REMARKS_OF_FILE = 20


@lru_cache(_MOST_PATHS)
def path_of(file: str) -> Path:
    """Return the path of a file; each is asked for several times, and takes as long as opening the file."""
    return Path(file)


def name_of(file: str) -> str:
    """Return a file's name."""
    return os.path.basename(file)


class Reading(Struct):
    """Problems of one rank, collected while its files are read; all steps of them, whichever are wanted.

    `steps` are the wanted ones; None is all.
    """

    source: RankSource
    steps: frozenset[int] | None = None
    problems: list[Problem] = field(default_factory=list)
    notes: list[Fact] = field(default_factory=list)

    def first(self, *candidates: Candidate[_T]) -> _T | None:
        """Return what the first of `(role, read)` gives that is there, readable and not None.

        A file that is bad becomes a problem; the value of a later candidate then stands in for it.
        """
        for role, read in candidates:
            if role not in self.source.files:
                continue
            file = self.source.files[role]
            path = path_of(file)
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

    def problem(self, why: Fact, file: str = "", advice: AdviceKind | None = None, *also: Fact) -> None:
        """Add a problem of this rank."""
        problem = Problem(why, file, self.source.rank, self.source.host, advice, also)
        if problem not in self.problems:
            self.problems.append(problem)

    def note(self, role: str) -> Remark:
        """Return what takes facts about a file that cost nothing."""
        place = (("rank", self.source.rank), ("file", Path(self.source.files.get(role, role)).name))

        def note(why: Fact, *also: Fact) -> None:
            self.notes.extend(Fact(one.kind, (*place, *one.values)) for one in (why, *also))

        return note

    def _remark(self, path: Path) -> Remark:
        def remark(why: Fact, *also: Fact) -> None:
            if sum(problem.file == path.name for problem in self.problems) < _MAX_REMARKS_OF_FILE:
                self.problem(why, path.name, None, *also)

        return remark


def of_steps(table: pa.Table, steps: frozenset[int] | None) -> pa.Table:
    """Return the rows of some steps; None is all."""
    if steps is None:
        return table
    return table.filter(pc.is_in(table["step"], pa.array(sorted(steps), pa.int64())))


def or_empty(table: pa.Table | None, kind: pa.Schema) -> pa.Table:
    """Return the table, or one without rows."""
    return schema.empty(kind) if table is None else table


def has_databases(roles: Iterable[str]) -> bool:
    """Return whether one of the files with these roles is a database."""
    return any(role.endswith(_DATABASE_SUFFIX) for role in roles)


class NoDatabases:
    """A rank without databases. Of one that has some, each method gives role and reader, the best first."""

    def metadata(self) -> Candidates[RankMetadata]:
        """Return what gives the rank's metadata."""
        return ()

    def with_host(self, metadata: RankMetadata) -> RankMetadata:
        """Return the metadata with the host that a database names; text files name none."""
        return metadata

    def device(self) -> tuple[tuple[str, Callable[[Path], int | None]], ...]:
        """Return what gives the device that a database says it is of."""
        return ()

    def steps(self) -> Candidates[pa.Table]:
        """Return what gives STEPS."""
        return ()

    def communication(self) -> Candidates[CommunicationTables]:
        """Return what gives the operators of communication; their steps' times are read for it."""
        return ()

    def links(self) -> Candidates[pa.Table]:
        """Return what gives LINKS; to be asked after `communication`."""
        return ()

    def peers(self) -> Candidates[pa.Table]:
        """Return what gives LINKS of messages whose peers only the tasks know."""
        return ()

    def operators(self) -> Candidates[pa.Table]:
        """Return what gives OPERATORS."""
        return ()

    def figures(self, name: str) -> Candidates[pa.Table]:
        """Return what gives a table of FIGURES."""
        return ()

    def counters(self) -> Candidates[list[Counter]]:
        """Return what gives counters, each its own."""
        return ()
