"""Files of several ranks that the compiled reader takes at once, and its exact sums."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.text.communication_json import read_communication
from cluster_analysis.sources.text.matrix_json import read_matrix
from cluster_analysis.sources.together.plain_text import (
    PlainLinks,
    PlainOperators,
    plain_links,
    plain_operators,
)
from cluster_analysis.sources.together.refused import RefusedError
from cluster_analysis.tables import schema
from cluster_run.facts import Fact
from tests.analysis.sources.test_compiled_reader import FUZZ, MATRIX, OPERATORS, SPOILERS


def never(*why: Fact) -> None:
    raise AssertionError(f"nothing is to be told of a plain file: {why}")


@pytest.mark.parametrize("with_spans", [True, False])
@FUZZ
@given(data=st.data())
def test_files_with_a_spoiled_one_among_them_give_what_each_gives_alone_or_are_refused(
    tmp_path: Path, with_spans: bool, data: st.DataObject
) -> None:
    files = [(str(tmp_path / f"{rank}.json"), rank) for rank in range(3)]
    for content, plain, read in (
        (
            OPERATORS,
            partial(plain_operators, with_spans=with_spans),
            partial(read_communication, with_spans=with_spans),
        ),
        (MATRIX, plain_links, read_matrix),
    ):
        spoiled = bytearray(content)
        place = data.draw(st.integers(0, len(spoiled)))
        spoiled[place : place + data.draw(st.integers(0, 12))] = data.draw(st.sampled_from(SPOILERS))
        for (path, _), own in zip(files, (content, spoiled, content), strict=True):
            Path(path).write_bytes(own)
        try:
            found = plain(files)
        except RefusedError:
            continue
        alone = [read(Path(path), rank, None, never) for path, rank in files]
        assert rows_of(found) == rows_of(*alone)


def rows_of(*read: PlainOperators | PlainLinks | CommunicationTables | pa.Table) -> list[object]:
    """The rows of all tables, those of the large ones by step."""
    found: list[tuple[pa.Table, ...]] = []
    for one in read:
        if isinstance(one, PlainOperators):
            (spans,) = one.spans or (schema.empty(schema.OPERATOR_SPANS),)
            found.append((pa.concat_tables(one.laid.by_step.values()), one.packets, spans))
        elif isinstance(one, PlainLinks):
            found.append((pa.concat_tables(one.by_step.values()),))
        elif isinstance(one, CommunicationTables):
            found.append((one.collectives, one.packets, one.spans))
        else:
            found.append((one,))
    rows = [[row for table in tables for row in table.to_pylist()] for tables in zip(*found, strict=True)]
    return [sorted(own, key=lambda row: row.get("step", 0)) for own in rows]
