"""Packet sizes, summed over the operators of a group: the same from every form of a capture."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

import pyarrow as pa

from cluster_analysis import schema
from cluster_analysis.sources import numbers

TRANSPORTS = ("HCCS", "RDMA", "PCIE", "SIO")


class PacketSums:
    """Counts and times of packets by step, group, transport and size in MB, as text."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[int, str], dict[tuple[str, str], list[tuple[float, float]]]] = {}

    def add(
        self, step: int, transport: str, operators: Iterable[tuple[str, Mapping[str, tuple[float, float]]]]
    ) -> None:
        """Add the packets `{MB: (count, ms)}` of operators named `name@group`; no group without the `@`."""
        pairs = self._pairs.setdefault((step, transport), defaultdict(list))
        for key, packets in operators:
            if not packets:
                continue
            begin = key.rfind("@") + 1
            group = key[begin:] if begin else ""
            for size, pair in packets.items():
                pairs[group, size].append(pair)

    def table(self, rank: int) -> pa.Table:
        """Return PACKETS, in order. The sums are exact, so the order of adding makes no difference."""
        merged: dict[tuple[int, str, str, float], list[tuple[float, float]]] = {}
        texts = sorted({size for of_step in self._pairs.values() for _, size in of_step})
        sizes = dict(zip(texts, numbers.to_float64(pa.array(texts, pa.string()))[0].to_pylist(), strict=True))
        for (step, transport), of_step in self._pairs.items():
            for (group, text), pairs in of_step.items():
                size = sizes[text]
                if size is not None:
                    merged.setdefault((step, group, transport, size), []).extend(pairs)
        rows = [
            (*key, math.fsum([pair[0] for pair in pairs]), math.fsum([pair[1] for pair in pairs]))
            for key, pairs in sorted(merged.items(), key=lambda item: item[0])
        ]
        columns = {
            "rank": numbers.constant(rank, len(rows), pa.int32()),
            "step": pa.array([row[0] for row in rows], pa.int64()),
            "group": numbers.encoded([row[1] for row in rows]),
            "transport": numbers.encoded([row[2] for row in rows]),
            "packet_bytes": pa.array([row[3] * numbers.BYTES_PER_MB for row in rows], pa.float64()),
            "n_packets": pa.array([round(row[4]) for row in rows], pa.int64()),
            "total_us": pa.array([row[5] * numbers.US_PER_MS for row in rows], pa.float64()),
        }
        return pa.table(columns, schema=schema.PACKETS)
