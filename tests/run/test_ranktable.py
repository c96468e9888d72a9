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


def instance(rank: int | None, host: str, *devices: int, name: str = "server_id") -> dict[str, object]:
    """An instance of a group list."""
    found = {name: host, "devices": [{"device_id": str(device)} for device in devices]}
    return found if rank is None else {**found, "rank_id": str(rank)}


def a5(rank: int, **more: object) -> dict[str, object]:
    """A rank of version 2.0, as MindCluster writes it for A5."""
    address = {"addr_type": "EID", "addr": "0" * 32, "ports": ["0/0"], "plane_id": "plane0"}
    layer = {"net_layer": 0, "net_instance_id": "rack_0", "net_type": "TOPO_FILE_DESC", "net_attr": ""}
    layers = [{**layer, "rank_addr_list": [address]}]
    return {"rank_id": rank, "device_id": rank % 8, "local_id": rank % 8, "level_list": layers, **more}


def version_2(*ranks: dict[str, object]) -> str:
    return json.dumps({"version": "2.0", "status": "completed", "rank_list": ranks})


def groups(*instances: dict[str, object]) -> str:
    return json.dumps({"group_list": [{"instance_list": instances}]})


A, B = server("a", (0, 0)), server("b", (0, 1))
PODS = [{"super_pod_id": "0", "server_list": [{"server_id": "a"}]}, {"super_pod_id": 1, "server_list": []}]
WHOLE_POD = {"super_pod_id": "7", "server_list": [A, B]}
FORMS = {
    "1.0 with numbers as text or numbers": (
        table(server("10.0.0.2", ("0", "2"), ("1", "3")), server("10.0.0.1", (0, 0), (1, 1))),
        [(0, "10.0.0.1", 0), (1, "10.0.0.1", 1), (2, "10.0.0.2", 0), (3, "10.0.0.2", 1)],
    ),
    "1.2 with super pods": (
        table(A, server("b", ("0", "1")), version="1.2", super_pod_list=PODS),
        [(0, "a", 0), (1, "b", 0)],
    ),
    "an empty list of super pods": (table(A, super_pod_list=[]), [(0, "a", 0)]),
    "null in place of super pods": (table(A, super_pod_list=None), [(0, "a", 0)]),
    "servers within super pods alone": (
        json.dumps({"version": "1.2", "super_pod_list": [WHOLE_POD]}),
        [(0, "a", 0), (1, "b", 0)],
    ),
    "a group list with one rank an instance": (
        groups(instance(1, "a", 5), instance(0, "a", 4)),
        [(0, "a", 4), (1, "a", 5)],
    ),
    "a group list that counts devices in order": (
        groups(*(instance(None, one, 0, 1, name="pod_name") for one in ("p", "q"))),
        [(0, "p", 0), (1, "p", 1), (2, "q", 0), (3, "q", 1)],
    ),
    "a byte order mark": ("\ufeff" + table(A), [(0, "a", 0)]),
    "2.0 without hosts": (version_2(a5(9), a5(1)), [(1, "", 1), (9, "", 1)]),
    "2.0 with addresses of hosts": (
        version_2(a5(0, host_ip="10.0.0.1"), a5(8, host_ip="10.0.0.2")),
        [(0, "10.0.0.1", 0), (8, "10.0.0.2", 0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), FORMS.values(), ids=FORMS)
def test_each_form_of_rank_table_is_read(text: str, wanted: list[tuple[int, str, int]]) -> None:
    found = parse_rank_table(text, "hccl.json")
    assert [(one.rank, one.server_id, one.device) for one in found.places] == wanted
    assert found.server_ids == tuple(dict.fromkeys(server for _, server, _ in wanted if server))


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
        (json.dumps({"super_pod_list": [3]}), "a list of objects is something else"),
        (json.dumps({"rank_list": 3}), "a list of objects is something else"),
        (json.dumps({"group_list": {"a": 1}}), "a list of objects is something else"),
        ('{"ranks": []}', "it has none of server_list, group_list, .*super_pod_list"),
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


def test_groups_of_servers_are_jobs_that_each_count_from_rank_0() -> None:
    groups = [
        {"group_id": "0", "server_list": [{"server_ip": "10.0.0.9"}]},
        {"group_id": "2", "server_list": [server("a", (0, 0), (1, 1))]},
        {"group_id": "3", "server_list": [server("b", (0, 0)), server("c", (0, 1))]},
    ]
    found = parse_rank_table(json.dumps({"version": "1.0", "server_group_list": groups}), "hccl.json")
    assert found.places == ()
    assert [[(one.rank, one.server_id) for one in job] for job in found.jobs] == [
        [(0, "a"), (1, "a")],
        [(0, "b"), (1, "c")],
    ]
    assert found.server_ids == ("a", "b", "c")


def test_lists_of_prefill_and_decode_devices_are_two_jobs() -> None:
    def device(host: str, number: int) -> dict[str, str]:
        ids = {"device_id": str(number), "cluster_id": str(number + 1), "super_pod_id": "0"}
        return {"server_id": host, "device_ip": "192.0.2.1", "super_device_id": "1", **ids}

    lists = {"prefill_device_list": [device("a", 4), device("a", 5)], "decode_device_list": [device("b", 0)]}
    found = parse_rank_table(json.dumps({"version": "1.2", "server_count": "2", **lists}), "hccl.json")
    assert [[(one.rank, one.server_id, one.device) for one in job] for job in found.jobs] == [
        [(0, "a", 4), (1, "a", 5)],
        [(0, "b", 0)],
    ]


def test_a_server_has_the_address_of_its_container_beside_its_id_or_instead_of_it() -> None:
    named = {**server("node-a", (0, 0)), "container_ip": "172.16.0.1"}
    nameless = {**server("x", (0, 1)), "container_ip": "172.16.0.2"}
    del nameless["server_id"]
    found = parse_rank_table(table(named, nameless), "hccl.json")
    assert [(one.server_id, one.address) for one in found.places] == [
        ("node-a", "172.16.0.1"),
        ("172.16.0.2", ""),
    ]
