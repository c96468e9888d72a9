"""The outcome of an analysis: the only thing that reports get to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from cluster_analysis.tables.model import Topology
from cluster_run.findings import FindingsDocument
from cluster_run.ids import HostId


@dataclass(frozen=True)
class AnalysisResult:
    """Findings and the tables behind them.

    `tables` has the keys `ranks`, `steps`, `matched`, `rank_times`, `links`, `operators` and `iterations`
    (r1.x only, else empty), with the schemas RANKS, STEPS, MATCHED, RANK_TIMES, LINK_SUMMARY, OPERATORS
    and ITERATIONS of `cluster_analysis.tables.schema`.
    `addresses` is empty unless real host names were asked for.
    """

    document: FindingsDocument
    topology: Topology
    tables: Mapping[str, pa.Table]
    addresses: Mapping[HostId, str] = field(default_factory=dict)
