"""On which host each rank ran, and that no wrong one is named where that is not clear."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cluster_analysis.api import analyse
from cluster_analysis.cli import main
from cluster_analysis.discovery.discover import discover, part_names
from cluster_analysis.sources.windows import read_windows
from cluster_analysis.tables.model import Selection
from cluster_run.ids import Step
from tests.analysis.discovery.test_discover import rank_table, run_directory, write_manifest
from tests.analysis.runs import simulated
from tests.analysis.said import notes_of, reason
from tests.analysis.sources.builders import Op, step_csv, write_capture, write_info


def shared_run(root: Path, names: tuple[str, str], ranks: dict[int, str]) -> Path:
    """A run of two hosts with one file system, which host 2 was the first to answer for."""
    run = run_directory(root, (names[0], [0, 1]), (names[1], [2, 3]))
    for rank, host_name in ranks.items():
        name = f"{host_name}_{rank}_2025010100000000{rank}_ascend_pt"
        write_capture(run / "cluster_profiler/2/profiler", rank, name)
    write_manifest(run, {"server_id": names[0], "same_files_as": "2"}, {"server_id": names[1]})
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
            "captures of ranks 0,3 lie with other hosts than it says: their hosts are left open, and its "
            "device numbers are not used",
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


def test_a_rank_table_beside_a_plain_tree_that_lacks_ranks_is_of_another_job_and_told(tmp_path: Path) -> None:
    for rank in range(4):
        write_capture(tmp_path, rank, f"node{rank // 2}_{7 + rank}_20250109123456789_ascend_pt")
    plain = discover(tmp_path)
    run_directory(tmp_path, ("10.0.0.1", [0, 1, 2]))
    (tmp_path / "host_ips_mapping.txt").unlink()
    capture = discover(tmp_path)
    assert (capture.hosts, capture.devices, capture.is_placed) == (plain.hosts, plain.devices, False)
    (problem,) = capture.problems
    assert (problem.file, dict(problem.why.values)) == ("hccl.json", {"ranks": (3,)})


@pytest.mark.parametrize(
    ("names", "moved"),
    [
        (("n1", "n2", "n1", "n2"), (0, 1, 2, 3)),
        (("n1", "n1", "n1", "n2"), (2,)),
        (("n1", "n1", "n2", "n2"), ()),
        (("a", "b", "c", "d"), ()),
        (("localhost",) * 4, ()),
    ],
)
def test_a_rank_table_beside_a_plain_tree_that_the_names_of_captures_contradict_is_told_and_not_used(
    tmp_path: Path, names: tuple[str, ...], moved: tuple[int, ...]
) -> None:
    """Names of containers or processes, and `localhost` on all hosts, contradict no table."""
    for rank, name in enumerate(names):
        write_capture(tmp_path, rank, f"{name}_{7 + rank}_20250109123456789_ascend_pt")
    (tmp_path / "hccl.json").write_text(rank_table(("10.0.0.7", [0, 1]), ("10.0.0.8", [2, 3])))
    capture = discover(tmp_path)
    assert capture.is_placed == (not moved)
    assert [dict(one.why.values)["ranks"] for one in capture.problems] == [moved] * bool(moved)


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


# Windows that the same processes wrote are judged together, as more steps of one job.
N_STEPS = 3
ROW = (400.0, 79_089.5, 0.0, 79_089.5, 50.0, 79_539.5, 0.0, 79_089.5)


def window(root: Path, hour: int, steps: tuple[str, ...], *, pid: int = 1000, groups: object = None) -> None:
    """A window of two ranks, each of a process of its own."""
    for rank in range(2):
        write_capture(
            root,
            rank,
            f"node1_{pid + rank}_20250101{hour}00000{rank:02d}_ascend_pt",
            ops={f"step{step}": (Op("hcom_allReduce__210_0_1@17148521525495523210"),) for step in steps},
            steps=step_csv(dict.fromkeys(steps, ROW)),
            metadata=groups,
        )


def steps_of(root: Path, part: str | None = None) -> list[set[int]]:
    """The steps of each rank, as they are read."""
    found = []
    for source in discover(root, part).sources:
        assert source.windows
        found.append(set(read_windows(source, Selection(), with_spans=False).steps["step"].to_pylist()))
    return found


def test_windows_of_the_same_processes_are_steps_of_one_job(tmp_path: Path) -> None:
    window(tmp_path, 12, ("3", "4"))
    window(tmp_path, 13, ("13", "14"))
    assert part_names(tmp_path) == ("windows",)
    assert steps_of(tmp_path) == [{3, 4, 13, 14}] * 2
    assert "2 windows of the same processes are judged together" in notes_of(discover(tmp_path))[0]
    assert not discover(tmp_path, "2025010112").sources[0].windows, "one alone can be asked for"


def test_numbers_of_steps_that_are_there_twice_count_on_behind_one_that_is_left_out(tmp_path: Path) -> None:
    for hour, steps in ((12, ("0", "1")), (13, ("0", "1")), (14, ("1", "2"))):
        window(tmp_path, hour, steps)
    assert steps_of(tmp_path) == [{0, 1, 3, 4, 6, 7}] * 2
    source = discover(tmp_path).sources[0]
    some = read_windows(source, Selection(steps=frozenset({Step(1), Step(3)})), with_spans=False)
    for name in ("steps", "collectives"):
        assert set(getattr(some, name)["step"].to_pylist()) == {1, 3}, name


def test_numbers_that_follow_on_from_the_window_before_or_lie_below_it_leave_one_out_too(
    tmp_path: Path,
) -> None:
    for hour, steps in ((12, ("4", "5")), (13, ("6", "7")), (14, ("0", "1"))):
        window(tmp_path, hour, steps)
    assert steps_of(tmp_path) == [{4, 5, 7, 8, 10, 11}] * 2


def test_windows_that_are_not_alike_are_judged_each_by_itself(tmp_path: Path) -> None:
    others = {
        "other processes": {"pid": 2000},
        "other groups": {
            "groups": {"parallel_group_info": {"a": {"group_name": "tp", "global_ranks": [0, 1]}}}
        },
        "no steps": {"steps": ("",)},
    }
    for name, other in [*others.items(), ("another level", {})]:
        root = tmp_path / name
        window(root, 12, ("3", "4"), groups={})
        window(root, 13, **{"steps": ("13", "14"), "groups": {}, **other})
        if name == "another level":
            for capture in root.glob("*_2025010113*"):
                write_info(capture, int(capture.name.split("_")[1]) - 1000, level="Level2")
        assert len(part_names(root)) == 2, name
        assert not any(source.windows for source in discover(root).sources), name


def test_roles_that_one_process_plays_by_turns_are_not_mixed(tmp_path: Path) -> None:
    for step, hour in ((10, 12), (20, 14)):
        for role, later in (("actor_update", 0), ("ref_log_prob", 1)):
            window(tmp_path / f"{step}/{role}", hour + later, ("0", "1"))
    assert set(part_names(tmp_path)) == {"actor_update", "ref_log_prob"}
    for role in ("actor_update", "ref_log_prob"):
        (first, _) = discover(tmp_path, role).sources
        assert [Path(one.files["step_trace"]).parents[2].name for _, one in first.windows] == [role] * 2


@pytest.fixture(scope="module")
def two_windows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of 8 ranks captured twice an hour apart; rank 3 computes slowly in both."""
    root = tmp_path_factory.mktemp("windows")
    for seed, hour in ((1, 12), (2, 13)):
        sizes = {"tp": 2, "pp": 1, "dp": 4, "steps": N_STEPS}
        run = simulated(root / f"run-{seed}", "slow_rank:1.3@3", seed=seed, **sizes)
        for capture in run.rglob("*_ascend_pt"):
            process, _, stamp = capture.name.removesuffix("_ascend_pt").rpartition("_")
            shutil.move(capture, root / "prof" / f"{process}_{stamp[:8]}{hour}{stamp[10:]}_ascend_pt")
    return root / "prof"


