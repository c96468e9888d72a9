"""Which captures of a host are taken, by name, time, or the newest of each rank; which ranks have none."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from fnmatch import translate
from functools import cache
from posixpath import basename

from cluster_collect.entries import RemoteEntry, captures_of_ranks, group_of, is_capture, rank_of
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_run.ids import ServerId, format_number_ranges
from cluster_run.layout import CAPTURE_END, PARSED_MARK_NAME, PARSER_RESTS_S, PROFILER_OUTPUT_NAME
from cluster_run.ranktable import RankTable

NEWEST, ALL = "newest", "all"
_STAMP = re.compile(rf"_(\d{{14,17}})(?={CAPTURE_END})".encode())


def matcher(globs: Iterable[str]) -> Callable[[bytes], bool]:
    """Return the test whether a path, or its bare name, matches one of some globs."""
    patterns = [re.compile(os.fsencode(translate(glob)), re.DOTALL) for glob in globs]
    return lambda path: any(one.match(path) or one.match(basename(path)) for one in patterns)


def not_excluded(globs: Sequence[str]) -> Callable[[bytes], bool]:
    """Return the test for paths: neither they nor a directory above them match one of the globs."""
    if not globs:
        return lambda _path: True
    matches = matcher(globs)

    @cache
    def is_out(directory: bytes) -> bool:
        return directory != b"" and (is_out(directory.rpartition(b"/")[0]) or matches(directory))

    return lambda path: not is_out(path.rpartition(b"/")[0]) and not matches(path)


def chosen_captures(
    entries: Sequence[RemoteEntry], spec: HostSpec, options: CollectOptions, clock_ahead_s: float
) -> Callable[[bytes], bool]:
    """Return the test for the paths of one host: is its capture, or its directory, among the chosen ones?"""
    narrows = options.ranks is not None or spec.captures is not None
    if options.since_s is None and options.capture == ALL and not narrows:
        return lambda _path: True
    groups: defaultdict[bytes, list[RemoteEntry]] = defaultdict(list)
    for entry in entries:
        groups[group_of(entry.path)].append(entry)
    chosen = set(groups)
    if spec.captures is not None:
        chosen &= set(map(os.fsencode, spec.captures))
    if options.ranks is not None:
        chosen &= captures_of(options.ranks, entries, spec.device_ranks)
    if options.since_s is not None:
        since_ns = (options.since_s + clock_ahead_s) * 1e9
        chosen = {group for group in chosen if _newest_ns(groups[group]) >= since_ns}
    if options.capture == NEWEST:
        chosen = set(_newest_of_each_rank({group: groups[group] for group in chosen}))
    elif options.capture != ALL:
        named = re.compile(os.fsencode(translate(options.capture)), re.DOTALL)
        chosen = {group for group in chosen if named.match(group) or any(map(named.match, group.split(b"/")))}
    return lambda path: group_of(path) in chosen


def captures_of(
    ranks: Set[int], entries: Iterable[RemoteEntry], device_ranks: Mapping[int, int]
) -> set[bytes]:
    """Return the captures of some ranks, as far as names, or devices of the rank table, tell the rank."""
    known = captures_of_ranks((entry.path for entry in entries), device_ranks)
    return {group for group, rank in known.items() if rank in ranks}


def _newest_ns(entries: Sequence[RemoteEntry]) -> int:
    return max(entry.mtime_ns for entry in entries)


def _newest_of_each_rank(groups: dict[bytes, list[RemoteEntry]]) -> Iterable[bytes]:
    by_rank: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for group, entries in groups.items():
        by_rank[_rank_of(group, entries)].append(group)
    for rivals in by_rank.values():
        if all(map(_stamp, rivals)):
            yield max(rivals, key=lambda group: (_stamp(group), _newest_ns(groups[group])))
        else:
            yield max(rivals, key=lambda group: _newest_ns(groups[group]))


def _stamp(group: bytes) -> bytes:
    found = _STAMP.search(basename(group))
    return found[1].ljust(17, b"0") if found else b""


def _rank_of(group: bytes, entries: Sequence[RemoteEntry]) -> bytes:
    """Return the key that captures of one rank share: the rank, else the name without its time."""
    if not is_capture(basename(group)):
        return b"directory " + group
    for entry in entries:
        rank = rank_of(entry.path)
        if rank is not None:
            return b"rank %d" % rank
    return b"name " + _STAMP.sub(b"", basename(group))


_MARK = f"/{PROFILER_OUTPUT_NAME}/{PARSED_MARK_NAME}".encode()
_OUTPUT = f"/{PROFILER_OUTPUT_NAME}/".encode()


def being_parsed(entries: Iterable[RemoteEntry], wanted: Set[bytes], now_ns: int) -> list[bytes]:
    """Return the captures among those `wanted` that are being parsed, in order.

    Versions that leave no mark leave none on the whole host, and nothing tells when they have parsed.

    Args:
        entries: all that the host lists.
        wanted: captures, by their directory.
        now_ns: time on the host, ns since 1970.
    """
    newest_ns: defaultdict[bytes, int] = defaultdict(int)
    parsed = set()
    for entry in entries:
        if _OUTPUT in entry.path:
            group = group_of(entry.path)
            newest_ns[group] = max(newest_ns[group], entry.mtime_ns)
            if entry.path.endswith(_MARK):
                parsed.add(group)
    if not parsed:
        return []
    since_ns = now_ns - int(PARSER_RESTS_S * 1e9)
    return sorted(one for one in wanted & newest_ns.keys() - parsed if newest_ns[one] > since_ns)


def ranks_of(sources: Iterable[str], device_ranks: Mapping[int, int] | None = None) -> set[int]:
    """Return the ranks whose captures are among the paths of a host."""
    return set(captures_of_ranks(map(os.fsencode, sources), device_ranks).values())


def ranks_missing(table: RankTable, server_id: ServerId, found: set[int], wanted: Set[int] | None) -> str:
    """Say which ranks of the table a host should hold and does not; empty where none is known to lack.

    Of the ranks `wanted` only, unless that is None.
    """
    owners = {int(place.rank): place.server_id for place in table.places}
    expected = {
        rank for rank, owner in owners.items() if owner == server_id and (wanted is None or rank in wanted)
    }
    missing = sorted(expected - found)
    if not found or not missing:
        return ""
    n_held, lost = len(expected) - len(missing), format_number_ranges(missing)
    text = f"holds {n_held} of its {len(expected)} ranks: {lost} missing"
    others = Counter(owners[rank] for rank in found - expected if rank in owners)
    if others:
        other, n_ranks = others.most_common(1)[0]
        text += f"; {n_ranks} that it holds are those of {other} in the rank table: are the two swapped?"
    return text
