"""MindSpore's database names every operator of a link; the table has the samples of its text form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.sources.compiled.reader import CHOICE
from cluster_analysis.sources.errors import unheard
from cluster_analysis.sources.text.communication_json import read_communication, read_matrix
from tests.analysis.one_rank import read_rank
from tests.analysis.said import Heard, refused
from tests.analysis.sources.builders import (
    GROUP,
    LINKS,
    OPS,
    LinkRow,
    Op,
    communication_json,
    matrix_json,
    source_of,
    write_analysis_db,
)
from tests.analysis.sources.hand_made_databases import BEGIN, NS, database_capture, profiler_db


def read(tmp_path: Path, document: object) -> tuple[list[dict], list[str]]:
    path = tmp_path / "communication_matrix.json"
    path.write_text(json.dumps(document))
    remarks = Heard()
    return read_matrix([(str(path), 5)], remarks).to_pylist(), remarks


def test_a_link_has_local_ends_bytes_and_microseconds(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, matrix_json({"step50": LINKS}))
    link = next(row for row in rows if row["dst_local"] == 1 and row["variant"] == "top1")
    assert (link["src_local"], link["dst_local"], link["src_rank"], link["dst_rank"]) == (0, 1, None, None)
    assert link["size_bytes"] == pytest.approx(37781504)
    assert link["time_us"] == 2125.0
    assert (link["group"], link["transport"], link["rank"], link["step"]) == (GROUP, "HCCS", 5, 50)


def test_both_frameworks_spellings_of_the_operator_name_are_read(tmp_path: Path) -> None:
    pytorch, _ = read(tmp_path, matrix_json({"step50": LINKS}, "Op Name"))
    mindspore, _ = read(tmp_path, matrix_json({"step50": LINKS}, "op_name"))
    assert pytorch == mindspore
    assert pytorch[0]["op_name"] == "hcom_allReduce__210_2_1"


SCATTER, REDUCE = "hcom_reduceScatter__691_4_1", "hcom_reduce__691_5_1"


@pytest.mark.parametrize(
    ("operators", "kinds"),
    [
        ({"top1": SCATTER, "total": None}, ["reducescatter", "reducescatter"]),
        ({"top1": SCATTER, "bottom1": REDUCE, "total": None}, ["reducescatter", "reduce", "reduce"]),
        ({"top1": SCATTER, "total": ""}, ["reducescatter", "reducescatter"]),
    ],
)
def test_reduce_scatter_filed_under_reduce_is_told_by_its_operator_and_so_is_its_total(
    tmp_path: Path, operators: dict[str, str | None], kinds: list[str]
) -> None:
    links = [LinkRow(f"reduce-{one}@{GROUP}", 0, 1, op_name=operator) for one, operator in operators.items()]
    rows, _ = read(
        tmp_path, matrix_json({"step50": links}, *(["op_name"] if "" in operators.values() else []))
    )
    assert [(row["variant"], row["op_type"], row["op_name"]) for row in rows] == [
        (one, kind, operator or None) for (one, operator), kind in zip(operators.items(), kinds, strict=True)
    ]


def test_older_files_have_one_entry_an_operator(tmp_path: Path) -> None:
    links = [LinkRow(f"hcom_broadcast__483_1@{GROUP}", 1, 0, op_name=None)]
    document = matrix_json({"step2": links})
    document["step2"]["collective"]["Total Op Info"] = {"1-0": {"Transport Type": "HCCS"}}  # type: ignore[index]
    rows, _ = read(tmp_path, document)
    assert [(row["variant"], row["op_type"], row["op_name"]) for row in rows] == [
        ("op", "broadcast", "hcom_broadcast__483_1")
    ]


def test_send_filed_under_collective_is_point_to_point(tmp_path: Path) -> None:
    rows, _ = read(
        tmp_path, matrix_json({"step0": [LinkRow(f"send-top1@{GROUP}", 0, 1, op_name="hcom_send__1_0")]})
    )
    assert rows[0]["is_p2p"]


def test_prof_files_without_step_and_level_are_step_0(tmp_path: Path) -> None:
    entry = {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1}}
    rows, _ = read(tmp_path, {f"hcom_allReduce__210_0_1@{GROUP}": entry, "Total Op Info": entry})
    assert [(row["step"], row["variant"]) for row in rows] == [(0, "op")]


def test_a_link_whose_ends_are_not_named_is_remarked(tmp_path: Path) -> None:
    document = matrix_json({"step50": LINKS})
    document["step50"]["collective"][LINKS[0].key]["zero-one"] = {}  # type: ignore[index]
    rows, remarks = read(tmp_path, document)
    assert len(rows) == 3
    assert remarks == ["left out: 1 link of step 50 not named source-destination"]


def test_a_damaged_local_rank_is_told_and_makes_no_group_of_that_size(tmp_path: Path) -> None:
    links = [LinkRow(f"allreduce-top1@{GROUP}", 0, 99999999), LinkRow(f"allreduce-top1@{GROUP}", 0, 1)]
    rows, remarks = read(tmp_path, matrix_json({"step50": links}))
    assert [(row["src_local"], row["dst_local"]) for row in rows] == [(0, 1)]
    assert remarks == ["left out: 1 link of step 50 not named source-destination"]


def links_of(
    root: Path, rows: list[tuple[int, float | None, float]], name: str = "allReduce"
) -> dict[str, dict]:
    """Rows of link 0-1 by variant, from operators `(number, MB, ms)`."""
    output = database_capture(root, "rank0_ascend_ms")
    profiler_db(output / "ascend_mindspore_profiler_0.db")
    keys = {number: f"hcom_{name}__210_{number}_1@{GROUP}" for number, _, _ in rows}
    ops = [Op(key, start=f"{(BEGIN + 35 * NS) / 1000:.1f}") for key in keys.values()]
    links = [LinkRow(keys[n], 0, 1, size=mb, time=ms, op_name=None) for n, mb, ms in rows]  # type: ignore[arg-type]
    path = output / "communication_analyzer.db"
    write_analysis_db(path, {"": ops}, {"": links}, {}, with_step_columns=False)
    table = read_rank(source_of(output.parent)).links
    assert set(table["step"].to_pylist()) == {50}
    return {row["variant"]: row for row in table.to_pylist()}


def test_samples_are_the_fastest_the_middle_and_the_slowest_and_totals_are_sums(tmp_path: Path) -> None:
    found = links_of(tmp_path, [(0, 8.0, 2.0), (1, 8.0, 1.0), (2, 8.0, 4.0), (3, 8.0, 3.0)])
    numbers = {variant: row["op_name"] and row["op_name"].split("_")[-2] for variant, row in found.items()}
    assert numbers == {
        "top1": "1",
        "middle": "3",
        "bottom1": "2",
        "bottom2": "3",
        "bottom3": "0",
        "total": None,
    }
    assert (found["total"]["size_bytes"], found["total"]["time_us"]) == (32_000_000.0, 10_000.0)


def test_a_link_with_one_operator_repeats_it_as_mindspore_does(tmp_path: Path) -> None:
    found = links_of(tmp_path, [(0, 0.1, 0.3)])
    assert set(found) == {"top1", "middle", "bottom1", "bottom2", "bottom3", "total"}
    assert {(row["size_bytes"], row["time_us"]) for row in found.values()} == {(100_000.0, 300.0)}


def test_sums_have_no_more_digits_than_their_parts(tmp_path: Path) -> None:
    found = links_of(tmp_path, [(0, 0.1, 0.1), (1, 0.2, 0.2)])
    assert (found["total"]["size_bytes"], found["total"]["time_us"]) == (300_000.0, 300.0)


def test_a_total_is_not_known_where_a_part_is_not(tmp_path: Path) -> None:
    found = links_of(tmp_path, [(0, 8.0, 2.0), (1, None, 1.0)])
    assert found["total"]["size_bytes"] is None
    assert found["total"]["time_us"] == 3000.0


# What operators carried over each transport, read from entries that are mostly zeros.
FIGURES = st.sampled_from([0, 0.0, 3, 0.25, 1e9])
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "Transit Size(MB)": st.one_of(st.none(), FIGURES),
        "Transit Time(ms)": st.one_of(st.none(), FIGURES),
        "Bandwidth(GB/s)": FIGURES,
        "Size Distribution": st.dictionaries(
            st.sampled_from(["1", "1.5", "2.5"]), st.tuples(FIGURES, FIGURES), max_size=2
        ),
    },
)


@given(entries=st.lists(st.one_of(st.none(), ENTRIES), max_size=6))
def test_every_entry_gives_its_own_figures(tmp_path_factory: pytest.TempPathFactory, entries: list) -> None:
    path = tmp_path_factory.mktemp("job") / "communication.json"
    operators = {
        f"hcom_broadcast__1_{at}_1@1": {
            "Communication Time Info": {"Start Timestamp(us)": 1764246877000000.5, "Elapse Time(ms)": 1},
            "Communication Bandwidth Info": {} if entry is None else {"RDMA": entry},
        }
        for at, entry in enumerate(entries)
    }
    path.write_text(json.dumps({"step1": {"collective": operators}}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHOICE, "python")
        read = read_communication([(str(path), 0)], unheard)
    for name, column, factor in (
        ("Transit Size(MB)", "rdma_bytes", 1e6),
        ("Transit Time(ms)", "rdma_us", 1e3),
    ):
        given_values = [None if entry is None else entry.get(name) for entry in entries]
        wanted = [None if value is None else value * factor for value in given_values]
        assert read.collectives[column].to_pylist() == wanted
    packets: dict[float, list[float]] = {}
    for entry in entries:
        for size, (count, time) in ((entry or {}).get("Size Distribution") or {}).items():
            counts, times = packets.get(float(size), [0, 0.0])
            packets[float(size)] = [counts + count, times + time]
    found = {row["packet_bytes"] / 1e6: row["n_packets"] for row in read.packets.to_pylist()}
    assert found == {size: round(count) for size, (count, _) in packets.items()}


def test_a_transport_of_another_form_names_its_step_and_what_is_wrong_there(tmp_path: Path) -> None:
    path = tmp_path / "communication.json"
    document = communication_json({"step50": OPS})
    text = json.dumps(document).replace('"Transit Size(MB)": 0', '"Transit Size(MB)": [0]', 1)
    path.write_text(text)
    with refused(r"in 'step50', which begins at byte \d+: .*Transit Size\(MB\): list .*hcom_"):
        read_communication([(str(path), 3)], [].append)