@pytest.mark.slow
def test_what_both_windows_show_is_one_finding_over_all_their_steps(two_windows: Path) -> None:
    run = analyse(two_windows, scheduler="threads")
    assert len(run.document.run.steps) == 2 * N_STEPS
    (finding,) = (one for one in run.document.findings if one.severity != "info")
    assert (finding.kind, finding.ranks) == ("slow_rank", (3,))
    each = [analyse(two_windows, capture=name, scheduler="threads") for name in ("2025112712", "2025112713")]
    costs = [one.cost_ms_per_step for run in each for one in run.document.findings if one.severity != "info"]
    assert finding.cost_ms_per_step == pytest.approx(sum(costs) / 2, rel=0.05)


@pytest.mark.slow
def test_all_parts_and_files_for_insight_work_with_windows_together(
    two_windows: Path, tmp_path: Path
) -> None:
    output = ["--output", str(tmp_path / "out"), "-q", "--scheduler", "threads"]
    assert main([str(two_windows), *output, "--all-parts", "--insight", "--fail-on", "never"]) == 0
    rows = (tmp_path / "out/cluster_step_trace_time.csv").read_text().splitlines()[1:]
    first, second = (
        range(10, 10 + N_STEPS),
        range(11 + N_STEPS, 11 + 2 * N_STEPS),
    )  # one is left out between them
    assert {row.split(",")[0] for row in rows} == {str(step) for step in (*first, *second)}
    for name in ("cluster_communication.json", "cluster_communication_matrix.json"):
        assert json.loads((tmp_path / "out" / name).read_text()), name
