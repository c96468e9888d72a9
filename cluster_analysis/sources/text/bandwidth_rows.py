"""CommAnalyzerBandwidth row by row, for outputs that hand its packet sizes on; ms, MB and GB/s."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db.sqlite import open_database
from cluster_analysis.sources.errors import Remark

_TABLE = "CommAnalyzerBandwidth"
_COLUMNS = (
    "hccl_op_name",
    "group_name",
    "transport_type",
    "transit_size",
    "transit_time",
    "bandwidth",
    "large_packet_ratio",
    "package_size",
    "count",
    "total_duration",
)

#: Step, then the columns above.
BandwidthRow = tuple[int, str, str, str, float, float, float, float, float, int, float]


def bandwidth_rows(path: Path, remark: Remark) -> Iterator[BandwidthRow]:
    """Yield the rows whose step is known, in the order of the table; none where the table lacks the step.

    Raises:
        BadFileError: the database cannot be read.
    """
    with open_database(path, remark) as database:
        if not database.has(_TABLE, "step", *_COLUMNS):
            return
        query = f"SELECT step, {', '.join(_COLUMNS)} FROM {_TABLE} ORDER BY rowid"  # noqa: S608 - our names
        for row in database.iterate(query):
            step = numbers.parse_step(str(row[0]))
            if step is None or str(row[1]).startswith("Total"):
                continue
            name, group, transport = (str(value or "") for value in row[1:4])
            size, time, bandwidth, ratio, packet = (_number(value) for value in row[4:9])
            count, total = int(_number(row[9])), _number(row[10])
            yield step, name, group, transport, size, time, bandwidth, ratio, packet, count, total


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
