"""The tables that describe the job, cut to what a page can hold: plain rows of text, nothing drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from msgspec import Struct

from cluster_analysis.result import AnalysisResult
from cluster_analysis.sentences.phrase import Phrase
from cluster_run.ids import format_number_ranges

_MAX_ROWS = 40
_MAX_TEXT = 60
_LARGE = 1000.0


class Shown(Struct, frozen=True):
    """One table. `columns` are keys of words and whether they hold numbers; `n_left` rows are not shown."""

    title: str
    note: str
    columns: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    n_left: int
    file: str


def described_sections(result: AnalysisResult) -> list[Shown]:
    """Return the tables that have something to say, without rows of which all is 0 or unknown."""
    found = []
    for file, (title, columns) in _TABLES.items():
        table = result.tables.get(file)
        if table is None or not table.num_rows:
            continue
        measured = [name for name, (_, show) in columns.items() if show not in _NAMES]
        measured_rows = [
            row for row in table.to_pylist() if not measured or any(row[name] for name in measured)
        ]
        if not measured_rows:
            continue
        if longest := _LONGEST_FIRST.get(file):
            measured_rows.sort(key=lambda row: -sum(row[name] or 0.0 for name in longest))
        rows = [[show(row[name]) for name, (_, show) in columns.items()] for row in measured_rows[:_MAX_ROWS]]
        heads = [(word, show is not _text) for word, show in columns.values()]
        n_left = max(0, len(measured_rows) - _MAX_ROWS)
        found.append(Shown(title, f"{title}.note", heads, rows, n_left, f"tables/{file}.parquet"))
    return found


def advice_rows(result: AnalysisResult) -> Sequence[Mapping[str, object]]:
    """Return the rules that hold: what each says and what to do, in both languages, and where it is from."""
    table: pa.Table | None = result.tables.get("advice")
    return [
        {
            "said": Phrase(row["sentence"], row["sentence_zh"]),
            "check": Phrase(row["next_check"], row["next_check_zh"]),
            "source": row["source"],
        }
        for row in (table.to_pylist() if table is not None else ())
    ]


def _text(value: object) -> str:
    shown = "–" if value is None or value == "" else str(value)
    return shown if len(shown) <= _MAX_TEXT else f"{shown[:_MAX_TEXT]}…"


def _number(value: object) -> str:
    return "–" if value is None else f"{value:,}"


def _digits(value: object) -> str:
    """Write a number whose size nobody knows beforehand: whole where it is large."""
    return f"{value:,.0f}" if isinstance(value, float) and abs(value) >= _LARGE else f"{value:.4g}"


def _scaled(factor: float, digits: int) -> Callable[[object], str]:
    def show(value: object) -> str:
        return f"{value / factor:,.{digits}f}" if isinstance(value, (int, float)) else "–"

    return show


_ms, _gb, _tera, _percent = _scaled(1e3, 2), _scaled(2.0**30, 2), _scaled(1e12, 1), _scaled(0.01, 0)
_mb = _scaled(1e6, 1)


def _members(value: object) -> str:
    return _text(format_number_ranges(value)) if isinstance(value, list) else "–"


#: What writes names and counts: a row that has no more than these says nothing.
_NAMES = (_text, _number, _members)
#: The columns of time, in which rows are sorted; other tables stay in the order of their ranks.
_LONGEST_FIRST: Mapping[str, Sequence[str]] = {
    "kernel_spread": ("max_us",),
    "communication": ("transfer_us", "wait_us"),
    "apis": ("total_us",),
}
_FIVE = {
    "min_us": ("described.min", _ms),
    "q1_us": ("described.q1", _ms),
    "median_us": ("described.median", _ms),
    "q3_us": ("described.q3", _ms),
    "max_us": ("described.max", _ms),
}
#: For each table its title, and of its columns the word and how a value is written.
_TABLES: Mapping[str, tuple[str, Mapping[str, tuple[str, Callable[[object], str]]]]] = {
    "kernel_spread": (
        "described.kernels",
        {
            "stage": ("described.stage", _text),
            "op_type": ("described.type", _text),
            "input_shapes": ("described.shapes", _text),
            "n_calls": ("described.calls", _number),
            **_FIVE,
            "slowest_rank": ("described.slowest", _text),
        },
    ),
    "communication": (
        "described.communication",
        {
            "role": ("described.role", _text),
            "group": ("described.group", _text),
            "op_type": ("described.type", _text),
            "n_operators": ("described.calls", _number),
            "size_bytes": ("described.mb", _mb),
            "transfer_us": ("described.transfer", _ms),
            "wait_us": ("described.wait", _ms),
            **_FIVE,
            "slowest_operator": ("described.longest", _text),
        },
    ),
    "memory_peaks": (
        "described.memory",
        {
            "rank": ("described.rank", _text),
            "component": ("described.component", _text),
            "allocated_bytes": ("described.allocated", _gb),
            "reserved_bytes": ("described.reserved", _gb),
            "peers_median_bytes": ("described.peers", _gb),
            "capacity_bytes": ("described.capacity", _gb),
        },
    ),
    "flops": (
        "described.flops",
        {
            "rank": ("described.rank", _text),
            "of": ("described.of", _text),
            "flops_count": ("described.tflop", _tera),
            "flops_per_s": ("described.tflops", _tera),
            "share_of_largest": ("described.share", _percent),
        },
    ),
    "host_times": (
        "described.host",
        {
            "rank": ("described.rank", _text),
            "synchronising_us": ("described.synchronising", _ms),
            "collecting_us": ("described.collecting", _ms),
            "dispatching_us": ("described.dispatching", _ms),
            "elsewhere_us": ("described.elsewhere", _ms),
            "dispatch_delay_us": ("described.delay", _ms),
            "dispatched_late_share": ("described.late", _percent),
            "host_cpu_busy_share": ("described.busy", _percent),
        },
    ),
    "groups": (
        "described.groups",
        {
            "role": ("described.role", _text),
            "group": ("described.group", _text),
            "n_ranks": ("described.ranks", _number),
            "ranks": ("described.members", _members),
        },
    ),
    "communication_costs": (
        "described.costs",
        {
            "rank": ("described.rank", _text),
            "step": ("described.step", _text),
            "communication_us": ("described.transfer", _ms),
            "wait_us": ("described.wait", _ms),
            "sdma_us": ("described.sdma", _ms),
            "sdma_bytes": ("described.sdma_mb", _mb),
            "rdma_us": ("described.rdma", _ms),
            "rdma_bytes": ("described.rdma_mb", _mb),
        },
    ),
    "stages": (
        "described.stages",
        {
            "stage": ("described.stage", _text),
            "n_ranks": ("described.ranks", _number),
            "computing_us": ("described.computing", _ms),
            "communication_not_overlapped_us": ("described.exposed", _ms),
            "overlapped_us": ("described.overlapped", _ms),
            "free_us": ("described.free", _ms),
            "preparing_us": ("described.preparing", _ms),
            "bubble_us": ("described.bubble", _ms),
        },
    ),
    "iterations": (
        "described.iterations",
        {
            "rank": ("described.rank", _text),
            "step": ("described.step", _text),
            "total_us": ("described.total", _ms),
            "interval_us": ("described.interval", _ms),
            "forward_backward_us": ("described.fpbp", _ms),
            "tail_us": ("described.tail", _ms),
        },
    ),
    "figures_between_ranks": (
        "described.figures",
        {
            "metric": ("described.metric", _text),
            "label": ("described.label", _text),
            "n_ranks": ("described.ranks", _number),
            "min_value": ("described.min", _digits),
            "median_value": ("described.median", _digits),
            "max_value": ("described.max", _digits),
            "max_rank": ("described.most", _text),
        },
    ),
    "apis": (
        "described.apis",
        {
            "rank": ("described.rank", _text),
            "level": ("described.level", _text),
            "api": ("described.api", _text),
            "n_calls": ("described.calls", _number),
            "total_us": ("described.total", _ms),
            "max_us": ("described.max", _ms),
        },
    ),
}
