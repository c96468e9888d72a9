"""Content of cluster_communication_matrix.json: the links of each operation between global ranks.

A link's numbers are those of the rank that reported it; where several did, sizes and times are added,
as other tools do. In `Total Op Info` a transfer that both its sender and its receiver report counts
once, where other tools count it twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.engine.joined import canonical
from cluster_analysis.engine.step_files import StepFiles, StepTables
from cluster_analysis.insight.naming import TOTAL, safe
from cluster_analysis.insight.totals import ratios
from cluster_analysis.sources.numbers import BYTES_PER_MB, US_PER_MS
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import LINKS, PEER_VARIANT, one_behind_the_other
from cluster_analysis.topology.build import map_links
from cluster_run.ids import Step

#: The best link first, as the profilers write them; Insight lists what it finds in this order.
_VARIANTS = ("top1", "middle", "bottom1", "bottom2", "bottom3", "total", "op")
#: Variants that hold each transfer once: the others are samples out of them.
_WHOLE_VARIANTS = ("total", "op")

#: One row a step, group, label and link, in the order of the output.
#: `label` is `allreduce-top1`, an operator's name in older files, or `Total Op Info`.
MATRIX = pa.schema(
    [
        ("step", pa.int64()),
        ("group", pa.dictionary(pa.int32(), pa.string())),
        ("label", pa.string()),
        ("place", pa.int32()),
        ("src_rank", pa.int32()),
        ("dst_rank", pa.int32()),
        ("transport", pa.string()),
        ("op_name", pa.string()),
        ("size_mb", pa.float64()),
        ("time_ms", pa.float64()),
        ("bandwidth_gbps", pa.float64()),
    ]
)


def of_all_steps(tables: Sequence[pa.Table]) -> pa.Table:
    """Return MATRIX of all steps, from that of each."""
    return one_behind_the_other([MATRIX.empty_table(), *tables])


def matrix_of_step(step: Step, topology: Topology, parts: Sequence[StepTables | StepFiles]) -> pa.Table:
    """Return MATRIX of one step, without links whose ends are not both known: the reduction reports those."""
    links, _ = map_links(canonical([part.load().links for part in parts], LINKS), topology)
    is_measured = pc.not_equal(links["variant"].cast(pa.string()), PEER_VARIANT)
    has_ends = pc.and_(pc.is_valid(links["src_rank"]), pc.is_valid(links["dst_rank"]))
    links = links.filter(pc.and_(is_measured, has_ends))
    if not links.num_rows:
        return MATRIX.empty_table()
    labels, places = _labels(links)
    labelled = _plain(links, labels, places)
    whole = links.filter(_counts_once(links))
    in_total = _plain(
        whole,
        pa.repeat(pa.scalar(TOTAL), whole.num_rows),
        pa.array(np.full(whole.num_rows, np.iinfo(np.int32).max, np.int32)),
        with_names=False,
    )
    rows = pa.concat_tables([_summed(labelled), _summed(in_total)])
    rows = rows.sort_by([(name, "ascending") for name in ("group", "place", "label", "src_rank", "dst_rank")])
    columns = {
        name: rows[name] for name in ("label", "place", "src_rank", "dst_rank", "transport", "op_name")
    }
    size, time = rows["size_mb_sum"], rows["time_ms_sum"]
    return pa.table(
        {
            "step": pa.repeat(pa.scalar(int(step), pa.int64()), rows.num_rows),
            "group": rows["group"].combine_chunks().dictionary_encode(),
            **columns,
            "size_mb": size,
            "time_ms": time,
            "bandwidth_gbps": pa.array(ratios(size.to_numpy(), time.to_numpy())),
        },
        schema=MATRIX,
    )


def _labels(links: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return each row's label and where labels stand among those of their group."""
    kinds, variants = (links[name].cast(pa.string()) for name in ("op_type", "variant"))
    is_op = pc.equal(variants, "op")
    labels = pc.if_else(
        is_op, pc.coalesce(links["op_name"], kinds), pc.binary_join_element_wise(kinds, variants, "-")
    )
    variant_place = pc.index_in(variants, value_set=pa.array(_VARIANTS))
    variant_place = pc.fill_null(variant_place, len(_VARIANTS))
    distinct = pa.array(sorted(kinds.unique().to_pylist()), pa.string())
    kind_place = pc.index_in(kinds, value_set=distinct)
    places = pc.add(pc.multiply(kind_place, pa.scalar(len(_VARIANTS) + 1, pa.int32())), variant_place)
    return _renamed(labels), places.cast(pa.int32())


def _renamed(names: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return names that Insight takes; only distinct ones are looked at."""
    whole = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    encoded = whole.dictionary_encode()
    values = [safe(name) for name in encoded.dictionary.to_pylist()]
    return pa.array(values, pa.string()).take(encoded.indices)


def _counts_once(links: pa.Table) -> pa.Array:
    """Return which rows make up the total: no samples, and no receive whose send is there too."""
    variants, kinds = links["variant"].cast(pa.string()), links["op_type"].cast(pa.string())
    link_of = pc.binary_join_element_wise(
        links["group"].cast(pa.string()),
        links["src_rank"].cast(pa.string()),
        links["dst_rank"].cast(pa.string()),
        "-",
    )
    sent = link_of.filter(pc.equal(kinds, "send")).combine_chunks()
    is_repeated = pc.and_(pc.equal(kinds, "receive"), pc.is_in(link_of, value_set=sent))
    return pc.and_(pc.is_in(variants, value_set=pa.array(_WHOLE_VARIANTS)), pc.invert(is_repeated))


def _plain(links: pa.Table, labels: pa.Array, places: pa.Array, *, with_names: bool = True) -> pa.Table:
    op_names = pc.fill_null(links["op_name"], "") if with_names else pa.repeat(pa.scalar(""), links.num_rows)
    return pa.table(
        {
            "group": links["group"].cast(pa.string()),
            "label": labels,
            "place": places,
            "src_rank": links["src_rank"],
            "dst_rank": links["dst_rank"],
            "transport": pc.fill_null(links["transport"].cast(pa.string()), ""),
            "op_name": _renamed(op_names),
            "size_mb": pc.divide(pc.fill_null(links["size_bytes"], 0.0), BYTES_PER_MB),
            "time_ms": pc.divide(pc.fill_null(links["time_us"], 0.0), US_PER_MS),
        }
    )


def _summed(links: pa.Table) -> pa.Table:
    # One thread: "first" is the lowest rank's, and the order of a sum decides its last digit.
    summed = links.group_by(["group", "label", "place", "src_rank", "dst_rank"], use_threads=False).aggregate(
        [("transport", "first"), ("op_name", "first"), ("size_mb", "sum"), ("time_ms", "sum")]
    )
    return summed.rename_columns(
        [
            {"transport_first": "transport", "op_name_first": "op_name"}.get(name, name)
            for name in summed.column_names
        ]
    )
