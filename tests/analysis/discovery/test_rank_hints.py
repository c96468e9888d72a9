"""Whose a capture is: every hint that says so is enough, hints that disagree are told, and none is rank 0."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_analysis.discovery.discover import discover
from cluster_run.errors import InputError
from tests.analysis.discovery.test_discover import run_directory, write_r1
from tests.analysis.discovery.test_prof import write_prof
from tests.analysis.said import reason
from tests.analysis.sources.builders import OUTPUT, write_capture, write_info
from tests.analysis.sources.hand_made_databases import changed, profiler_db


def metadata(rank: object, *places: tuple[int, list[int]]) -> dict[str, object]:
    """profiler_metadata.json of `rank`, with its place in groups `(group_rank, global_ranks)`."""
    groups = {
        f"10.0.0.1%eth0_6000{number}_0_17": {"group_name": "tp", "group_rank": at, "global_ranks": ranks}
        for number, (at, ranks) in enumerate(places)
    }
    return {"distributed_args": {"rank": rank, "world_size": 4}, "parallel_group_info": groups}


def ranks_below(path: Path) -> list[int]:
    return [source.rank for source in discover(path).sources]


@pytest.mark.parametrize(
    "document",
    [
        metadata(3),
        metadata(3, (1, [2, 3])),
        metadata(None, (1, [2, 3]), (0, [3])),
        metadata("3", (3, [0, 1, 2, 3])),
    ],
)
def test_the_metadata_alone_says_the_rank(tmp_path: Path, document: object) -> None:
    write_capture(tmp_path, 3, has_info=False, metadata=document)
    assert ranks_below(tmp_path) == [3]


def test_the_metadata_counts_where_old_torch_npu_wrote_it_too(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 3, has_info=False, metadata=metadata(3))
    (capture / "FRAMEWORK").mkdir()
    (capture / "profiler_metadata.json").rename(capture / "FRAMEWORK/profiler_metadata.json")
    (source,) = discover(tmp_path).sources
    assert source.rank == 3
    assert source.files["metadata"].endswith("FRAMEWORK/profiler_metadata.json")


@pytest.mark.parametrize(
    "document", [metadata(0, (1, [2, 3])), metadata(None), metadata(-1), metadata(10**9), metadata(True)]
)
def test_metadata_that_contradicts_itself_or_says_nothing_is_no_rank(
    tmp_path: Path, document: object
) -> None:
    write_capture(tmp_path, 3, has_info=False, metadata=document)
    with pytest.raises(InputError, match="its rank is not known"):
        discover(tmp_path)


def database_of(root: Path, *ranks: object) -> Path:
    """A capture whose database is named by no rank, with these in RANK_DEVICE_MAP."""
    output = root / "node1_7_20250109123456789_ascend_pt" / OUTPUT
    output.mkdir(parents=True)
    profiler_db(output / "ascend_pytorch_profiler.db")
    changed(
        output / "ascend_pytorch_profiler.db",
        "CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER)",
        *(f"INSERT INTO RANK_DEVICE_MAP VALUES ({rank!r}, 4)" for rank in ranks),
    )
    return output


def test_a_database_without_a_rank_in_its_name_says_it_in_its_rank_device_map(tmp_path: Path) -> None:
    database_of(tmp_path, 6)
    assert ranks_below(tmp_path) == [6]


def only_card(path: Path) -> list[int]:
    """Ranks below a path, where a note says that the only capture is taken as rank 0."""
    capture = discover(path)
    assert capture.problems == ()
    assert [one.kind for one in capture.notes] == ["only_capture_is_rank_0"]
    assert capture.expected_ranks == (0,)
    return [source.rank for source in capture.sources]


@pytest.mark.parametrize("ranks", [(-1,), (), ("x",)])
def test_the_only_capture_is_rank_0_of_1_where_its_database_knows_no_rank(
    tmp_path: Path, ranks: tuple[object, ...]
) -> None:
    database_of(tmp_path, *ranks)
    assert only_card(tmp_path) == [0]


def test_the_only_capture_is_rank_0_of_1_where_its_files_say_nothing_or_minus_one(tmp_path: Path) -> None:
    write_capture(tmp_path / "a", 3, has_info=False, metadata={})
    assert only_card(tmp_path / "a") == [0]
    capture = write_capture(tmp_path / "b", 3, has_info=False)
    (capture / "profiler_info_-1.json").write_text(json.dumps({"rank_id": -1}))
    assert only_card(tmp_path / "b") == [0]


def test_a_capture_of_two_ranks_is_none(tmp_path: Path) -> None:
    database_of(tmp_path, 1, 2)
    with pytest.raises(InputError, match="its rank is not known"):
        discover(tmp_path)


def test_two_captures_that_do_not_say_their_ranks_are_none(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_capture(tmp_path / name, 0, has_info=False)
    with pytest.raises(InputError, match="its rank is not known"):
        discover(tmp_path)


@pytest.mark.parametrize(
    "folder", ["rank{}", "rank_{}", "Rank-{}", "rank{}/node1_7_20250109123456000_ascend_pt"]
)
def test_folders_that_somebody_named_after_ranks_say_them_where_nothing_else_does(
    tmp_path: Path, folder: str
) -> None:
    for rank in (0, 1, 12):
        write_capture(tmp_path, 0, folder.format(rank), has_info=False)
    found = discover(tmp_path)
    assert [source.rank for source in found.sources] == [0, 1, 12]
    assert [problem.kind for problem in found.problems] == ["missing_ranks"]


@pytest.mark.parametrize("said", [(0, 0, 0, 0), (0, 1, 0, 1), (0, 1, 2, 2)])
def test_where_names_say_a_rank_twice_metadata_that_says_each_once_counts(
    tmp_path: Path, said: tuple[int, ...]
) -> None:
    for rank, name in enumerate(said):
        capture = f"node{rank // 2}_{2000 + rank}_20250109123456000_ascend_ms"
        write_capture(tmp_path, name, capture, metadata=metadata(rank, (rank, [0, 1, 2, 3])))
    found = discover(tmp_path)
    assert [source.rank for source in found.sources] == [0, 1, 2, 3]
    assert not found.problems


def test_folders_that_count_the_ranks_of_each_host_say_none(tmp_path: Path) -> None:
    for host in ("node1", "node2"):
        for rank in range(2):
            write_capture(tmp_path / host, 0, f"rank{rank}", has_info=False)
    with pytest.raises(InputError, match="its rank is not known"):
        discover(tmp_path)


def test_a_damaged_database_of_unknown_rank_is_no_traceback(tmp_path: Path) -> None:
    output = database_of(tmp_path, 6)
    (output / "ascend_pytorch_profiler.db").write_bytes(b"SQLite format 3\0" + b"x" * 500)
    assert only_card(tmp_path) == [0]


@pytest.mark.parametrize("end", ["1736408884023552840", None, [1], {"collectionTimeEnd": "soon"}])
def test_a_damaged_end_in_profiler_info_costs_no_rank(tmp_path: Path, end: object) -> None:
    capture = write_capture(tmp_path, 3, has_info=False)
    (capture / "profiler_info.json").write_text(json.dumps({"rank_id": 3, "end_info": end}))
    assert ranks_below(tmp_path) == [3]


def test_a_profiler_info_without_a_rank_leaves_it_to_the_name_of_the_capture(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 3, "rank-3_20250109123456789_ascend_ms", has_info=False)
    (capture / "profiler_info.json").write_text("{}")
    assert ranks_below(tmp_path) == [3]


def test_names_of_different_ranks_in_one_capture_are_told(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0, "rank-3_20250109123456789_ascend_ms")
    found = discover(tmp_path)
    assert [source.rank for source in found.sources] == [0]
    (problem,) = found.problems
    assert reason(problem) == (
        f"its names disagree: profiler_info_0.json says rank 0, {capture.name} says rank 3; rank 0 is used"
    )


@pytest.mark.parametrize("owner", [0, 1, 2])
def test_of_databases_of_several_ranks_in_one_capture_that_of_its_own_rank_is_read(
    tmp_path: Path, owner: int
) -> None:
    output = tmp_path / "job_ascend_pt" / OUTPUT
    output.mkdir(parents=True)
    for rank in range(3):
        profiler_db(output / f"ascend_pytorch_profiler_{rank}.db")
    write_info(output.parent, owner)
    found = discover(tmp_path)
    (source,) = found.sources
    assert (source.rank, Path(source.files["profiler_db"]).name) == (
        owner,
        f"ascend_pytorch_profiler_{owner}.db",
    )
    assert [problem.kind for problem in found.problems] == ["names_disagree"]


@pytest.mark.parametrize("other", [0, 12])
def test_of_several_profiler_infos_in_one_capture_that_which_the_metadata_confirms_counts(
    tmp_path: Path, other: int
) -> None:
    """As where a folder was used again, or files of two captures were copied into one."""
    capture = write_capture(tmp_path, 3, "job_ascend_pt", metadata={"distributed_args": {"rank": 3}})
    write_info(capture, other)
    found = discover(tmp_path)
    (source,) = found.sources
    assert (source.rank, Path(source.files["profiler_info"]).name) == (3, "profiler_info_3.json")
    (problem,) = found.problems
    assert f"profiler_info_{other}.json says rank {other}" in reason(problem)


def test_captures_beside_an_output_directory_are_found(tmp_path: Path) -> None:
    for rank in range(2):
        write_capture(tmp_path, rank)
    (tmp_path / OUTPUT).mkdir()
    found = discover(tmp_path)
    assert [source.rank for source in found.sources] == [0, 1]
    assert [reason(problem) for problem in found.problems] == ["nothing that can be analysed is in it"]


def test_a_size_of_thousands_of_digits_is_no_traceback(tmp_path: Path) -> None:
    write_capture(tmp_path, 0, metadata={"distributed_args": {"world_size": "9" * 5000}})
    assert ranks_below(tmp_path) == [0]


def one_server(root: Path) -> Path:
    """A rank table of one server whose devices 0 and 1 are ranks 1 and 0; no mapping of hosts."""
    run = run_directory(root / "run", ("10.0.0.1", [1, 0]))
    (run / "host_ips_mapping.txt").unlink()
    return run


def test_the_devices_of_the_only_server_need_no_mapping_of_hosts(tmp_path: Path) -> None:
    run = one_server(tmp_path)
    write_r1(run / "cluster_profiler/1/profiler", 0, first_step=10)
    write_r1(run / "cluster_profiler/1/profiler", 1, first_step=20)
    assert {source.rank: source.device for source in discover(run).sources} == {0: 1, 1: 0}


def test_prof_captures_beside_the_rank_table_of_one_server_have_its_ranks(tmp_path: Path) -> None:
    run = one_server(tmp_path)
    write_prof(run, 0)
    write_prof(run, 1)
    found = discover(run)
    assert ({source.rank: source.device for source in found.sources}, found.problems) == ({0: 1, 1: 0}, ())


def test_directories_named_like_the_servers_of_the_rank_table_need_no_mapping(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", ("10.0.0.1", [0]), ("10.0.0.2", [1]))
    (run / "host_ips_mapping.txt").unlink()
    write_r1(run / "cluster_profiler/10.0.0.2/profiler", 0)
    write_r1(run / "cluster_profiler/10.0.0.1/profiler", 0)
    assert ranks_below(run) == [0, 1]


def without_mapping(run: Path) -> None:
    (run / "host_ips_mapping.txt").unlink()


def unfinished(run: Path) -> None:
    table = json.loads((run / "hccl.json").read_text())
    (run / "hccl.json").write_text(json.dumps({**table, "status": "initializing"}))


def of_another_form(run: Path) -> None:
    (run / "hccl.json").write_text('{"version": "2.0", "ranks": []}')


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (without_mapping, r"host_ips_mapping\.txt into the run directory"),
        (unfinished, r"hccl\.json: the rank table has status 'initializing'"),
        (
            of_another_form,
            r"hccl\.json: not a rank table: it has none of server_list.*; replace it by the job",
        ),
    ],
)
def test_devices_without_ranks_say_what_is_wrong_with_the_rank_table(
    tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    run = run_directory(tmp_path / "run", ("10.0.0.1", [0]), ("10.0.0.2", [1]))
    for host in (1, 2):
        write_r1(run / f"cluster_profiler/{host}/profiler", 0)
    spoil(run)
    with pytest.raises(InputError, match=said):
        discover(run)


def test_a_prof_capture_of_neither_rank_nor_device_is_never_rank_0(tmp_path: Path) -> None:
    for device in (0, 1):
        prof = write_prof(tmp_path, device)
        (prof / f"device_{device}" / f"info.json.{device}").unlink()
        (prof / f"device_{device}").rmdir()
    with pytest.raises(InputError, match="neither its rank nor its device is known"):
        discover(tmp_path)


def test_a_prof_capture_of_two_devices_is_told_and_left_out(tmp_path: Path) -> None:
    write_prof(tmp_path, 0, rank=0)
    prof = write_prof(tmp_path, 1, rank=1)
    (prof / "device_2").mkdir()
    found = discover(tmp_path)
    assert [source.rank for source in found.sources] == [0]
    assert reason(found.problems[0]) == "it holds 2 devices, and its files do not tell them apart"


def test_of_cluster_analyses_in_two_parallel_modes_the_newest_is_read_and_the_other_told(
    tmp_path: Path,
) -> None:
    write_r1(tmp_path / "profiler", 0)
    for number, mode in enumerate(("pipeline-parallel_2_4", "data-parallel_1_4")):
        path = tmp_path / "profiler" / f"ascend_cluster_analyse_{mode}_0.csv"
        path.write_text("computation_time,communication_alone_time\n1,2\n1,2\n1,2\n")
        os.utime(path, ns=(number, 10**18 - number))
    found = discover(tmp_path)
    assert Path(found.sources[0].files["r1_cluster_analyse"]).name.startswith(
        "ascend_cluster_analyse_pipeline"
    )
    assert "ascend_cluster_analyse_data-parallel_1_4_0.csv not read" in reason(found.problems[0])
