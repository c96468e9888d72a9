"""Links of single operators made into what MindSpore's communication_matrix.json holds: samples and totals.

Its database names every operator; the text form of the same job has, for each kind of operator and link,
the fastest (`top1`), the one in the middle, the slowest ones (`bottom1` to `bottom3`) and the sum. Both
forms of a job must give one table, so the samples are drawn here as MindSpore draws them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.link_names import OPERATOR_VARIANT
from cluster_analysis.tables import schema

#: Rows that agree in these are one kind of operator on one link.
_KEYS = ("step", "group", "is_p2p", "op_type", "src_local", "dst_local", "transport")
#: Files state decimals; a sum of floats is brought back to them.
_DECIMALS = 9

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


def sampled_links(links: pa.Table) -> pa.Table:
    """Return LINKS with samples and totals in the place of the rows that are single operators.

    A link with fewer than three operators repeats one. A total is null where a part of it is.
    """
    is_operator = pc.equal(links["variant"].cast(pa.string()), OPERATOR_VARIANT)
    operators = links.filter(is_operator).combine_chunks()
    if not operators.num_rows:
        return links
    link = _link_numbers(operators)
    size, time = (operators[name].to_numpy(zero_copy_only=False) for name in ("size_bytes", "time_us"))
    with np.errstate(divide="ignore", invalid="ignore"):
        bandwidth = np.where(time > 0, size / time, 0.0)
    order = np.lexsort((-bandwidth, link))
    begin = np.flatnonzero(np.diff(link[order], prepend=-1))
    count = np.diff(begin, append=len(order))
    samples = [
        schema.with_columns(operators.take(pa.array(order[rows])), variant=_repeated(variant, len(rows)))
        for variant, rows in _draws(begin, count)
    ]
    totals = schema.with_columns(
        operators.take(pa.array(order[begin])),
        variant=_repeated("total", len(begin)),
        op_name=pa.nulls(len(begin), pa.string()),
        size_bytes=_sums(size[order], begin, numbers.BYTES_PER_MB),
        time_us=_sums(time[order], begin, numbers.US_PER_MS),
    )
    rest = links.filter(pc.invert(is_operator))
    return schema.one_behind_the_other([rest, *samples, totals])


def _link_numbers(operators: pa.Table) -> _Ints:
    """Return for each row which kind of operator on which link it is, as a number."""
    number = np.zeros(operators.num_rows, dtype=np.int64)
    for name in _KEYS:
        values = pc.dictionary_encode(operators[name].combine_chunks(), null_encoding="encode")
        _, number = np.unique(
            number * (len(values.dictionary) + 1) + values.indices.to_numpy(), return_inverse=True
        )
    return number


def _draws(begin: _Ints, count: _Ints) -> Iterator[tuple[str, _Ints]]:
    """Yield each variant with its rows; a link's rows lie together from `begin` on, fastest first."""
    yield "top1", begin
    yield "middle", begin + count // 2
    for nth in (1, 2, 3):
        yield f"bottom{nth}", begin + np.maximum(count - nth, 0)


def _sums(values: _Floats, begin: _Ints, unit: float) -> pa.Array:
    """Return the sums from each `begin` to the next, as decimals of the file's unit; NaN becomes null."""
    sums = np.round(np.add.reduceat(values, begin) / unit, _DECIMALS)
    return pa.array(sums * unit, from_pandas=True)


def _repeated(variant: str, n: int) -> pa.Array:
    return pa.array([variant] * n, pa.string()).dictionary_encode()
