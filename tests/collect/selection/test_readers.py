"""What `--what analysis` fetches is what the analysis reads: no file without a reader, and the reverse."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from cluster_analysis.discovery import legacy, prof
from cluster_analysis.discovery.ascend import OUTPUT_FILES, inspect_capture
from cluster_collect.selection.analysis_files import needed_by_analysis
from tests.layers import modules

OUTPUT = "ASCEND_PROFILER_OUTPUT"
#: Everything that torch_npu and MindSpore write into a parsed capture, at any level and with any switch.
IN_OUTPUT = """
analysis.db api_statistic.csv ascend_pytorch_profiler_0.db communication.json communication_analyzer.db
communication_matrix.json data_preprocess.csv dataset.csv
device_queue_profiling_0.txt fusion_op.csv hbm.csv hccs.csv kernel_details.csv l2_cache.csv
llc_read_write.csv memory_record.csv
minddata_aicpu_0.txt
minddata_cpu_utilization_0.json minddata_pipeline_raw_0.csv minddata_pipeline_summary_0.json
minddata_pipeline_summary_0.csv msmonitor_1_20250101.db nic.csv npu_module_mem.csv op_statistic.csv
operator_details.csv operator_memory.csv pcie.csv pipeline_profiling_0.json roce.csv soc_pmu.csv
static_op_mem.csv step_trace_time.csv trace_view.json
""".split()  # noqa: SIM905 - thirty quoted names would be harder to read
#: Everything that msprof leaves in a directory of its own.
IN_PROF = """
analyze/communication.json analyze/communication_analyzer.db analyze/communication_matrix.json
device_0/data/ffts.slice_0 device_0/end_info.0 device_0/info.json.0 device_0/sqlite/ai_core_op_summary.db
device_0/start_info.0 device_0/timeline/msprof_0_1.json host/info.json mindstudio_profiler_log/log.txt
mindstudio_profiler_output/api_statistic_20250101010101.csv mindstudio_profiler_output/hbm_20250101010101.csv
mindstudio_profiler_output/msprof_20250101010101.json
mindstudio_profiler_output/msprof_slice_0_20250101010101.json
mindstudio_profiler_output/nic_20250101010101.csv mindstudio_profiler_output/op_statistic_20250101010101.csv
mindstudio_profiler_output/op_summary_20250101010101.csv
mindstudio_profiler_output/task_time_20250101010101.csv
msprof_20250101010101.db
""".split()  # noqa: SIM905


def laid_out(root: Path, names: list[str]) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")


def fetched(root: Path) -> set[str]:
    """What the collector would fetch of all files below `root`'s parent, by their paths below `root`."""
    paths = [path.relative_to(root.parent).as_posix().encode() for path in root.rglob("*") if path.is_file()]
    needed = needed_by_analysis(paths, with_timelines=False)
    return {path.decode().partition("/")[2] for path in paths if needed(path)}


def test_of_a_parsed_capture_what_is_fetched_is_what_is_read(tmp_path: Path) -> None:
    root = tmp_path / "w_1_20250101010101000_ascend_pt"
    laid_out(root, ["profiler_info_0.json", "profiler_metadata.json", "logs/a.log"])
    laid_out(root / OUTPUT, [*IN_OUTPUT, *OUTPUT_FILES.values()])
    found, _ = inspect_capture(root)
    assert found is not None
    read = {path.relative_to(root).as_posix() for path in found.files.values()}
    # A timeline is read where it is there, and too large to be fetched for that alone.
    assert read - fetched(root) == {f"{OUTPUT}/trace_view.json"}
    assert fetched(root) <= read


def test_of_an_export_of_msprof_what_is_fetched_is_what_is_read(tmp_path: Path) -> None:
    root = tmp_path / "PROF_000001_20250101010101000_ABC"
    laid_out(root, IN_PROF)
    (root / "device_0" / "info.json.0").write_text('{"rank_id": 3}')
    ((found,), _) = prof.inspect_prof({root: None}, {})
    assert found.rank == 3
    read = {path.relative_to(root).as_posix() for path in found.files.values()}
    assert fetched(root) - read == {"device_0/info.json.0", "device_0/timeline/msprof_0_1.json"}
    assert read - fetched(root) == set()


def test_the_timelines_of_an_older_msprof_are_fetched_because_they_are_read(tmp_path: Path) -> None:
    root = tmp_path / "PROF_000001_20250101010101000_ABC"
    laid_out(root, ["device_0/timeline/msprof_0_1.json", "device_0/info.json.0"])
    ((found,), _) = prof.inspect_prof({root: None}, {})
    assert {path.relative_to(root).as_posix() for path in found.files.values()} <= fetched(root)


def roles() -> set[str]:
    return {*OUTPUT_FILES, "minddata_pipeline", "minddata_summary", "profiler_db", *legacy.FILES, *prof.FILES}


@cache
def texts_of_readers() -> set[str]:
    """Return every text in the modules that read files."""
    readers = [
        path
        for name, path in modules().items()
        if name.startswith(("cluster_analysis.sources", "cluster_analysis.insight"))
    ]
    return {
        node.value
        for path in readers
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


# Of a capture that is done it is read that it is there, and no more.
@pytest.mark.parametrize("role", sorted(roles() - {"done"}))
def test_every_file_that_is_taken_up_has_a_reader(role: str) -> None:
    assert role in texts_of_readers()


def test_what_msprof_records_of_the_host_itself_is_left_there() -> None:
    capture = b"n_1_20260601120000123_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv"
    platform = b"PLATFORM_20260601120000123/host/data/analyse.done"
    needed = needed_by_analysis([capture, platform], with_timelines=False)
    assert [needed(path) for path in (capture, platform)] == [True, False]
