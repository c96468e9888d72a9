"""Numbers and names of operators, from their texts."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.sources import numbers
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.names import indices_in_group, operations, point_to_point, split_keys
from cluster_reduce.form import Writer
from cluster_reduce.levels import parse_step

_TWO_TEXTS = pa.schema([("a", pa.string()), ("b", pa.string())])


@pytest.mark.parametrize(
    "text", ["nan", "inf", "-inf", "1e999", "0x10", "1_000", "1,5", "twelve", "1.5.2", "--1"]
)
def test_what_is_no_finite_number_is_null_and_counted(text: str) -> None:
    values, n_bad = numbers.to_float64(pa.array([text, "2.5"]))
    assert (values.to_pylist(), n_bad) == ([None, 2.5], 1)


@given(st.lists(st.integers(2**52 - 8, 2**53 + 8), min_size=1))
def test_stamps_that_are_floats_are_read_as_the_texts_that_name_them(quarters_us: list[int]) -> None:
    stamps_us = [quarters / 4 for quarters in quarters_us]
    assert numbers.floats_to_ns(pa.array(stamps_us)) == numbers.to_ns(pa.array(list(map(repr, stamps_us))))


@given(st.lists(st.tuples(*[st.sampled_from(["1", "2.5", "-3e2", "", "x", "nan", "0x1"])] * 2), max_size=6))
def test_columns_cast_together_are_what_each_is_alone(rows: list[tuple[str, str]]) -> None:
    text = pa.table({"a": [row[0] for row in rows], "b": [row[1] for row in rows]}).cast(_TWO_TEXTS)
    found, bad = numbers.floats_of(text, ["a", "missing", "b"])
    alone = {name: numbers.to_float64(text[name]) for name in "ab"}
    assert {name: (found[name], bad.get(name, 0)) for name in found} == alone


@pytest.mark.parametrize("text", ["", "N/A", "NA", "null", "None", "  "])
def test_what_is_left_empty_is_null_and_not_counted(text: str) -> None:
    values, n_bad = numbers.to_float64(pa.array([text, "2.5"]))
    assert (values.to_pylist(), n_bad) == ([None, 2.5], 0)


@pytest.mark.parametrize("text", ["0x10", "1.5", "1e3", "9999999999999999999", "-"])
def test_what_is_no_whole_number_is_null_and_counted(text: str) -> None:
    values, n_bad = numbers.to_int64(pa.array([text, "7"]))
    assert (values.to_pylist(), n_bad) == ([None, 7], 1)
    alone, n_bad = numbers.to_int64(pa.array([text]))
    assert (alone.to_pylist(), n_bad) == ([None], 1)


def test_a_whole_number_may_end_in_zeros_after_the_point() -> None:
    assert numbers.to_int64(pa.array(["12.0", " 3\t"]))[0].to_pylist() == [12, 3]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=1))
def test_every_float_that_python_writes_is_read_back_to_the_last_digit(values: list[float]) -> None:
    read, n_bad = numbers.to_float64(pa.array([repr(value) for value in values]))
    assert n_bad == 0
    assert all(
        a == b and math.copysign(1, a) == math.copysign(1, b)
        for a, b in zip(read.to_pylist(), values, strict=True)
    )


@given(st.lists(st.integers(0, 9_000_000_000_000_000_000), min_size=1), st.sampled_from(["", "\t", " "]))
def test_every_nanosecond_written_as_microseconds_is_read_back(stamps: list[int], end: str) -> None:
    text = [f"{stamp // 1000}.{stamp % 1000:03d}{end}" for stamp in stamps]
    read, n_bad = numbers.to_ns(pa.array(text))
    assert (read.to_pylist(), n_bad) == (stamps, 0)


def test_a_time_stamp_that_is_no_number_is_null_and_counted() -> None:
    read, n_bad = numbers.to_ns(pa.array(["1736408883732241.5", "soon", "-5", ""]))
    assert (read.to_pylist(), n_bad) == ([1736408883732241500, None, None, None], 2)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("step13", 13),
        ("13", 13),
        ("Step 7", 7),
        ("step", 0),
        ("", 0),
        ("warmup", None),
        ("13.0", 13),
        ("13.5", None),
        ("-1", None),
    ],
)
def test_steps_have_several_spellings(text: str, step: int | None) -> None:
    assert parse_step(text) == step


@pytest.mark.parametrize(
    ("name", "operation", "is_p2p", "index"),
    [
        ("hcom_allReduce__586_0_1", "allreduce", False, 0),
        ("hcom_broadcast__483_12", "broadcast", False, 12),
        ("hcom_reduceScatter__691_4_1", "reducescatter", False, 4),
        ("hcom_alltoallvc__1_2_3", "alltoallvc", False, 2),
        ("hcom_batchSendRecv__128_3_1", "batchsendrecv", True, 3),
        ("hcom_receive__7_1_1", "receive", True, 1),
        ("stream_48_0_Receive-op663", "receive", True, -1),
        ("Default/network__loss/gradients/AllReduce-op12", "allreduce", False, -1),
        ("Default/reduce_block/AllGather-op3", "allgather", False, -1),
        ("something else", "unknown", False, -1),
    ],
)
def test_an_operators_name_says_what_it_does(name: str, operation: str, is_p2p: bool, index: int) -> None:
    names = pa.array([name])
    assert operations(names).to_pylist() == [operation]
    assert point_to_point(operations(names)).to_pylist() == [is_p2p]
    assert indices_in_group(names).to_pylist() == [index]


@given(st.lists(st.tuples(st.text("ab_@", max_size=5), st.none() | st.text("01", max_size=3))))
def test_a_key_is_split_at_its_last_at_sign(parts: list[tuple[str, str | None]]) -> None:
    keys = [name.replace("@", "") if group is None else f"{name}@{group}" for name, group in parts]
    names, groups = split_keys(pa.array(keys, pa.string()))
    expected = [(name.replace("@", ""), "") if group is None else (name, group) for name, group in parts]
    assert list(zip(names.to_pylist(), groups.to_pylist(), strict=True)) == expected


@pytest.mark.parametrize("text", ["17364088837322415", "9300000000000000", "1736408883732241.5.1", "1e400"])
def test_a_time_stamp_that_no_clock_shows_costs_itself_and_not_the_column(text: str) -> None:
    read, n_bad = numbers.to_ns(pa.array([text, "1736408883732241.5"]))
    assert (read.to_pylist(), n_bad) == ([None, 1736408883732241500], 1)


def test_a_negative_time_stamp_is_null_alone_too() -> None:
    assert numbers.to_ns(pa.array(["-5"]))[0].to_pylist() == [None]


WORDS = ("hcom_allReduce", "Send", "%d", "__", "_", "/", "é", "-op", "x")
PARTS = st.sampled_from([*WORDS, "0", "07", "7", "12", "999999999", "1000000000"])
NAMES = st.lists(st.lists(PARTS, max_size=9).map("".join), min_size=1, max_size=12)


@given(texts=NAMES)
def test_names_of_columns_are_the_texts_that_were_written(tmp_path: Path, texts: list[str]) -> None:
    writer = Writer("any", 10_000)
    writer.names("name", texts)
    path = tmp_path / "any"
    path.write_bytes(writer.content())
    assert ColumnsFile(path, "any").names("name").equals(pa.array(texts, pa.string()))
