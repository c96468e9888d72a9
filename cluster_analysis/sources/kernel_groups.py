"""Kernels summed by type, core, name and shapes, block by block; and the FLOPs of matrix products.

Times are whole picoseconds: profilers write µs with at most six decimals, and sums of whole numbers are the
same in any order and in any blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.tables import schema
from cluster_analysis.tables.schema import rows_of
from cluster_run.facts import fact

KEYS = ("op_type", "core_type", "name", "input_shapes", "output_shapes", "op_state")
_SUMS = [("n", "sum"), ("ps", "sum"), ("ps_min", "min"), ("ps_max", "max"), ("wait_ps", "sum")]
#: Kinds with more rows than this (each length of a sample another shape) keep those that take most time.
MAX_ROWS = 2_000
#: The inner length of a product is a whole number; shapes that give another one mean something else.
_WHOLE = 1e-6
_DECIMALS = 3
#: Sums of all times stay below it.
_MOST_PS = float(1 << 62)
_OTHERS = "(all others)"
_MATRIX_TYPES = ("MatMul", "BatchMatMul")


class KernelSums:
    """Running sums; memory grows with the number of kinds only."""

    def __init__(self) -> None:
        self._table: pa.Table | None = None
        self._all_ps = 0.0

    def add(self, block: pa.Table) -> None:
        """Add kernels: a row each, the columns of KEYS as text, `ps` and `wait_ps` (int64)."""
        single = block.append_column("n", pa.repeat(pa.scalar(1, pa.int64()), block.num_rows))
        single = single.append_column("ps_min", single["ps"]).append_column("ps_max", single["ps"])
        self.add_sums(single)

    def add_sums(self, sums: pa.Table) -> None:
        """Add kernels that are summed already: KEYS, `n`, `ps`, `ps_min`, `ps_max`, `wait_ps`.

        Raises:
            BadFileError: their times are more than a sum can hold, as only a damaged file has them.
        """
        for name in ("ps", "wait_ps"):
            self._all_ps += pc.sum(pc.abs(pc.cast(sums[name], pa.float64(), safe=False))).as_py() or 0.0
        if self._all_ps > _MOST_PS:
            raise BadFileError(fact("unforeseen_content", error="OverflowError", detail="times of many days"))
        sums = sums.select([*KEYS, *(name for name, _ in _SUMS)])
        if self._table is not None:
            sums = pa.concat_tables([self._table, sums])
        self._table = _grouped(sums, KEYS)

    def operators(self, rank: int) -> pa.Table | None:
        """Return OPERATORS: the same by type and core alone, longest first; None where nothing was added."""
        if self._table is None or not self._table.num_rows:
            return None
        summed = _longest_first(_grouped(self._table, KEYS[:2]), KEYS[:2])
        kinds = {name: summed[name].to_pylist() for name in KEYS[:2]}
        return schema.rows(schema.OPERATORS, rank, **kinds, **_figures(summed))

    def table(self, rank: int) -> pa.Table | None:
        """Return KERNELS, those that take most time first; None where nothing was added."""
        if self._table is None or not self._table.num_rows:
            return None
        ordered = _longest_first(self._table, KEYS)
        rest = ordered.slice(MAX_ROWS)
        if rest.num_rows:
            blank = {name: pa.repeat(_OTHERS, rest.num_rows) for name in KEYS}
            others = KernelSums()
            others.add_sums(pa.table({**blank, **{name: rest[name] for name, _ in _SUMS}}))
            assert others._table is not None
            ordered = pa.concat_tables(
                [ordered.slice(0, MAX_ROWS), others._table.select(ordered.column_names)]
            )
        return _kernels(ordered, rank)


def _grouped(sums: pa.Table, keys: Sequence[str]) -> pa.Table:
    grouped = sums.group_by(list(keys), use_threads=False).aggregate(_SUMS)
    names = {f"{name}_{what}": name for name, what in _SUMS}
    return grouped.rename_columns([names.get(name, name) for name in grouped.column_names])


def _longest_first(sums: pa.Table, keys: Sequence[str]) -> pa.Table:
    return sums.sort_by([("ps", "descending"), *((name, "ascending") for name in keys)])


def _kernels(ordered: pa.Table, rank: int) -> pa.Table:
    flops = [matrix_flops(*row) for row in rows_of(ordered, "op_type", *KEYS[3:5])]
    return schema.rows(
        schema.KERNELS,
        rank,
        **{name: ordered[name].combine_chunks().dictionary_encode() for name in KEYS},
        **_figures(ordered),
        wait_us=numbers.ps_to_us(ordered["wait_ps"]),
        flops_count=pc.multiply(pa.array(flops, pa.float64()), pc.cast(ordered["n"], pa.float64())),
    )


def _figures(sums: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return calls and times, as both tables of kernels have them."""
    # Means to the ns, as op_statistic.csv states them; of µs, halves would go either way.
    all_ns = pc.divide(pc.cast(sums["ps"], pa.float64(), safe=False), float(numbers.PS_PER_NS))
    mean_ns = pc.round(pc.divide(all_ns, pc.cast(sums["n"], pa.float64())))
    return {
        "n_calls": sums["n"],
        "total_us": pc.round(numbers.ps_to_us(sums["ps"]), _DECIMALS),
        "avg_us": pc.divide(mean_ns, float(numbers.NS_PER_US)),
        "min_us": numbers.ps_to_us(sums["ps_min"]),
        "max_us": numbers.ps_to_us(sums["ps_max"]),
    }


@lru_cache(maxsize=1 << 12)
def matrix_flops(op_type: str, inputs: str, outputs: str) -> float | None:
    """Return the floating-point operations of one multiplication of matrices; None for other kernels.

    2·b·m·n·k: from A (b·m·k elements), B (b·k·n) and the result (b·m·n) follows k, whichever way A and B lie.
    A B that all of the batch share counts once. Source: the definition of the matrix product.
    """
    if not op_type.startswith(_MATRIX_TYPES):
        return None
    shapes = [_shape(one) for one in inputs.split(";")[:2]] + [_shape(outputs.split(";", maxsplit=1)[0])]
    if len(shapes) < 3 or any(one is None for one in shapes):
        return None
    a, b, out = (one or () for one in shapes)
    if len(out) != len(a) or len(a) > 3 or len(a) < 2:
        # Blocked formats (FRACTAL_NZ) are padded: their elements are not those of the matrix.
        return None
    batch = math.prod(out[:-2])
    shared = batch if len(b) == len(out) else 1
    if not math.prod(out):
        return 0.0
    k = math.sqrt(math.prod(a) * math.prod(b) / math.prod(out) / shared)
    return 2.0 * math.prod(out) * k if abs(k - round(k)) < _WHOLE else None


def _shape(text: str) -> tuple[int, ...] | None:
    cells = text.strip().strip('"').split(",")
    if not all(cell.strip().isdecimal() for cell in cells):
        return None
    return tuple(int(cell) for cell in cells)
