"""Slurm's node lists: `node[01-03,7],gpu1` becomes names, without Slurm's own commands or configuration."""

from __future__ import annotations

import re

from cluster_run.errors import InputError
from cluster_run.ids import MAX_HOSTS

_PART = re.compile(r"([^\[\],]*)(?:\[([^\]]*)\])?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def expand_node_list(text: str) -> tuple[str, ...]:
    """Return the node names of a Slurm node list in its own order, each once.

    Several bracketed parts in one name multiply; the width of a number is kept (`[01-03]`). `(null)`,
    which Slurm writes for a job that never started, is an empty list.

    Raises:
        InputError: not a node list, a name that no host can have, or more than MAX_HOSTS names.
    """
    if text.strip() in ("", "(null)", "None", "None assigned"):
        return ()
    names: dict[str, None] = {}
    for element in _split_outside_brackets(text.strip()):
        for name in _expand_element(element, text):
            if not _NAME.fullmatch(name):
                raise InputError(f"not a node name: {name!r} in the node list {text!r}")
            names[name] = None
        if len(names) > MAX_HOSTS:
            raise InputError(f"the node list {text[:60]!r}… has more than {MAX_HOSTS} nodes")
    return tuple(names)


def _split_outside_brackets(text: str) -> list[str]:
    elements, depth, begin = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            raise InputError(f"not a node list: {text!r}: its brackets do not match")
        if character == "," and depth == 0:
            elements.append(text[begin:position])
            begin = position + 1
    if depth:
        raise InputError(f"not a node list: {text!r}: its brackets do not match")
    return [*elements, text[begin:]]


def _expand_element(element: str, text: str) -> list[str]:
    names = [""]
    for match in _PART.finditer(element):
        prefix, ranges = match.group(1), match.group(2)
        endings = [prefix] if ranges is None else [prefix + number for number in _numbers(ranges, text)]
        if len(names) * len(endings) > MAX_HOSTS:
            raise InputError(f"the node list {text[:60]!r}… has more than {MAX_HOSTS} nodes")
        names = [name + ending for name in names for ending in endings]
    return names


def _numbers(ranges: str, text: str) -> list[str]:
    numbers: list[str] = []
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        if not (first.isascii() and first.isdigit()) or (dash and not (last.isascii() and last.isdigit())):
            raise InputError(f"not a node list: {text!r}: {part!r} is not a number or a range")
        begin, end = int(first), int(last or first)
        if end < begin or end - begin >= MAX_HOSTS:
            raise InputError(f"not a node list: {text!r}: {part!r} is not a range")
        numbers.extend(str(number).zfill(len(first)) for number in range(begin, end + 1))
    return numbers
