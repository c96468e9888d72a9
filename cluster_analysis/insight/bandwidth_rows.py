"""CommAnalyzerBandwidth as rows, for outputs that hand its packet sizes on; ms, MB and GB/s."""

from __future__ import annotations

from itertools import compress
from pathlib import Path

import numpy as np

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db.cells import each
from cluster_analysis.sources.db.sqlite import open_database
from cluster_analysis.sources.errors import Remark

_TABLE = "CommAnalyzerBandwidth"
_TEXTS = ("hccl_op_name", "group_name", "transport_type")
_FIGURES = (
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
        if not database.has(_TABLE, "step", *_TEXTS, *_FIGURES):
            return []
        texts = database.texts(_TABLE, "step", *_TEXTS)
        figures = database.numbers(_TABLE, *_FIGURES)
    steps = each(texts["step"], lambda value: numbers.parse_step(str(value)))
    is_single = each(texts["hccl_op_name"], lambda value: not str(value).startswith("Total"))
    known = {name: np.where(np.isfinite(figures[name]), figures[name], 0.0).tolist() for name in _FIGURES}
    rows = zip(
        steps,
        *(each(texts[name], lambda value: value or "") for name in _TEXTS),
        *(map(int, values) if name == "count" else values for name, values in known.items()),
        strict=True,
    )
    is_wanted = [step is not None and single for step, single in zip(steps, is_single, strict=True)]
    return list(compress(rows, is_wanted))
