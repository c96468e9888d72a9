"""Which captures are taken: by name, by time, the newest of each rank."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster_collect.entries import RemoteEntry
from cluster_collect.selection.select import Tree, select
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_run.ids import HostId, ServerId

DAY_S = 86_400
OUTPUT = "ASCEND_PROFILER_OUTPUT"


def capture(path: str, rank: int, day: int) -> list[RemoteEntry]:
    names = (f"profiler_info_{rank}.json", f"{OUTPUT}/step_trace_time.csv", f"{OUTPUT}/trace_view.json")
    return [
        RemoteEntry(f"{path}/{name}".encode(), "f", 1, (day * DAY_S + place) * 10**9)
        for place, name in enumerate(names)
    ]


#: Two ranks in two jobs, and rank 0 once more in the second.
FOUND = [
    *capture("job-1/node_10_20250101000000000_ascend_pt", 0, 1),
    *capture("job-1/node_11_20250101000000000_ascend_pt", 1, 1),
    *capture("job-2/node_20_20250102000000000_ascend_pt", 0, 2),
    *capture("job-2/node_21_20250102000000000_ascend_pt", 1, 2),
    *capture("job-2/node_20_20250103000000000_ascend_pt", 0, 3),
]


SPEC = HostSpec(HostId("1"), ServerId("s"), profiler_root="prof")


def taken(choice: CollectOptions, spec: HostSpec = SPEC) -> set[str]:
    selection = select(Tree(FOUND), spec, choice)
    return {file.entry.path.decode() for file in selection.files}


def captures(choice: CollectOptions, spec: HostSpec = SPEC) -> set[str]:
    return {"/".join(path.split("/")[:2]) for path in taken(choice, spec)}


def test_all_captures_are_the_default() -> None:
    assert len(captures(CollectOptions(("full",)))) == 5


def test_the_newest_is_the_newest_of_each_rank() -> None:
    assert captures(CollectOptions(("full",), capture="newest")) == {
        "job-2/node_20_20250103000000000_ascend_pt",
        "job-2/node_21_20250102000000000_ascend_pt",
    }


@pytest.mark.parametrize("name", ["job-1", "job-1/*", "*_20250101*"])
def test_a_capture_is_chosen_by_its_name_or_that_of_a_directory_above_it(name: str) -> None:
    assert captures(CollectOptions(("full",), capture=name)) == {
        "job-1/node_10_20250101000000000_ascend_pt",
        "job-1/node_11_20250101000000000_ascend_pt",
    }


def test_a_capture_is_taken_whole_when_one_of_its_files_is_new_enough() -> None:
    choice = CollectOptions(("full",), since_s=3 * DAY_S + 2)
    assert taken(choice) == {
        f"job-2/node_20_20250103000000000_ascend_pt/{name}"
        for name in ("profiler_info_0.json", f"{OUTPUT}/step_trace_time.csv", f"{OUTPUT}/trace_view.json")
    }
    assert taken(CollectOptions(("full",), since_s=3 * DAY_S + 3)) == set()


@pytest.mark.parametrize("glob", ["job-1", "job-1/*", "node_1?_*"])
def test_what_is_excluded_is_left_out_with_all_below_it(glob: str) -> None:
    assert {path.split("/")[0] for path in taken(CollectOptions(("full",), exclude=(glob,)))} == {"job-2"}


def test_globs_narrow_what_the_analysis_reads() -> None:
    narrowed = taken(CollectOptions(("analysis", "job-1/*")))
    assert narrowed == {path for path in taken(CollectOptions(("analysis",))) if path.startswith("job-1/")}
    assert not any("trace_view" in path for path in narrowed)
    assert any("trace_view" in path for path in taken(CollectOptions(("full", "job-1/*"))))


def test_ranks_are_those_in_the_names_of_files_and_others_are_left_out() -> None:
    unknown = [RemoteEntry(b"job-1/other_ascend_pt/profiler_info.json", "f", 1, 0)]
    database = [RemoteEntry(b"d_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_1.db", "f", 1, 0)]
    tree = Tree([*FOUND, *unknown, *database])
    chosen = select(tree, SPEC, CollectOptions(("full",), ranks=frozenset({1}))).files
    assert {file.entry.path.decode().rpartition("_ascend_pt/")[0] for file in chosen} == {
        "job-1/node_11_20250101000000000",
        "job-2/node_21_20250102000000000",
        "d",
    }


def test_ranks_that_stay_whole_are_taken_with_all_their_files_where_others_are_not() -> None:
    choice = CollectOptions(("columns", "job-2/*"), whole_ranks=frozenset({1}))
    files = select(Tree(FOUND), SPEC, choice).files
    whole = {file.entry.path.decode() for file in files if file.stays_whole}
    assert whole == taken(CollectOptions(("full", "job-2/node_21*")))
    others = [file for file in files if not file.stays_whole]
    reduced = {file.entry.path.decode() for file in others if file.comes_reduced}
    assert {file.entry.path.decode() for file in others} - reduced == taken(
        CollectOptions(("analysis", "job-2/node_20*"))
    )
    assert reduced == {
        path for path in taken(CollectOptions(("full", "job-2/node_20*"))) if "trace_view" in path
    }


def test_captures_of_a_list_are_taken_and_no_newer_ones() -> None:
    here = frozenset({"job-2/node_20_20250102000000000_ascend_pt"})
    options = CollectOptions(("full",), ranks=frozenset({0}))
    assert captures(options, replace(SPEC, captures=here)) == here


def test_the_device_of_a_bare_capture_tells_its_rank_where_the_rank_table_knows_it() -> None:
    names = [
        "PROF_000001_1/device_0/info.json.0",
        "PROF_000001_1/host/info.json",
        "PROF_000002_1/device_1/info.json.1",
        "deep/PROF_000003_1/device_1/info.json.1",
        "PROF_000004_1/device_0/info.json.0",
        "PROF_000004_1/device_1/info.json.1",
        "PROF_000005_1/device_7/info.json.7",
        "w_1_ascend_pt/profiler_info_3.json",
        "w_1_ascend_pt/PROF_000006_1/device_1/info.json.1",
    ]
    tree = Tree([RemoteEntry(name.encode(), "f", 1, 0) for name in names])
    device_ranks = {0: 8, 1: 9}

    def captures_of_rank(rank: int, devices: dict[int, int]) -> set[str]:
        options, spec = (
            CollectOptions(("full",), ranks=frozenset({rank})),
            replace(SPEC, device_ranks=devices),
        )
        return {file.entry.path.decode() for file in select(tree, spec, options).files}

    assert captures_of_rank(8, device_ranks) == set(names[:2]), "two devices in one capture are of no rank"
    assert captures_of_rank(9, device_ranks) == {names[2], names[3]}
    assert captures_of_rank(3, device_ranks) == {names[7], names[8]}, "its name says more than its device"
    assert captures_of_rank(8, {}) == set()
