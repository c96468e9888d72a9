from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.tables.model import Capture
from cluster_run.errors import InputError
from cluster_run.ids import HostId, Rank
from tests.analysis.one_rank import read_rank
from tests.analysis.said import notes_of, reason
from tests.analysis.sources.builders import OUTPUT, STEP_ROW, step_csv, write_analysis_db, write_capture
from tests.analysis.sources.test_r1 import STEP_1, STEP_2, trace


def rank_table(*hosts: tuple[str, list[int]]) -> str:
    """A rank table: server id and the ranks of its devices 0, 1, …"""
    servers = [
        {
            "server_id": server,
            "device": [{"device_id": str(device), "rank_id": str(rank)} for device, rank in enumerate(ranks)],
        }
        for server, ranks in hosts
    ]
    return json.dumps({"version": "1.0", "status": "completed", "server_list": servers})


def run_directory(root: Path, *hosts: tuple[str, list[int]]) -> Path:
    root.mkdir(exist_ok=True)
    (root / "hccl.json").write_text(rank_table(*hosts))
    (root / "host_ips_mapping.txt").write_text(
        "".join(f"{server} {number}\n" for number, (server, _) in enumerate(hosts, 1))
    )
    return root


def write_manifest(root: Path, *hosts: dict[str, object]) -> None:
    """The manifest of a run of these hosts, which are complete and without files but for what is said."""
    whole = [
        {"host": str(at), "server_id": f"10.0.0.{at}", "state": "complete", "files": [], **host}
        for at, host in enumerate(hosts, 1)
    ]
    document = {"schema": "cluster-run/1", "what": ["analysis"], "tool_version": "0", "hosts": whole}
    (root / "manifest.json").write_text(json.dumps(document))


def write_r1(directory: Path, number: int, first_step: int = 1) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    text = trace(STEP_1.replace("1,", f"{first_step},", 1), STEP_2.replace("2,", f"{first_step + 1},", 1))
    (directory / f"step_trace_raw_{number}_detail_time.csv").write_text(text)


def ranks_of(capture: Capture) -> list[int]:
    return [source.rank for source in capture.sources]


def first_steps(capture: Capture) -> dict[int, int]:
    return {source.rank: read_rank(source).steps["step"][0].as_py() for source in capture.sources}


