"""Calls whose ends are paired, as reducing a step pairs them."""

from __future__ import annotations

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.pairing.ends import Ends, ends_of, programs_of
from cluster_analysis.trace.pairing.hints import Stated


def paired_ends(
    calls: Calls, offset_us: FloatArray, topology: Topology, stated: Stated | None = None
) -> Ends:
    return ends_of(programs_of(calls, offset_us, topology, stated), calls, topology)
