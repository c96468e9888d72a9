"""Names of columns say of themselves what their texts say."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_analysis.sources import names
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_reduce.form import Writer

PARTS = st.sampled_from(
    [
        "hcom_allReduce",
        "Send",
        "%d",
        "__",
        "_",
        "/",
        "0",
        "07",
        "7",
        "12",
        "999999999",
        "1000000000",
        "é",
        "-op",
        "x",
    ]
)
NAMES = st.lists(st.lists(PARTS, max_size=9).map("".join), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=NAMES)
def test_names_of_columns_give_what_their_texts_give(tmp_path: Path, texts: list[str]) -> None:
    writer = Writer("any", 10_000)
    writer.names("name", texts)
    path = tmp_path / "any"
    path.write_bytes(writer.content())
    found = ColumnsFile(path, "any").names("name")
    known, places = found.distinct()
    wanted = pa.array(texts, pa.string())
    operations = names.operations(wanted)
    assert found.texts().equals(wanted)
    op_types, is_p2p = found.operations()
    assert op_types.equals(operations)
    assert pa.array(is_p2p).equals(names.point_to_point(operations))
    assert found.indices_in_group().equals(names.indices_in_group(wanted))
    assert known.texts().take(pa.array(places)).equals(wanted)
    assert known.texts().equals(wanted.unique())
