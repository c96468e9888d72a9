"""The columns of hccl_raw_*.csv → its lines, with the JSON of their cells read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.errors import BadFileError
from cluster_run.facts import fact

_TEXTS = ("step_num", "communication_cost", "wait_cost")
_Links = dict[str, dict[str, list[float]]]


def hccl_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines that are no means: bandwidths are left out of their links.

    Raises:
        BadFileError: the columns are damaged.
    """
    file = ColumnsFile(path, "r1_hccl")
    texts = [file.texts(name).to_pylist() for name in _TEXTS]
    counts = [file.ints(name) for name in ("n_operators", "n_links")]
    operators = file.names("operator").texts().to_pylist()
    links = [file.texts("ends").to_pylist(), file.texts("transport").to_pylist()]
    links += [file.floats(name).tolist() for name in ("time_ms", "size_kb")]
    n_lines, n_links = len(texts[0]), len(links[0])
    whole = (
        [(len(one), n_lines) for one in (*texts, counts[0])]
        + [(len(one), n_links) for one in links]
        + [
            (len(operators), n_lines + _total(counts[0])),
            (len(counts[1]), len(operators)),
            (_total(counts[1]), n_links),
        ]
    )
    if any(one != other for one, other in whole):
        raise BadFileError(fact("not_of_form", detail="columns: links of no operator"))
    figures = zip(*links, strict=True)
    entries = zip(operators, (_links(figures, n) for n in counts[1].tolist()), strict=True)
    for *cells, n_operators in zip(*texts, counts[0].tolist(), strict=True):
        _, own = next(entries)
        found: dict[str, Any] = dict(zip(_TEXTS, cells, strict=True))
        found["link_info"] = own
        found["communication_operator_cost"] = {name: [one] for name, one in islice(entries, n_operators)}
        yield found


def _links(figures: Iterator[tuple[str, str, float, float]], n_links: int) -> _Links:
    links: _Links = {}
    for ends, transport, time_ms, size_kb in islice(figures, n_links):
        links.setdefault(ends, {})[transport] = [time_ms, size_kb]
    return links


def _total(counts: Any) -> int:
    return -1 if len(counts) and int(np.min(counts)) < 0 else int(counts.sum())