def test_a_run_directory_without_manifest_names_hosts_devices_and_addresses(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", ("10.0.0.1", [0, 1]), ("10.0.0.2", [2, 3]))
    for rank in range(4):
        write_capture(run / f"cluster_profiler/{rank // 2 + 1}/profiler", rank)
    capture = discover(run)
    assert capture.problems == ()
    assert capture.hosts == {0: "1", 1: "1", 2: "2", 3: "2"}
    assert capture.devices == {0: 0, 1: 1, 2: 0, 3: 1}
    assert capture.addresses == {"1": "10.0.0.1", "2": "10.0.0.2"}
    assert [source.host for source in capture.sources] == ["1", "1", "2", "2"]


def test_ids_of_r1_3_files_are_devices_and_the_rank_table_says_the_rank(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", ("10.0.0.1", [0, 1]), ("10.0.0.2", [2, 3]))
    for host in (1, 2):
        for device in (0, 1):
            write_r1(run / f"cluster_profiler/{host}/profiler", device, first_step=10 * host + device)
    capture = discover(run)
    assert capture.problems == ()
    assert first_steps(capture) == {0: 10, 1: 11, 2: 20, 3: 21}


def test_ids_of_r1_5_files_are_ranks_already(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", ("10.0.0.1", [0, 1]), ("10.0.0.2", [2, 3]))
    for rank in range(4):
        write_r1(run / f"cluster_profiler/{rank // 2 + 1}/profiler", rank, first_step=10 + rank)
    assert first_steps(discover(run)) == {0: 10, 1: 11, 2: 12, 3: 13}


def test_device_ids_of_several_hosts_without_a_rank_table_are_told_and_never_ranks(tmp_path: Path) -> None:
    for host in (1, 2):
        write_r1(tmp_path / f"cluster_profiler/{host}/profiler", 0)
    with pytest.raises(InputError, match="nothing says which rank device 0 is"):
        discover(tmp_path)


def test_a_flat_directory_of_r1_files_holds_ranks(tmp_path: Path) -> None:
    for rank in (0, 1, 7):
        write_r1(tmp_path / "profiler", rank)
    assert ranks_of(discover(tmp_path)) == [0, 1, 7]
    assert ranks_of(discover(tmp_path / "profiler")) == [0, 1, 7]


@pytest.mark.parametrize(
    ("name", "info"), [("node1_1_20250109123456003_ascend_ms - Copy", {}), ("rank3", {"ms_version": "2.7.0"})]
)
def test_a_capture_of_mindspore_that_was_renamed_is_of_the_same_job(
    tmp_path: Path, name: str, info: dict[str, str]
) -> None:
    for rank in range(3):
        write_capture(tmp_path, rank, suffix="ascend_ms")
    (write_capture(tmp_path, 3, name) / "profiler_info_3.json").write_text(json.dumps(info))
    capture = discover(tmp_path)
    assert ranks_of(capture) == [0, 1, 2, 3]
    assert capture.problems == ()


@pytest.mark.parametrize(
    ("lacking", "told"),
    [((), ()), ((2,), (2,)), ((0, 1), ()), ((0, 1, 3), ())],
)
def test_an_r1_file_that_a_rank_lacks_and_most_have_is_told(
    tmp_path: Path, lacking: tuple[int, ...], told: tuple[int, ...]
) -> None:
    for rank in range(4):
        write_r1(tmp_path / "profiler", rank)
        if rank not in lacking:
            (tmp_path / f"profiler/hccl_raw_{rank}.csv").write_text("step_num\n")
    problems = discover(tmp_path).problems
    assert [(one.rank, one.file, reason(one)) for one in problems] == [
        (rank, "hccl_raw_*.csv", f"it is not there, and {4 - len(lacking)} other ranks have theirs")
        for rank in told
    ]


@pytest.mark.parametrize("kind", ["step_trace_raw_{}_detail_time.csv", "hccl_raw_{}.csv"])
def test_one_r1_file_that_is_there_twice_costs_that_file_which_is_named(tmp_path: Path, kind: str) -> None:
    for rank in range(4):
        folder = tmp_path / f"cluster_profiler/{rank // 2 + 1}/profiler"
        write_r1(folder, rank)
        (folder / f"hccl_raw_{rank}.csv").write_text("step_num\n")
    name = kind.format(1)
    shutil.copy(tmp_path / "cluster_profiler/1/profiler" / name, tmp_path / "cluster_profiler/2/profiler")
    capture = discover(tmp_path)
    assert [(one.rank, one.host, len(one.files)) for one in capture.sources] == [
        (0, "1", 2), (1, "1", 2), (2, "2", 2), (3, "2", 2)
    ]  # fmt: skip
    (problem,) = capture.problems
    assert (problem.rank, reason(problem)) == (
        1,
        f"2 captures of this rank; 1/profiler is used, 2/profiler/{name} is not",
    )


def test_the_r1_files_that_mindspore_2_2_writes_beside_its_captures_are_not_read_twice(
    tmp_path: Path,
) -> None:
    for rank in (0, 1):
        write_r1(tmp_path / "profiler", rank)
        write_capture(tmp_path / "profiler", rank, f"rank-{rank}_20250109123456_ascend_ms", has_info=False)
    capture = discover(tmp_path)
    assert [source.kind for source in capture.sources] == ["ascend_ms/text", "ascend_ms/text"]
    assert notes_of(capture) == ("2 mindspore_r1 captures are not read: the same run has richer ones",)
    assert capture.problems == ()


def test_ranks_that_the_rank_table_has_and_the_disk_has_not_are_told(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", ("10.0.0.1", [0, 1, 2, 3]))
    write_capture(run / "cluster_profiler/1/profiler", 1)
    capture = discover(run)
    assert capture.expected_ranks == (0, 1, 2, 3)
    assert [reason(problem) for problem in capture.problems] == ["no profiler data of 3 of 4 ranks: 0,2-3"]


def test_ranks_that_only_the_metadata_knows_are_expected_too(tmp_path: Path) -> None:
    write_capture(tmp_path, 0, metadata={"distributed_args": {"world_size": 2}})
    assert discover(tmp_path).expected_ranks == (0, 1)


def test_ranks_are_counted_without_gaps_so_one_in_between_is_missing(tmp_path: Path) -> None:
    for rank in (4, 5, 8):
        write_capture(tmp_path, rank)
    capture = discover(tmp_path)
    assert capture.expected_ranks == (4, 5, 6, 7, 8)
    assert [reason(problem) for problem in capture.problems] == ["no profiler data of 2 of 5 ranks: 6-7"]


def test_wrapper_directories_of_the_dynamic_profiler_are_windows(tmp_path: Path) -> None:
    for rank in (0, 1):
        for window in ("start2_stop5", "start10_stop12"):
            write_capture(
                tmp_path / f"rank{rank}_{window}",
                rank,
                suffix="ascend_ms",
                steps=step_csv({window.split("_")[0].removeprefix("start"): STEP_ROW}),
            )
    capture = discover(tmp_path, "start2_stop5")
    assert first_steps(capture) == {0: 2, 1: 2}
    assert {source.part for source in capture.sources} == {"start2_stop5"}
    assert "2 jobs, or windows of one job, found" in notes_of(capture)[0]


@pytest.fixture
def two_windows(tmp_path: Path) -> Path:
    """Window 1 of ranks 0 to 3, an hour later window 2 of ranks 0 to 2; the ranks start seconds apart."""
    for hour, ranks in ((12, range(4)), (13, range(3))):
        for rank in ranks:
            name = f"node1_{rank}_2025010{1}{hour}00{rank:02d}000_ascend_pt"
            write_capture(tmp_path, rank, name, steps=step_csv({str(hour): STEP_ROW}))
    return tmp_path


def test_the_newest_window_with_most_ranks_is_taken_and_the_other_noted(two_windows: Path) -> None:
    capture = discover(two_windows)
    assert first_steps(capture) == {0: 12, 1: 12, 2: 12, 3: 12}
    assert capture.problems == ()
    assert (
        "only 20250101120000000 is analysed here (the newest with most ranks, unless --part names one). "
        "The others: --part 20250101130000000;" in notes_of(capture)[0]
    )
    assert notes_of(capture)[1] == "capture 20250101130000000 lacks rank 3"


@pytest.mark.parametrize("wanted", ["start7", "2025"])
def test_a_window_that_is_not_there_or_not_the_only_one_is_an_error_that_lists_them(
    two_windows: Path, wanted: str
) -> None:
    with pytest.raises(InputError, match=r"there are: 20250101120000000, 20250101130000000"):
        discover(two_windows, wanted)


def test_a_window_around_midnight_is_one_window(tmp_path: Path) -> None:
    for first, second in (
        ("20250101235959000", "20250102000001000"),
        ("20250102000500000", "20250102000501000"),
    ):
        for rank, stamp in enumerate((first, second)):
            name = f"node1_{rank}_{stamp}_ascend_pt"
            write_capture(tmp_path, rank, name, steps=step_csv({stamp[6:12]: STEP_ROW}))
    capture = discover(tmp_path, "20250101")
    assert first_steps(capture) == {0: 12359, 1: 20000}


def test_of_complete_windows_the_newest_is_taken(two_windows: Path) -> None:
    write_capture(two_windows, 3, "node1_3_20250101130003000_ascend_pt", steps=step_csv({"13": STEP_ROW}))
    assert first_steps(discover(two_windows)) == {0: 13, 1: 13, 2: 13, 3: 13}


def test_captures_without_a_time_that_lie_in_two_directories_are_two_windows(tmp_path: Path) -> None:
    for window in ("first", "second"):
        for rank in (0, 1):
            write_capture(tmp_path / window, rank, f"rank_{rank}_ascend_pt", steps=step_csv({"1": STEP_ROW}))
    capture = discover(tmp_path, "first")
    assert ranks_of(capture) == [0, 1]
    assert all("/first/" in path for source in capture.sources for path in source.files.values())


def test_outside_a_run_directory_captures_name_hosts_and_discovery_decides_nothing(tmp_path: Path) -> None:
    for rank, host in enumerate(["nodeB", "nodeB", "nodeA"]):
        write_capture(tmp_path, rank, f"{host}_{100 + rank}_20250109123456000_ascend_pt")
    capture = discover(tmp_path)
    assert (capture.hosts, capture.is_placed) == ({}, False)
    assert capture.names == {0: "nodeB", 1: "nodeB", 2: "nodeA"}


def test_names_of_hosts_in_names_of_captures_are_not_shown(tmp_path: Path) -> None:
    for number in (1, 2):
        write_capture(tmp_path, 0, f"secret{number}_7_2025010912345678{number}_ascend_pt")
    (tmp_path / "secret_7_20250109123456783_ascend_pt").mkdir()
    capture = discover(tmp_path)
    assert capture.problems
    assert "secret" not in str((capture.problems, notes_of(capture)))


def test_a_database_named_by_rank_needs_no_profiler_info(tmp_path: Path) -> None:
    output = tmp_path / "capture_ascend_pt" / OUTPUT
    output.mkdir(parents=True)
    write_analysis_db(output / "ascend_pytorch_profiler_6.db", {}, {}, {"1": STEP_ROW})
    assert ranks_of(discover(tmp_path)) == [6]


def test_a_single_capture_and_its_output_directory_can_be_named(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 5)
    assert ranks_of(discover(capture)) == [5]
    assert ranks_of(discover(capture / OUTPUT)) == [5]


def test_a_host_directory_of_a_run_can_be_named(tmp_path: Path) -> None:
    write_capture(tmp_path / "cluster_profiler/3/profiler", 5)
    capture = discover(tmp_path / "cluster_profiler/3")
    assert capture.hosts == {Rank(5): HostId("3")}


def test_the_analysis_itself_is_not_searched(tmp_path: Path) -> None:
    write_capture(tmp_path, 0)
    write_capture(tmp_path / "cluster_analysis_output", 1)
    assert ranks_of(discover(tmp_path)) == [0]


@pytest.mark.parametrize("name", [".snapshot/hourly.0", ".Trash-0/files", "__MACOSX"])
def test_copies_that_a_system_keeps_are_not_searched(tmp_path: Path, name: str) -> None:
    write_capture(tmp_path, 0)
    write_capture(tmp_path / name, 0)
    found = discover(tmp_path)
    assert (len(found.sources), found.problems, found.notes) == (1, (), ())


def test_a_path_that_is_no_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a directory"):
        discover(tmp_path / "nothing")


def test_a_broken_rank_table_is_a_problem_and_the_ranks_come_from_the_data(tmp_path: Path) -> None:
    (tmp_path / "hccl.json").write_text('{"server_list": [')
    write_capture(tmp_path / "cluster_profiler/1/profiler", 3)
    capture = discover(tmp_path)
    assert ranks_of(capture) == [3]
    assert [problem.file for problem in capture.problems] == ["hccl.json"]


def test_a_rank_table_with_a_rank_that_no_job_has_is_a_problem(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", ("10.0.0.1", [0, 10**11]))
    write_capture(run / "cluster_profiler/1/profiler", 0)
    capture = discover(run)
    assert capture.expected_ranks == (0,)
    assert [reason(problem) for problem in capture.problems] == [
        "it names rank or device 100000000000, which no job has"
    ]


def test_another_json_file_is_not_taken_for_the_rank_table(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", ("10.0.0.1", [0]))
    (run / "account.json").write_text('{"rank_size": 1, "cluster": {}}')
    (run / "hccl.json").rename(run / "zz_table.json")
    write_r1(run / "cluster_profiler/1/profiler", 0)
    assert discover(run).devices == {0: 0}


def test_files_of_a_capture_are_measured(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0)
    names = ("step_trace_time.csv", "communication.json", "communication_matrix.json")
    expected = sum((capture / OUTPUT / name).stat().st_size for name in names)
    expected += (capture / "profiler_info_0.json").stat().st_size
    assert discover(tmp_path).sources[0].size_bytes == expected


def test_a_host_that_was_not_collected_is_told(tmp_path: Path) -> None:
    write_capture(tmp_path / "cluster_profiler/1/profiler", 0)
    write_manifest(tmp_path, {}, {"state": "failed", "reason": "connection refused"})
    problems = discover(tmp_path).problems
    assert [(problem.host, reason(problem)) for problem in problems] == [
        ("2", "not collected: connection refused")
    ]


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        ("listing", ["not collected whole: ./*_7_20250101000000001_ascend_pt: Permission denied"]),
        ("files-missing", []),
        ("", []),
    ],
)
def test_a_host_that_could_not_list_everything_is_told_without_its_name(
    tmp_path: Path, failure: str, told: list[str]
) -> None:
    write_capture(tmp_path / "cluster_profiler/1/profiler", 0)
    why = "./node001_7_20250101000000001_ascend_pt: Permission denied"
    write_manifest(tmp_path, {"state": "partial", "failure": failure, "reason": why} if failure else {})
    assert [reason(problem) for problem in discover(tmp_path).problems] == told


def test_a_file_that_vanishes_after_discovery_is_told_when_it_is_read(tmp_path: Path) -> None:
    output = write_capture(tmp_path, 0) / OUTPUT
    capture = discover(tmp_path)
    (output / "communication.json").unlink()
    tables = read_rank(capture.sources[0])
    assert [problem.file for problem in tables.problems] == ["communication.json"]
    assert tables.steps.num_rows == 1
