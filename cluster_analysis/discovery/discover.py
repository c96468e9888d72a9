"""What lies in a directory: one capture of one job, each rank once, and everything that is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from cluster_analysis.discovery.ascend import inspect_capture
from cluster_analysis.discovery.families import one_job
from cluster_analysis.discovery.found import Found, Tree, public_name
from cluster_analysis.discovery.hosts import hosts_of
from cluster_analysis.discovery.integrity import changed_files
from cluster_analysis.discovery.legacy import inspect_legacy
from cluster_analysis.discovery.places import Places, read_places
from cluster_analysis.discovery.prof import inspect_prof
from cluster_analysis.discovery.runs import Run, choose_run, enclosing_run, run_names, split_by_run
from cluster_analysis.discovery.walk import LEADS_NOWHERE, is_archive, walk
from cluster_analysis.discovery.windows import Choice, choose_window
from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.sources.text.metadata_json import read_metadata
from cluster_analysis.tables.model import Capture, RankSource
from cluster_run import layout
from cluster_run.errors import InputError
from cluster_run.facts import Fact, fact
from cluster_run.ids import DeviceId, HostId, Rank
from cluster_run.problem import Problem

#: Ranks whose metadata is asked for the size of the job: of three, one may be damaged.
_N_ASKED = 3


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
    # The rank table of the run that `path` is a part of says which ranks these are.
    enclosing = enclosing_run(path)
    parts = split_by_run(walk(path), path) if enclosing is None else {enclosing: walk(path.resolve())}
    runs = [_inspect(root, tree) for root, tree in parts.items()]
    with_data = [run for run in runs if run.found]
    if not with_data:
        raise InputError(f"{path}: no profiler data that can be analysed", _why_nothing(runs))
    run, wanted, several = choose_run(with_data, path, capture)
    found, mixed, notes = one_job(list(run.found))
    names = run_names(with_data, path) if several else ()
    choice = choose_window(found, wanted, names)
    problems = [*run.places.problems, *run.problems, *mixed, *choice.problems]
    return _capture(run, choice, problems, (*several, *notes), is_part=enclosing is not None)


def _inspect(root: Path, tree: Tree) -> Run:
    places = read_places(root)
    found: list[Found] = []
    problems = [
        Problem(
            fact("leads_nowhere") if why == LEADS_NOWHERE else fact("unlistable", detail=why),
            file=public_name(one),
            host=_host_of(one, root),
            advice="restore_target" if why == LEADS_NOWHERE else None,
        )
        for one, why in tree.unreadable.items()
    ]
    problems += [
        Problem(fact(what), file=public_name(one), host=_host_of(one, root), advice=advice)
        for one, (what, advice) in sorted(tree.foreign.items())
        # Beside captures only what may hold one of them is missed.
        if is_archive(one.name) or not any((tree.ascend, tree.prof, tree.legacy))
    ]
    for directory in tree.ascend:
        host = _host_of(directory, root)
        try:
            one, problem = inspect_capture(directory)
        except OSError as error:
            name = public_name(directory)
            one, problem = None, Problem(fact("unlistable", detail=str(error.strerror or error)), file=name)
        if one is not None:
            found.append(structs.replace(one, host=host, beside=_beside(directory, root)))
        if problem is not None:
            problems.append(replace(problem, host=host))
    for directories, inspect in ((tree.prof, inspect_prof), (tree.legacy, inspect_legacy)):
        more, why_not = inspect({one: _host_of(one, root) for one in directories}, places.ranks)
        found += more
        problems += why_not
    return Run(root, tree, places, found, problems)


def _host_of(directory: Path, root: Path) -> HostId | None:
    """Return N for what lies in `cluster_profiler/N/` of the run directory `root`, None for all else."""
    if not directory.is_relative_to(root):  # it lies beside the runs, or in one without any data
        return None
    parts = directory.relative_to(root).parts
    return HostId(parts[1]) if len(parts) > 1 and parts[0] == layout.PROFILER_TREE_NAME else None


def _beside(directory: Path, root: Path) -> str:
    """Return the directory a capture lies in, relative to the run directory and without the host's part."""
    parts = directory.relative_to(root).parts[:-1]
    return "/".join(parts[2:] if parts[:1] == (layout.PROFILER_TREE_NAME,) else parts)


def _capture(
    run: Run, choice: Choice, problems: list[Problem], notes: Iterable[Fact], is_part: bool
) -> Capture:
    places = run.places
    hosts = hosts_of(choice.captures, places)
    problems += hosts.problems
    devices = dict(hosts.devices)
    devices.update({rank: one.device for rank, one in choice.captures.items() if one.device is not None})
    expected = _expected_ranks(choice.captures, places)
    problems += _missing(expected, choice.captures, problems, is_part)
    problems += changed_files(choice.captures.values(), places, run.root)
    return Capture(
        sources=tuple(
            _source(rank, one, hosts.of_rank, devices, choice.name) for rank, one in choice.captures.items()
        ),
        expected_ranks=expected,
        problems=tuple(problems),
        hosts=hosts.of_rank,
        devices=dict(sorted(devices.items())),
        addresses=hosts.addresses,
        notes=(*notes, *choice.notes),
        names={rank: one.host_name for rank, one in choice.captures.items()},
        is_placed=hosts.is_placed,
    )


def _missing(
    expected: tuple[Rank, ...], captures: Mapping[Rank, Found], problems: Iterable[Problem], is_part: bool
) -> list[Problem]:
    """Return one problem for all ranks without data that no other problem names."""
    named = captures.keys() | {problem.rank for problem in problems}
    missing = [rank for rank in expected if rank not in named]
    if not missing:
        return []
    is_alone = len(captures) == 1 and len(expected) > 1
    return [
        Problem(
            fact("missing_ranks", n_missing=len(missing), n_ranks=len(expected), ranks=tuple(missing)),
            advice="give_whole_directory" if is_part or is_alone else "collect_hosts_again",
        )
    ]


def _expected_ranks(captures: Mapping[Rank, Found], places: Places) -> tuple[Rank, ...]:
    """Return the ranks of the rank table, of the job's size in a capture's metadata, and those found.

    Ranks are counted without gaps, so one between two that were found exists.
    """
    expected = set(map(Rank, range(min(captures), max(captures) + 1)))
    if places.table:
        expected |= {place.rank for place in places.table.places}
    declared: Counter[int] = Counter()
    for one in (one for one in captures.values() if "metadata" in one.files):
        with suppress(BadFileError):  # Reading that rank tells it.
            declared[read_metadata(one.files["metadata"]).world_size] += 1
        if declared.total() == _N_ASKED:
            break
    if declared:
        expected |= set(map(Rank, range(declared.most_common(1)[0][0])))
    return tuple(sorted(expected))


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


def _why_nothing(runs: Iterable[Run]) -> str:
    problems = [problem for run in runs for problem in (*run.places.problems, *run.problems)]
    if problems:
        # Of a run in which something is found nothing is told yet.
        from cluster_analysis.sentences.advice import advice  # noqa: PLC0415
        from cluster_analysis.sentences.problems import reason  # noqa: PLC0415

        more = f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""
        advised = advice(problems[0]).en
        return f"{problems[0].file}: {reason(problems[0]).en}{more}{f'; {advised}' if advised else ''}"
    if not any((*run.tree.ascend, *run.tree.prof, *run.tree.legacy) for run in runs):
        return "looked for *_ascend_pt, *_ascend_ms, PROF_* and step_trace_raw_* below it"
    return "its captures hold no file that is read"
