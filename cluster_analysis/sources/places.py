"""What a rank's operators and its links carried in each step and group: two files say it, and agree."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray, has_text, numbers
from cluster_analysis.sources.link_names import OPERATOR_VARIANT
from cluster_analysis.sources.measured import MEASURED_LINKS
from cluster_analysis.sources.names import is_group
from cluster_analysis.tables.hccl_names import OWN_GROUP_PREFIX
from cluster_analysis.tables.schema import TRANSPORT_BYTES, TRANSPORT_TIMES, rows_of

#: A step, and a group with operators or links in it; "" where none is named.
Place = tuple[int | None, str]


class Carried(NamedTuple):
    """What was carried at a place, and how long that took; NaN is unknown. `moved_bytes` may be payload."""

    moved_bytes: float
    size_bytes: float
    time_us: float


Places = Mapping[Place, Carried]


def operators_in(collectives: pa.Table) -> Mapping[int, Places]:
    """Return what operators carried in each step and group, by rank."""
    size, time_us = (_sum_of(collectives, names) for names in (TRANSPORT_BYTES, TRANSPORT_TIMES))
    moved = np.where(np.isnan(size), numbers(collectives["payload_bytes"]), size)
    return _places_in(collectives, moved, size, time_us)


def links_in(links: pa.Table) -> Mapping[int, Places]:
    """Return what links carried, by rank: those of samples are in no sum, copies on a device are not sent."""
    counts = np.where(has_text(links["transport"], "LOCAL"), 0.0, 1.0)
    counts[~has_text(links["variant"], "total", OPERATOR_VARIANT)] = np.nan
    size, time_us = (numbers(links[name]) * counts for name in MEASURED_LINKS)
    return _places_in(links, size, size, time_us)


def _sum_of(table: pa.Table, names: Sequence[str]) -> FloatArray:
    """Return the sum of columns (N,), NaN where none is known."""
    known = np.array([numbers(table[name]) for name in names])
    return np.where(np.isnan(known).all(0), np.nan, np.nansum(known, 0))


def _places_in(table: pa.Table, *figures: FloatArray) -> Mapping[int, Places]:
    """Return the steps and groups for which a table has rows, and the sums of `Carried` there, by rank."""
    found: dict[int, dict[Place, Carried]] = defaultdict(dict)
    keys, names = ("rank", "step", "group"), Carried._fields
    given = [pa.array(one, from_pandas=True) for one in figures]
    rows = pa.table([*table.select(keys).columns, *given], [*keys, *names])
    sums = rows.group_by(list(keys), use_threads=False).aggregate([(name, "sum") for name in names])
    for rank, step, group, *own in rows_of(sums, *keys, *(f"{name}_sum" for name in names)):
        is_named = is_group(group or "") and not group.startswith(OWN_GROUP_PREFIX)
        place = (step, group if is_named else "")
        known = [float("nan") if one is None else one for one in own]
        before = found[rank].get(place, (0.0, 0.0, 0.0))
        found[rank][place] = Carried(*map(operator.add, before, known))
    return found
