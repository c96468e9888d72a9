"""The JSON of each operator as it stands in the file, for outputs that hand it on unchanged.

One step is taken apart at a time; what is yielded is a copy, so the file's buffer can go. Totals are
skipped. A file without steps (PROF_*) yields its operators under `step`, with the level of their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa

from cluster_analysis.sources import names
from cluster_analysis.sources.json_text import decode, read_bytes

TOTAL_PREFIX = "Total"
#: What PyTorch calls the one step of a capture without steps.
NO_STEP = "step"
_LEVELS = ("p2p", "collective")

_Objects = dict[str, msgspec.Raw]
_OBJECTS: msgspec.json.Decoder[_Objects] = msgspec.json.Decoder(_Objects)
_NESTED: msgspec.json.Decoder[dict[str, _Objects]] = msgspec.json.Decoder(dict[str, _Objects])


def iter_raw_ops(path: Path) -> Iterator[tuple[str, str, str, bytes]]:
    """Yield `(step_key, kind, op_key, raw)` of communication.json in the file's order.

    `step_key` is the file's (`step13`), `kind` `p2p` or `collective`, `op_key` `name@group`, `raw` the JSON
    of the operator.

    Raises:
        BadFileError: the file cannot be read or is not of that form; earlier steps may have been yielded.
    """
    content = read_bytes(path)
    document = decode(content, _OBJECTS)
    if any("@" in key or key.startswith(TOTAL_PREFIX) for key in document):
        kinds = _kinds(list(document))
        for (key, raw), kind in zip(document.items(), kinds, strict=True):
            if not key.startswith(TOTAL_PREFIX):
                yield NO_STEP, kind, key, bytes(raw)
        return
    if document and document.keys() <= set(_LEVELS):
        yield from _of_step(NO_STEP, content)
        return
    for step_key, raw in document.items():
        yield from _of_step(step_key, bytes(raw))


def iter_raw_links(path: Path) -> Iterator[tuple[str, str, str, bytes]]:
    """Yield `(step_key, kind, link_key, raw)` of communication_matrix.json; `raw` holds `{"0-1": {…}, …}`.

    `link_key` is `allreduce-top1@group`, or `name@group` in older files. See `iter_raw_ops`.
    """
    return iter_raw_ops(path)


def _of_step(step_key: str, content: bytes) -> Iterator[tuple[str, str, str, bytes]]:
    levels = decode(content, _NESTED)
    for kind in _LEVELS:
        for key, raw in levels.get(kind, {}).items():
            if not key.startswith(TOTAL_PREFIX):
                yield step_key, kind, key, bytes(raw)


def _kinds(keys: list[str]) -> list[str]:
    alone = names.point_to_point(names.operations(pa.array(keys, pa.string())))
    return ["p2p" if is_p2p else "collective" for is_p2p in alone.to_pylist()]
