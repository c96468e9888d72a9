"""The tables of a result, which `tables/*.parquet` and `Run.frame` have: each name and its schema."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from cluster_analysis.tables import described, schema
from cluster_analysis.tables.fused import COMPUTING_APART

WRITTEN: Mapping[str, pa.Schema] = {
    "ranks": schema.RANKS,
    "steps": schema.STEPS,
    "matched": schema.MATCHED,
    "rank_times": schema.RANK_TIMES,
    "links": schema.LINK_SUMMARY,
    "operators": schema.OPERATORS,
    "computing_apart": COMPUTING_APART,
    "iterations": schema.ITERATIONS,
    "packets": schema.PACKETS,
    **schema.FIGURES,
    "lanes": described.LANES,
    "critical_path": described.CRITICAL_PATH,
    "waits": described.WAITS,
    "communication": described.COMMUNICATION,
    "kernel_spread": described.KERNEL_SPREAD,
    "figures_between_ranks": described.FIGURES_BETWEEN_RANKS,
    "flops": described.FLOPS,
    "memory_peaks": described.MEMORY_PEAKS,
    "stages": described.STAGES,
    "devices": described.DEVICES,
    "groups": described.GROUPS,
    "packet_sizes": described.PACKET_SIZES,
    "host_times": described.HOST_TIMES,
    "relative_to_peers": described.RELATIVE_TO_PEERS,
    "advice": described.ADVICE,
}
