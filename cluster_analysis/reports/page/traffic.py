"""Links, groups and collective operators for the page, cut to what a page can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import asdict

from cluster_analysis.reports.page import waiting
from cluster_analysis.reports.page.packing import Array, Picture
from cluster_analysis.result import AnalysisResult

#: A page with more links keeps those that deviate most and those that take most time; the pairs of
#: hosts are always complete.
MAX_LINKS = 120_000


def build_traffic(result: AnalysisResult, max_links: int = MAX_LINKS) -> Picture:
    """Return links by rank and by host, groups by waiting time, and the slowest operators.

    Columns of one prefix (`link.`, `pair.`) are of equal length.
    """
    links, matched = result.table("links"), result.table("matched")
    n_steps = max(1, len(result.document.run.steps))
    header: dict[str, Any] = {
        "transports": [],
        "op_types": [],
        "links_total": 0,
        "hosts": list(result.topology.all_hosts),
        "groups": _groups(result, matched, n_steps),
        "operators": waiting.slowest_operators(matched),
        "chains": {
            finding: [asdict(one) for one in chain]
            for finding, chain in waiting.build_chains(result, matched, n_steps).items()
        },
    }
    columns: dict[str, Array] = {}
    if links.num_rows:
        frame = _link_frame(links, result, header)
        header["links_total"] = links.num_rows
        columns |= {f"pair.{name}": values for name, values in _host_pairs(frame).items()}
        keep = _worst(frame, max_links)
        columns |= {f"link.{name}": values[keep] for name, values in frame.items() if "host" not in name}
    return Picture(header, columns)


def _link_frame(links: pa.Table, result: AnalysisResult, header: dict[str, Any]) -> dict[str, Array]:
    host_number = {host: number for number, host in enumerate(header["hosts"])}
    frame: dict[str, Array] = {}
    for name, source, words in (("transport", "transport", "transports"), ("op", "op_type", "op_types")):
        encoded = links[source].cast(pa.string()).combine_chunks()
        header[words] = sorted({str(word) for word in encoded.unique().to_pylist()})
        numbers = pc.index_in(encoded, value_set=pa.array(header[words], pa.string()))
        frame[name] = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint8)
    for end in ("src", "dst"):
        ranks = links[f"{end}_rank"].fill_null(-1).to_numpy().astype(np.int32)
        frame[end] = ranks
        distinct, positions = np.unique(ranks, return_inverse=True)
        hosts = [host_number.get(result.topology.hosts.get(int(rank), ""), -1) for rank in distinct]  # type: ignore[call-overload]
        frame[f"{end}_host"] = np.asarray(hosts, dtype=np.int32)[positions]
    for name, source in (
        ("size", "size_bytes"),
        ("time", "time_us"),
        ("gbps", "bandwidth_gbps"),
        ("class_gbps", "class_bandwidth_gbps"),
        ("excess", "excess_share"),
    ):
        frame[name] = links[source].to_numpy(zero_copy_only=False).astype(np.float32)
    return frame


def _host_pairs(frame: Mapping[str, Array]) -> dict[str, Array]:
    """Sums over the links of each ordered pair of hosts, transport and kind of operator."""
    keys = np.stack([frame[name].astype(np.int64) for name in ("src_host", "dst_host", "transport", "op")])
    distinct, inverse = np.unique(keys, axis=1, return_inverse=True)
    inverse = inverse.reshape(-1)
    n_pairs = distinct.shape[1]
    sums = {
        name: np.bincount(inverse, np.nan_to_num(frame[name]).astype(np.float64), n_pairs).astype(np.float32)
        for name in ("size", "time")
    }
    excess = np.full(n_pairs, -np.inf)
    np.maximum.at(excess, inverse, np.nan_to_num(frame["excess"], nan=-np.inf))
    return {
        "src": distinct[0].astype(np.int32),
        "dst": distinct[1].astype(np.int32),
        "transport": distinct[2].astype(np.uint8),
        "op": distinct[3].astype(np.uint8),
        **sums,
        "n": np.bincount(inverse, minlength=n_pairs).astype(np.int32),
        "excess": np.where(np.isfinite(excess), excess, np.nan).astype(np.float32),
    }


def _worst(frame: Mapping[str, Array], limit: int) -> Array:
    n_links = len(frame["src"])
    if n_links <= limit:
        return np.arange(n_links)
    deviation = np.argsort(-np.nan_to_num(frame["excess"], nan=-np.inf), kind="stable")[: limit // 2]
    longest = np.argsort(-np.nan_to_num(frame["time"]), kind="stable")[: limit // 2]
    return np.unique(np.concatenate([deviation, longest]))


def _groups(result: AnalysisResult, matched: pa.Table, n_steps: int) -> list[dict[str, Any]]:
    """Groups by the time that their ranks waited; times in µs a rank and step."""
    transfer = pc.multiply(matched["transfer_us"], matched["n_ranks"].cast(pa.float64()))
    by_group = (
        matched.append_column("all_transfer_us", transfer)
        .group_by(["group", "role"], use_threads=False)
        .aggregate([("total_wait_us", "sum"), ("all_transfer_us", "sum"), ("ordinal", "count")])
    )
    last = waiting.last_ranks(waiting.waits_by_rank(matched, n_steps))
    ranks_of = waiting.ranks_of_groups(matched)
    rows = []
    for row in by_group.to_pylist():
        group = result.topology.groups.get(row["group"])
        n_ranks = ranks_of[row["group"]]
        rank, share = last.get(row["group"], (None, 0.0))
        rows.append(
            {
                "group": row["group"],
                "name": group.name if group else "",
                "role": row["role"],
                "ranks": [int(one) for one in group.ranks] if group else [],
                "n_ranks": n_ranks,
                "n_ops": row["ordinal_count"] / n_steps,
                "wait_us": (row["total_wait_us_sum"] or 0.0) / n_ranks / n_steps,
                "transfer_us": (row["all_transfer_us_sum"] or 0.0) / n_ranks / n_steps,
                "last_rank": rank,
                "last_share": share,
            }
        )
    return sorted(rows, key=lambda row: (-row["wait_us"], row["group"]))
