"""Advice as one table of rules: when each holds, which findings it may explain, and its source."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, numbers
from cluster_analysis.tables.columns_described import Advice
from cluster_run.facts import fact
from cluster_run.findings import Finding
from cluster_run.kinds import KINDS
from cluster_words.checks import rule_sentences

Tables = Mapping[str, pa.Table]


class Rule(Struct, frozen=True):
    """One rule. `measure` gives a value by rank; the rule holds for ranks whose value is above `limit`.

    Its sentences are in `cluster_words.checks`. It may explain the kinds of findings in `explains`, and these
    causes of slow ranks and hosts. `reported_by` is the fact of a finding that says the same.
    """

    name: str
    measure: Callable[[Tables], dict[int, float]]
    limit: float
    source: str
    explains: frozenset[str] = frozenset()
    reported_by: str = ""


def _share_of_kernels(column: str, *wanted: str) -> Callable[[Tables], dict[int, float]]:
    """Return the function that measures, by rank, the share of kernel time of kernels with such a text."""

    def measure(tables: Tables) -> dict[int, float]:
        kernels = tables["kernels"]
        texts = kernels[column].cast(pa.string())
        return _share_of_time(kernels, pc.is_in(texts, pa.array(wanted)).to_numpy())

    return measure


def _share_of_time(table: pa.Table, is_wanted: BoolArray) -> dict[int, float]:
    """The share of the time of its rows that some of them take, by rank."""
    ranks, row = np.unique(table["rank"].to_numpy(), return_inverse=True)
    time_us = numbers(table["total_us"])
    own, total = (np.bincount(row, us, len(ranks)) for us in (np.where(is_wanted, time_us, 0.0), time_us))
    return dict(zip(ranks.tolist(), (own / np.maximum(total, 1e-9)).tolist(), strict=True))


def _counter(metric: str, of: str | None = None) -> Callable[[Tables], dict[int, float]]:
    """Return the function that gives the largest value of a counter by rank, or that with a label."""

    def measure(tables: Tables) -> dict[int, float]:
        rows = (row for row in tables["counters"].to_pylist() if row["metric"] == metric)
        return _largest((row["rank"], row["value"]) for row in rows if of in (None, row["label"]))

    return measure


def _largest(of_ranks: Iterable[tuple[int, float]]) -> dict[int, float]:
    """The largest value of each rank."""
    found: dict[int, float] = {}
    for rank, value in of_ranks:
        found[rank] = max(value, found.get(rank, value))
    return found


def _slowed_clock(tables: Tables) -> dict[int, float]:
    """How far the lowest clock of each rank lies below the highest of the job."""
    table = tables["frequency"]
    if not table.num_rows:
        return {}
    most = pc.max(table["frequency_mhz"]).as_py()
    lowest = table.group_by(["rank"], use_threads=False).aggregate([("frequency_mhz", "min")]).to_pylist()
    return {row["rank"]: 1.0 - row["frequency_mhz_min"] / most for row in lowest}


def _memory_over_peers(tables: Tables) -> dict[int, float]:
    """How much more memory a rank reserves than the median of its stage."""
    return _largest(
        (row["rank"], row["reserved_bytes"] / row["peers_median_bytes"] - 1.0)
        for row in tables["memory_peaks"].to_pylist()
        if row["reserved_bytes"] and row["peers_median_bytes"]
    )


def _theoretical_peak(tables: Tables) -> dict[int, float]:
    """The planned peak as a share of the device's memory, by rank."""
    return {
        row["rank"]: row["allocated_bytes"] / row["capacity_bytes"]
        for row in tables["memory_peaks"].to_pylist()
        if row["capacity_bytes"] and row["allocated_bytes"]
    }


def _odd_packets(tables: Tables) -> dict[int, float]:
    """The share of time that packets take whose size is no multiple of 512 bytes, by rank."""
    size = numbers(tables["packets"]["packet_bytes"])
    return _share_of_time(tables["packets"], (size > _ALIGNED_BYTES) & (np.rint(size) % _ALIGNED_BYTES > 0))


def _most_shapes(tables: Tables) -> dict[int, float]:
    """The most shapes with which one kernel ran, by rank: each new one may be compiled or tiled anew."""
    shapes = tables["kernels"].group_by(["rank", "name"], use_threads=False)
    counted = shapes.aggregate([("input_shapes", "count_distinct")]).to_pylist()
    return _largest((row["rank"], float(row["input_shapes_count_distinct"])) for row in counted)


