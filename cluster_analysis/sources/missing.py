"""What files of a rank should hold by what its other files say: a file, records, the same sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from os.path import basename

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources.places import Place, Places
from cluster_analysis.sources.reading import Reading
from cluster_analysis.tables.model import RankMetadata
from cluster_run.facts import fact

_LEVEL_WITHOUT_DEVICE = "Level_none"
_LEVEL_WITHOUT_COMMUNICATION = "Level0"
_LEVELS_WITH_COMMUNICATION = ("Level1", "Level2")
_MATRIX = "communication_matrix.json"
_DATABASES = ("analysis_db", "communication_db", "profiler_db")
_COMMUNICATION = ("communication", *_DATABASES)
#: Roles of files that hold links of all groups; tasks of a database have no RDMA.
_MATRICES = ("matrix", "analysis_db", "communication_db")
#: Links' sums are the operators' on real captures, to the last digit.
_SUMS_AGREE = 0.01


def tell_what_is_missing(
    reading: Reading,
    metadata: RankMetadata,
    steps: Sequence[tuple[int | None, float | None]] | None,
    operators: Places | None,
    links: Places | None,
) -> bool:
    """Add a problem for each thing that is missing in the wanted steps, and that no other problem explains.

    Returns whether links say something else than operators in most places: neither is to be judged then.

    Args:
        reading: the rank's files, and the problems with them.
        metadata: says the profiling level.
        steps: each step, and how long it communicated, µs; None where no file has any.
        operators: where there are operators; None where no file has any.
        links: where there are links; None where no file has any.
    """
    reported = {problem.file for problem in reading.problems}
    files = reading.source.files
    if any(basename(files[role]) in reported for role in _DATABASES if role in files):
        # The damaged database would have held the missing data.
        return False
    if steps is None and "step_trace" not in files:
        is_recorded = metadata.profiler_level != _LEVEL_WITHOUT_DEVICE
        advice = "parse_again_on_host" if is_recorded else "profile_at_level1"
        text = "msprof_*.json" if reading.source.kind == "prof/text" else "step_trace_time.csv"
        reading.problem(fact("no_step_times_of_rank"), _database(files) or text, advice)
    _tell_missing_files(reading, metadata, operators is not None, links is not None)
    wanted = reading.steps
    if wanted is not None:
        steps = steps and [one for one in steps if one[0] in wanted]
        operators, links = (
            one and {at: moved for at, moved in one.items() if at[0] in wanted} for one in (operators, links)
        )
    if steps is not None and operators is not None:
        _tell_silent_steps(reading, reported, steps, {step for step, _ in operators})
    file = next((basename(files[role]) for role in _MATRICES if role in files), "")
    is_told = reported & {file, basename(files.get("communication", ""))}
    if not file or is_told or not operators or links is None:
        return False
    return _tell_links_apart(reading, file, operators, links)


def _tell_missing_files(
    reading: Reading, metadata: RankMetadata, has_communication: bool, has_links: bool
) -> None:
    has_source = any(role in reading.source.files for role in _COMMUNICATION)
    missing = [
        name
        for name, is_there, role in (
            # The table of kernels stands in for it, and names no groups.
            ("communication.json", has_communication and has_source, "communication"),
            (_MATRIX, has_links, "matrix"),
        )
        if not is_there and role not in reading.source.files
    ]
    if not missing:
        return
    if metadata.profiler_level == _LEVEL_WITHOUT_COMMUNICATION:
        kind = "level0_operators" if has_communication else "no_communication_recorded"
        reading.notes.append(fact(kind, ranks=(reading.source.rank,)))
    elif missing == [_MATRIX]:
        reading.problem(fact("matrix_not_there"), _MATRIX, "collect_or_parse")
    else:
        was_recorded = metadata.profiler_level in _LEVELS_WITH_COMMUNICATION
        advice = "collect_or_parse" if was_recorded else "profile_at_level1"
        file = _database(reading.source.files) or missing[0]
        reading.problem(fact("no_communication_data", files=tuple(missing)), file, advice)


def _tell_links_apart(reading: Reading, file: str, operators: Places, links: Places) -> bool:
    """Tell of groups that carried something in a step and have no link, of links without operators or unlike.

    On all real captures there are both. A name that is spoiled in one table costs the links of its group.
    """
    steps = {step for step, _ in operators}  # others are silent
    both = {at for at in operators.keys() & links.keys() if np.isfinite((operators[at], links[at])).all()}
    differing = {at for at in both if not np.allclose(operators[at][1:], links[at][1:], _SUMS_AGREE, 1.0)}
    are_at_odds = len(differing) > len(both) / 2
    kinds: tuple[tuple[str, Set[Place], Set[Place]], ...] = (
        ("no_link_in_it", {at for at, own in operators.items() if own.moved_bytes > 0.0}, links.keys()),
        ("no_operator_of_links", {at for at in links if at[0] in steps}, operators.keys()),
        ("links_differ", both, both - differing if are_at_odds else both),
    )
    why = [
        fact(kind, n_lacking=n, n_groups=len(all_of_them))
        for kind, all_of_them, others in kinds
        if (n := len(all_of_them - others))
    ]
    if why:
        reading.problem(why[0], file, "parse_again", *why[1:])
    return are_at_odds


def _database(files: Mapping[str, str]) -> str:
    """Return the name of the database that would hold what no text does; "" where none is there."""
    return next((basename(files[role]) for role in _DATABASES if role in files), "")


def _tell_silent_steps(
    reading: Reading,
    reported: set[str],
    steps: Sequence[tuple[int | None, float | None]],
    operators: Set[int | None],
) -> None:
    """Tell of steps that communicated by the step times, and that have no operator.

    A file that is whole, and of the right form, can be without them all the same.
    """
    read = (basename(path) for role in _COMMUNICATION if (path := reading.source.files.get(role)))
    name = next(read, None)
    if name is None or name in reported:
        return
    silent = [(step, time_us) for step, time_us in steps if time_us and time_us > 0 and step not in operators]
    if silent:
        why = fact(
            "silent_steps",
            steps=tuple(step for step, _ in silent),
            communication_us=pc.sum(pa.array([time_us for _, time_us in silent])).as_py(),
        )
        reading.problem(why, name, "parse_again")
