"""Evidence of a step on the network: links with both ends known as global ranks, else what each rank sent."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import codes, numbers
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.operations import record_of
from cluster_analysis.tables.schema import LINKS, NAMELESS, SENT, TRANSPORTS


def usable_links(links: pa.Table, topology: Topology) -> pa.Table:
    """Rows with two different known ends, a size and a time; group-local ends are made global."""
    if not links.num_rows:
        return links
    source, target = (links[name].to_numpy(zero_copy_only=False) for name in ("src_rank", "dst_rank"))
    source, target = np.asarray(source, np.float64).copy(), np.asarray(target, np.float64).copy()
    unknown = np.flatnonzero(np.isnan(source) | np.isnan(target))
    if len(unknown):
        rows = links.select(["group", "src_local", "dst_local"]).take(pa.array(unknown)).to_pylist()
        for here, row in zip(unknown.tolist(), rows, strict=True):
            group = topology.groups.get(row["group"] or "")
            ends = (row["src_local"], row["dst_local"])
            if group is None or any(end is None or not 0 <= end < len(group.ranks) for end in ends):
                continue
            source[here], target[here] = (group.ranks[end] for end in ends)
    size, time = numbers(links["size_bytes"]), numbers(links["time_us"])
    usable = np.isfinite(source) & np.isfinite(target) & (source != target) & (size > 0) & (time > 0)
    kept = pa.array(np.flatnonzero(usable))
    table = links.take(kept)
    for name, values in (("src_rank", source), ("dst_rank", target)):
        column = pa.array(values[usable].astype(np.int32), pa.int32())
        table = table.set_column(LINKS.get_field_index(name), LINKS.field(name), column)
    return table


def sent_by_ranks(collectives: pa.Table, links: pa.Table) -> pa.Table:
    """Return SENT of the COLLECTIVES rows of a step; nothing if LINKS rows show single links.

    Both ends record a message, so that it needs no row here.
    """
    if links.num_rows:
        return SENT.empty_table()
    kinds, kind = codes(collectives["op_type"])
    is_collective = ~np.array([record_of(name).is_message for name in kinds], bool)[kind]
    payload = numbers(collectives["payload_bytes"])
    parts = []
    for transport in TRANSPORTS:
        size, time = (numbers(collectives[f"{transport.lower()}_{unit}"]) for unit in ("bytes", "us"))
        moved = np.flatnonzero(is_collective & (size > 0) & (time > 0))
        if len(moved):
            rows = collectives.select(["step", "rank", "group", "op_type"]).take(pa.array(moved))
            # Links without an entry of their own: see COLLECTIVES.
            is_nameless = (transport == "HCCS") & np.isfinite(payload[moved])
            carrier = pa.DictionaryArray.from_arrays(
                pa.array(is_nameless.astype(np.int32)), pa.array([transport, NAMELESS])
            )
            columns = (*rows.columns, carrier, pa.array(size[moved]), pa.array(time[moved]))
            parts.append(pa.table(dict(zip(SENT.names, columns, strict=True)), schema=SENT))
    return pa.concat_tables(parts) if parts else SENT.empty_table()
