"""Is it whole? The rank table is held against what came, and one file system is read once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster_run.manifest import read_manifest
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import FULL, Recorder, collected, host_tree, make_capture, spec_for, tree


def rank_table(path: Path, ranks: Mapping[str, Sequence[int]]) -> Path:
    servers = [
        {
            "server_id": server,
            "device": [
                {"device_id": str(place), "device_ip": "192.168.1.1", "rank_id": str(rank)}
                for place, rank in enumerate(of_server)
            ],
        }
        for server, of_server in ranks.items()
    ]
    path.write_text(json.dumps({"version": "1.0", "status": "completed", "server_list": servers}))
    return path


def test_a_host_that_lacks_ranks_of_the_rank_table_is_not_complete(
    lab: SshLab, two_servers: tuple[SshServer, SshServer], tmp_path: Path
) -> None:
    for rank in range(3):
        make_capture(tmp_path / "one", rank)
    for rank in range(8, 10):
        make_capture(tmp_path / "two", rank)
    table = rank_table(tmp_path / "hccl.json", {"server-1": range(8), "server-2": [8, 9]})
    specs = [
        spec_for(lab, two_servers[0], tmp_path / "one"),
        spec_for(lab, two_servers[1], tmp_path / "two", 2),
    ]
    one, two = collected(specs, tmp_path / "run", FULL, rank_table=table).hosts
    assert (one.state, one.failure) == ("partial", "ranks-missing")
    assert one.reason == "holds 3 of its 8 ranks: 3-7 missing"
    assert two.state == "complete", two.reason


def test_hosts_that_the_rank_table_swaps_are_told(
    lab: SshLab, two_servers: tuple[SshServer, SshServer], tmp_path: Path
) -> None:
    make_capture(tmp_path / "one", 1)
    make_capture(tmp_path / "two", 0)
    table = rank_table(tmp_path / "hccl.json", {"server-1": [0], "server-2": [1]})
    specs = [
        spec_for(lab, two_servers[0], tmp_path / "one"),
        spec_for(lab, two_servers[1], tmp_path / "two", 2),
    ]
    for outcome, other in zip(
        collected(specs, tmp_path / "run", FULL, rank_table=table).hosts, ("2", "1"), strict=True
    ):
        assert outcome.failure == "ranks-missing"
        assert f"those of server-{other} in the rank table: are the two swapped?" in outcome.reason


def test_names_without_ranks_are_no_reason_to_call_a_host_incomplete(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    capture = make_capture(tmp_path / "host")
    (capture / "profiler_info_0.json").rename(capture / "profiler_info.json")
    table = rank_table(tmp_path / "hccl.json", {"server-1": [0, 1]})
    spec = spec_for(lab, server, tmp_path / "host")
    assert collected(spec, tmp_path / "run", FULL, rank_table=table).hosts[0].state == "complete"


def test_hosts_that_see_one_file_system_are_fetched_once(
    lab: SshLab, two_servers: tuple[SshServer, SshServer], tmp_path: Path
) -> None:
    make_capture(tmp_path / "shared", n_more=20)
    table = rank_table(tmp_path / "hccl.json", {"server-1": [], "server-2": [0]})
    specs = [spec_for(lab, server, tmp_path / "shared", n + 1) for n, server in enumerate(two_servers)]
    watch = Recorder()
    hosts = collected(specs, tmp_path / "run", FULL, watch, rank_table=table).hosts
    assert [host.state for host in hosts] == ["complete", "complete"]
    assert len(watch.stored) == len(tree(tmp_path / "shared"))
    first = next(host for host in hosts if host.files)
    second = next(host for host in hosts if not host.files)
    assert second.same_files_as == first.host
    assert host_tree(tmp_path / "run", int(first.host)) == tree(tmp_path / "shared")
    assert host_tree(tmp_path / "run", int(second.host)) == {}
    assert read_manifest(tmp_path / "run" / "manifest.json").hosts == hosts
    again = Recorder()
    hosts = collected(specs, tmp_path / "run", FULL, again, rank_table=table).hosts
    assert [host.state for host in hosts] == ["complete", "complete"]
    assert again.stored == []


def test_equal_names_on_two_disks_are_fetched_twice(
    lab: SshLab, two_servers: tuple[SshServer, SshServer], tmp_path: Path
) -> None:
    make_capture(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two", copy_function=shutil.copyfile)
    specs = [
        spec_for(lab, two_servers[0], tmp_path / "one"),
        spec_for(lab, two_servers[1], tmp_path / "two", 2),
    ]
    collected(specs, tmp_path / "run", FULL)
    assert host_tree(tmp_path / "run", 1) == host_tree(tmp_path / "run", 2) == tree(tmp_path / "one")
