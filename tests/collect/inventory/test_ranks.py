"""A rank table that speaks of other hosts than the inventory."""

from __future__ import annotations

from pathlib import Path

from cluster_collect.inventory.ranks import compare_hosts
from cluster_run.ids import DeviceId, Rank, ServerId
from cluster_run.ranktable import RankPlace, RankTable

from .helpers import load, native


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
    comparison = compare_hosts(inventory, table("n3", "n1", "n2"), "hccl.json")
    assert comparison.warnings == ()
    assert comparison.missing == ""


def test_hosts_that_only_one_of_the_two_knows_are_named_with_both_files(tmp_path: Path) -> None:
    inventory = load(tmp_path, native("- address: n[1-3]"))
    comparison = compare_hosts(inventory, table("n1", "10.0.0.2", "10.0.0.3"), "hccl.json")
    absent, extra = comparison.warnings
    assert "10.0.0.[2-3] of hccl.json (4 ranks) is no host of" in absent
    assert "hosts.yaml" in absent
    assert "hosts.yaml: n[2-3] is not in hccl.json" in extra
    assert comparison.missing in absent


def test_a_host_without_ranks_costs_no_rank(tmp_path: Path) -> None:
    inventory = load(tmp_path, native("- address: n[1-3]"))
    assert compare_hosts(inventory, table("n1", "n2"), "hccl.json").missing == ""
