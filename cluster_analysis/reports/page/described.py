"""The tables that describe the job, cut to what a page can hold: plain rows of text, nothing drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from cluster_analysis.result import AnalysisResult
from cluster_words.phrase import Phrase, short_ranges

_MAX_ROWS = 40
_MAX_TEXT = 60
_LARGE = 1000.0


class DescribedTable(Struct, frozen=True):
    """One table. `columns` are keys of words and whether they hold numbers; `n_left` rows are not shown."""

    title: str
    columns: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    n_left: int
    file: str


def described_sections(result: AnalysisResult) -> list[DescribedTable]:
    """Return the tables with content, without rows that are all 0 or unknown."""
    found = []
    for file, names in _COLUMNS.items():
        columns = {name: _written(name) for name in names.split()}
        measured = [name for name, show in columns.items() if show not in _NAMES]
        told = result.table(file).to_pylist()
        rows = [row for row in told if not measured or any(row[name] for name in measured)]
        if not rows:
            continue
        if longest := _LONGEST_FIRST.get(file):
            rows.sort(key=lambda row: -sum(row[name] or 0.0 for name in longest))
        heads = [(f"described.{name}", show is not _text) for name, show in columns.items()]
        cells = [[show(row[name]) for name, show in columns.items()] for row in rows[:_MAX_ROWS]]
        n_left = max(0, len(rows) - _MAX_ROWS)
        found.append(
            DescribedTable(f"described.table.{file}", heads, cells, n_left, f"tables/{file}.parquet")
        )
    return found


def advice_rows(result: AnalysisResult) -> Sequence[Mapping[str, object]]:
    """Return the rules that hold: what each says and what to do, in both languages, and where it is from."""
    return [
        {
            "said": Phrase(row["sentence"], row["sentence_zh"]),
            "check": Phrase(row["next_check"], row["next_check_zh"]),
            "source": row["source"],
        }
        for row in result.table("advice").to_pylist()
    ]


def _text(value: object) -> str:
    shown = "–" if value is None or value == "" else str(value)
    return shown if len(shown) <= _MAX_TEXT else f"{shown[:_MAX_TEXT]}…"


def _number(value: object) -> str:
    return "–" if value is None else f"{value:,}"


def _digits(value: object) -> str:
    """Write a number of unknown size: whole if it is large."""
    return f"{value:,.0f}" if isinstance(value, float) and abs(value) >= _LARGE else f"{value:.4g}"


def _scaled(factor: float, digits: int) -> Callable[[object], str]:
    def show(value: object) -> str:
        return f"{value / factor:,.{digits}f}" if isinstance(value, (int, float)) else "–"

    return show


_ms, _gb, _tera, _percent = _scaled(1e3, 2), _scaled(2.0**30, 2), _scaled(1e12, 1), _scaled(0.01, 0)
_mb = _scaled(1e6, 1)


def _members(value: object) -> str:
    return _text(short_ranges(value)) if isinstance(value, list) else "–"


#: What writes names and counts: a row that has no more than these says nothing.
_NAMES = (_text, _number, _members)
#: How the values of a column are written, by its name or the end of its name.
_FORMS: Mapping[str, Callable[[object], str]] = {
    "ranks": _members,
    "share_of_largest": _percent,
    "flops_count": _tera,
    "flops_per_s": _tera,
    **dict.fromkeys(("allocated_bytes", "reserved_bytes", "peers_median_bytes", "capacity_bytes"), _gb),
    "us": _ms,
    "bytes": _mb,
    "share": _percent,
    "value": _digits,
}


def _written(column: str) -> Callable[[object], str]:
    """Return the function that writes a value of a column; names, ranks and steps stay as they are."""
    if column.startswith("n_"):
        return _number
    return _FORMS.get(column) or _FORMS.get(column.rpartition("_")[2], _text)


#: The columns of time, in which rows are sorted; other tables stay in the order of their ranks.
_LONGEST_FIRST: Mapping[str, Sequence[str]] = {
    "kernel_spread": ("max_us",),
    "communication": ("transfer_us", "wait_us"),
    "apis": ("total_us",),
}
#: The columns of each table that is shown; `described.` and its name is the word for each.
_COLUMNS: Mapping[str, str] = {
    "kernel_spread": "stage op_type input_shapes n_calls min_us q1_us median_us q3_us max_us slowest_rank",
    "communication": (
        "role group op_type n_operators size_bytes transfer_us wait_us min_us q1_us median_us q3_us "
        "max_us slowest_operator"
    ),
    "memory_peaks": "rank component allocated_bytes reserved_bytes peers_median_bytes capacity_bytes",
    "flops": "rank of flops_count flops_per_s share_of_largest",
    "host_times": (
        "rank synchronising_us collecting_us dispatching_us elsewhere_us dispatch_delay_us "
        "dispatched_late_share host_cpu_busy_share"
    ),
    "groups": "role group n_ranks ranks",
    "communication_costs": "rank step communication_us wait_us sdma_us sdma_bytes rdma_us rdma_bytes",
    "stages": (
        "stage n_ranks computing_us communication_not_overlapped_us overlapped_us free_us preparing_us "
        "bubble_us"
    ),
    "iterations": "rank step total_us interval_us forward_backward_us tail_us",
    "figures_between_ranks": "metric label n_ranks min_value median_value max_value max_rank",
    "apis": "rank level api n_calls total_us max_us",
}