def _empty_queue(tables: Tables) -> dict[int, float]:
    """How empty the last queue of the input pipeline is, which stands first, by rank."""
    found: dict[int, float] = {}
    for row in tables["counters"].to_pylist():
        if row["metric"] == "input_queue_usage_share":
            found.setdefault(row["rank"], 1.0 - row["value"])
    return found


def _empty_though_queued(tables: Tables) -> dict[int, float]:
    """How often the device found no batch on ranks whose host queue was seldom empty, by rank."""
    empty = _counter("input_queue_empty_share")(tables)
    found = _counter("input_next_empty_share")(tables)
    return {rank: share for rank, share in found.items() if empty.get(rank, 0.0) <= _SELDOM_EMPTY}


def _slow_products(tables: Tables) -> dict[int, float]:
    """The share of the time of a rank's matrix products that runs at less than half of their typical speed.

    The advisor calls an operator bound whose pipes are all idle half of the time, which only Level2 records;
    against the rank's own fastest product any capture with shapes can say it.
    """
    kernels = tables["kernels"].filter(pc.is_valid(tables["kernels"]["flops_count"]))
    if not kernels.num_rows:
        return {}
    time = np.maximum(numbers(kernels["total_us"]), 1e-9)
    speed = numbers(kernels["flops_count"]) / time
    ranks, row = np.unique(kernels["rank"].to_numpy(), return_inverse=True)
    found = {}
    for at, rank in enumerate(ranks.tolist()):
        own = row == at
        # The fastest that counts: half of the operations run at this speed or faster.
        order = np.argsort(-speed[own])
        operations = np.cumsum(numbers(kernels["flops_count"])[own][order])
        typical = speed[own][order][int(np.searchsorted(operations, operations[-1] / 2))]
        found[rank] = float(time[own][speed[own] < typical / 2].sum() / time[own].sum())
    return found


def _run_time_compilations(tables: Tables) -> dict[int, float]:
    """How often a rank compiled, or looked up what it had compiled, at run time."""
    found: dict[int, float] = defaultdict(float)
    for row in tables["apis"].to_pylist():
        if row["api"] == "aclopCompileAndExecute":
            found[row["rank"]] += row["n_calls"] or 0
    return found


def _other_environment(tables: Tables) -> dict[int, float]:
    """Number of environment variables of a rank that differ from those of most ranks."""
    found: dict[int, float] = defaultdict(float)
    by_variable: dict[str, dict[int, str]] = defaultdict(dict)
    for row in tables["environment"].to_pylist():
        by_variable[row["variable"]][row["rank"]] = row["value"]
    for values in by_variable.values():
        (usual, n_usual), *_ = Counter(values.values()).most_common(1)
        if 2 * n_usual > len(values):
            for rank, value in values.items():
                found[rank] += value != usual
    return found


def _set_to(variable: str, *bad: str) -> Callable[[Tables], dict[int, float]]:
    """Return the function that gives 1 for ranks whose environment variable has one of these values."""

    def measure(tables: Tables) -> dict[int, float]:
        return {
            row["rank"]: float(row["value"].strip() in bad)
            for row in tables["environment"].to_pylist()
            if row["variable"] == variable
        }

    return measure


_ALIGNED_BYTES = 512
_SELDOM_EMPTY = 0.3
_ADVISOR, _TUTORIAL = "msprof-analyze advisor", "MindSpore profiling tutorial"

_COMPUTE = frozenset({"compute"})
_HOST = frozenset({"dispatch", "host_bound"})
_INPUT = frozenset({"input", "input_bound"})
_NETWORK = frozenset(
    {name for name, record in KINDS.items() if record.part == "communication"} | {"exposed_communication"}
)

