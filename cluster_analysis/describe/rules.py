"""Advice as one table of rules: when it holds, what is said, what to check next, where it is from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.describe.quartiles import table_of
from cluster_analysis.tables.described import ADVICE
from cluster_analysis.trace.calls import numbers

Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Rule:
    """One rule. `measure` gives a value by rank; the rule holds for ranks whose value is above `limit`.

    `sentence` is filled in with `{ranks}`, `{percent}` and `{value}`: the largest value of these ranks.
    """

    name: str
    measure: Callable[[Tables], dict[int, float]]
    limit: float
    sentence: str
    next_check: str
    source: str


def _share_of_kernels(is_wanted: Callable[[pa.Table], pa.Array]) -> Callable[[Tables], dict[int, float]]:
    """Return what measures the share of kernel time that some kernels take, by rank."""

    def measure(tables: Tables) -> dict[int, float]:
        kernels = tables["kernels"]
        if not kernels.num_rows:
            return {}
        wanted = np.asarray(is_wanted(kernels).fill_null(False).to_numpy(zero_copy_only=False), bool)
        ranks, row = np.unique(kernels["rank"].to_numpy(), return_inverse=True)
        total = np.bincount(row, numbers(kernels["total_us"]), len(ranks))
        own = np.bincount(row, np.where(wanted, numbers(kernels["total_us"]), 0.0), len(ranks))
        shares = own / np.maximum(total, 1e-9)
        return dict(zip(map(int, ranks), map(float, shares), strict=True))

    return measure


def _text(kernels: pa.Table, name: str) -> pa.Array:
    return kernels[name].cast(pa.string()).combine_chunks()


def _counter(metric: str) -> Callable[[Tables], dict[int, float]]:
    """Return what gives the largest value of a counter by rank."""

    def measure(tables: Tables) -> dict[int, float]:
        found: dict[int, float] = {}
        for row in tables["counters"].to_pylist():
            if row["metric"] == metric:
                found[row["rank"]] = max(row["value"], found.get(row["rank"], row["value"]))
        return found

    return measure


def _slowed_clock(tables: Tables) -> dict[int, float]:
    """How far the lowest clock of each rank lies below the highest of the job."""
    table = tables["frequency"]
    if not table.num_rows:
        return {}
    most = pc.max(table["frequency_mhz"]).as_py()
    lowest = table.group_by(["rank"], use_threads=False).aggregate([("frequency_mhz", "min")]).to_pylist()
    return {row["rank"]: 1.0 - row["frequency_mhz_min"] / most for row in lowest}


def _memory_beside_peers(tables: Tables) -> dict[int, float]:
    """How much more memory a rank reserves than the median of its stage."""
    found: dict[int, float] = {}
    for row in tables["memory_peaks"].to_pylist():
        most, peers = row["reserved_bytes"], row["peers_median_bytes"]
        if most and peers:
            found[row["rank"]] = max(found.get(row["rank"], -1.0), most / peers - 1.0)
    return found


def _theoretical_peak(tables: Tables) -> dict[int, float]:
    """The planned peak as a share of the device's memory, by rank."""
    return {
        row["rank"]: row["allocated_bytes"] / row["capacity_bytes"]
        for row in tables["memory_peaks"].to_pylist()
        if row["capacity_bytes"] and row["allocated_bytes"]
    }


def _odd_packets(tables: Tables) -> dict[int, float]:
    """The share of time that packets take whose size is no multiple of 512 bytes, by rank."""
    packets = tables["packets"]
    if not packets.num_rows:
        return {}
    size, time = numbers(packets["packet_bytes"]), numbers(packets["total_us"])
    odd = (size > _ALIGNED_BYTES) & (np.rint(size) % _ALIGNED_BYTES > 0)
    ranks, row = np.unique(packets["rank"].to_numpy(), return_inverse=True)
    share = np.bincount(row, np.where(odd, time, 0.0), len(ranks)) / np.maximum(
        np.bincount(row, time, len(ranks)), 1e-9
    )
    return dict(zip(map(int, ranks), map(float, share), strict=True))


def _most_shapes(tables: Tables) -> dict[int, float]:
    """The most shapes with which one kernel ran, by rank: each new one may be compiled or tiled anew."""
    shapes = tables["kernels"].group_by(["rank", "name"], use_threads=False)
    counted = shapes.aggregate([("input_shapes", "count_distinct")])
    found: dict[int, float] = {}
    for row in counted.to_pylist():
        found[row["rank"]] = max(found.get(row["rank"], 0.0), float(row["input_shapes_count_distinct"]))
    return found


