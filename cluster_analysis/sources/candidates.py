"""What reads one rank's databases, as candidates: none for a rank that has none.

Nothing here knows SQLite: see `sources.rank`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias, TypeVar

import pyarrow as pa

from cluster_analysis.sources.counters import Counter
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.text.communication_json import CommunicationTables
from cluster_analysis.tables.model import RankMetadata

_T = TypeVar("_T")
#: A file's role, and what reads it; the best first.
Candidate: TypeAlias = "tuple[str, Callable[[Path, Remark], _T | None]]"
Candidates: TypeAlias = "tuple[Candidate[_T], ...]"
_DATABASE_SUFFIX = "_db"


def has_databases(roles: Iterable[str]) -> bool:
    """Return whether one of the files with these roles is a database."""
    return any(role.endswith(_DATABASE_SUFFIX) for role in roles)


class NoDatabases:
    """A rank without databases. Of one that has some, each method gives role and reader, the best first."""

    def metadata(self) -> Candidates[RankMetadata]:
        """Return what gives the rank's metadata."""
        return ()

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
