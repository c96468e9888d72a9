"""Find the capture in a directory: one job, each rank once, and everything that is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from msgspec import structs

from cluster_analysis.discovery.ascend import inspect_capture
from cluster_analysis.discovery.found import Found, Tree, public_name
from cluster_analysis.discovery.integrity import changed_files
from cluster_analysis.discovery.legacy import inspect_legacy
from cluster_analysis.discovery.parts import Part, choose_part, each_rank_once, notes_of, split_into_parts
from cluster_analysis.discovery.places import Places, hosts_of, read_places
from cluster_analysis.discovery.prof import inspect_prof
from cluster_analysis.discovery.ranks import metadata_of, with_ranks
from cluster_analysis.discovery.runs import RunDirectory, enclosing_run, name_of, one_job, split_by_run
from cluster_analysis.discovery.walk import LEADS_NOWHERE, is_packed_capture, may_hold_captures, walk
from cluster_analysis.discovery.windows import shown, with_windows_together
from cluster_analysis.tables.model import Capture, RankSource
from cluster_run import layout
from cluster_run.errors import InputError
from cluster_run.facts import Fact, fact
from cluster_run.ids import DeviceId, HostId, Rank
from cluster_run.problem import Problem
from cluster_words.problems import advice, reason

#: Ranks whose metadata is asked for the size of the job: of three, one may be damaged.
_N_ASKED = 3


def discover(path: Path, part: str | None = None) -> Capture:
    """Find the profiler data of one job below `path`, by names and small files.

    Files that were touched since they were collected are read whole, and compared with their hashes.

    Args:
        path: a run directory, a tree of captures, one capture, or a flat directory of r1.x files.
        part: which of several to take; by default the newest of those with most ranks.

    Raises:
        InputError: `path` cannot be read, nothing that can be analysed is below it, or no single
            part has that name.
    """
    jobs = _jobs(path)
    chosen = choose_part([one for job in jobs for one in job.parts], part)
    job = next(job for job in jobs if chosen in job.parts)
    notes: list[Fact] = []
    if len(jobs) > 1:
        names = tuple(name_of(one, path) for one in jobs)
        notes.append(fact("several_runs", runs=names, chosen=name_of(job, path)))
    return _capture(job, chosen, notes)


def part_names(path: Path) -> tuple[str, ...]:
    """Return the names of all parts below `path`, by which `discover` takes each; "" for the only one.

    Raises:
        InputError: as `discover`.
    """
    return tuple(part.name for job in _jobs(path) for part in shown(job.parts))


def _jobs(path: Path) -> list[RunDirectory]:
    """Return what lies below `path` by run, each part with a name of its own."""
    if path.name == layout.PROFILER_OUTPUT_NAME:
        path = path.resolve().parent
    if not path.is_dir():
        raise InputError(f"{path}: not a directory", "name a run directory or a tree of profiler data")
    # The rank table of the run that `path` is a part of says which ranks these are.
    enclosing = enclosing_run(path)
    trees = split_by_run(walk(path), path) if enclosing is None else {enclosing: walk(path.resolve())}
    runs = [_inspect(root, tree) for root, tree in trees.items()]
    with_data = [run for run in runs if run.found]
    if not with_data:
        raise InputError(f"{path}: no profiler data that can be analysed", _why_nothing(runs))
    jobs = []
    for run in with_data:
        found, mixed, notes = one_job(list(run.found))
        parts = with_windows_together(split_into_parts(found))
        if len(with_data) > 1:
            above = name_of(run, path)
            parts = [structs.replace(one, name="/".join(filter(None, (above, one.name)))) for one in parts]
        problems = [*run.places.problems, *run.problems, *mixed]
        known = structs.replace(run, parts=parts, problems=problems, notes=(*run.notes, *notes))
        jobs.append(structs.replace(known, is_whole=enclosing is None))
    return jobs


def _inspect(root: Path, tree: Tree) -> RunDirectory:
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
    # Beside captures only archives that may hold one are reported.
    problems += _foreign(root, tree, lambda name: not tree.captures or is_packed_capture(name))
    of_form: dict[str, dict[Path, HostId | None]] = defaultdict(dict)
    for directory, form in tree.captures.items():
        of_form[form][directory] = _host_of(directory, root)
    for directory, host in of_form["ascend"].items():
        try:
            one, problem = inspect_capture(directory)
        except OSError as error:
            name = public_name(directory)
            one, problem = None, Problem(fact("unlistable", detail=str(error.strerror or error)), file=name)
        if one is not None:
            found.append(structs.replace(one, host=host, folder=_folder(directory, root)))
        if problem is not None:
            problems.append(replace(problem, host=host))
    for form, inspect in (("prof", inspect_prof), ("legacy", inspect_legacy)):
        more, why_not = inspect(of_form[form], places.ranks)
        found += more
        problems += why_not
    problems += _still_parsed(found)
    found, notes = with_ranks(found, problems)
    return RunDirectory(root, tree, places, found, problems, notes)


def _foreign(root: Path, tree: Tree, is_told: Callable[[str], bool]) -> list[Problem]:
    """Return a problem for each name outside of captures that is known to be something else."""
    return [
        Problem(fact(what), file=public_name(one), host=_host_of(one, root), advice=advice)
        for one, (what, advice) in sorted(tree.foreign.items())
        if is_told(one.name) and tree.captures.get(one.parent) != "ascend"
    ]


def _still_parsed(found: Iterable[Found]) -> list[Problem]:
    """Return a problem for each capture without the file that parsers write last, if others have it."""
    of_kind: dict[str, list[Found]] = {}
    for one in found:
        of_kind.setdefault(one.kind.partition("/")[0], []).append(one)
    return [
        Problem(
            fact("still_parsed"),
            file=public_name(one.directory),
            rank=one.rank,
            host=one.host,
            advice="wait_for_parser",
        )
        for captures in of_kind.values()
        if any("done" in one.files for one in captures)
        for one in captures
        if "done" not in one.files
    ]


def _host_of(directory: Path, root: Path) -> HostId | None:
    """Return N for what lies in `cluster_profiler/N/` of the run directory `root`, None for all else."""
    if not directory.is_relative_to(root):  # it lies next to the runs, or in one without any data
        return None
    parts = directory.relative_to(root).parts
    return HostId(parts[1]) if len(parts) > 1 and parts[0] == layout.PROFILER_TREE_NAME else None


def _folder(directory: Path, root: Path) -> str:
    """Return the directory a capture lies in, relative to the run directory and without the host's part."""
    parts = directory.relative_to(root).parts[:-1]
    return "/".join(parts[2:] if parts[:1] == (layout.PROFILER_TREE_NAME,) else parts)


