"""All tables that describe the job, made of those that were read."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from cluster_analysis.describe import places, spreads
from cluster_analysis.describe.relative_to_peers import relative_to_peers
from cluster_analysis.describe.rules import advice
from cluster_analysis.tables.model import Topology


def described(tables: Mapping[str, pa.Table], topology: Topology) -> dict[str, pa.Table]:
    """Return the tables of `tables.columns_described` by name.

    Args:
        tables: `steps`, `matched`, `packets` and those of `schema.FIGURES`.
        topology: the ranks' stages.
    """
    made = {
        "communication": spreads.by_group_and_type(tables["matched"]),
        "kernel_spread": spreads.between_ranks(tables["kernels"], topology),
        "figures_between_ranks": places.figures_between_ranks(tables["counters"]),
        "flops": places.flops_of_ranks(tables["kernels"], tables["counters"]),
        "memory_peaks": places.memory_peaks(tables["memory"], tables["counters"], topology),
        "stages": places.by_stage(tables["steps"], topology),
        "relative_to_peers": relative_to_peers(tables, topology),
    }
    made |= {
        "devices": places.devices({**tables, **made}, topology),
        "groups": places.groups(topology),
        "packet_sizes": places.packet_sizes(tables["packets"]),
        "host_times": places.host_times(tables["counters"]),
    }
    return {**made, "advice": advice({**tables, **made})}
