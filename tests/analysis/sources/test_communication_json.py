from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_analysis.sources.compiled.reader import CHOICE
from cluster_analysis.sources.errors import unheard
from cluster_analysis.sources.text.communication_json import read_communication
from cluster_analysis.tables import schema
from cluster_analysis.tables.hccl_names import group_hash
from tests.analysis.said import Heard, refused
from tests.analysis.sources.builders import GROUP, OPS, Op, communication_json, op_json


def read(tmp_path: Path, document: object) -> tuple[list[dict], list[dict], list[str]]:
    path = tmp_path / "communication.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    remarks = Heard()
    tables = read_communication([(str(path), 3)], remarks)
    assert tables.collectives.schema == schema.COLLECTIVES
    assert tables.packets.schema == schema.PACKETS
    content = path.read_bytes()
    for span in tables.spans.to_pylist():
        json.loads(content[span["offset"] : span["offset"] + span["length"]])
    return tables.collectives.to_pylist(), tables.packets.to_pylist(), remarks


def test_times_are_microseconds_and_sizes_bytes(tmp_path: Path) -> None:
    rows, _, remarks = read(tmp_path, communication_json({"step50": OPS}))
    row = next(row for row in rows if row["op_type"] == "allreduce")
    assert row["rank"] == 3
    assert row["step"] == 50
    assert row["elapse_us"] == pytest.approx(79089.52021875)
    assert row["hccs_bytes"] == pytest.approx(12 * 2064384)
    assert row["hccs_us"] == 1500.0
    assert row["rdma_bytes"] == 0
    assert not remarks


def test_totals_are_no_operators(tmp_path: Path) -> None:
    rows, _, _ = read(tmp_path, communication_json({"step50": OPS}))
    assert sorted(row["op_name"] for row in rows) == [
        "hcom_allReduce__210_0_1",
        "hcom_reduceScatter__210_1_1",
        "hcom_send__822_0_1",
    ]


@pytest.mark.parametrize("written", ["1736408883732241.123", "1736408883732241.12399"])
def test_start_time_stamps_keep_every_digit_to_the_nanosecond(tmp_path: Path, written: str) -> None:
    text = json.dumps(communication_json({"step50": OPS[:1]})).replace("1736408883732241.5", written)
    rows, _, _ = read(tmp_path, text)
    assert rows[0]["start_ns"] == 1736408883732241123


def test_send_filed_under_collective_is_point_to_point(tmp_path: Path) -> None:
    filed_wrong = Op(f"hcom_send__822_0_1@{GROUP}", is_p2p=False)
    batch = Op(f"hcom_batchSendRecv__822_1_1@{GROUP}", is_p2p=False)
    graph = Op(f"Default/Send-op12@{GROUP}", is_p2p=False)
    rows, _, _ = read(tmp_path, communication_json({"step0": [filed_wrong, batch, graph]}))
    assert [row["is_p2p"] for row in rows] == [True, True, True]
    assert [row["op_type"] for row in rows] == ["send", "batchsendrecv", "send"]


def test_prof_files_without_step_and_level_are_step_0(tmp_path: Path) -> None:
    document = {op.name: op_json(op) for op in OPS} | {"Total Op Info": op_json(OPS[0])}
    rows, packets, _ = read(tmp_path, document)
    assert [row["is_p2p"] for row in rows] == [False, False, True]
    assert {row["step"] for row in rows} == {0}
    assert len(packets) == 4


def test_idel_is_read_as_idle(tmp_path: Path) -> None:
    rows, _, _ = read(
        tmp_path, json.dumps(communication_json({"step1": OPS[:1]})).replace("Idle Time", "Idel Time")
    )
    assert rows[0]["idle_us"] == pytest.approx(73214.52021875)


def test_packets_are_summed_by_step_group_transport_and_size(tmp_path: Path) -> None:
    twice = [OPS[0], Op(f"hcom_allReduce__210_5_1@{GROUP}")]
    _, packets, _ = read(tmp_path, communication_json({"step1": twice, "step2": OPS[:1]}))
    assert [(one["step"], one["group"], one["transport"], one["n_packets"]) for one in packets] == [
        (1, GROUP, "HCCS", 24),
        (2, GROUP, "HCCS", 12),
    ]
    assert packets[0]["packet_bytes"] == pytest.approx(2064384)
    assert packets[0]["total_us"] == 3000.0


def test_a_key_that_is_no_step_is_remarked(tmp_path: Path) -> None:
    rows, _, remarks = read(tmp_path, {**communication_json({"step1": OPS}), "warmup": {}})
    assert len(rows) == 3
    assert remarks == ["left out: 'warmup', which is no step"]


@pytest.mark.slow
def test_a_file_of_100_000_empty_groups_is_read(tmp_path: Path) -> None:
    document = {
        "step1": {"p2p": {}, "collective": {f"hcom_allReduce__{n}_0@{n}": op_json(OPS[0]) for n in range(3)}}
    }
    document["step1"]["collective"].update({f"hcom_allReduce__{n}_0@{n}": {} for n in range(3, 100_000)})
    rows, packets, remarks = read(tmp_path, document)
    assert [row["group"] for row in rows] == ["0", "1", "2"]
    assert len(packets) == 3
    assert remarks == ["left out: 99997 operators without a time"]


@pytest.mark.parametrize("written", ["NaN", "Infinity", "-Infinity"])
def test_what_python_writes_for_no_number_is_null_and_costs_nothing_else(
    tmp_path: Path, written: str
) -> None:
    text = json.dumps(communication_json({"step1": OPS}))
    rows, packets, remarks = read(tmp_path, text.replace("0.25", "null", 1))
    assert read(tmp_path, text.replace("0.25", written, 1)) == (rows, packets, remarks)
    assert [row["transit_us"] for row in rows].count(None) == 1


