"""The outer form that communication.json and communication_matrix.json share.

Objects by step, in each the levels `p2p` and `collective`, in each the operators. Captures without steps
have the levels, or the operators themselves, at the top.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.text.json_text import decode, decode_part
from cluster_run.facts import Fact, fact

_Op = TypeVar("_Op")

_STEPS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
#: The end of one step and the name of the next; operators are never named like that.
_NEXT_STEP = re.compile(rb'\}\s*,\s*"((?:step[ _]?)?\d{1,18})"\s*:\s*\{', re.IGNORECASE)
_P2P = "p2p"
_LEVELS = {_P2P, "collective"}
_CUT_OFF = ("truncated", "filled_with_nul")


class Level(msgspec.Struct, Generic[_Op], gc=False, frozen=True, forbid_unknown_fields=True):
    """The operators of one step: those between two ranks, and those of a whole group.

    Other names are refused: with them, operators would be lost in silence.
    """

    p2p: dict[str, _Op] = {}
    collective: dict[str, _Op] = {}


def levels_by_step(
    content: bytes,
    levels: msgspec.json.Decoder[Level[_Op]],
    operators: msgspec.json.Decoder[dict[str, _Op]],
    remark: Remark,
) -> Iterator[tuple[int, bool, dict[str, _Op]]]:
    """Yield `(step, is_p2p, operators)` of a file of any of these forms; step 0 where it has none.

    Args:
        content: the whole file.
        levels: for the object of one step.
        operators: for a file that holds operators at the top.
        remark: told of keys that are no step.

    Raises:
        BadFileError: a part is damaged; the message says which, and where it begins.
    """
    document = decode(content, _STEPS)
    has_steps = any(numbers.parse_step(key) is not None for key in document)
    if not has_steps and any("@" in key or key.startswith(names.TOTAL_PREFIX) for key in document):
        yield 0, False, decode(content, operators)
        return
    if document and {key.casefold() for key in document} <= _LEVELS:
        document = {names.NO_STEP: msgspec.Raw(content)}
    no_steps: list[str] = []
    no_levels: list[str] = []
    for key, raw in document.items():
        step = numbers.parse_step(key)
        if step is not None:
            for is_p2p, level in _levels(content, (key, raw), levels, operators, no_levels):
                yield step, is_p2p, level
        elif not key.startswith(names.TOTAL_PREFIX):
            no_steps.append(key)
    if no_steps:
        remark(_left_out(no_steps, "no_step"))
    if no_levels:
        remark(_left_out(no_levels, "no_level"))


def _left_out(keys: list[str], what: str) -> Fact:
    return fact("keys_left_out", first=repr(keys[0]), n_keys=len(keys), what=what)


def _levels(
    content: bytes,
    step: tuple[str, msgspec.Raw],
    levels: msgspec.json.Decoder[Level[_Op]],
    operators: msgspec.json.Decoder[dict[str, _Op]],
    unknown: list[str],
) -> Iterator[tuple[bool, dict[str, _Op]]]:
    """Yield `(is_p2p, operators)` of a step; its levels are named case-blind, others go to `unknown`."""
    key, raw = step
    try:
        level = levels.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        parts = decode_part(content, raw, _STEPS, key)
        if parts.keys() <= _LEVELS:
            # It is one of them that is wrong: this says where.
            decode_part(content, raw, levels, key)
    else:
        yield True, level.p2p
        yield False, level.collective
        return
    for name, part in parts.items():
        if name.casefold() in _LEVELS:
            yield name.casefold() == _P2P, decode_part(content, part, operators, f"{key}/{name}")
        else:
            unknown.append(f"{key}/{name}")


def whole_steps(content: bytes, error: BadFileError, remark: Remark) -> bytes:
    """Return the steps before the place where a file was cut off, as a document of their own.

    Args:
        content: the whole file.
        error: why it cannot be decoded.
        remark: told from which step on the file says nothing.

    Raises:
        BadFileError: `error`, where the file was not cut off, or in its first step.
    """
    places = list(_NEXT_STEP.finditer(content))
    if not places or error.why.kind not in _CUT_OFF:
        raise error
    remark(error.why, fact("says_nothing_from", step=places[-1].group(1).decode()))
    return content[: places[-1].start() + 1] + b"}"
