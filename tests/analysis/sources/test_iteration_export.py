"""Captures that CANN of 2023 exported by iteration; figures and spelling are those of a published one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.tables.rank_tables import RankTables
from tests.analysis.one_rank import read_rank

_NO_RANK = 4294967295


def event(name: str, begin: float, length: float, tid: int = 0, **said: object) -> dict[str, Any]:
    """An event of a timeline with a length."""
    return {"name": name, "ph": "X", "pid": 1, "tid": tid, "ts": begin, "dur": length, "args": said}


def iteration(number: int, begin: float, forward: float, backward_end: float, end: float) -> dict[str, Any]:
    """An event of a step trace."""
    said = {"Iteration ID": number, "FP Start": forward, "BP End": backward_end, "Iteration End": end}
    return {**event(f"Iteration {number}", begin, end - begin, **said), "cat": "Iteration Time"}


def task(kind: str, begin: float, length: float, plane: int, to: int, **said: object) -> dict[str, Any]:
    """A task of a plane of HCCL from rank 0."""
    ends = {"task type": kind, "src rank": 0, "dst rank": to, "transport type": "SDMA"}
    return event(kind, begin, length, plane, **ends, **said)


def write_export(root: Path) -> Path:
    """Two iterations of rank 0 with one all-reduce each, over HCCS, PCIe and RDMA."""
    prof = root / "PROF_000001_20230818142704322_COJGGGCANRMICFBC"
    timeline = prof / "device_0" / "timeline"
    timeline.mkdir(parents=True)
    (prof / "device_0" / "info.json.0").write_text(json.dumps({"rank_id": 0, "hostname": "A2007104679"}))
    trace = [
        iteration(1, 56635864652.49, 56635864658.62, 56635868894.72, 56635912240.30),
        iteration(2, 56635944370.31, 56635944375.25, 56635948644.40, 56635959739.47),
    ]
    (timeline / "step_trace_0_2_4.json").write_text(json.dumps(trace))
    for number, begin in ((1, 56635868946.30), (2, 56635948680.85)):
        thread = {"name": "Communication Kernel"}
        planes = [
            {"name": "thread_name", "ph": "M", "pid": 1, "tid": 70000, "args": thread},
            {**event("Default/AllReduce-op534_0", begin, 9000.0, 70000), "args": None},
            task("Reduce_Inline", begin + 10, 308.7, 1, 3, **{"size(Byte)": 7023104, "link type": "HCCS"}),
            task("Memcpy", begin + 400, 291.3, 1, 3, **{"size(Byte)": 6976896, "link type": "HCCS"}),
            task("Reduce inline", begin + 10, 273.89, 3, 4, **{"size(Byte)": "7023104", "link type": "PCIE"}),
            task("Notify_Wait", begin + 1, 3.0, 2, _NO_RANK),
            task("RDMASend", begin + 10, 5.0, 2, 5, **{"size(Byte)": 1000}),
            task("RDMASend", begin + 20, 1.0, 2, 5, **{"size(Byte)": 4}),
            task("Notify Wait", begin + 30, 44.0, 2, 5),
        ]
        (timeline / f"hccl_0_2_{number}.json").write_text(json.dumps(planes))
        overlap = {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "Overlap Analysis"}}
        kernels = [
            overlap,
            event("Computing", begin, 4000.0),
            event("Communication", begin, 9000.0),
            event("Communication(Not Overlapped)", begin, 8500.0),
            event("Free", begin, 7.5),
            event("Default/network/conv1-Conv2d/Conv2D-op8", begin, 264.15, **{"Task Type": "AI_CORE"}),
            event("Default/network/DropoutGenMask-op232", begin, 621.83, **{"Task Type": "AI_CPU"}),
            event("EVENT_RECORD", begin, 0.01, **{"Task Type": "EVENT_RECORD"}),
        ]
        (timeline / f"msprof_0_2_{number}.json").write_text(json.dumps(kernels))
    return prof


@pytest.fixture
def read(tmp_path: Path) -> RankTables:
    """The rank of `write_export`."""
    write_export(tmp_path)
    return read_rank(discover(tmp_path).sources[0])


def test_each_iteration_of_an_old_export_is_a_step_with_its_overlap(read: RankTables) -> None:
    assert read.problems == ()
    assert read.steps["step"].to_pylist() == [1, 2]
    assert read.steps["computing_us"].to_pylist() == [4000.0, 4000.0]
    assert read.steps["overlapped_us"].to_pylist() == [500.0, 500.0]


def test_time_before_a_forward_pass_counts_from_the_end_of_the_iteration_before(read: RankTables) -> None:
    first, second = read.iterations.to_pylist()
    assert first["interval_us"] == pytest.approx(6.13, abs=1e-4)
    assert second["interval_us"] == pytest.approx(32134.95, abs=1e-4)  # "Data_aug Bound(us)" of the file
    assert second["forward_backward_us"] == pytest.approx(4269.15, abs=1e-4)
    assert second["tail_us"] == pytest.approx(11095.07, abs=1e-4)


def test_its_operators_have_begin_length_and_what_each_kind_of_link_moved(read: RankTables) -> None:
    operator = read.collectives.to_pylist()[0]
    assert (operator["op_type"], operator["elapse_us"]) == ("allreduce", 9000.0)
    assert operator["start_ns"] == 56635868946300
    assert (operator["hccs_bytes"], operator["pcie_bytes"], operator["rdma_bytes"]) == (14e6, 7023104.0, 1004)
    assert operator["hccs_us"] == pytest.approx(600.0)


def test_rdma_is_two_sends_and_the_wait_behind_them_as_the_tutorial_has_it(read: RankTables) -> None:
    links = {(row["dst_local"], row["transport"]): row for row in read.links.to_pylist() if row["step"] == 1}
    assert set(links) == {(3, "HCCS"), (4, "PCIE"), (5, "RDMA")}
    assert (links[5, "RDMA"]["time_us"], links[5, "RDMA"]["size_bytes"]) == (50.0, 1004.0)


def test_its_kernels_are_summed_by_name_and_by_type(read: RankTables) -> None:
    assert read.figures["kernels"]["n_calls"].to_pylist() == [2, 2]
    kinds = {row["op_type"]: (row["core_type"], row["total_us"]) for row in read.operators.to_pylist()}
    assert kinds == {"DropoutGenMask": ("AI_CPU", 1243.66), "Conv2D": ("AI_CORE", 528.3)}


def test_an_iteration_whose_file_is_damaged_costs_that_iteration(tmp_path: Path) -> None:
    prof = write_export(tmp_path)
    (prof / "device_0/timeline/msprof_0_2_2.json").write_text("[{")
    tables = read_rank(discover(tmp_path).sources[0])
    assert [one.file for one in tables.problems] == ["msprof_0_2_2.json"]
    assert tables.steps["computing_us"].to_pylist() == [4000.0, None]


def test_of_several_models_the_one_with_most_iterations_is_read_and_the_others_are_told(
    tmp_path: Path,
) -> None:
    timeline = write_export(tmp_path) / "device_0/timeline"
    (timeline / "msprof_0_7_1.json").write_text("[]")
    tables = read_rank(discover(tmp_path).sources[0])
    assert tables.steps["step"].to_pylist() == [1, 2]
    assert ("other_models", (7,)) in [(one.kind, dict(one.values).get("others")) for one in tables.notes]
