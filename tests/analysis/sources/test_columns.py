"""Columns that a host makes of a file give the tables and problems of the file itself, whatever is in it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.discovery.discover import discover
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_reduce.communication import reduce_communication
from cluster_reduce.form import SUFFIX, Writer
from tests.analysis.copies import replace
from tests.analysis.one_rank import read_rank
from tests.analysis.runs import write_small_run
from tests.analysis.sources.builders import (
    GROUP,
    LINKS,
    OPS,
    OUTPUT,
    STEP_ROW,
    communication_json,
    matrix_json,
    source_of,
    write_analysis_db,
    write_info,
)
from tests.analysis.sources.hand_made_databases import changed, profiler_db
from tests.analysis.sources.twins import as_columns, assert_same, assert_twins

OPERATORS = communication_json({"step50": OPS, "step51": OPS})
MATRIX = matrix_json({"step50": LINKS, "step51": LINKS})
NAMES = {"communication": "communication.json", "matrix": "communication_matrix.json"}


def is_same_as_columns(root: Path, role: str, content: bytes, **selection: Any) -> bool:
    """Whether a host makes columns of this content; they must give what the file gives."""
    path = root / NAMES[role]
    path.with_name(path.name + SUFFIX).unlink(missing_ok=True)
    path.write_bytes(content)
    return assert_twins(source_of(root, 0, "ascend_pt/text", **{role: path}), role, **selection)


@pytest.mark.parametrize(("role", "document"), [("communication", OPERATORS), ("matrix", MATRIX)])
def test_columns_give_the_steps_that_are_asked_for(tmp_path: Path, role: str, document: object) -> None:
    content = json.dumps(document).encode()
    assert is_same_as_columns(tmp_path, role, content, steps=frozenset({51}))
    assert is_same_as_columns(tmp_path, role, content, steps=frozenset({7}))


TIMES = "Communication Time Info"
BANDWIDTH = "Communication Bandwidth Info"
KEY = OPS[0].name
Change = Callable[[dict[str, Any]], None]


def times(**changes: object) -> Change:
    return lambda operator: operator[TIMES].update(changes)


def without(*path: str) -> Change:
    def change(operator: dict[str, Any]) -> None:
        for key in path[:-1]:
            operator = operator[key]
        del operator[path[-1]]

    return change


def hccs(**changes: object) -> Change:
    return lambda operator: operator[BANDWIDTH]["HCCS"].update(changes)


ODD: dict[str, tuple[Change, bool]] = {
    "no times": (without(TIMES), False),
    "times are null": (lambda operator: operator.update({TIMES: None}), False),
    "no bandwidth": (without(BANDWIDTH), True),
    "bandwidth is null": (lambda operator: operator.update({BANDWIDTH: None}), True),
    "no HCCS": (without(BANDWIDTH, "HCCS"), True),
    "HCCS is null": (lambda operator: operator[BANDWIDTH].update(HCCS=None), True),
    "no start": (without(TIMES, "Start Timestamp(us)"), True),
    "the start is a text": (times(**{"Start Timestamp(us)": "17"}), True),
    "the start is null": (times(**{"Start Timestamp(us)": None}), True),
    "a start of five decimals": (times(**{"Start Timestamp(us)": 17.12345}), True),
    "a start of 18 digits": (times(**{"Start Timestamp(us)": 123456789012345678}), True),
    "no elapsed time": (without(TIMES, "Elapse Time(ms)"), True),
    "elapsed is null": (times(**{"Elapse Time(ms)": None}), True),
    "elapsed is a text": (times(**{"Elapse Time(ms)": "1.0"}), False),
    "elapsed below 0": (times(**{"Elapse Time(ms)": -1.0}), False),
    "elapsed is minus 0": (times(**{"Elapse Time(ms)": -0.0}), False),
    "elapsed is huge": (times(**{"Elapse Time(ms)": 1e300}), False),
    "elapsed is tiny": (times(**{"Elapse Time(ms)": 1e-300}), False),
    "elapsed is true": (times(**{"Elapse Time(ms)": True}), False),
    "elapsed is NaN": (times(**{"Elapse Time(ms)": float("nan")}), True),
    "elapsed has 30 digits": (times(**{"Elapse Time(ms)": 10**29}), False),
    "idle as the documentation spells it": (
        times(**{"Idel Time(ms)": 73.21452021875, "Idle Time(ms)": None}),
        True,
    ),
    "no size": (hccs(**{"Transit Size(MB)": None}), True),
    "a size below 0": (hccs(**{"Transit Size(MB)": -1}), True),
    "packets are null": (hccs(**{"Size Distribution": None}), True),
    "packets of three": (hccs(**{"Size Distribution": {"1": [1, 2, 3]}}), False),
    "packets of null": (hccs(**{"Size Distribution": {"1": [1, None]}}), False),
    "packets of no number": (hccs(**{"Size Distribution": {"x\u0000": [1, 2]}}), False),
    "packets of a word": (hccs(**{"Size Distribution": {"many": [1, 2]}}), False),
    "packets of a small size": (hccs(**{"Size Distribution": {"1.6e-05": [1, 2], "1.60e-05": [1, 2]}}), True),
    "packets of one size in two spellings": (
        hccs(**{"Size Distribution": {"1.5": [1, 2], "1.50": [3, 4]}}),
        True,
    ),
    "packets where nothing is carried": (
        hccs(**{"Transit Size(MB)": 0, "Transit Time(ms)": 0, "Size Distribution": {"01.50": [0, 0]}}),
        True,
    ),
    "more than we know": (lambda operator: operator.update({"New": {"a": [None, {}]}}), True),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_operator_gives_the_same_as_columns_or_travels_as_it_is(tmp_path: Path, name: str) -> None:
    change, has_columns = ODD[name]
    document = json.loads(json.dumps(OPERATORS))
    change(document["step50"]["collective"][KEY])
    content = json.dumps(document).encode()
    assert is_same_as_columns(tmp_path, "communication", content) == has_columns


def test_odd_names_give_the_same_as_columns(tmp_path: Path) -> None:
    for key in (
        "",
        "@",
        "a@b@c",
        "héllo_07_0__1_2@x",
        "\u4e2d__1_22_333@9",
        "1" * 30,
        "_".join("12345678901"),
    ):
        document = json.loads(json.dumps(OPERATORS))
        document["step50"]["collective"][key] = document["step50"]["collective"][KEY]
        assert is_same_as_columns(tmp_path, "communication", json.dumps(document).encode()), key


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text[:-200] + bytes(200),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.decode().encode("utf-16"),
        lambda text: text.replace(b"hcom_send", b"hcom_\xffsend", 1),
        lambda text: text.replace(b"hcom_send", b"hcom_\\ud800send", 1),
        lambda text: text.replace(b'"step50"', b'"stepfifty"'),
        lambda text: text.replace(b'"step50"', b'"step51"'),
        lambda text: text.replace(b'"p2p"', b'"P2P"'),
        lambda text: text.replace(b'"p2p"', b'"third"', 1),
        lambda text: text.replace(b'"p2p"', b'"collective"', 1),
        lambda text: text + b"}",
        lambda text: b"[" + text + b"]",
        lambda text: b"{}",
        lambda text: json.dumps(json.loads(text)["step50"]).encode(),
        lambda text: json.dumps(json.loads(text)["step50"]["collective"]).encode(),
        lambda text: json.dumps({"step": json.loads(text)["step50"]}).encode(),
    ],
)
@pytest.mark.parametrize(("role", "document"), [("communication", OPERATORS), ("matrix", MATRIX)])
def test_a_damaged_file_gives_the_same_as_columns_or_travels_as_it_is(
    tmp_path: Path, role: str, document: object, change: Callable[[bytes], bytes]
) -> None:
    is_same_as_columns(tmp_path, role, change(json.dumps(document).encode()))


@given(data=st.data(), role=st.sampled_from(sorted(NAMES)))
def test_a_file_with_other_bytes_gives_the_same_as_columns(
    tmp_path: Path, data: st.DataObject, role: str
) -> None:
    content = bytearray(json.dumps(OPERATORS if role == "communication" else MATRIX).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.sampled_from(b'0123456789.-e,:"{}[]nul p\x00\xff'))
    is_same_as_columns(tmp_path, role, bytes(content))


def made_database(directory: Path) -> Path:
    path = directory / "ascend_pytorch_profiler_0.db"
    path.unlink(missing_ok=True)
    path.with_name(path.name + SUFFIX).unlink(missing_ok=True)
    profiler_db(path)
    return path


def test_a_database_gives_the_same_as_columns(tmp_path: Path) -> None:
    source = source_of(tmp_path, 0, "ascend_pt/db", profiler_db=made_database(tmp_path))
    assert assert_twins(source, "profiler_db")
    path = tmp_path / "analysis.db"
    write_analysis_db(path, {"step50": OPS}, {"step50": LINKS}, {"step50": STEP_ROW})
    assert assert_twins(source_of(tmp_path, 0, "ascend_pt/db", analysis_db=path), "analysis_db")


@given(data=st.data())
def test_a_damaged_database_gives_the_same_as_columns(tmp_path: Path, data: st.DataObject) -> None:
    path = made_database(tmp_path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content) // 2]))])
    assert_twins(source_of(tmp_path, 0, "ascend_pt/db", profiler_db=path), "profiler_db")


def test_cells_of_any_type_give_the_same_as_columns(tmp_path: Path) -> None:
    path = made_database(tmp_path)
    changed(
        path,
        "INSERT INTO TASK VALUES ('late', 3.5, 9, NULL), (X'00ff', NULL, 1e300, -1)",
        "INSERT INTO STRING_IDS VALUES (99, X'ff00'), (98, NULL), (97, '12'), (96, 12)",
        "CREATE INDEX by_value ON STRING_IDS (value)",
        "CREATE TABLE SOMETHING_ELSE (a, b)",
    )
    assert assert_twins(source_of(tmp_path, 0, "ascend_pt/db", profiler_db=path), "profiler_db")


@given(data=st.data())
def test_damaged_columns_cost_their_file_and_no_more(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / (NAMES["communication"] + SUFFIX)
    content = bytearray(reduce_communication(json.dumps(OPERATORS).encode()))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content) // 2]))])
    source = source_of(tmp_path, 0, "ascend_pt/text", communication=tmp_path / NAMES["communication"])
    tables = read_rank(source)
    assert tables.collectives.num_rows in (0, 2 * len(OPS))
    if not tables.collectives.num_rows:
        assert "communication.json" in {problem.file for problem in tables.problems}


@pytest.mark.parametrize(
    "change",
    [
        {"n": 10**12},
        {"n": -1},
        {"n": 199_999_999},
        {"n_planes": 9},
        {"n_planes": 0},
        {"n_planes": -1},
        {"name": "other"},
        {"name": "start_ns"},
        {"form": "strange"},
        {"n_decimals": 400},
        {"begin": 1 << 63},
        {"form": "doubles"},
    ],
)
def test_columns_that_lie_about_themselves_cost_their_file(tmp_path: Path, change: dict[str, Any]) -> None:
    plain = [replace(op, elapse=6.1, idle=0.225) for op in OPS]
    content = reduce_communication(json.dumps(communication_json({"step50": plain})).encode())
    schema, length, rest = content.split(b"\n", 2)
    head = json.loads(zlib.decompress(rest[: int(length)]))
    (column,) = (one for one in head["columns"] if one["name"] == "elapse")
    column.update(change)
    packed = zlib.compress(json.dumps(head).encode())
    path = tmp_path / (NAMES["communication"] + SUFFIX)
    path.write_bytes(b"%b\n%d\n%b%b" % (schema, len(packed), packed, rest[int(length) :]))
    source = source_of(tmp_path, 0, "ascend_pt/text", communication=tmp_path / NAMES["communication"])
    assert "communication.json" in {problem.file for problem in read_rank(source).problems}


def test_one_other_byte_costs_the_file(tmp_path: Path) -> None:
    content = bytearray(reduce_communication(json.dumps(OPERATORS).encode()))
    content[-1] ^= 1
    path = tmp_path / NAMES["communication"]
    path.with_name(path.name + SUFFIX).write_bytes(content)
    problems = read_rank(source_of(tmp_path, 0, "ascend_pt/text", communication=path)).problems
    assert "communication.json" in {problem.file for problem in problems}


WHOLE = st.integers(-(1 << 63), (1 << 63) - 1)


@given(
    whole=st.lists(WHOLE | st.integers(-300, 300), max_size=200),
    grid=st.tuples(WHOLE, st.integers(1, 1 << 40)),
    floats=st.lists(st.floats(allow_nan=False) | st.none(), max_size=100),
)
def test_a_column_comes_back_as_it_was(
    tmp_path: Path, whole: list[int], grid: tuple[int, int], floats: list[float | None]
) -> None:
    writer = Writer("any", 10_000)
    begin, step = grid
    spaced = [begin // 4 + step * (value % 1000) for value in whole]
    writer.ints("whole", whole)
    writer.ints("spaced", spaced)
    writer.floats("floats", floats)
    decimals = [value % 1000 / 100 for value in whole]
    writer.floats("decimals", decimals)
    path = tmp_path / "any"
    path.write_bytes(writer.content())
    file = ColumnsFile(path, "any")
    assert file.ints("whole").tolist() == whole
    assert file.ints("spaced").tolist() == spaced
    wanted = np.array([np.nan if value is None else value for value in floats])
    assert file.floats("floats").tobytes() == wanted.tobytes()
    assert file.floats("decimals").tolist() == decimals


@pytest.mark.many
@pytest.mark.parametrize(("form", "framework"), [("text", "pt"), ("db", "pt"), ("text", "ms"), ("db", "ms")])
def test_all_files_of_a_simulated_rank_have_columns_that_give_the_same(
    tmp_path: Path, form: str, framework: str
) -> None:
    write_small_run(tmp_path / "run", form=form, framework=framework, steps=2)
    raw = discover(tmp_path / "run")
    before = {source.rank: read_rank(source) for source in raw.sources}
    for source in raw.sources:
        for role in ("communication", "matrix", "analysis_db", "communication_db", "profiler_db"):
            if role in source.files:
                assert as_columns(Path(source.files[role])), (role, source.rank)
    reduced = discover(tmp_path / "run")
    assert [source.files for source in reduced.sources] == [source.files for source in raw.sources]
    for source in reduced.sources:
        assert_same(before[source.rank], read_rank(source))


def test_a_file_that_is_there_counts_more_than_its_columns(tmp_path: Path) -> None:
    write_info(tmp_path, 0)
    path = tmp_path / OUTPUT / NAMES["communication"]
    path.parent.mkdir()
    path.write_text(json.dumps(communication_json({"step50": OPS})))
    path.with_name(path.name + SUFFIX).write_bytes(b"no columns")
    source = source_of(tmp_path, 0, "ascend_pt/text", communication=path)
    assert read_rank(source).collectives["group"].to_pylist() == [GROUP] * len(OPS)
