"""Windows of one role that are alike are judged together, as more steps of one job.

They are alike where the same processes wrote captures of the same ranks, in the same form, with the same
groups, level and version, of steps that have numbers, one window after the other. Where a window's numbers do
not leave one out behind those before, all count on and do: what passed between windows is no part of a step.
Windows without steps are compared each by itself: it is unknown how many iterations each holds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from itertools import pairwise

from msgspec import structs

from cluster_analysis.discovery.found import Found
from cluster_analysis.discovery.parts import Part
from cluster_analysis.discovery.ranks import metadata_of
from cluster_analysis.sources.db.analysis_db import read_db_steps
from cluster_analysis.sources.db.profiler_db import read_step_times
from cluster_analysis.sources.errors import BadFileError, unheard
from cluster_analysis.sources.text.metadata_json import read_profiler_info
from cluster_analysis.sources.text.step_trace_csv import read_step_trace
from cluster_run.ids import Rank

_NUMBERS = re.compile(r"\d+")
#: Name of a window without steps.
_NO_STEP = {0}
_ALL_WINDOWS = "windows"
_Steps = Set[int]


def with_windows_together(parts: Sequence[Part]) -> list[Part]:
    """Return the parts, and behind them one for all windows of each role that are alike."""
    alike: dict[object, list[Part]] = defaultdict(list)
    for part in parts:
        processes = _processes(part)
        if processes:
            # Of one process: the folder of a step has another number each time, that of a role another name.
            alike[_NUMBERS.sub("", part.name), processes].append(part)
    found = list(parts)
    for windows in alike.values():
        ordered = sorted(windows, key=lambda one: one.began)
        numbered = _first_steps(ordered) if len(ordered) > 1 and _have_one_setup(ordered) else None
        if numbered is not None:
            name = _common_name(ordered, {one.name for one in found})
            aliases = frozenset.intersection(*(one.aliases for one in ordered))
            whole = structs.replace(ordered[-1], name=name, aliases=aliases, is_window=False)
            windows_of = tuple(zip(numbered, ordered, strict=True))
            found.append(structs.replace(whole, windows=windows_of))
    return found


def shown(parts: Sequence[Part]) -> list[Part]:
    """Return the parts without windows that others hold."""
    inside = {window.name for part in parts for _, window in part.windows}
    return [part for part in parts if part.windows or part.name not in inside]


def _processes(part: Part) -> tuple[tuple[Rank, str, str], ...]:
    """Return the process that wrote each rank's captures, and the form; empty if a name does not tell."""
    if not part.name or any(len(some) > 1 for some in part.captures.values()):
        return ()
    each = {rank: some[0] for rank, some in part.captures.items()}
    who = {rank: one.worker or _session_of(one) for rank, one in each.items()}
    return tuple((rank, who[rank], one.kind) for rank, one in each.items()) if all(who.values()) else ()


def _session_of(one: Found) -> str:
    """Return the folder above the sessions of a rank, which MindSpore names after their steps."""
    return str(one.directory.parent.parent) if one.window else ""


def _have_one_setup(windows: Sequence[Part]) -> bool:
    """Return whether all began at other times, and a rank of each has the same groups, level and versions."""
    setups: list[object] = []
    for one in windows:
        captured = one.captures[min(one.captures)][0]
        metadata, info = metadata_of(captured), None
        with suppress(BadFileError):  # reading that rank reports it
            if "profiler_info" in captured.files:
                info = read_profiler_info(captured.files["profiler_info"])
        setups.append((metadata and (metadata.parallel, metadata.world_size, metadata.groups), info))
    return len({one.began for one in windows}) == len(windows) and all(one == setups[0] for one in setups)


def _first_steps(windows: Sequence[Part]) -> list[int] | None:
    """Return what is added to the step numbers of each window; None where one has no steps."""
    steps = [_steps_of(one.captures) for one in windows]
    if any(not one or one == _NO_STEP for one in steps):
        return None
    if all(max(before) + 1 < min(own) for before, own in pairwise(steps)):
        return [0] * len(steps)
    added = [0]
    for before, own in pairwise(steps):
        added.append(added[-1] + max(before) + 2 - min(own))
    return added


def _steps_of(captures: Mapping[Rank, Sequence[Found]]) -> _Steps:
    """Return the steps that the first and the last rank have; nothing where their tables do not say."""
    found: set[int] = set()
    for rank in {min(captures), max(captures)}:
        files = captures[rank][0].files
        with suppress(BadFileError):
            if "step_trace" in files:
                found |= set(read_step_trace([(str(files["step_trace"]), rank)], unheard)["step"].to_pylist())
            elif "analysis_db" in files:
                table = read_db_steps(files["analysis_db"], rank, unheard)
                found |= set() if table is None else set(table["step"].to_pylist())
            elif "profiler_db" in files:
                found |= {one.number for one in read_step_times(files["profiler_db"], unheard)}
    return found


def _common_name(windows: Sequence[Part], taken: Set[str]) -> str:
    """Return the common part of the names of all windows, else `windows`."""
    parts = zip(*(one.name.split("/") for one in windows), strict=False)
    name = "/".join(each[0] for each in parts if len(set(each)) == 1) or _ALL_WINDOWS
    while name in taken:
        name += f"-{_ALL_WINDOWS}"
    return name
