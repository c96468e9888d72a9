"""Is it whole? The rank table is held against what came, and one file system is read once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from cluster_run.manifest import read_manifest
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import (
    FULL,
    OneHost,
    Recorder,
    collected,
    host_tree,
    make_capture,
    rank_table,
    spec_for,
    tree,
)


@pytest.fixture
def two(lab: SshLab, two_servers: tuple[SshServer, SshServer], tmp_path: Path) -> list[HostSpec]:
    """Two hosts, whose roots are the directories `one` and `two`."""
    return [
        spec_for(lab, server, tmp_path / name, number)
        for number, (server, name) in enumerate(zip(two_servers, ("one", "two"), strict=True), 1)
    ]


def test_a_host_that_lacks_ranks_of_the_rank_table_is_not_complete(
    two: list[HostSpec], tmp_path: Path
) -> None:
    for rank in (0, 1, 2, 8, 9):
        make_capture(tmp_path / ("one" if rank < 8 else "two"), rank)
    table = rank_table(tmp_path / "hccl.json", {"server-1": range(8), "server-2": [8, 9]})
    first, second = collected(two, tmp_path / "run", FULL, rank_table=table).hosts
    assert (first.state, first.failure) == ("partial", "ranks-missing")
    assert first.reason == "holds 3 of its 8 ranks: 3-7 missing"
    assert second.state == "complete", second.reason


def test_hosts_that_the_rank_table_swaps_are_told(two: list[HostSpec], tmp_path: Path) -> None:
    make_capture(tmp_path / "one", 1)
    make_capture(tmp_path / "two", 0)
    table = rank_table(tmp_path / "hccl.json", {"server-1": [0], "server-2": [1]})
    hosts = collected(two, tmp_path / "run", FULL, rank_table=table).hosts
    for outcome, other in zip(hosts, ("2", "1"), strict=True):
        assert outcome.failure == "ranks-missing"
        assert f"those of server-{other} in the rank table: are the two swapped?" in outcome.reason


def test_names_without_ranks_are_no_reason_to_call_a_host_incomplete(host: OneHost, tmp_path: Path) -> None:
    info = next(host.root.rglob("profiler_info_0.json"))
    info.rename(info.with_name("profiler_info.json"))
    table = rank_table(tmp_path / "hccl.json", {"server-1": [0, 1]})
    assert collected(host.spec, host.run, FULL, rank_table=table).hosts[0].state == "complete"


@pytest.mark.slow
def test_hosts_that_see_one_file_system_are_fetched_once(two: list[HostSpec], tmp_path: Path) -> None:
    make_capture(tmp_path / "one", n_more=20)
    (tmp_path / "two").symlink_to(tmp_path / "one")
    table = rank_table(tmp_path / "hccl.json", {"server-1": [], "server-2": [0]})
    watch = Recorder()
    hosts = collected(two, tmp_path / "run", FULL, watch, rank_table=table).hosts
    assert [host.state for host in hosts] == ["complete", "complete"]
    assert len(watch.stored) == len(tree(tmp_path / "one"))
    first = next(host for host in hosts if host.files)
    second = next(host for host in hosts if not host.files)
    assert second.same_files_as == first.host
    assert host_tree(tmp_path / "run", int(first.host)) == tree(tmp_path / "one")
    assert host_tree(tmp_path / "run", int(second.host)) == {}
    assert read_manifest(tmp_path / "run" / "manifest.json").hosts == hosts
    again = Recorder()
    hosts = collected(two, tmp_path / "run", FULL, again, rank_table=table).hosts
    assert ([host.state for host in hosts], again.stored) == (["complete", "complete"], [])


def test_equal_names_on_two_disks_are_fetched_twice(two: list[HostSpec], tmp_path: Path) -> None:
    make_capture(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two", copy_function=shutil.copyfile)
    collected(two, tmp_path / "run", FULL)
    assert host_tree(tmp_path / "run", 1) == host_tree(tmp_path / "run", 2) == tree(tmp_path / "one")
