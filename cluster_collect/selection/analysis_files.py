"""The files that the analysis reads: what `--what analysis` takes, and nothing else.

`trace_view.json` and the raw data of the profiler make up nearly all bytes of a capture and are not
read. An r1.x directory is taken as the r1.x script took it, so that its viewers open it too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_IN_CAPTURE = re.compile(
    rb"""profiler_info.*\.json | profiler_metadata\.json
    | step_trace_time\.csv | communication(?:_matrix)?\.json
    | kernel_details\.csv | (?:op|api)_statistic.*\.csv
    | memory_record\.csv | operator_(?:memory|details)\.csv | npu_module_mem\.csv | static_op_mem\.csv
    | (?:l2_cache|hbm|nic|roce|pcie|hccs)\.csv
    | dataset\.csv | (?:minddata|pipeline_profiling|dataset_iterator|device_queue)_.*
    | ascend_(?:pytorch|mindspore)_profiler.*\.db | analysis\.db | communication_analyzer\.db
    | msmonitor_.*\.db
    | step_trace_(?:raw|point_info).* | hccl_raw_.* | \w+_cluster_analyse_.*
    | flops_.* | memory_usage_.* | aicore_intermediate_.* """,
    re.VERBOSE | re.DOTALL,
)
_PROF_INFO = re.compile(rb"info\.json.*|start_info.*|end_info.*", re.DOTALL)
_PROF_RESULT = re.compile(
    rb"msprof_.*\.db|(?:.*/)?(?:analyze|mindstudio_profiler_output)/[^/]+|communication_analyzer\.db"
    rb"|device_\d+/timeline/(?:msprof|hccl|step_trace)_[^/]+\.json",
    re.DOTALL,
)
_CAPTURE_NAME = re.compile(rb".+_ascend_(?:pt|ms)")
_OUTPUT_NAME = b"ASCEND_PROFILER_OUTPUT"


def needed_by_analysis(paths: Iterable[bytes]) -> Callable[[bytes], bool]:
    """Return the test for one host's paths (relative to its profiler root).

    The results inside a `PROF_*` directory are read only where no parsed output stands above it.
    """
    parsed = {path.partition(b"/" + _OUTPUT_NAME + b"/")[0] for path in paths if _OUTPUT_NAME in path}

    def needed(path: bytes) -> bool:
        *directories, name = path.split(b"/")
        for depth, directory in enumerate(directories):
            if directory.startswith(b"PROF_"):
                if _PROF_INFO.fullmatch(name):
                    return True
                is_parsed = any(b"/".join(directories[:above]) in parsed for above in range(1, depth + 1))
                return not is_parsed and bool(
                    _PROF_RESULT.fullmatch(b"/".join(path.split(b"/")[depth + 1 :]))
                )
        if (
            any(_CAPTURE_NAME.fullmatch(directory) for directory in directories)
            or _OUTPUT_NAME in directories
        ):
            return bool(_IN_CAPTURE.fullmatch(name))
        return name != b"trace_view.json" and _OUTPUT_NAME not in directories

    return needed
