"""A file read as it is, and as the columns that a host makes of it."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
from msgspec.structs import fields

from cluster_analysis.engine.totals import totals_of
from cluster_analysis.tables import schema
from cluster_analysis.tables.model import RankSource, Selection
from cluster_analysis.tables.rank_tables import RankTables
from cluster_reduce.form import SUFFIX, UnfitError
from cluster_reduce.reduction import reducer_of
from tests.analysis.copies import replace
from tests.analysis.one_rank import read_rank
from tests.analysis.sources.builders import OUTPUT


def columns_of_file(path: Path) -> bytes | None:
    """What a host makes of a file, None where it has to travel as it is."""
    reduce = reducer_of(os.fsencode(f"{OUTPUT}/{path.name}")) or reducer_of(os.fsencode(path.name))
    assert reduce is not None, path
    try:
        return reduce(os.fsencode(path))
    except UnfitError:
        return None


def as_columns(path: Path) -> bool:
    """Put columns in the place of a file; whether it could be done."""
    content = columns_of_file(path)
    if content is not None:
        path.with_name(path.name + SUFFIX).write_bytes(content)
        path.unlink()
    return content is not None


def assert_same(raw: RankTables, reduced: RankTables) -> None:
    """All is the same but where operators lie in the text; of some of their times there are sums alone."""
    sums = [totals_of(tables.collectives, tables.sums) for tables in (raw, reduced)]
    assert sums[0].equals(sums[1])
    raw = replace(raw, collectives=raw.collectives.drop_columns(missing_times(reduced)))
    reduced = replace(reduced, collectives=reduced.collectives.drop_columns(missing_times(reduced)))
    for field in fields(RankTables):
        one, other = getattr(raw, field.name), getattr(reduced, field.name)
        if field.name in ("spans", "sums"):
            continue
        if isinstance(one, pa.Table):
            assert one.schema.equals(other.schema), field.name
            assert one.equals(other), field.name
            assert dictionaries(one) == dictionaries(other), field.name
        else:
            assert one == other, field.name


def missing_times(tables: RankTables) -> list[str]:
    """The times of which these have sums alone."""
    return schema.HOST_SUMS.names[3:] if tables.sums.num_rows else []


def dictionaries(table: pa.Table) -> list[object]:
    """The dictionaries of a table: a file of the table holds them in their order."""
    return [
        [chunk.dictionary.to_pylist() for chunk in column.chunks]
        for column in table.columns
        if pa.types.is_dictionary(column.type)
    ]


def assert_twins(source: RankSource, *roles: str, steps: frozenset[int] | None = None) -> bool:
    """Read a rank, put columns in the place of these files, read it again; whether there were columns."""
    selection = None if steps is None else Selection(steps=steps)  # type: ignore[arg-type]
    raw = read_rank(source, selection)
    had_columns = [as_columns(Path(source.files[role])) for role in roles]
    assert_same(raw, read_rank(source, selection))
    return all(had_columns)
