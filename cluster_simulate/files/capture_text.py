"""The small files of one rank's capture: step totals, statistics, and what the capture says of itself."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable

from cluster_simulate.files.captured import CapturedJob
from cluster_simulate.files.kernels import kernel_statistics
from cluster_simulate.files.observed import EPOCH_US, seen_steps
from cluster_simulate.job.layout import host_name
from cluster_simulate.job.spec import JobSpec

_STEP_HEADER = (
    "Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Stage",
    "Bubble", "Communication(Not Overlapped and Exclude Receive)", "Preparing",
)  # fmt: skip
_STEP_FIELDS = (
    "computing_us", "communication_not_overlapped_us", "overlapped_us", "communication_us", "free_us",
    "stage_us", "bubble_us", "exclude_receive_us", "preparing_us",
)  # fmt: skip
_LAUNCH_US = 5.4
_LONGEST_GROUP = 2048
#: yyyymmddHHMMSSmmm; captures of one job differ by some ms.
_FIRST_STAMP, _STAMP_SPREAD = 20251127123436123, 2903
_ENVIRONMENT = {"ASCEND_GLOBAL_LOG_LEVEL": "3", "HCCL_RDMA_TC": "", "HCCL_ALGO": ""}


def step_rows(captured: CapturedJob, rank: int, named: Callable[[int], object] = int) -> list[list[object]]:
    """Return device, step and its totals, in the order of the columns; `named` makes a cell of the step."""
    spec, totals = captured.job.spec, [getattr(captured.totals, name) for name in _STEP_FIELDS]
    return [
        [spec.device_of(rank), named(spec.first_step + step), *(float(one[step, rank]) for one in totals)]
        for step in seen_steps(captured.job)
    ]


def step_trace_csv(captured: CapturedJob, rank: int) -> bytes:
    """Return step_trace_time.csv; PyTorch puts `Device_id` first."""
    first = 0 if captured.framework == "pt" else 1
    header: list[object] = ["Device_id", *_STEP_HEADER]
    return csv_bytes(row[first:] for row in [header, *step_rows(captured, rank)])


def op_statistic_csv(captured: CapturedJob, rank: int) -> bytes:
    """Return op_statistic.csv."""
    header = ["Device_id", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)",
              "Max Time(us)", "Ratio(%)"]  # fmt: skip
    device = captured.job.spec.device_of(rank)
    rows = [
        [device, row.op_type, row.core_type, row.n_calls, row.total_us, row.min_us, row.avg_us, row.max_us,
         row.ratio_percent]
        for row in kernel_statistics(captured.job, rank)
    ]  # fmt: skip
    return csv_bytes([header, *rows])


def api_statistic_csv(captured: CapturedJob, rank: int) -> bytes:
    """Return api_statistic.csv: launches last longer on ranks that idle between operators."""
    steps = seen_steps(captured.job)
    n_launches = sum(row.n_calls for row in kernel_statistics(captured.job, rank))
    free = float(captured.totals.free_us[steps, rank].sum())
    launch = round(n_launches * _LAUNCH_US + 0.2 * free, 3)
    header = ["Device_id", "Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)",
              "Variance"]  # fmt: skip
    rows: list[list[object]] = []
    for level, name, share, n in (
        ("runtime", "KernelLaunch", 1.0, n_launches),
        ("acl", "aclrtSynchronizeStream", 0.1, 2 * len(steps)),
        ("node", "launch", 1.4, n_launches),
    ):
        total = round(share * launch, 3)
        avg = round(total / n, 3) if n else 0.0
        rows.append(
            ["host", level, name, total, n, avg, round(0.4 * avg, 3), round(9.0 * avg, 3), round(avg, 3)]
        )
    return csv_bytes([header, *rows])


def metadata(captured: CapturedJob, rank: int) -> dict[str, object]:
    """Return the content of profiler_metadata.json, which databases keep in META_DATA."""
    spec, groups = captured.job.spec, captured.job.groups
    if not spec.declares_groups:
        return {"ENV_VARIABLES": _ENVIRONMENT}
    arguments = {
        "tensor_model_parallel_size": spec.tp,
        "pipeline_model_parallel_size": spec.pp,
        "data_parallel_size": spec.dp,
        "context_parallel_size": spec.cp,
        "expert_model_parallel_size": spec.ep,
        "sequence_parallel": False,
        "rank": rank,
        "world_size": spec.n_ranks,
    }
    info = {
        groups.names[number]: {
            "group_name": groups.labels[number],
            "group_rank": groups.members[number].index(rank),
            "global_ranks": list(groups.members[number]),
        }
        for number in captured.group_numbers[rank]
        # Every rank would list every rank; past this size that alone is more than all other files.
        if len(groups.members[number]) <= _LONGEST_GROUP
    }
    return {"distributed_args": arguments, "ENV_VARIABLES": _ENVIRONMENT, "parallel_group_info": info}


def profiler_info_json(captured: CapturedJob, rank: int, export: str) -> bytes:
    """Return profiler_info_{rank}.json."""
    spec = captured.job.spec
    end_ns = int(EPOCH_US * 1e3 + float(captured.job.times.end_us[-1, rank]) * 1e3)
    versions = {"torch_npu_version": "2.7.1"} if captured.framework == "pt" else {"ms_version": "2.7.0"}
    content = {
        "config": {
            "common_config": {"schedule": {"wait": 0, "active": spec.steps, "warmup": 1, "repeat": 1}},
            "experimental_config": {"_profiler_level": profiler_level(spec), "_export_type": [export]},
        },
        "start_info": {"syscnt_enable": True, "freq": 100, "start_cnt": 470002538790308},
        "end_info": {"collectionTimeEnd": end_ns, "MonotonicTimeEnd": 4699802061975030},
        **versions,
        "cann_version": "8.3.RC1",
        "rank_id": str(rank),
    }
    return json.dumps(content, indent=4).encode()


def profiler_level(spec: JobSpec) -> str:
    """Return the level of profiling that gives this much detail."""
    return "Level0" if spec.detail == "totals" else "Level1"


def capture_name(captured: CapturedJob, rank: int) -> str:
    """Return the name of a rank's capture directory; processes start within three seconds."""
    host = captured.job.spec.host_of(rank)
    stamp = _FIRST_STAMP + 7919 * rank % _STAMP_SPREAD
    return f"{host_name(host)}_{21000 + rank}_{stamp}_ascend_{captured.framework}"


def csv_bytes(rows: Iterable[Iterable[object]]) -> bytes:
    """Return rows as the profilers write them: commas, and a line feed at the end of each."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
