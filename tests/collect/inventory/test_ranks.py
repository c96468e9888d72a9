"""A rank table that speaks of other hosts than the inventory."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_collect.inventory.load import InventoryRequest, compare_hosts, load_inventory
from cluster_run.errors import InputError
from cluster_run.ids import DeviceId, Rank, ServerId
from cluster_run.ranktable import RankPlace, RankTable
from tests.collect.helpers import rank_table
from tests.collect.inventory.helpers import load, native


def table(*servers: str) -> RankTable:
    places = [(server, device) for server in servers for device in range(2)]
    return RankTable(
        tuple(
            RankPlace(Rank(rank), ServerId(server), DeviceId(device))
            for rank, (server, device) in enumerate(places)
        )
    )


def test_the_same_hosts_in_any_order_give_no_warning(tmp_path: Path) -> None:
    inventory = load(tmp_path, native("- address: n[1-3]"))
    assert compare_hosts(inventory, table("n3", "n1", "n2"), "hccl.json") == ((), "")


def test_hosts_that_only_one_of_the_two_knows_are_named_with_both_files(tmp_path: Path) -> None:
    inventory = load(tmp_path, native("- address: n[1-3]"))
    (absent, extra), missing = compare_hosts(inventory, table("n1", "10.0.0.2", "10.0.0.3"), "hccl.json")
    assert "10.0.0.[2-3] of hccl.json (4 ranks) is no host of" in absent
    assert "hosts.yaml" in absent
    assert "hosts.yaml: n[2-3] is not in hccl.json" in extra
    assert missing in absent


def test_where_nothing_else_names_hosts_those_of_the_rank_table_are_taken(tmp_path: Path) -> None:
    rank_table(tmp_path / "hccl.json", {"10.0.0.2": [0], "10.0.0.1": [1]})
    text = "version: 1\nrank_table: hccl.json\ndefaults: {profiler_root: /p, user: u}\n"
    request = InventoryRequest(rank_table=tmp_path / "hccl.json", defaults={"profiler_root": "/p"})
    for inventory in (load(tmp_path, text), load_inventory(request, {})):
        assert [(spec.host, spec.address) for spec in inventory.specs] == [
            ("1", "10.0.0.2"),
            ("2", "10.0.0.1"),
        ]
        assert inventory.rank_table == tmp_path / "hccl.json"


def test_hosts_that_are_named_win_over_those_of_the_rank_table(tmp_path: Path) -> None:
    rank_table(tmp_path / "hccl.json", {"10.0.0.1": [0]})
    text = "version: 1\nrank_table: hccl.json\ndefaults: {profiler_root: /p}\n"
    assert [spec.address for spec in load(tmp_path, text, hosts="a").specs] == ["a"]
    assert [spec.address for spec in load(tmp_path, text + "hosts: [b]").specs] == ["b"]


def test_a_rank_table_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    text = "version: 1\nrank_table: hccl.json\ndefaults: {profiler_root: /p}\n"
    with pytest.raises(InputError, match=r"hccl.json: the rank table cannot be read: No such file") as caught:
        load(tmp_path, text)
    assert "leave it out" in (caught.value.advice or "")
    rank_table(tmp_path / "hccl.json", {"-oProxyCommand=x": [0]})
    with pytest.raises(InputError, match=r"hccl.json: not a host name or address"):
        load(tmp_path, text)


def test_a_host_without_ranks_costs_no_rank(tmp_path: Path) -> None:
    inventory = load(tmp_path, native("- address: n[1-3]"))
    assert compare_hosts(inventory, table("n1", "n2"), "hccl.json")[1] == ""
