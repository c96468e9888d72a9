"""CommAnalyzerBandwidth as rows, for outputs that hand its packet sizes on; ms, MB and GB/s."""

from __future__ import annotations

from itertools import compress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db.cells import Cells, as_list, each
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


def bandwidth_rows(path: Path, remark: Remark) -> list[BandwidthRow]:
    """Return the rows whose step is known, in the order of the table; none where the table lacks the step.

    Raises:
        BadFileError: the database cannot be read.
    """
    with open_database(path, remark) as database:
        if not database.has(_TABLE, "step", *_COLUMNS):
            return []
        texts = database.cells(_TABLE, "step", *_COLUMNS[:3])
        figures = database.cells(_TABLE, *_COLUMNS[3:], are_floats=True)
    steps = each(texts[0], lambda value: numbers.parse_step(str(value)))
    is_single = each(texts[1], lambda value: not str(value).startswith("Total"))
    size, time, bandwidth, ratio, packet, count, total = map(_floats, figures)
    rows = zip(
        steps,
        *(each(one, lambda value: str(value or "")) for one in texts[1:]),
        *(size, time, bandwidth, ratio, packet, map(int, count), total),
        strict=True,
    )
    is_wanted = [step is not None and single for step, single in zip(steps, is_single, strict=True)]
    return list(compress(rows, is_wanted))


def _floats(cells: Cells) -> list[float]:
    if isinstance(cells, list) or not pa.types.is_float64(cells.type):
        return [float(value) if isinstance(value, (int, float)) else 0.0 for value in as_list(cells)]
    found: list[float] = pc.fill_null(cells, 0.0).to_numpy().tolist()
    return found
