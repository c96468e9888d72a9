"""The columns of trace_view.json → the figures that a host made of it, or why it made none."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cluster_analysis.sources.columns.columns import damaged
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.errors import BadFileError, Remark, tell_left_out
from cluster_analysis.tables.schema import Counter
from cluster_run.facts import fact

_METRICS = frozenset(
    ("data_loader_us", "dispatch_delay_us", "dispatched_late_share", "head_copy_us", "idle_us")
)


def read_timeline_columns(path: Path, remark: Remark) -> list[Counter]:
    """Return what the host did, and its time in the data loader; `path` is that of the timeline itself.

    Raises:
        BadFileError: its host could not read it, or the columns are damaged.
    """
    file = ColumnsFile(columns_of(path) or path, "timeline")
    why, n_bad = file.texts("why").to_pylist(), file.ints("n_bad").tolist()
    metrics, labels = file.texts("metric").to_pylist(), file.texts("label").to_pylist()
    values = file.floats("value")
    is_sound = (
        len(why) == len(n_bad) == 1
        and len(metrics) == len(labels) == len(values)
        and _METRICS.issuperset(metrics)
        and None not in labels
        and bool(np.isfinite(values).all())
    )
    if not is_sound:
        raise damaged("figures of a timeline")
    if why[0]:
        raise BadFileError(fact("not_read_on_host", detail=why[0][:200]))
    tell_left_out(remark, n_bad[0], "event", "no_time")
    return list(zip(metrics, labels, values.tolist(), strict=True))
