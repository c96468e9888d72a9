"""What lies in a directory: one capture of one job, each rank once, and everything that is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from cluster_analysis.discovery.ascend import inspect_capture
from cluster_analysis.discovery.found import Found
from cluster_analysis.discovery.legacy import inspect_legacy
from cluster_analysis.discovery.places import Places, read_places
from cluster_analysis.discovery.walk import walk
from cluster_analysis.model import Capture, Problem, RankSource
from cluster_run import layout
from cluster_run.errors import InputError
from cluster_run.ids import HostId, Rank, format_number_ranges


def discover(path: Path, capture: str | None = None) -> Capture:
    """Find the profiler data of one job below `path`.

    Args:
        path: a run directory, a tree of captures, one capture, or a flat directory of r1.x files.
        capture: which of several captures to take; the newest complete one by default.

    Raises:
        InputError: `path` cannot be read, nothing that can be analysed is below it, or it has no such capture.
    """
    if not path.is_dir():
        raise InputError(f"{path}: not a directory", "name a run directory or a tree of profiler data")
    tree = walk(path)
    places = read_places(path)
    problems = list(places.problems)
    problems += [
        Problem(f"cannot be listed: {why}", file=where.name) for where, why in tree.unreadable.items()
    ]
    found: list[Found] = []
    for directory in tree.ascend:
        one, problem = inspect_capture(directory)
        host = _host_of(directory, path)
        if one is not None:
            found.append(replace(one, host=host))
        if problem is not None:
            problems.append(replace(problem, host=host))
    legacy, legacy_problems = inspect_legacy({one: _host_of(one, path) for one in tree.legacy}, places.ranks)
    problems += legacy_problems
    taken = {one.rank for one in found}
    found += [one for one in legacy if one.rank not in taken]
    if not found:
        raise InputError(f"{path}: no profiler data that can be analysed{_first(problems)}")
    return _capture(found, places, problems)


def _host_of(directory: Path, root: Path) -> HostId | None:
    parts = directory.relative_to(root).parts
    if layout.PROFILER_TREE_NAME in parts:
        after = parts[parts.index(layout.PROFILER_TREE_NAME) + 1 :]
        return HostId(after[0]) if after else None
    return None


def _capture(found: list[Found], places: Places, problems: list[Problem]) -> Capture:
    by_rank: dict[Rank, Found] = {}
    for one in sorted(found, key=lambda item: (item.stamp, str(item.directory))):
        if one.rank is not None:
            by_rank[one.rank] = one
    ranks = sorted(by_rank)
    expected = (
        tuple(sorted({place.rank for place in places.table.places} | set(ranks)))
        if places.table
        else tuple(ranks)
    )
    missing = sorted(set(expected) - set(ranks))
    if missing:
        problems.append(
            Problem(
                f"no profiler data of {len(missing)} of {len(expected)} ranks: {format_number_ranges(missing)}"
            )
        )
    hosts = _hosts(by_rank, places)
    return Capture(
        sources=tuple(_source(by_rank[rank], hosts) for rank in ranks),
        expected_ranks=expected,
        problems=tuple(problems),
        hosts=hosts,
        devices=dict(places.devices),
        addresses=dict(places.addresses),
    )


def _hosts(by_rank: Mapping[Rank, Found], places: Places) -> dict[Rank, HostId]:
    hosts = dict(places.hosts)
    hosts.update({rank: one.host for rank, one in by_rank.items() if one.host is not None})
    return dict(sorted(hosts.items()))


def _source(found: Found, hosts: Mapping[Rank, HostId]) -> RankSource:
    rank = found.rank if found.rank is not None else Rank(-1)
    return RankSource(
        rank=rank,
        kind=found.kind,
        files={role: str(path) for role, path in found.files.items()},
        size_bytes=found.size_bytes,
        host=hosts.get(rank),
        device=found.device,
        capture=found.window,
    )


def _first(problems: Iterable[Problem]) -> str:
    first = next(iter(problems), None)
    return f"; first problem: {first.file}: {first.reason}" if first else ""