RULES: tuple[Rule, ...] = (
    Rule("ai_cpu", _share_of_kernels("core_type", "AI_CPU"), 0.05, f"{_ADVISOR}, AICPU", _COMPUTE),
    Rule(
        "format_changes", _share_of_kernels("op_type", "TransData", "Cast"), 0.1,
        f"{_ADVISOR}, operator bound", _COMPUTE,
    ),
    Rule("compiled_at_run_time", _run_time_compilations, 20.0, f"{_ADVISOR}, operator dispatch", _HOST),
    Rule("changing_shapes", _most_shapes, 100.0, f"{_ADVISOR}, dynamic shape", _HOST),
    Rule("bound_operators", _slow_products, 0.5, f"{_ADVISOR}, operator bound", _COMPUTE),
    Rule("byte_alignment", _odd_packets, 0.2, f"{_ADVISOR}, byte alignment", _NETWORK | {"small_packets"}),
    Rule("clock", _slowed_clock, 0.05, f"{_ADVISOR}, AI Core frequency", _COMPUTE, "clock_below_peers"),
    Rule("memory_beside_peers", _memory_over_peers, 0.2, "median of the stage, 20 %", _COMPUTE),
    Rule("memory_full", _theoretical_peak, 0.9, f"{_TUTORIAL}, memory"),
    Rule("input_queue", _empty_queue, 0.2, f"{_TUTORIAL}, queue usage 0.8", _INPUT),
    Rule("queue_empty", _counter("input_queue_empty_share"), 0.3, f"{_TUTORIAL}, host queue", _INPUT),
    Rule("next_empty", _empty_though_queued, 0.0, f"{_TUTORIAL}, data queue", _INPUT),
    Rule(
        "cpu_busy", _counter("host_cpu_busy_share", "all"), 0.8, f"{_TUTORIAL}, CPU utilisation",
        _INPUT | _HOST,
    ),
    Rule("late_launches", _counter("dispatched_late_share"), 0.5, f"{_TUTORIAL}, HostToDevice", _HOST),
    Rule("sent_again", _counter("retry_operators_count"), 0.0, "COMMUNICATION_OP.retry", _NETWORK),
    Rule(
        "other_environment", _other_environment, 0.0, "the other ranks of the job",
        _COMPUTE | _HOST | _NETWORK,
    ),
    Rule("blocking_launch", _set_to("ASCEND_LAUNCH_BLOCKING", "1"), 0.0, f"{_ADVISOR}, environment", _HOST),
    Rule(
        "log_level", _set_to("ASCEND_GLOBAL_LOG_LEVEL", "0", "1"), 0.0, f"{_ADVISOR}, environment", _HOST,
    ),
)  # fmt: skip


def advice(tables: Tables) -> pa.Table:
    """Return `Advice`: a row for each rule that holds, in the order of RULES."""
    rows: list[dict[str, Any]] = []
    for rule in RULES:
        held = {rank: value for rank, value in rule.measure(tables).items() if value > rule.limit}
        if not held:
            continue
        most, ranks = max(held.values()), sorted(held)
        said, check = rule_sentences(rule.name, tuple(ranks), most)
        rows.append(
            {
                "rule": rule.name,
                "ranks": ranks,
                "value": most,
                "limit": rule.limit,
                "sentence": said.en,
                "next_check": check.en,
                "sentence_zh": said.zh,
                "next_check_zh": check.zh,
                "source": rule.source,
            }
        )
    return Advice.of_rows(rows)


def advised(findings: Sequence[Finding], table: pa.Table, n_ranks: int) -> tuple[Finding, ...]:
    """Return findings with the rules that may be their reason.

    For a finding that names ranks, a rule must hold for one of them, and not for most of the others: a trait
    that all ranks share makes none of them slower. For a finding on the whole job it must hold for most
    ranks.
    """
    by_name = {rule.name: rule for rule in RULES}
    found = []
    for one in findings:
        named = {*one.ranks, *(end for link in one.links for end in (link.src, link.dst))}
        kinds = {one.kind, one.cause} if named else {one.kind}
        reported = {known.kind for known in one.facts}
        own = []
        for row in table.to_pylist():
            holds = set(row["ranks"])
            rule = by_name[row["rule"]]
            if not rule.explains & kinds or rule.reported_by in reported:
                continue
            n_others = n_ranks - len(named)
            is_reason = (
                bool(holds & named) and 2 * len(holds - named) <= n_others
                if named
                else 2 * len(holds) >= n_ranks
            )
            if is_reason:
                ranks = tuple(row["ranks"])
                own.append(fact("rule_holds", rule=row["rule"], ranks=ranks, value=row["value"]))
        found.append(replace(one, advice=tuple(own)) if own else one)
    return tuple(found)
