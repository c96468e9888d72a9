"""What the compiled reader sums and tells of names is what NumPy and Arrow give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_analysis.sources.compiled import reader
from cluster_analysis.sources.compiled.operator_names import told_by_names
from cluster_analysis.sources.compiled.span_sums import summed_spans, summed_tasks
from tests.analysis.sources.test_compiled_reader import by_python

if reader.compiled() is None:
    pytest.skip("the compiled reader could not be built here", allow_module_level=True)

NUMBERS = st.sampled_from([0, 1, 2, -1, 2**40, -(2**63), 2**63 - 1])


def sums_by_key(columns: list[object], rows: list[int], spans: list[tuple[int, int]]) -> list[object]:
    cells = [pa.array(column, pa.int64()) for column in columns]
    first, figures = summed_spans(cells, np.array(rows, np.intp), np.array(spans, np.int64).reshape(-1, 2))
    keys = [[cells[at][rows[span]].as_py() for at in range(len(cells))] for span in first.tolist()]
    return sorted(map(repr, zip(keys, *(one.tolist() for one in figures), strict=True)))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_spans_are_summed_as_numpy_sums_them(data: st.DataObject) -> None:
    n_known = data.draw(st.integers(1, 40))
    column = st.lists(NUMBERS | st.none(), min_size=n_known, max_size=n_known)
    columns = data.draw(st.lists(column, min_size=1, max_size=7))
    rows = data.draw(st.lists(st.integers(0, n_known - 1), max_size=60))
    begins = [data.draw(st.integers(0, 2**40)) for _ in rows]
    spans = [(begin, begin + data.draw(st.integers(0, 2**40))) for begin in begins]
    found = sums_by_key(columns, rows, spans)
    with by_python():
        assert found == sums_by_key(columns, rows, spans)


def test_more_kinds_than_fit_the_first_slots_are_summed_each_on_its_own() -> None:
    keys = np.arange(5_000, dtype=np.int64) * 2**32
    first, (n, total, least, most) = summed_spans(
        [pa.array(keys)], np.arange(5_000), np.stack([keys, keys + 3], axis=1)
    )
    assert first.tolist() == list(range(5_000))
    assert set(n.tolist()) == {1}
    assert {*total.tolist(), *least.tolist(), *most.tolist()} == {3}


IDS = st.lists(st.integers(-3, 40), max_size=60)


@settings(max_examples=200, deadline=None)
@given(
    data=st.data(),
    ids=st.lists(st.integers(-5, 30) | NUMBERS, min_size=1, max_size=30, unique=True),
    tasks=IDS,
)
def test_tasks_are_summed_as_their_spans_are(data: st.DataObject, ids: list[int], tasks: list[int]) -> None:
    columns = [data.draw(st.lists(st.integers(0, 3), min_size=len(ids), max_size=len(ids))) for _ in range(3)]
    begins = np.array([data.draw(st.integers(0, 2**40)) for _ in tasks], np.int64)
    ends = begins + np.array([data.draw(st.integers(-2, 2**40)) for _ in tasks], np.int64)
    cells = [pa.array(column, pa.int64()) for column in columns]
    found = summed_tasks((begins, ends, np.array(tasks, np.int64)), np.array(ids, np.int64), cells)
    if found is None:
        assert max(ids) - min(ids) >= 16 * len(ids)
        return
    kept = [at for at, task in enumerate(tasks) if task in ids and begins[at] <= ends[at]]
    rows = np.array([ids.index(tasks[at]) for at in kept], np.int64)
    spans = np.stack([begins[kept], ends[kept]], axis=1)
    first, figures = summed_spans(cells, rows, spans)
    assert found[0].tolist() == rows[first].tolist()
    assert [one.tolist() for one in found[1]] == [one.tolist() for one in figures]


@pytest.mark.parametrize(
    ("tasks", "ids"),
    [
        (([0], [1], [1]), [1, 1]),
        (([0], [1], [1]), [1, 1 + 2**40]),
        (([0], [1], [1]), [-(2**63), 2**63 - 1]),
        (([0], [2**63 - 1], [1]), [1, 2]),
        (([-(2**63)], [2**63 - 1], [1]), [1, 2]),
        (([0, 0], [2**62, 2**62], [1, 2]), [1, 2]),
    ],
)
def test_tasks_that_numpy_must_sum_are_refused(tasks: tuple[list[int], ...], ids: list[int]) -> None:
    begins, ends, of = (np.array(one, np.int64) for one in tasks)
    column = pa.array(range(len(ids)), pa.int64())
    assert summed_tasks((begins, ends, of), np.array(ids, np.int64), [column]) is None


PARTS = ["hcom_allReduce", "__", "_", "7", "123456789", "0123456789", "é", "Send", "/"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PARTS)).map("".join) | st.text(max_size=8), max_size=12))
def test_names_say_what_arrow_finds_in_them(names: list[str]) -> None:
    def said() -> list[object]:
        op_types, are_p2p, indices = told_by_names(pa.array(names, pa.string()))
        return [op_types.dictionary.to_pylist(), *(one.to_pylist() for one in (op_types, are_p2p, indices))]

    found = said()
    with by_python():
        assert found == said()