def _full_queues(tables: Tables) -> dict[int, float]:
    """How empty the last queue of the input pipeline is, by rank."""
    last: dict[int, float] = {}
    for row in tables["counters"].to_pylist():
        if row["metric"] == "input_queue_usage_share":
            last.setdefault(row["rank"], 1.0 - row["value"])
    return last


_ALIGNED_BYTES = 512
_CHANGES = pa.array(["TransData", "Cast"])
_ADVISOR, _TUTORIAL = "msprof-analyze advisor", "MindSpore profiling tutorial"

RULES: tuple[Rule, ...] = (
    Rule(
        "ai_cpu", _share_of_kernels(lambda one: pc.equal(_text(one, "core_type"), "AI_CPU")), 0.05,
        "On {ranks} up to {percent} of the time of kernels runs on the AI CPU, far slower than AI cores.",
        "Replace these operators, or their data types (int64, float64), by ones that AI cores have.",
        f"{_ADVISOR}, AICPU",
    ),
    Rule(
        "format_changes", _share_of_kernels(lambda one: pc.is_in(_text(one, "op_type"), _CHANGES)), 0.1,
        "On {ranks} up to {percent} of the time of kernels only changes formats or types (TransData, Cast).",
        "Keep weights in the device's own format (torch_npu.npu.config.allow_internal_format), and one type.",
        f"{_ADVISOR}, operator bound",
    ),
    Rule(
        "changing_shapes", _most_shapes, 100.0,
        "On {ranks} one kernel ran with up to {value} different shapes.",
        "Where the host is too slow: bucket lengths, or torch_npu.npu.set_compile_mode(jit_compile=False).",
        f"{_ADVISOR}, dynamic shape",
    ),
    Rule(
        "byte_alignment", _odd_packets, 0.2,
        "On {ranks} packets that are no multiple of 512 bytes take up to {percent} of the time on links.",
        "Pad what is sent (gradient buckets, the size of shards) to multiples of 512 bytes.",
        f"{_ADVISOR}, byte alignment",
    ),
    Rule(
        "clock", _slowed_clock, 0.05,
        "On {ranks} the clock of the AI cores falls up to {percent} below the job's highest.",
        "Look at power and temperature: npu-smi info -t power, -t temp.", f"{_ADVISOR}, AI Core frequency",
    ),
    Rule(
        "memory_beside_peers", _memory_beside_peers, 0.2,
        "{ranks} reserve up to {percent} more memory than the median of their stage.",
        "Compare batch sizes, recomputation and fragmentation of these ranks with the others.",
        "median of the stage, 20 %",
    ),
    Rule(
        "memory_full", _theoretical_peak, 0.9,
        "On {ranks} the planned peak is up to {percent} of the device's memory.",
        "Recompute, or shard more: there is little room for fragmentation.", f"{_TUTORIAL}, memory",
    ),
    Rule(
        "input_queue", _full_queues, 0.2,
        "On {ranks} a queue of the input pipeline is up to {percent} empty.",
        "The operation in front of the first empty queue is the bottleneck: give it more workers.",
        f"{_TUTORIAL}, queue usage 0.8",
    ),
    Rule(
        "sent_again", _counter("retry_operators_count"), 0.0,
        "On {ranks} up to {value} communication operators were sent again.",
        "Look at the network's error counters: hccn_tool -i N -stat -g.", "COMMUNICATION_OP.retry",
    ),
)  # fmt: skip


def advice(tables: Tables) -> pa.Table:
    """Return ADVICE: a row for each rule that holds, in the order of RULES."""
    rows: list[dict[str, object]] = []
    for rule in RULES:
        held = {rank: value for rank, value in rule.measure(tables).items() if value > rule.limit}
        if not held:
            continue
        most, ranks = max(held.values()), sorted(held)
        who = f"rank {ranks[0]}" if len(ranks) == 1 else f"{len(ranks)} ranks"
        sentence = rule.sentence.format(ranks=who, percent=f"{100 * most:.0f} %", value=f"{most:g}")
        rows.append(
            {
                "rule": rule.name,
                "ranks": ranks,
                "value": most,
                "limit": rule.limit,
                "sentence": sentence,
                "next_check": rule.next_check,
                "source": rule.source,
            }
        )
    return table_of(rows, ADVICE)
