"""Rank tables of all forms, and the host mapping."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_run.errors import InputError
from cluster_run.ids import DeviceId, HostId, Rank, ServerId
from cluster_run.ranktable import RankPlace, format_host_mapping, parse_host_mapping, parse_rank_table


def server(server_id: object, *devices: tuple[object, object]) -> dict[str, Any]:
    return {
        "server_id": server_id,
        "device": [
            {"device_id": device, "device_ip": "192.0.2.1", "rank_id": rank} for device, rank in devices
        ],
        "host_nic_ip": "reserve",
    }


def table(*servers: dict[str, Any], **more: object) -> str:
    return json.dumps({"version": "1.0", "server_list": list(servers), "status": "completed", **more})


def places(text: str) -> list[tuple[int, str, int, str]]:
    return [
        (place.rank, place.server_id, place.device, place.super_pod)
        for place in parse_rank_table(text, "hccl.json").places
    ]


def test_version_1_0_with_numbers_as_text_or_numbers() -> None:
    text = table(server("10.0.0.2", ("0", "2"), ("1", "3")), server("10.0.0.1", (0, 0), (1, 1)))
    assert places(text) == [
        (0, "10.0.0.1", 0, ""),
        (1, "10.0.0.1", 1, ""),
        (2, "10.0.0.2", 0, ""),
        (3, "10.0.0.2", 1, ""),
    ]


def test_version_1_2_knows_super_pods() -> None:
    pods = [
        {"super_pod_id": "0", "server_list": [{"server_id": "a"}]},
        {"super_pod_id": 1, "server_list": []},
    ]
    text = table(server("a", ("0", "0")), server("b", ("0", "1")), version="1.2", super_pod_list=pods)
    assert places(text) == [(0, "a", 0, "0"), (1, "b", 0, "")]


def test_an_empty_or_null_list_of_super_pods_is_no_error() -> None:
    nothing: object
    for nothing in ([], None):
        assert places(table(server("a", (0, 0)), super_pod_list=nothing)) == [(0, "a", 0, "")]


def test_group_list_with_one_rank_an_instance() -> None:
    instances = [
        {"devices": [{"device_id": str(device)}], "rank_id": str(rank), "server_id": "10.0.0.1"}
        for rank, device in ((1, 5), (0, 4))
    ]
    text = json.dumps({"group_list": [{"instance_list": instances}], "status": "completed"})
    assert places(text) == [(0, "10.0.0.1", 4, ""), (1, "10.0.0.1", 5, "")]


def test_group_list_without_rank_ids_counts_the_devices_in_order() -> None:
    instances = [
        {"pod_name": pod, "devices": [{"device_id": "0"}, {"device_id": "1"}]} for pod in ("job-0", "job-1")
    ]
    text = json.dumps({"group_list": [{"instance_list": instances}]})
    assert places(text) == [
        (0, "job-0", 0, ""),
        (1, "job-0", 1, ""),
        (2, "job-1", 0, ""),
        (3, "job-1", 1, ""),
    ]


def test_a_byte_order_mark_is_passed_over() -> None:
    assert len(places("\ufeff" + table(server("a", (0, 0))))) == 1


def test_servers_stand_in_the_order_of_their_first_rank() -> None:
    found = parse_rank_table(table(server("b", (0, 1), (1, 2)), server("a", (0, 0))), "hccl.json")
    assert found.server_ids == ("a", "b")
    assert found.places[0] == RankPlace(Rank(0), ServerId("a"), DeviceId(0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (table(server("a", (0, 0), (1, 0))), "rank 0 appears twice"),
        (table(server("a", (0, 0), (0, 1))), "device a/0 appears twice"),
        (table(server("a", (0, 0)), status="initializing"), "status 'initializing' .it was taken before"),
        (table(), "no ranks"),
        (table(server("a", (0, "x"))), "not a readable rank table"),
        (table(server("a", (0, -1))), "-1 is not a rank or device number"),
        (table(server("a", (0, "-1"))), "'-1' is not a rank or device number"),
        (table(server("a", (0, 1.5))), "1.5 is not a rank"),
        (table(server("a", (0, True))), "True is not a rank"),
        (table(server(None, (0, 0))), "None is not a name"),
        (table({"server_id": "a"}), "'device' is missing"),
        (table({"server_id": ["a"], "device": []}, super_pod_list=[3]), "not a readable rank table"),
        ('{"rank_list": []}', "neither server_list nor group_list"),
        ("[]", "the top level is not an object"),
        ("", "not a readable rank table"),
        ("[" * 100_000, "nested too deeply"),
        (table(server("a", (0, "9" * 5000))), "not a readable rank table"),
    ],
)
def test_what_is_wrong_is_named_with_the_file(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"hccl.json: .*{message}"):
        parse_rank_table(text, "hccl.json")


@given(st.text())
def test_no_text_makes_the_reader_crash(text: str) -> None:
    with pytest.raises(InputError):
        parse_rank_table(text, "hccl.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["server_list", "device", "group_list", "instance_list", "devices", "rank_id", "status"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["server_list", "group_list", "super_pod_list", "status"]), JSON))
def test_no_json_makes_the_reader_crash(document: dict[str, object]) -> None:
    with pytest.raises(InputError):
        parse_rank_table(json.dumps(document), "hccl.json")


NAMES = st.text(st.characters(codec="ascii", categories=("L", "N", "P")), min_size=1)


@given(st.dictionaries(NAMES.map(ServerId), st.integers(1, 999).map(lambda number: HostId(str(number)))))
def test_the_mapping_comes_back_as_it_was_written(mapping: dict[ServerId, HostId]) -> None:
    assert parse_host_mapping(format_host_mapping(mapping)) == mapping


def test_the_mapping_has_the_form_of_the_r1_script() -> None:
    mapping = {ServerId("10.0.0.2"): HostId("1"), ServerId("10.0.0.1"): HostId("2")}
    assert format_host_mapping(mapping) == "10.0.0.2 1\n10.0.0.1 2\n"


def test_the_first_line_of_a_host_wins_and_broken_lines_are_passed_over() -> None:
    # The r1.x script appended its lines again at each run.
    assert parse_host_mapping("a 1\n\nb\nb 2\na 3\n") == {"a": "1", "b": "2"}


def test_the_hosts_of_a_table_are_worked_out_once_however_many_ranks_ask() -> None:
    found = parse_rank_table(table(server("a", (0, 0)), server("b", (0, 1))), "hccl.json")
    assert found.server_ids is found.server_ids