def test_the_hash_of_a_group_id_is_the_number_in_operator_names() -> None:
    assert group_hash("90.91.105.46%enp189s0f0_60000_0_1736410538306028") == "17148521525495523210"


def spans_of(path: Path) -> dict[str, object]:
    """Return the JSON that lies where the places say, by operator."""
    table = read_communication([(str(path), 3)], unheard).spans
    assert table.schema == schema.OPERATOR_SPANS
    content = path.read_bytes()
    rows = table.to_pylist()
    assert [row["position"] for row in rows] == list(range(len(rows)))
    return {
        f"{row['step']} {row['key']}": json.loads(content[row["offset"] : row["offset"] + row["length"]])
        for row in rows
    }


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a byte order mark"])
def test_places_of_operators_are_those_in_the_file(tmp_path: Path, mark: bytes) -> None:
    document = communication_json({"step50": OPS, "step51": OPS})
    path = tmp_path / "communication.json"
    path.write_bytes(mark + json.dumps(document, indent=2).encode())
    assert spans_of(path) == {
        f"{step.removeprefix('step')} {key}": entry
        for step, levels in document.items()
        for operators in levels.values()
        for key, entry in operators.items()
        if not key.startswith("Total")
    }


def test_operators_of_a_file_without_steps_have_places_too(tmp_path: Path) -> None:
    levels = communication_json({"step1": OPS})["step1"]
    flat = {key: entry for operators in levels.values() for key, entry in operators.items()}
    path = tmp_path / "communication.json"
    path.write_text(json.dumps(flat))
    assert spans_of(path) == {f"0 {key}": entry for key, entry in flat.items() if not key.startswith("Total")}


def test_names_of_the_levels_are_read_case_blind(tmp_path: Path) -> None:
    levels = communication_json({"step50": OPS})["step50"]
    expected, _, _ = read(tmp_path, {"step50": levels})
    rows, _, remarks = read(tmp_path, {"step50": {name.upper(): ops for name, ops in levels.items()}})  # type: ignore[attr-defined]
    assert (rows, remarks) == (expected, [])
    top, _, _ = read(tmp_path, {name.title(): ops for name, ops in levels.items()})  # type: ignore[attr-defined]
    assert [row["op_name"] for row in top] == [row["op_name"] for row in expected]


def test_a_level_of_an_unknown_name_is_told_and_costs_only_itself(tmp_path: Path) -> None:
    document = communication_json({"step50": OPS})
    document["step50"]["mixed"] = {}  # type: ignore[index]
    rows, _, remarks = read(tmp_path, document)
    assert len(rows) == len(OPS)
    assert remarks == ["left out: 'step50/mixed', which is neither p2p nor collective"]


def test_a_key_that_stands_twice_counts_once_and_is_told(tmp_path: Path) -> None:
    text = json.dumps(communication_json({"step50": OPS, "step51": OPS}))
    rows, _, remarks = read(tmp_path, text.replace('"step51"', '"step50"'))
    assert len(rows) == len(OPS)
    assert remarks == ["left out: 'step50', which is there a second time"]


@pytest.mark.parametrize("choice", ["auto", "python"])
def test_a_step_in_two_spellings_counts_once_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    monkeypatch.setenv(CHOICE, choice)
    rows, _, remarks = read(tmp_path, communication_json({"step50": OPS, "50": OPS}))
    assert len(rows) == len(OPS)
    assert remarks == ["left out: '50', which is there a second time"]


@pytest.mark.parametrize("choice", ["auto", "python"])
def test_an_operator_without_times_is_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    monkeypatch.setenv(CHOICE, choice)
    document = communication_json({"step50": OPS})
    del document["step50"]["collective"][OPS[0].name]["Communication Time Info"]  # type: ignore[index]
    rows, _, remarks = read(tmp_path, document)
    assert len(rows) == len(OPS) - 1
    assert remarks == ["left out: 1 operator without a time"]


def test_a_name_of_other_letters_moves_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "python")
    path = tmp_path / "communication.json"
    document = communication_json({"step50": [Op(f"hcom_\u4e2d\u6587__{n}_0_1@{GROUP}") for n in range(3)]})
    path.write_text(json.dumps(document, ensure_ascii=False))
    operators: dict[str, object] = document["step50"]["collective"]  # type: ignore[index]
    del operators["Total Op Info"]
    assert spans_of(path) == {f"50 {key}": one for key, one in operators.items()}


def test_totals_beside_the_steps_do_not_hide_them(tmp_path: Path) -> None:
    rows, _, remarks = read(tmp_path, {**communication_json({"step50": OPS}), "Total Op Info": {}})
    assert (len(rows), remarks) == (len(OPS), [])


def test_a_packet_size_that_is_no_number_is_told(tmp_path: Path) -> None:
    op = op_json(OPS[0])
    op["Communication Bandwidth Info"]["HCCS"]["Size Distribution"] = {"big": [1, 2.0], "1.0": [3, 0.5]}  # type: ignore[index]
    _, packets, remarks = read(tmp_path, {"step50": {"p2p": {}, "collective": {OPS[0].name: op}}})
    assert [row["n_packets"] for row in packets] == [3]
    assert remarks == ["left out: 1 packet size without a number"]


def test_letters_behind_the_end_are_not_called_truncated(tmp_path: Path) -> None:
    text = json.dumps(communication_json({"step50": OPS}))
    with refused("trailing characters"):
        read(tmp_path, text + "x")


def test_a_file_in_utf_16_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "communication.json"
    path.write_bytes(json.dumps(communication_json({"step50": OPS})).encode("utf-16"))
    with refused("UTF-16"):
        read_communication([(str(path), 0)], print)
