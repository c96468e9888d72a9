"""Selection and placement, without any host."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_collect.entries import RemoteEntry, unsafe_because
from cluster_collect.selection import select as selection_of
from cluster_collect.selection.select import Selection, Tree
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_run.ids import HostId, ServerId


def entries(*paths: str, kind: str = "f") -> list[RemoteEntry]:
    return [RemoteEntry(path.encode("utf-8", "surrogateescape"), kind, 1, 0) for path in paths]


def select(found: list[RemoteEntry], spec: HostSpec, what: list[str]) -> Selection:
    return selection_of.select(Tree(found), spec, CollectOptions(tuple(what)))


def placed(selection: Selection) -> dict[str, str]:
    return {file.entry.path.decode(): file.target.decode() for file in selection.files}


ROOT = HostSpec(HostId("1"), ServerId("s"), profiler_root="summary")


def test_r1_directories_without_devices_land_flat_as_the_script_did() -> None:
    found = entries(
        "profiler/step_trace_raw_0_detail_time.csv",
        "profiler/hccl_raw_0.csv",
        "profiler/no_dot",
        "profiler/.hidden.csv",
        "profiler/sub.d/deep.csv",
        "ckpt/model.ckpt",
        "device0/data/profiler/hccl_raw_9.csv",
    )
    for what in ("analysis", "full"):
        assert placed(select(found, ROOT, [what])) == {
            "profiler/step_trace_raw_0_detail_time.csv": "step_trace_raw_0_detail_time.csv",
            "profiler/hccl_raw_0.csv": "hccl_raw_0.csv",
        }


@pytest.mark.parametrize("output_dir", ["data", "./data", "data/"])
def test_r1_device_folders_land_flat_too(output_dir: str) -> None:
    found = entries(
        "device0/data-2021/profiler-1/hccl_raw_0.csv",
        "device15/data/profiler/hccl_raw_15.csv",
        "device/data/profiler/hccl_raw_1.csv",
        "deviceX/data/profiler/hccl_raw_2.csv",
        "device1/other/profiler/hccl_raw_3.csv",
        "profiler/hccl_raw_4.csv",
    )
    spec = replace(ROOT, device_regex="device", output_dir=output_dir)
    assert placed(select(found, spec, ["analysis"])) == {
        "device0/data-2021/profiler-1/hccl_raw_0.csv": "hccl_raw_0.csv",
        "device15/data/profiler/hccl_raw_15.csv": "hccl_raw_15.csv",
    }


def test_device_folders_may_hold_the_profiler_directories_directly() -> None:
    spec = replace(ROOT, device_regex="rank_")
    found = entries("rank_3/profiler/hccl_raw_3.csv")
    assert placed(select(found, spec, ["full"])) == {"rank_3/profiler/hccl_raw_3.csv": "hccl_raw_3.csv"}


def test_captures_are_kept_whole_at_any_depth() -> None:
    paths = ["a_ascend_pt/x/y.json", "rank0/b_ascend_ms/z.bin", "PROF_1_2_A/device_0/data/raw.slice_0"]
    assert placed(select(entries(*paths), ROOT, ["full"])) == {path: path for path in paths}


def test_a_root_that_is_a_capture_keeps_its_name() -> None:
    spec = replace(ROOT, profiler_root="w_1_ascend_pt")
    assert placed(select(entries("profiler_info_0.json"), spec, ["analysis"])) == {
        "profiler_info_0.json": "w_1_ascend_pt/profiler_info_0.json"
    }


@pytest.mark.parametrize("name", ["profiler", "profiler-2021", "anything"])
def test_a_root_that_is_an_r1_directory_is_taken_as_one(name: str) -> None:
    found = entries("step_trace_raw_0_detail_time.csv", "step_trace_point_info.json")
    assert set(placed(select(found, replace(ROOT, profiler_root=name), ["analysis"])).values()) == {
        "step_trace_raw_0_detail_time.csv",
        "step_trace_point_info.json",
    }


def test_of_several_files_for_one_place_the_last_gets_it_as_with_the_script() -> None:
    found = entries(
        "device10/data/profiler/step_trace_point_info.json",
        "device2/data/profiler/step_trace_point_info.json",
        "device1/data/profiler/step_trace_point_info.json",
    )
    spec = replace(ROOT, device_regex="device", output_dir="data")
    assert placed(select(found, spec, ["analysis"])) == {
        "device1/data/profiler/step_trace_point_info.json": (
            "collided/device1/data/profiler/step_trace_point_info.json"
        ),
        "device2/data/profiler/step_trace_point_info.json": (
            "collided/device2/data/profiler/step_trace_point_info.json"
        ),
        "device10/data/profiler/step_trace_point_info.json": "step_trace_point_info.json",
    }


ANALYSIS = """
profiler_info_0.json profiler_metadata.json
ASCEND_PROFILER_OUTPUT/step_trace_time.csv ASCEND_PROFILER_OUTPUT/communication.json
ASCEND_PROFILER_OUTPUT/communication_matrix.json ASCEND_PROFILER_OUTPUT/kernel_details.csv
ASCEND_PROFILER_OUTPUT/op_statistic.csv ASCEND_PROFILER_OUTPUT/api_statistic.csv
ASCEND_PROFILER_OUTPUT/memory_record.csv ASCEND_PROFILER_OUTPUT/operator_memory.csv
ASCEND_PROFILER_OUTPUT/npu_module_mem.csv ASCEND_PROFILER_OUTPUT/dataset.csv
ASCEND_PROFILER_OUTPUT/minddata_pipeline_raw_0.csv ASCEND_PROFILER_OUTPUT/analysis.db
ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db ASCEND_PROFILER_OUTPUT/ascend_mindspore_profiler_0.db
ASCEND_PROFILER_OUTPUT/communication_analyzer.db ASCEND_PROFILER_OUTPUT/operator_details.csv
""".split()  # noqa: SIM905 - thirty quoted names would be harder to read
LEFT = """
ASCEND_PROFILER_OUTPUT/nic.csv ASCEND_PROFILER_OUTPUT/roce.csv ASCEND_PROFILER_OUTPUT/hbm.csv
ASCEND_PROFILER_OUTPUT/pcie.csv ASCEND_PROFILER_OUTPUT/hccs.csv ASCEND_PROFILER_OUTPUT/l2_cache.csv
ASCEND_PROFILER_OUTPUT/static_op_mem.csv msmonitor_1_20250101.db PROF_000001_1_A/device_0/info.json.0
ASCEND_PROFILER_OUTPUT/trace_view.json FRAMEWORK/torch.op_range PROF_000001_1_A/device_0/data/raw.slice_0
PROF_000001_1_A/mindstudio_profiler_output/msprof_20240101.json PROF_000001_1_A/msprof_20240101010101.db
logs/profiler.log
""".split()  # noqa: SIM905


@pytest.mark.parametrize("capture", ["w_1_ascend_pt", "r0/w_1_ascend_ms"])
def test_analysis_takes_what_the_analysis_reads_and_nothing_else(capture: str) -> None:
    found = entries(*(f"{capture}/{name}" for name in ANALYSIS + LEFT))
    taken = placed(select(found, ROOT, ["analysis"]))
    assert sorted(taken) == sorted(f"{capture}/{name}" for name in ANALYSIS)


@pytest.mark.parametrize("above", ["", "w_1_ascend_pt/"])
def test_results_of_msprof_are_taken_where_nothing_parsed_stands_above(above: str) -> None:
    prof = f"{above}PROF_000001_1_A"
    wanted = [
        f"{prof}/mindstudio_profiler_output/msprof_20240101.json",
        f"{prof}/analyze/communication.json",
        f"{prof}/msprof_20240101010101.db",
        f"{prof}/device_0/info.json.0",
        f"{prof}/device_0/timeline/msprof_0_2_1.json",
        f"{prof}/device_0/timeline/hccl_0_2_1.json",
        f"{prof}/device_0/timeline/step_trace_0_2_4.json",
    ]
    unread = (
        "device_0/data/raw.slice_0",
        "device_0/timeline/task_time_0_2_1.json",
        "host/sqlite/x.db",
        "host/info.json",
    )
    found = entries(*wanted, *(f"{prof}/{name}" for name in unread))
    assert sorted(placed(select(found, ROOT, ["analysis"]))) == sorted(wanted)


def test_what_is_no_file_or_no_safe_name_is_refused_with_a_reason() -> None:
    link = RemoteEntry(b"a_ascend_pt/profiler_info_0.json", "l", 1, 0)
    climbing = RemoteEntry(b"a_ascend_pt/../../profiler_info_0.json", "f", 1, 0)
    selection = select([link, climbing], ROOT, ["full"])
    assert selection.files == ()
    assert [refused.reason for refused in selection.refused] == [
        "a symbolic link: not followed",
        "the path has an empty, '.' or '..' part",
    ]


@given(
    st.lists(
        st.sampled_from(
            [b"", b".", b"..", b"...", b".a", b"a.", b"\n", b"a\0b", b"\xff", b"x" * 255, b"x" * 256]
        ),
        min_size=1,
        max_size=15,
    )
)
def test_a_name_is_safe_when_all_its_parts_are(parts: list[bytes]) -> None:
    path = b"/".join(parts)
    are_safe = all(
        part not in (b"", b".", b"..") and b"\0" not in part and len(part) <= 255 for part in parts
    )
    assert (unsafe_because(path) == "") == (are_safe and len(path) <= 3000)


PARTS = st.sampled_from(
    ["a_ascend_pt", "profiler", "..", ".", "", "x.csv", "device1", "data", "collided", "\udcff"]
)


@settings(max_examples=200)
@given(
    st.lists(st.lists(PARTS, min_size=1, max_size=5).map("/".join), unique=True, max_size=12), st.booleans()
)
def test_every_placed_file_has_a_safe_place_of_its_own(paths: list[str], has_devices: bool) -> None:
    spec = replace(ROOT, device_regex="device" if has_devices else None)
    selection = select(entries(*paths), spec, ["full", "*.csv"])
    targets = [file.target for file in selection.files]
    assert len(set(targets)) == len(targets)
    assert [unsafe_because(target) for target in targets if unsafe_because(target)] == []
