"""Node sets: `node[01-04,07].cluster` to names and back. The only module that imports ClusterShell.

The grammar is ClusterShell's: padded ranges, steps (`[1-16/5]`), several brackets in a name, and
between names `,` (and), `!` (without), `&` (in both), `^` (in one of both). Slurm's host lists are a
part of it. Lists without the operators `!&^` keep the order they were written in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

from cluster_run.errors import UsageError
from cluster_run.host_names import is_address
from cluster_run.ids import MAX_HOSTS

_MAX_DIGITS = 18
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"\s*(\d+)(?:-(\d+)(?:/(\d+))?)?\s*")
_TOP_LEVEL_COMMA = re.compile(r",(?![^\[]*\])")
_OPERATOR = re.compile(r"([,!&^])(?![^\[]*\])")
_PATTERN = re.compile(r"^@|[*?]")
_COMBINE: Mapping[str, Callable[[set[str], set[str]], set[str]]] = {
    ",": set.union,
    "!": set.difference,
    "&": set.intersection,
    "^": set.symmetric_difference,
}
_ADVICE = "write it like node[01-04,07].cluster"


def expand(text: str) -> tuple[str, ...]:
    """Return the names that `text` stands for; a name that stands there twice is returned twice.

    Raises:
        UsageError: not a node set, or more than MAX_HOSTS names.
    """
    parts = [part.strip() for part in split_list(text)]
    if not all(parts):
        raise UsageError(f"not a list of hosts: {text!r}", _ADVICE)
    _refuse_too_many(text, parts)
    if _PATTERN.search(text):
        raise UsageError(f"not a list of hosts: {text!r}", "patterns and @groups work in --limit only")
    if has_operators(text):
        return _names(text)
    return tuple(name for part in parts for name in _expand_one(part))


def select(text: str, resolve: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """Evaluate a node set over things that have several names each, from left to right.

    `resolve` gets each name, `@group` and pattern (`node*`) and returns what it stands for, in one
    common form: so `*!node07` leaves a host out by whichever name.

    Raises:
        UsageError: not a node set, too large, or what `resolve` raises.
    """
    first, *rest = _OPERATOR.split(text)
    chosen = _resolved(first.strip(), text, resolve)
    for operator, part in zip(rest[::2], rest[1::2], strict=True):
        other = _resolved(part.strip(), text, resolve)
        chosen = _COMBINE[operator](chosen, other)
    return frozenset(chosen)


def _resolved(part: str, text: str, resolve: Callable[[str], Iterable[str]]) -> set[str]:
    if not part:
        raise UsageError(f"not a list of hosts: {text!r}", _ADVICE)
    if not _PATTERN.search(part):
        return {found for name in expand(part) for found in resolve(name)}
    if "[" in part:
        raise UsageError(f"not a list of hosts: {part!r}", "a pattern (*, ?) or @group takes no brackets")
    return set(resolve(part))


def fold(names: Iterable[str]) -> str:
    """Return names in the short form for messages: `node[03-07]`; names it cannot fold stay as they are."""
    ordered = list(dict.fromkeys(names))
    foldable = [name for name in ordered if re.fullmatch(r"[\w.-]+", name)]
    folded = [_folded(foldable)] if len(foldable) > 1 else foldable
    return ",".join(folded + [name for name in ordered if name not in set(foldable)])


def _folded(names: Sequence[str]) -> str:
    # Imported here and below: plain names do without, and start sooner.
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException  # noqa: PLC0415

    try:
        return str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return ",".join(names)


def has_operators(text: str) -> bool:
    """Tell whether a node set uses `!`, `&` or `^`, so that its parts mean nothing alone."""
    return any(operator != "," for operator in _OPERATOR.split(text)[1::2])


def split_list(text: str) -> list[str]:
    """Split at the commas that stand outside of brackets."""
    return _TOP_LEVEL_COMMA.split(text)


def _expand_one(part: str) -> tuple[str, ...]:
    if "[" not in part and "]" not in part:
        return (part,)
    if is_ip6(part.strip("[]")):
        return (part.strip("[]"),)
    if is_ip6(part.rpartition(":")[0].strip("[]")):
        return (part,)  # with a port, and so no name of a host
    return _names(part)


def _names(text: str) -> tuple[str, ...]:
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException  # noqa: PLC0415

    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError) as error:
        raise UsageError(f"not a list of hosts: {text!r}: {error}", _ADVICE) from error


def _refuse_too_many(text: str, parts: Iterable[str]) -> None:
    """Count the names before any is built: `n[1-100000000]` costs nothing here and minutes there."""
    total = sum(prod(_bracket_length(inside) for inside in _BRACKETS.findall(part)) for part in parts)
    if total > MAX_HOSTS:
        shown = text if len(text) <= 80 else text[:77] + "..."
        raise UsageError(
            f"too many hosts: {shown!r} stands for more than {MAX_HOSTS}", "a number too long? " + _ADVICE
        )


def _bracket_length(inside: str) -> int:
    length = 0
    for part in inside.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            length += 1  # ClusterShell will say what is wrong with it
            continue
        first, last, step = match.groups()
        if len(max(first, last or "", key=len)) > _MAX_DIGITS:
            return MAX_HOSTS + 1
        span = int(last or first) - int(first)
        length += max(0, span) // max(1, int(step or 1)) + 1
    return length


def is_ip6(text: str) -> bool:
    """Tell an IPv6 address, with a zone or without."""
    return is_address(text) and ":" in text.partition("%")[0]
