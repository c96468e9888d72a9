"""What the compiled reader tells of names is what Arrow gives."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_analysis.sources.compiled import reader
from cluster_analysis.sources.compiled.operator_names import told_by_names
from tests.analysis.sources.test_compiled_reader import by_python

if reader.compiled() is None:
    pytest.skip("the compiled reader could not be built here", allow_module_level=True)

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
