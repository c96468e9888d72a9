"""communication_matrix.json → columns: one row a link."""

from __future__ import annotations

import re
from typing import Any

from cluster_reduce.form import UnfitError, Writer
from cluster_reduce.levels import levels
from cluster_reduce.strict_json import float_of, object_of, text_of

_ENDS = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")


def reduce_matrix(content: bytes) -> bytes:
    """Return the columns.

    Raises:
        UnfitError: anything in the file is not as usual.
    """
    steps: list[int] = []
    counts: list[int] = []
    are_p2p: list[int] = []
    keys: list[str] = []
    links: list[dict[str, Any]] = []
    sources: list[int] = []
    destinations: list[int] = []
    for step, is_p2p, operators in levels(content):
        n_before = len(keys)
        for key, pairs in operators.items():
            for ends, link in pairs.items():
                match = _ENDS.fullmatch(ends)
                if match is None:
                    raise UnfitError("a link without two ends")
                keys.append(key)
                sources.append(int(match.group(1)))
                destinations.append(int(match.group(2)))
                links.append(object_of(link))
        steps.append(step)
        are_p2p.append(int(is_p2p))
        counts.append(len(keys) - n_before)
    writer = Writer("matrix", len(content))
    writer.ints("step", steps)
    writer.ints("is_p2p", are_p2p)
    writer.ints("n_links", counts)
    writer.names("key", keys)
    writer.ints("src_local", sources)
    writer.ints("dst_local", destinations)
    writer.texts("transport", [text_of(link.get("Transport Type")) for link in links])
    # PyTorch and MindSpore spell it in two ways.
    writer.names(
        "op_name", [text_of(link.get("Op Name")) or text_of(link.get("op_name")) or "" for link in links]
    )
    writer.floats("size_mb", [float_of(link.get("Transit Size(MB)")) for link in links])
    writer.floats("time_ms", [float_of(link.get("Transit Time(ms)")) for link in links])
    return writer.content()
