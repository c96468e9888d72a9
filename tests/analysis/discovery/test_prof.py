from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_analysis.discovery.discover import discover
from cluster_run.errors import InputError
from tests.analysis.discovery.test_discover import run_directory
from tests.analysis.one_rank import read_rank
from tests.analysis.said import reason
from tests.analysis.sources.builders import LINKS, OPS, op_json, write_capture
from tests.analysis.sources.hand_made_databases import profiler_db


def write_prof(root: Path, device: int, rank: int = -1, host: str = "35", *, exported: bool = True) -> Path:
    """A PROF_* directory of CANN as `msprof` exports it: no step level, no p2p and collective level."""
    prof = root / f"PROF_00000{device}_20250109123456789_ABC{host}"
    (prof / f"device_{device}").mkdir(parents=True)
    info = {"rank_id": rank, "hostUid": host, "hostname": f"node{host}"}
    (prof / f"device_{device}" / f"info.json.{device}").write_text(json.dumps(info))
    if exported:
        (prof / "analyze").mkdir()
        operators = {op.name: op_json(replace(op, elapse=0.01)) for op in OPS}
        (prof / "analyze" / "communication.json").write_text(json.dumps(operators))
        entry = {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1}}
        (prof / "analyze" / "communication_matrix.json").write_text(json.dumps({LINKS[0].key: entry}))
        profiler_db(prof / "msprof_20250109123456.db", steps=False)
    return prof


def without_database(root: Path) -> Path:
    prof = write_prof(root, 0, rank=5)
    (prof / "msprof_20250109123456.db").unlink()
    return prof


def test_the_rank_of_a_prof_capture_is_in_its_info(tmp_path: Path) -> None:
    write_prof(tmp_path, 0, rank=5)
    write_prof(tmp_path, 1, rank=4)
    capture = discover(tmp_path)
    assert capture.problems == ()
    assert [(source.rank, source.kind, source.device) for source in capture.sources] == [
        (4, "prof/text", 1),
        (5, "prof/text", 0),
    ]


def test_a_prof_capture_gives_operators_links_steps_and_kernels(tmp_path: Path) -> None:
    write_prof(tmp_path, 0, rank=5)
    tables = read_rank(discover(tmp_path).sources[0])
    assert tables.problems == ()
    assert tables.collectives.num_rows == len(OPS)
    assert tables.links.num_rows == 1
    assert tables.steps["step"].to_pylist() == [0]
    assert tables.operators.num_rows == 1


def test_step_times_of_a_text_export_come_from_its_overlap_analysis(tmp_path: Path) -> None:
    prof = without_database(tmp_path)
    events = [
        overlap("Computing", "1736408883732241.500", 10.5),
        overlap("Communication", "1736408883732247.500", 18.0),
        overlap("Communication(Not Overlapped)", "1736408883732252.000", 13.5),
        overlap("Free", "1736408883732265.500", 1.0),
        overlap("Computing", "1736408883732241.500", 99.0) | {"pid": 3},
    ]
    write_timelines(prof, **{"20250109123456": events})
    tables = read_rank(discover(tmp_path).sources[0])
    assert tables.problems == ()
    (step,) = tables.steps.to_pylist()
    assert (step["computing_us"], step["communication_us"], step["overlapped_us"]) == (10.5, 18.0, 4.5)
    assert (step["free_us"], step["stage_us"], step["bubble_us"]) == (1.0, 25.0, None)


def overlap(name: str, begin: object, length: float) -> dict[str, object]:
    """An event of the process that says what overlaps what."""
    return {"name": name, "ph": "X", "pid": 7, "ts": begin, "dur": length}


def write_timelines(prof: Path, **slices: list[dict[str, object]]) -> None:
    """Write timelines by the middle of their names; the first names the process of all."""
    output = prof / "mindstudio_profiler_output"
    output.mkdir(exist_ok=True)
    for name, events in slices.items():
        process = {"name": "process_name", "ph": "M", "pid": 7, "args": {"name": "Overlap Analysis"}}
        head = [] if name.startswith("slice_1") else [process]
        (output / f"msprof_{name}.json").write_text(json.dumps([*head, *events]))


def test_step_times_are_summed_over_all_slices_of_a_timeline(tmp_path: Path) -> None:
    prof = without_database(tmp_path)
    write_timelines(
        prof,
        slice_0_20250109123456=[overlap("Computing", 100, 10), overlap("Free", 110, 1)],
        slice_1_20250109123456=[overlap("Computing", 200, 30), overlap("Communication", 210, 20)],
    )
    tables = read_rank(discover(tmp_path).sources[0])
    (step,) = tables.steps.to_pylist()
    assert (tables.problems, step["computing_us"], step["stage_us"]) == ((), 40.0, 130.0)


def test_a_timeline_without_one_of_its_slices_is_told_and_gives_no_step_times(tmp_path: Path) -> None:
    prof = without_database(tmp_path)
    write_timelines(
        prof,
        slice_0_20250109123456=[overlap("Computing", 100, 10)],
        slice_2_20250109123456=[overlap("Computing", 200, 30)],
    )
    tables = read_rank(discover(tmp_path).sources[0])
    assert tables.steps.num_rows == 0
    assert "slices 0, 2 are not a whole timeline" in reason(tables.problems[0])


def test_of_two_exports_of_a_timeline_the_newest_is_read_sliced_or_not(tmp_path: Path) -> None:
    prof = without_database(tmp_path)
    write_timelines(
        prof,
        slice_0_20240101000000=[overlap("Computing", 100, 99)],
        **{"20250109123456": [overlap("Computing", 100, 10), overlap("Communication", 100, 20)]},
    )
    tables = read_rank(discover(tmp_path).sources[0])
    assert tables.steps["computing_us"].to_pylist() == [10.0]


def test_ranks_that_no_prof_capture_knows_come_from_the_rank_table(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", ("10.0.0.1", [0, 1]), ("10.0.0.2", [2, 3]))
    for host in (1, 2):
        for device in (0, 1):
            write_prof(run / f"cluster_profiler/{host}/profiler", device, host=str(host))
    capture = discover(run)
    assert [source.rank for source in capture.sources] == [0, 1, 2, 3]
    assert capture.problems == ()


def test_without_a_rank_table_they_are_counted_by_host_and_device_and_that_is_told(tmp_path: Path) -> None:
    for host in ("7", "5"):
        for device in (1, 0):
            write_prof(tmp_path / host, device, host=host)
    capture = discover(tmp_path)
    assert [(source.rank, source.device) for source in capture.sources] == [(0, 0), (1, 1), (2, 0), (3, 1)]
    (problem,) = capture.problems
    assert "no capture knows its rank" in reason(problem)


def test_raw_prof_data_that_was_not_exported_says_what_to_run(tmp_path: Path) -> None:
    write_prof(tmp_path, 0, rank=0, exported=False)
    with pytest.raises(InputError, match="was not exported"):
        discover(tmp_path)


def test_prof_directories_beside_captures_of_a_framework_are_not_read(tmp_path: Path) -> None:
    write_capture(tmp_path, 0)
    write_prof(tmp_path, 0, rank=0)
    capture = discover(tmp_path)
    assert [source.kind for source in capture.sources] == ["ascend_pt/text"]


def test_prof_directories_inside_a_capture_are_part_of_it(tmp_path: Path) -> None:
    write_prof(write_capture(tmp_path, 0), 0, rank=9)
    assert [source.rank for source in discover(tmp_path).sources] == [0]