def _capture(job: RunDirectory, part: Part, notes: Iterable[Fact]) -> Capture:
    places = job.places
    captures, twice = each_rank_once(part)
    hosts = hosts_of(captures, places)
    problems = [*job.problems, *twice, *hosts.problems]
    devices = dict(hosts.devices)
    devices.update({rank: one.device for rank, one in captures.items() if one.device is not None})
    expected = _expected_ranks(captures, places)
    missing = _missing(expected, captures, problems, job.is_whole)
    if missing:
        archives = _foreign(job.root, job.tree, may_hold_captures)
        problems += [*missing, *(one for one in archives if one not in problems)]
    read = [one for _, window in part.windows for some in window.captures.values() for one in some]
    problems += changed_files(read or captures.values(), places, job.root)
    return Capture(
        sources=tuple(
            _with_windows(_source(rank, one, hosts.of_rank, devices, part.name), part)
            for rank, one in captures.items()
        ),
        expected_ranks=expected,
        problems=tuple(problems),
        hosts=hosts.of_rank,
        devices=dict(sorted(devices.items())),
        addresses=hosts.addresses,
        notes=(*notes, *job.notes, *notes_of(_reported(job, part), part)),
        names={rank: one.host_name for rank, one in captures.items()},
        is_placed=hosts.is_placed,
    )


def _missing(
    expected: tuple[Rank, ...], captures: Mapping[Rank, Found], problems: Iterable[Problem], is_whole: bool
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
            advice="collect_hosts_again" if is_whole and not is_alone else "give_whole_directory",
        )
    ]


def _expected_ranks(captures: Mapping[Rank, Found], places: Places) -> tuple[Rank, ...]:
    """Return the ranks of the rank table, of the job's size in a capture's metadata, and those found.

    Ranks are counted without gaps, so a rank between two that were found exists.
    """
    expected = set(map(Rank, range(min(captures), max(captures) + 1)))
    if places.table:
        expected |= {place.rank for place in places.table.places}
    asked = filter(None, map(metadata_of, captures.values()))
    declared = Counter(one.world_size for one in islice(asked, _N_ASKED))
    if declared:
        expected |= set(map(Rank, range(declared.most_common(1)[0][0])))
    return tuple(sorted(expected))


def _source(
    rank: Rank, found: Found, hosts: Mapping[Rank, HostId], devices: Mapping[Rank, DeviceId], part: str
) -> RankSource:
    return RankSource(
        rank=rank,
        kind=found.kind,
        files={role: str(path) for role, path in sorted(found.files.items())},
        size_bytes=found.size_bytes,
        host=hosts.get(rank),
        device=devices.get(rank),
        part=part,
    )


def _with_windows(source: RankSource, part: Part) -> RankSource:
    """Return the source with those of all windows that are judged together."""
    if not part.windows:
        return source
    each = [
        (added, _source(source.rank, window.captures[source.rank][0], {}, {}, window.name))
        for added, window in part.windows
    ]
    own = tuple((added, structs.replace(one, host=source.host, device=source.device)) for added, one in each)
    return structs.replace(source, windows=own, size_bytes=sum(one.size_bytes for _, one in own))


def _reported(job: RunDirectory, part: Part) -> list[Part]:
    """Return the parts to choose from, `part` among them."""
    known = shown(job.parts)
    return known if part in known else [*known, part]


def _why_nothing(runs: Iterable[RunDirectory]) -> str:
    problems = [problem for run in runs for problem in (*run.places.problems, *run.problems)]
    if problems:
        more = f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""
        advised = advice(problems[0]).en
        where = f"{problems[0].file}: " if problems[0].file else ""
        return f"{where}{reason(problems[0]).en}{more}{f'; {advised}' if advised else ''}"
    if not any(run.tree.captures for run in runs):
        return "looked for *_ascend_pt, *_ascend_ms, PROF_* and step_trace_raw_* below it"
    return "its captures hold no file that is read"
