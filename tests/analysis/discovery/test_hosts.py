"""On which host each rank ran, and that no wrong one is named where that is not clear."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_analysis.discovery.discover import discover
from tests.analysis.discovery.test_discover import rank_table, run_directory
from tests.analysis.said import reason
from tests.analysis.sources.builders import write_capture


def shared_run(root: Path, names: tuple[str, str], ranks: dict[int, str]) -> Path:
    """A run of two hosts with one file system, which host 2 was the first to answer for."""
    run = run_directory(root, (names[0], [0, 1]), (names[1], [2, 3]))
    for rank, host_name in ranks.items():
        name = f"{host_name}_{rank}_2025010100000000{rank}_ascend_pt"
        write_capture(run / "cluster_profiler/2/profiler", rank, name)
    hosts = [
        {"host": "1", "server_id": names[0], "state": "complete", "files": [], "same_files_as": "2"},
        {"host": "2", "server_id": names[1], "state": "complete", "files": []},
    ]
    document = {"schema": "cluster-run/1", "what": ["analysis"], "tool_version": "0", "hosts": hosts}
    (run / "manifest.json").write_text(json.dumps(document))
    return run


IN_PODS = dict.fromkeys(range(4), "pod")


def test_of_hosts_that_share_a_file_system_the_rank_table_says_who_ran_where(tmp_path: Path) -> None:
    capture = discover(shared_run(tmp_path, ("10.0.0.1", "10.0.0.2"), IN_PODS))
    assert capture.hosts == {0: "1", 1: "1", 2: "2", 3: "2"}
    assert [source.host for source in capture.sources] == ["1", "1", "2", "2"]
    assert capture.problems == ()


def test_without_a_rank_table_the_names_of_the_captures_say_it(tmp_path: Path) -> None:
    run = shared_run(tmp_path, ("n1.cluster", "n2"), {0: "n1", 1: "n1", 2: "n2", 3: "n2"})
    (run / "hccl.json").unlink()
    capture = discover(run)
    assert capture.hosts == {0: "1", 1: "1", 2: "2", 3: "2"}
    assert capture.problems == ()


def test_where_nothing_says_it_no_host_is_named_and_that_is_told(tmp_path: Path) -> None:
    run = shared_run(tmp_path, ("10.0.0.1", "10.0.0.2"), IN_PODS)
    (run / "hccl.json").unlink()
    capture = discover(run)
    assert capture.hosts == {}
    assert [reason(problem) for problem in capture.problems] == [
        "hosts see one file system, and nothing says on which of them ranks 0-3 ran"
    ]


def test_a_rank_table_of_another_run_names_no_device_and_no_host(tmp_path: Path) -> None:
    run = run_directory(tmp_path, ("10.0.0.1", [0, 1]), ("10.0.0.2", [2, 3]))
    for rank in range(4):
        write_capture(run / f"cluster_profiler/{rank // 2 + 1}/profiler", rank, f"rank{rank}_ascend_pt")
    (run / "hccl.json").write_text(rank_table(("10.0.0.1", [3, 1]), ("10.0.0.2", [2, 0])))
    capture = discover(run)
    assert capture.hosts == {1: "1", 2: "2"}
    assert capture.devices == {}
    assert [(problem.file, reason(problem)) for problem in capture.problems] == [
        (
            "hccl.json",
            "ranks 0,3 lie with other hosts than it says: no host is named for them, and no device is taken "
            "from it",
        )
    ]


@pytest.mark.parametrize("server", ["node01", "10.0.0.9"])
def test_a_host_that_the_rank_table_spells_otherwise_keeps_its_ranks(tmp_path: Path, server: str) -> None:
    run = run_directory(tmp_path, ("10.0.0.1", [0]), ("10.0.0.2", [1]))
    (run / "host_ips_mapping.txt").write_text(f"{server} 1\n10.0.0.2 2\n")
    for rank in range(2):
        write_capture(run / f"cluster_profiler/{rank + 1}/profiler", rank, f"rank{rank}_ascend_pt")
    assert discover(run).hosts == {0: "1", 1: "2"}


def test_a_rank_table_beside_a_plain_tree_says_who_ran_where(tmp_path: Path) -> None:
    for rank in range(4):
        write_capture(tmp_path, rank, f"dp0_rank{rank}_{rank}_2025010100000000{rank}_ascend_pt")
    (tmp_path / "hccl.json").write_text(rank_table(("10.0.0.7", [0, 1]), ("10.0.0.8", [2, 3])))
    capture = discover(tmp_path)
    assert capture.hosts == {0: "1", 1: "1", 2: "2", 3: "2"}
    assert capture.addresses == {"1": "10.0.0.7", "2": "10.0.0.8"}


def test_a_rank_table_of_several_jobs_tells_devices_of_hosts_and_folders_tell_hosts(tmp_path: Path) -> None:
    run = run_directory(tmp_path, ("10.0.0.1", [0, 1]), ("10.0.0.2", [0, 1]))
    groups = json.loads((run / "hccl.json").read_text())["server_list"]
    lists = [{"group_id": str(number), "server_list": [one]} for number, one in enumerate(groups)]
    (run / "hccl.json").write_text(json.dumps({"server_group_list": lists}))
    for host in (1, 2):
        for rank in range(2):
            write_capture(
                run / f"cluster_profiler/{host}/profiler",
                rank,
                f"n{host}_{rank}_2025010100000000{rank}_ascend_pt",
            )
    capture = discover(run, "host-2")
    assert capture.hosts == {0: "2", 1: "2"}
    assert capture.problems == ()


def test_hosts_that_a_rank_table_names_are_found_by_the_address_of_their_containers(tmp_path: Path) -> None:
    run = run_directory(tmp_path, ("node-a", [0]), ("node-b", [1]))
    table = json.loads((run / "hccl.json").read_text())
    for number, one in enumerate(table["server_list"], 1):
        one["container_ip"] = f"172.16.0.{number}"
    (run / "hccl.json").write_text(json.dumps(table))
    (run / "host_ips_mapping.txt").write_text("172.16.0.1 1\n172.16.0.2 2\n")
    for rank in range(2):
        write_capture(run / f"cluster_profiler/{rank + 1}/profiler", rank)
    capture = discover(run)
    assert (capture.hosts, capture.devices, capture.problems) == ({0: "1", 1: "2"}, {0: 0, 1: 0}, ())
