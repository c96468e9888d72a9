"""What lies in a directory: one capture of one job, each rank once, and everything that is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from cluster_analysis.discovery.ascend import inspect_capture
from cluster_analysis.discovery.families import one_job
from cluster_analysis.discovery.found import Found, Tree, file_size, public_name
from cluster_analysis.discovery.legacy import inspect_legacy
from cluster_analysis.discovery.places import Places, read_places
from cluster_analysis.discovery.prof import inspect_prof
from cluster_analysis.discovery.walk import walk
from cluster_analysis.discovery.windows import Choice, choose_window
from cluster_analysis.model import Capture, Problem, RankSource
from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.sources.metadata_json import read_metadata
from cluster_run import layout
from cluster_run.errors import InputError
from cluster_run.ids import DeviceId, HostId, Rank, format_number_ranges


def discover(path: Path, capture: str | None = None) -> Capture:
    """Find the profiler data of one job below `path`; nothing but names and small files is read.

    Args:
        path: a run directory, a tree of captures, one capture, or a flat directory of r1.x files.
        capture: which of several captures to take; by default the newest of those with most ranks.

    Raises:
        InputError: `path` cannot be read, nothing that can be analysed is below it, or no single
            capture has that name.
    """
    if path.name == layout.PROFILER_OUTPUT_NAME:
        path = path.resolve().parent
    if not path.is_dir():
        raise InputError(f"{path}: not a directory", "name a run directory or a tree of profiler data")
    tree = walk(path)
    places = read_places(path)
    found, problems = _inspect(tree, path, places)
    problems = [*places.problems, *problems]
    if not found:
        raise InputError(f"{path}: no profiler data that can be analysed", _why_nothing(tree, problems))
    found, mixed, notes = one_job(found)
    choice = choose_window(found, capture)
    problems += [*mixed, *choice.problems]
    return _capture(path, choice, places, problems, notes)


def _inspect(tree: Tree, root: Path, places: Places) -> tuple[list[Found], list[Problem]]:
    found: list[Found] = []
    problems = [Problem(f"cannot be listed: {why}", file=one.name) for one, why in tree.unreadable.items()]
    for directory in tree.ascend:
        host = _host_of(directory, root)
        try:
            one, problem = inspect_capture(directory)
        except OSError as error:
            name = public_name(directory)
            one, problem = None, Problem(f"cannot be listed: {error.strerror or error}", file=name)
        if one is not None:
            found.append(replace(one, host=host, beside=_beside(directory, root)))
        if problem is not None:
            problems.append(replace(problem, host=host))
    for directories, inspect in ((tree.prof, inspect_prof), (tree.legacy, inspect_legacy)):
        more, why = inspect({one: _host_of(one, root) for one in directories}, places.ranks)
        found += more
        problems += why
    return found, problems


def _host_of(directory: Path, root: Path) -> HostId | None:
    """Return N for what lies in `cluster_profiler/N/`, also where `root` is inside of that."""
    parts = (root.resolve() / directory.relative_to(root)).parts
    if layout.PROFILER_TREE_NAME in parts[:-1]:
        return HostId(parts[parts.index(layout.PROFILER_TREE_NAME) + 1])
    return None


def _beside(directory: Path, root: Path) -> str:
    """Return the directory a capture lies in, relative to the root and without the host's part."""
    parts = directory.relative_to(root).parts[:-1]
    if layout.PROFILER_TREE_NAME in parts:
        parts = parts[parts.index(layout.PROFILER_TREE_NAME) + 2 :]
    return "/".join(parts)


def _capture(
    root: Path, choice: Choice, places: Places, problems: list[Problem], notes: Iterable[str]
) -> Capture:
    hosts, addresses = _hosts(choice.captures, places)
    devices = dict(places.devices)
    devices.update({rank: one.device for rank, one in choice.captures.items() if one.device is not None})
    expected = _expected_ranks(choice.captures, places)
    missing = sorted(set(expected) - choice.captures.keys())
    if missing:
        problems.append(
            Problem(
                f"no profiler data of {len(missing)} of {len(expected)} ranks: "
                f"{format_number_ranges(missing)}",
                advice="collect their hosts again, or look why they wrote none",
            )
        )
    problems += _changed(choice.captures.values(), places, root)
    return Capture(
        sources=tuple(
            _source(rank, one, hosts, devices, choice.name) for rank, one in choice.captures.items()
        ),
        expected_ranks=expected,
        problems=tuple(problems),
        hosts=hosts,
        devices=dict(sorted(devices.items())),
        addresses=addresses,
        notes=(*notes, *choice.notes),
    )


def _expected_ranks(captures: Mapping[Rank, Found], places: Places) -> tuple[Rank, ...]:
    """Return the ranks of the rank table, of the job's size in a capture's metadata, and those found."""
    expected = set(captures)
    if places.table:
        expected |= {place.rank for place in places.table.places}
    for one in captures.values():
        if "metadata" in one.files:
            try:
                expected |= {Rank(rank) for rank in range(read_metadata(one.files["metadata"]).world_size)}
            except BadFileError:
                continue  # Reading that rank tells it.
            break
    return tuple(sorted(expected))


def _hosts(captures: Mapping[Rank, Found], places: Places) -> tuple[dict[Rank, HostId], dict[HostId, str]]:
    """Return the host of each rank and the hosts' real names.

    Outside a run directory the hosts are the names in `{host}_{pid}_{time}_ascend_pt`, numbered by rank.
    """
    hosts = dict(places.hosts)
    hosts.update({rank: one.host for rank, one in captures.items() if one.host is not None})
    addresses = dict(places.addresses)
    if not hosts and captures and all(one.host_name for one in captures.values()):
        names = list(dict.fromkeys(captures[rank].host_name for rank in sorted(captures)))
        number_of = {name: HostId(str(number)) for number, name in enumerate(names, start=1)}
        hosts = {rank: number_of[one.host_name] for rank, one in captures.items()}
        addresses = {host: name for name, host in number_of.items()}
    return dict(sorted(hosts.items())), addresses


def _source(
    rank: Rank,
    found: Found,
    hosts: Mapping[Rank, HostId],
    devices: Mapping[Rank, DeviceId],
    window: str,
) -> RankSource:
    return RankSource(
        rank=rank,
        kind=found.kind,
        files={role: str(path) for role, path in sorted(found.files.items())},
        size_bytes=found.size_bytes,
        host=hosts.get(rank),
        device=devices.get(rank),
        capture=window,
    )


def _changed(captures: Iterable[Found], places: Places, root: Path) -> list[Problem]:
    """Return a problem for every file that is not as long as it was when it was collected."""
    problems = []
    for one in captures:
        for path in one.files.values():
            collected = places.stored.get(path.relative_to(root).as_posix())
            if collected is not None and collected != file_size(path):
                problems.append(
                    Problem(
                        f"{file_size(path)} bytes, but {collected} when it was collected",
                        file=path.name,
                        rank=one.rank,
                        host=one.host,
                        advice="collect it again",
                    )
                )
    return problems


def _why_nothing(tree: Tree, problems: list[Problem]) -> str:
    if problems:
        return f"{problems[0].file}: {problems[0].reason}"
    if not (tree.ascend or tree.prof or tree.legacy):
        return "looked for *_ascend_pt, *_ascend_ms, PROF_* and step_trace_raw_* below it"
    return "its captures hold no file that is read"
