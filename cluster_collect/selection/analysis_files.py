"""The files that the analysis reads: what `--what analysis` takes, and nothing else.

`trace_view.json` and the raw data of the profiler make up nearly all bytes of a capture. The raw data are
not read; a timeline is read where it is there, and not fetched for that alone. An r1.x directory is taken as
the r1.x script took it, so that its viewers open it too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from cluster_collect.entries import is_capture
from cluster_run.layout import PROF_PREFIX, PROFILER_OUTPUT_NAME

_IN_CAPTURE = re.compile(
    rb"""profiler_info.*\.json | profiler_metadata\.json
    | step_trace_time\.csv | communication(?:_matrix)?\.json
    | kernel_details\.csv | (?:op|api)_statistic\.csv
    | memory_record\.csv | operator_(?:memory|details)\.csv | npu_module_mem\.csv
    | dataset\.csv | minddata_pipeline_(?:raw|summary).*\.csv | minddata_cpu_utilization.*\.json
    | minddata_aicpu.*\.txt | (?:device_queue|dataset_iterator)_profiling.*\.txt
    | analyse\.done
    | ascend_(?:pytorch|mindspore)_profiler.*\.db | analysis\.db | communication_analyzer\.db """,
    re.VERBOSE | re.DOTALL,
)
#: Of a `PROF_*` directory that msprof has exported.
_IN_PROF = re.compile(
    rb"""device_\d+/info\.json\.\d+ | msprof_\d+\.db
    | analyze/(?:communication(?:_matrix)?\.json | communication_analyzer\.db)
    | mindstudio_profiler_output/(?:(?:op|api)_statistic_\d+\.csv | msprof.*\.json)
    | device_\d+/timeline/(?:msprof|hccl|step_trace)_.*\.json """,
    re.VERBOSE | re.DOTALL,
)
_MSMONITOR = re.compile(rb"msmonitor_.*\.db", re.DOTALL)
_DATABASE = re.compile(rb"(?:.*/)?ascend_(?:pytorch|mindspore)_profiler(?:_\d{1,6})?\.db", re.DOTALL)
_OUTPUT_NAME = PROFILER_OUTPUT_NAME.encode()


def is_timeline(path: bytes) -> bool:
    """Return whether a path is that of a capture's timeline, which may have gigabytes."""
    return (b"/" + path).endswith(b"/" + _OUTPUT_NAME + b"/trace_view.json")


def needed_by_analysis(paths: Iterable[bytes], *, with_timelines: bool) -> Callable[[bytes], bool]:
    """Return the test for one host's paths (relative to its profiler root).

    A `PROF_*` directory is read only where no parsed output stands above it, and a timeline only
    `with_timelines`, where no database next to it says the same.
    """
    paths = list(paths)
    databases = {path.rpartition(b"/")[0] for path in paths if _DATABASE.fullmatch(path)}
    parsed = {path.partition(b"/" + _OUTPUT_NAME + b"/")[0] for path in paths if _OUTPUT_NAME in path}

    def needed(path: bytes) -> bool:
        *directories, name = path.split(b"/")
        for depth, directory in enumerate(directories):
            if directory.startswith(b"PLATFORM_"):  # what msprof recorded of the host itself
                return False
            if directory.startswith(PROF_PREFIX.encode()):
                is_parsed = any(b"/".join(directories[:above]) in parsed for above in range(1, depth + 1))
                return not is_parsed and bool(_IN_PROF.fullmatch(b"/".join(path.split(b"/")[depth + 1 :])))
        if any(is_capture(one) or one == _OUTPUT_NAME for one in directories):
            is_wanted = with_timelines and is_timeline(path) and path.rpartition(b"/")[0] not in databases
            return is_wanted or bool(_IN_CAPTURE.fullmatch(name))
        return name != b"trace_view.json" and not _MSMONITOR.fullmatch(name)

    return needed
