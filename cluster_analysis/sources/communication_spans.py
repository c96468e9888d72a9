"""Where in communication.json each operator's JSON lies, so that it can be copied without being decoded.

The decoder checks the whole file and hands out views into its buffer; a view's address tells the
position. This costs about a millisecond a megabyte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources.json_text import decode, decode_part, read_bytes
from cluster_analysis.sources.names import NO_STEP, TOTAL_PREFIX

_Objects = dict[str, msgspec.Raw]
_OBJECTS: msgspec.json.Decoder[_Objects] = msgspec.json.Decoder(_Objects)
_BY_STEP: msgspec.json.Decoder[dict[str, dict[str, _Objects]]] = msgspec.json.Decoder(
    dict[str, dict[str, _Objects]]
)
_NESTED: msgspec.json.Decoder[dict[str, _Objects]] = msgspec.json.Decoder(dict[str, _Objects])
_LEVELS = frozenset({"p2p", "collective"})


@dataclass(frozen=True)
class OpSpans:
    """Operators of one step in the file's order: the JSON of `keys[i]` begins at `offsets[i]` in the file."""

    step_key: str
    keys: list[str]
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]


def op_spans(path: Path) -> Iterator[OpSpans]:
    """Yield the operators of each step and level; totals are skipped.

    Raises:
        BadFileError: the file cannot be read or is not of that form; earlier steps may have been yielded.
    """
    content = read_bytes(path)
    # read_bytes takes a byte order mark away; positions are those of the file.
    n_skipped = path.stat().st_size - len(content)
    base = pa.py_buffer(content).address - n_skipped
    try:
        # Nearly all files have this form, and one pass over the file is all they need.
        by_step = _BY_STEP.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        yield from _other_forms(content, base)
        return
    if by_step.keys() & _LEVELS or any("@" in key for key in by_step):
        yield from _other_forms(content, base)
        return
    for step_key, levels in by_step.items():
        for name, level in levels.items():
            if name in _LEVELS:
                yield _spans(step_key, level, base)


def _other_forms(content: bytes, base: int) -> Iterator[OpSpans]:
    """Yield the operators of a file without steps; raise for a damaged one."""
    document = decode(content, _OBJECTS)
    if any("@" in key or key.startswith(TOTAL_PREFIX) for key in document):
        yield _spans(NO_STEP, document, base)
    elif document and document.keys() <= _LEVELS:
        for level in decode(content, _NESTED).values():
            yield _spans(NO_STEP, level, base)
    else:
        for step_key, raw in document.items():
            for name, level in decode_part(content, raw, _NESTED, step_key).items():
                if name in _LEVELS:
                    yield _spans(step_key, level, base)


def _spans(step_key: str, level: _Objects, base: int) -> OpSpans:
    for key in [key for key in level if key.startswith(TOTAL_PREFIX)]:
        del level[key]
    views = list(map(pa.py_buffer, level.values()))
    return OpSpans(
        step_key,
        list(level),
        np.array([view.address for view in views], np.int64) - base,
        np.array([view.size for view in views], np.int32),
    )
