"""CommAnalyzerMatrix of analysis.db and communication_analyzer.db: links, in MB and ms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.sources import measured, numbers
from cluster_analysis.sources.db import cells
from cluster_analysis.sources.db.analysis_db import TIME, is_p2p, steps_by_start
from cluster_analysis.sources.db.sqlite import StepTime, open_database
from cluster_analysis.sources.errors import Remark, tell_left_out
from cluster_analysis.sources.link_names import OPERATOR_VARIANT, LinkNames, links_table
from cluster_analysis.tables import schema

MATRIX = "CommAnalyzerMatrix"
_OPERATOR = ("hccl_op_name", "group_name")
_NAMES = (*_OPERATOR, "src_rank", "dst_rank", "transport_type")
_FIGURES = ("transit_size", "transit_time")
#: Columns that MindSpore's tables lack.
_MORE = ("step", "type", "op_name")


def read_db_matrix(
    path: Path, rank: int, remark: Remark, times: Sequence[StepTime] = (), is_mindspore: bool = False
) -> pa.Table | None:
    """Return LINKS of the database, None where it has no matrix (level 0); `times` as above.

    MindSpore's links of single operators become the samples and totals that its text form has; the text
    form of PROF_* has single operators too.
    """
    with open_database(path, remark) as database:
        if not database.offers(remark, MATRIX, *_NAMES, *_FIGURES):
            return None
        texts, figures = database.texts(MATRIX, *_NAMES, *_MORE), database.numbers(MATRIX, *_FIGURES)
        step_of = None if database.has(MATRIX, "step") else steps_by_start(database, times)
        known = cells.rows_of(database.texts(TIME, *_OPERATOR).values()) if step_of is not None else ()
    if step_of is not None:
        rows = cells.rows_of(texts[name] for name in _OPERATOR)
        tell_left_out(remark, len(set(rows).difference(known)), "name", "of_no_operator")
        steps = list(map(step_of.get, rows))
        is_in = np.array([step is not None for step in steps], bool)
        chosen = {**texts, "step": cells.as_texts(steps)}.items()
        texts = {name: column.filter(pa.array(is_in)) for name, column in chosen}
        figures = {name: column[is_in] for name, column in figures.items()}
    table = _table(texts, figures, rank, remark)
    return sampled_links(table) if is_mindspore else table


def _table(
    texts: Mapping[str, pa.DictionaryArray], figures: Mapping[str, FloatArray], rank: int, remark: Remark
) -> pa.Table:
    n = len(texts["hccl_op_name"])
    if not n:
        return schema.LINKS.empty_table()
    texts = {**dict.fromkeys(_MORE, cells.nothing(n)), **texts}
    keys = _keys(texts["hccl_op_name"], texts["group_name"])
    sizes, link_times = (cells.floats(figures[name], remark, are_needed=True) for name in _FIGURES)
    table = links_table(
        rank,
        LinkNames.of_one_file(keys, cells.filled(texts["op_name"])),
        is_p2p(texts["type"]),
        step=cells.steps(texts["step"], remark),
        src_local=cells.link_ends(texts["src_rank"], remark),
        dst_local=cells.link_ends(texts["dst_rank"], remark),
        transport=texts["transport_type"],
        size_bytes=pc.multiply(sizes, numbers.BYTES_PER_MB),
        time_us=pc.multiply(link_times, numbers.US_PER_MS),
    )
    return measured.sound_links(cells.with_step(table), remark)


def _keys(op_keys: pa.DictionaryArray, group_keys: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the `name@group` of each link, of which there are few."""
    both = [cells.filled(one, "None") for one in (op_keys, group_keys)]
    operators, groups = (one.indices.to_numpy().astype(np.int64) for one in both)
    codes = operators * len(both[1].dictionary) + groups
    _, first, places = np.unique(codes, return_index=True, return_inverse=True)
    pairs = zip(*(one.take(pa.array(first)).to_pylist() for one in both), strict=True)
    return pa.DictionaryArray.from_arrays(pa.array(places), ["@".join(pair) for pair in pairs])


#: Rows that agree in these are one kind of operator on one link.
_KEYS = ("step", "group", "is_p2p", "op_type", "src_local", "dst_local", "transport")
#: Files state decimals; a sum of floats is brought back to them.
_DECIMALS = 9


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


def _link_numbers(operators: pa.Table) -> IntArray:
    """Return for each row which kind of operator on which link it is, as a number."""
    number = np.zeros(operators.num_rows, dtype=np.int64)
    for name in _KEYS:
        values = pc.dictionary_encode(operators[name].combine_chunks())
        n = len(values.dictionary)
        codes = pc.fill_null(values.indices, n).to_numpy()
        _, number = np.unique(number * (n + 1) + codes, return_inverse=True)
    return number


def _draws(begin: IntArray, count: IntArray) -> Iterator[tuple[str, IntArray]]:
    """Yield each variant with its rows; a link's rows lie together from `begin` on, fastest first."""
    yield "top1", begin
    yield "middle", begin + count // 2
    for nth in (1, 2, 3):
        yield f"bottom{nth}", begin + np.maximum(count - nth, 0)


def _sums(values: FloatArray, begin: IntArray, unit: float) -> pa.Array:
    """Return the sums from each `begin` to the next, as decimals of the file's unit; NaN becomes null."""
    sums = np.round(np.add.reduceat(values, begin) / unit, _DECIMALS)
    return pa.array(sums * unit, from_pandas=True)


def _repeated(variant: str, n: int) -> pa.Array:
    return pa.array([variant] * n, pa.string()).dictionary_encode()
