"""Which captures are one job: prefill and decode, roles, replicas, restarts, windows; never ranks of two."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.discovery.discover import discover, part_names
from cluster_analysis.discovery.found import Found
from cluster_analysis.discovery.parts import split_into_parts
from cluster_run.errors import InputError
from cluster_run.ids import HostId, Rank
from tests.analysis.said import notes_of
from tests.analysis.sources.builders import write_capture


def capture(root: Path, folder: str, rank: int, worker: str, stamp: int, world: str = "") -> None:
    groups = {world: {"group_name": "default_group", "group_rank": rank, "global_ranks": list(range(16))}}
    write_capture(
        root / folder,
        rank,
        f"{worker}_{stamp}_ascend_pt",
        metadata={"parallel_group_info": groups} if world else None,
    )


def folders(path: Path, part: str | None = None) -> set[str]:
    """Where the captures of the part lie that is analysed, below the path."""
    return {
        str(Path(file).relative_to(path).parent.parent.parent)
        for source in discover(path, part).sources
        for role, file in source.files.items()
        if role == "step_trace"
    }


def test_prefill_and_decode_that_start_together_are_told_apart_by_host(tmp_path: Path) -> None:
    for host, role in ((1, "prefill-pod"), (2, "decode-pod")):
        for rank in range(4):
            stamp = 20260915100001000 + 37 * rank + host
            capture(tmp_path, f"cluster_profiler/{host}/profiler", rank, f"{role}_{rank}", stamp)
    assert part_names(tmp_path) == ("host-1", "host-2")
    for name, folder in (("host-1", "1"), ("prefill-pod", "1"), ("decode-pod", "2")):
        assert folders(tmp_path, name) == {f"cluster_profiler/{folder}/profiler"}
    assert len(folders(tmp_path)) == 1
    assert "pod" not in str(notes_of(discover(tmp_path)))


def test_jobs_over_several_hosts_each_are_told_apart_by_what_is_the_same_in_names(tmp_path: Path) -> None:
    for host, (role, first) in enumerate((("prefill", 0), ("prefill", 2), ("decode", 0), ("decode", 2)), 1):
        for rank in (first, first + 1):
            worker = f"{role}-{host}_{rank}"
            capture(tmp_path, f"cluster_profiler/{host}/profiler", rank, worker, 20260915100001000 + rank)
    assert part_names(tmp_path) == ("hosts-1-2", "hosts-3-4")
    assert folders(tmp_path, "prefill") == {f"cluster_profiler/{host}/profiler" for host in (1, 2)}


def test_jobs_whose_hosts_tell_nothing_are_told_apart_by_their_communicators(tmp_path: Path) -> None:
    for number, letter in enumerate("abcd", 1):
        for rank in (0, 1) if number % 2 else (2, 3):
            world = "10.0.0.1%eth0_60000_0" if number < 3 else "10.0.0.9%eth0_60000_0"
            folder = f"cluster_profiler/{number}/profiler"
            capture(tmp_path, folder, rank, f"node{letter}_{rank}", 20260915100001000 + rank, world)
    assert part_names(tmp_path) == ("hosts-1-2", "hosts-3-4")


def test_replicas_are_named_after_their_folders(tmp_path: Path) -> None:
    for replica in range(4):
        for rank in range(2):
            folder = f"agent_loop_rollout_replica_{replica}"
            capture(tmp_path, folder, rank, f"tp{rank}_rank{rank}_{replica}", 20251126100530200 + replica)
    assert part_names(tmp_path) == tuple(f"agent_loop_rollout_replica_{replica}" for replica in range(4))
    assert folders(tmp_path, "agent_loop_rollout_replica_2") == {"agent_loop_rollout_replica_2"}
    assert discover(tmp_path).problems == ()


def test_replicas_that_were_moved_into_one_folder_are_told_apart_by_their_number_in_the_name(
    tmp_path: Path,
) -> None:
    for replica in range(3):
        for rank in range(4):
            worker = (
                f"rollout-replica{replica}_dp0_pp0_tp{rank}_dcp0_ep{rank}_rank{rank}_{replica * 10 + rank}"
            )
            capture(tmp_path, ".", rank, worker, 20260915100001000 + rank)
    assert part_names(tmp_path) == ("job-1", "job-2", "job-3")
    assert len(discover(tmp_path, "rollout-replica1").sources) == 4
    assert discover(tmp_path).problems == ()


def test_roles_of_steps_are_parts_and_the_largest_newest_is_analysed(tmp_path: Path) -> None:
    for step, hour in ((10, 12), (20, 13)):
        for role, ranks in (("actor_update", range(4)), ("rollout", range(2))):
            for rank in ranks:
                stamp = int(f"20251126{hour}0000{rank:03d}")
                capture(tmp_path, f"{step}/{role}", rank, f"node_{role}{rank}", stamp)
    assert set(part_names(tmp_path)) == {
        f"{step}/{role}" for step in (10, 20) for role in ("actor_update", "rollout")
    }
    assert folders(tmp_path) == {"20/actor_update"}
    assert folders(tmp_path, "10/rollout") == {"10/rollout"}
    with pytest.raises(InputError, match="no single capture is called 'rollout'"):
        discover(tmp_path, "rollout")


def test_windows_of_replicas_are_told_apart_by_folder_and_time(tmp_path: Path) -> None:
    for replica in range(2):
        for hour in (10, 11):
            for rank in range(2):
                stamp = int(f"20251126{hour}0530{200 + rank:03d}")
                capture(tmp_path, f"replica_{replica}", rank, f"node_{10 * replica + rank}", stamp)
    assert part_names(tmp_path) == ("replica_0", "replica_1"), "windows of the same processes are one part"
    assert folders(tmp_path, "replica_1") == {"replica_1"}
    assert folders(tmp_path, "replica_0/20251126100530200") == {"replica_0"}


def test_one_rank_that_is_there_twice_does_not_cut_the_job_in_two(tmp_path: Path) -> None:
    for rank in range(8):
        capture(tmp_path, f"cluster_profiler/{rank // 4 + 1}/profiler", rank, f"n_{rank}", 20251126100530200)
    capture(tmp_path, "cluster_profiler/2/profiler", 0, "n_9", 20251126100530300)
    found = discover(tmp_path)
    assert [source.rank for source in found.sources] == list(range(8))
    assert [(one.kind, one.rank) for one in found.problems] == [("several_captures_of_rank", 0)]
    assert "n_9" in found.sources[0].files["communication"]  # the newer one


def found(rank: int, signs: Mapping[str, int]) -> Found:
    return Found(
        Path(f"{rank}-{signs}"),
        "ascend_pt/text",
        {},
        Rank(rank),
        host=HostId(str(signs["host"])),
        host_name=f"n{signs['name']}",
        stamp=20250101000000000 + 1_000_000 * signs["time"],
        folder=f"f{signs['folder']}",
        worker=str(signs),
    )


SIGNS = st.fixed_dictionaries({name: st.integers(0, 2) for name in ("host", "name", "time", "folder")})


@given(st.lists(st.tuples(st.integers(0, 5), SIGNS), min_size=1, max_size=20))
def test_no_capture_is_lost_and_none_is_in_two_parts(captures: list[tuple[int, dict[str, int]]]) -> None:
    given_ = [found(rank, signs) for rank, signs in captures]
    parts = split_into_parts(given_)
    held = [one for part in parts for some in part.captures.values() for one in some]
    assert sorted(map(id, held)) == sorted(map(id, given_))
    assert len({part.name for part in parts}) == len(parts)
    once = len({one.rank for one in given_}) == len(given_)
    assert not once or len(parts) == 1
