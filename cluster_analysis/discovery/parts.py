"""Decides which captures are one job: a tree may hold several jobs, and windows, roles and replicas of one.

A part is a set of captures in which no rank is twice. Signs cut a run into parts: the session in a path
(`rank0_start2_stop5`), the folder, the time at which captures began, what is the same in the names of their
hosts, the communication group of all ranks, the host. Some signs leave no rank twice. The one with
fewest parts is right, as a job is no smaller than it must be; among equals the first one counts.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import combinations
from pathlib import Path

from msgspec import Struct

from cluster_analysis.discovery.found import Found, public_name
from cluster_analysis.discovery.ranks import metadata_of
from cluster_run.errors import InputError
from cluster_run.facts import Fact, fact
from cluster_run.ids import Rank, format_number_ranges
from cluster_run.problem import Problem

#: A label for each capture, by its place in the list.
_Labels = Sequence[str]
_Sign = Callable[[Sequence[Found]], _Labels]
#: Processes of one job start within this time.
_START_MS = 60_000
_NUMBER_AT_END = re.compile(r"[-_.]?\d+$")
_FIRST_NUMBER = re.compile(r"^(\D*\d+).*")


class Part(Struct, frozen=True):
    """Captures of one job. `aliases` are further names for it, which are not shown."""

    name: str
    captures: Mapping[Rank, Sequence[Found]]
    aliases: frozenset[str] = frozenset()
    #: Whether other parts are the same job at other times, so that no rank should be missing.
    is_window: bool = False
    #: Windows that are judged together, oldest first, and what is added to the step numbers of each.
    windows: tuple[tuple[int, Part], ...] = ()

    @property
    def began(self) -> tuple[int, int]:
        """Begin and end of its newest capture."""
        used = list(map(newest, self.captures.values()))
        return max(one.stamp for one in used), max(one.ended_ns for one in used)

    @property
    def order(self) -> tuple[int, tuple[int, int], int, int, str]:
        """Sort key: the part with most ranks is analysed, the newest of several, with the windows like it.

        Of copies it is the fullest.
        """
        size_bytes = sum(newest(some).size_bytes for some in self.captures.values())
        return len(self.captures), self.began, len(self.windows), size_bytes, self.name


def newest(captures: Sequence[Found]) -> Found:
    """Return the capture of a rank that is used: the newest, of several of one time (copies) the fullest."""
    if len(captures) == 1:  # nothing is asked of the disk
        return captures[0]
    return max(captures, key=lambda one: (one.stamp, one.ended_ns, one.size_bytes, str(one.directory)))


def split_into_parts(found: Iterable[Found]) -> list[Part]:
    """Return the parts, oldest first; one without a name where no rank is twice."""
    known = [one for one in found if one.rank is not None]
    session: _Labels = [one.window or "unnamed" for one in known]
    if not any(one.window for one in known):
        session = [""] * len(known)
    labels, sign = _best(known, session)
    parts = []
    for label in dict.fromkeys(labels):
        own = [one for one, mine in zip(known, labels, strict=True) if mine == label]
        captures: dict[Rank, list[Found]] = {}
        for one in sorted(own, key=lambda one: one.rank or 0):
            if one.rank is not None:
                captures.setdefault(one.rank, []).append(one)
        is_window = sign in ((), (_by_time,))
        parts.append(Part(label, captures, _aliases(own), is_window))
    return sorted(parts, key=lambda part: (part.began, part.name))


def choose_part(parts: Sequence[Part], wanted: str | None) -> Part:
    """Return the part that `wanted` names, else the newest of those with most ranks.

    Raises:
        InputError: no part, or more than one, is called `wanted`.
    """
    if wanted is None:
        return parts[0] if len(parts) == 1 else max(parts, key=lambda part: part.order)
    for names in (
        [part for part in parts if part.name == wanted],
        [part for part in parts if wanted in part.aliases],
        [part for part in parts if part.name.startswith(f"{wanted}/")],
        [part for part in parts if wanted in part.name],
    ):
        if len(names) == 1:
            return names[0]
        if names and wanted in {part.name.partition("/")[0] for part in names}:
            return max(names, key=lambda part: part.order)
    known = ", ".join(filter(None, (part.name for part in parts))) or "one without a name"
    raise InputError(f"no single capture is called {wanted!r}", f"there are: {known}")


def each_rank_once(part: Part) -> tuple[dict[Rank, Found], list[Problem]]:
    """Return the newest capture of each rank; each rank that has several is a problem."""
    captures, problems = {}, []
    for rank, candidates in part.captures.items():
        captures[rank] = used = newest(candidates)
        if len(candidates) > 1:
            above = Path(os.path.commonpath([one.directory.parent for one in candidates]))
            others = sorted(name for one in candidates if one is not used for name in _names(one, above))
            why = fact(
                "several_captures_of_rank",
                n_captures=len(candidates), used=_folder(used, above), others=tuple(others),
            )  # fmt: skip
            file = public_name(used.directory)
            problems.append(Problem(why, file=file, rank=rank, host=used.host, advice="remove_other_jobs"))
    return captures, problems


def _folder(one: Found, above: Path) -> str:
    """Return what tells a capture's folder from the others below `above`."""
    return (one.directory.parent.relative_to(above) / public_name(one.directory)).as_posix()


def _names(one: Found, above: Path) -> list[str]:
    """Return the paths left out with a capture: its folder, or its files if others lie beside them."""
    if one.kind != "mindspore_r1/text":
        return [_folder(one, above)]
    return [f"{_folder(one, above)}/{path.name}" for path in one.files.values()]


def notes_of(parts: Sequence[Part], chosen: Part) -> tuple[Fact, ...]:
    """Return the notes on parts that are not analysed."""
    notes = []
    if chosen.windows:
        names = tuple(window.name for _, window in chosen.windows)
        notes.append(fact("windows_together", windows=names))
    if len(parts) == 1:
        return tuple(notes)
    names = tuple(part.name or "." for part in parts)
    name = chosen.name or "."
    others = tuple(one for one in names if one != name)
    notes.append(fact("several_captures", captures=names, chosen=name, others=others))
    everyone = {rank for part in parts for rank in part.captures}
    for part in parts:
        missing = everyone - part.captures.keys()
        if missing and part.is_window:
            notes.append(fact("capture_lacks_ranks", capture=part.name or ".", ranks=tuple(sorted(missing))))
    return tuple(notes)


def _best(found: Sequence[Found], session: _Labels) -> tuple[_Labels, tuple[_Sign, ...]]:
    """Return the best label of each capture, and the signs that it is made of."""
    tried: list[tuple[int, int, _Labels, tuple[_Sign, ...]]] = []
    n_of = Counter(zip(session, (one.rank for one in found), strict=True))
    are_few = 2 * sum(n > 1 for n in n_of.values()) < len(n_of)
    for signs_of_round in _FEW if are_few else _ROUNDS:
        for signs in signs_of_round:
            cut = [session, *(sign(found) for sign in signs)]
            labels = ["/".join(filter(None, one)) for one in zip(*cut, strict=True)]
            times = Counter(zip(labels, (one.rank for one in found), strict=True))
            n_twice = sum(n - 1 for n in times.values())
            tried.append((n_twice, len(set(labels)), labels, signs))
        if any(not n_twice for n_twice, *_ in tried):
            break
    best = min(tried, key=lambda one: one[:2])
    return best[2], best[3]


def _by_folder(found: Sequence[Found]) -> _Labels:
    return [one.folder for one in found]


def _by_time(found: Sequence[Found]) -> _Labels:
    """Name each capture after the nearest beginning that the rank with most captures has.

    All have the same name where one has no time in its own.
    """
    by_rank: dict[Rank, list[Found]] = {}
    for one in found:
        if one.rank is not None:
            by_rank.setdefault(one.rank, []).append(one)
    if not all(one.stamp for one in found) or not by_rank:
        return [""] * len(found)
    anchors = _sessions(by_rank)
    return [
        str(min(anchors, key=lambda anchor: (abs(_ms(anchor) - _ms(one.stamp)), anchor))) for one in found
    ]


def _sessions(by_rank: Mapping[Rank, list[Found]]) -> list[int]:
    """Return when the sessions of the rank with most captures began.

    Two processes that began at about the same time are no two sessions: both say that they are this rank,
    as those of MindSpore do that were started without RANK_ID.
    """
    fullest = min(by_rank, key=lambda rank: (-len({one.stamp for one in by_rank[rank]}), rank))
    began: list[int] = []
    latest: Found | None = None
    for one in sorted(by_rank[fullest], key=lambda one: (one.stamp, one.ended_ns, str(one.directory))):
        is_same = (
            latest is not None
            and one.worker != latest.worker
            and _ms(one.stamp) - _ms(latest.stamp) < _START_MS
        )
        if not is_same:
            began.append(one.stamp)
        latest = one
    return sorted(set(began))


def _ms(stamp: int) -> int:
    """Return a stamp of 17 digits (2025 01 01 12 34 56 789) as ms since 1970; any other as it is."""
    try:
        second = datetime.strptime(f"{stamp // 1000:014d}", "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return stamp
    return int(second.timestamp()) * 1000 + stamp % 1000


def _by_name(found: Sequence[Found]) -> _Labels:
    return _named_after_hosts(found, [_NUMBER_AT_END.sub("", one.host_name) for one in found])


def _by_first_number(found: Sequence[Found]) -> _Labels:
    """Label captures by the begin of their names: a number, and the text before it (`rollout-replica4`).

    What follows may be the rank, in one number or several (`dp0_tp1_rank1`).
    """
    return _named_after_hosts(found, [_FIRST_NUMBER.sub(r"\1", one.host_name) for one in found])


def _by_host(found: Sequence[Found]) -> _Labels:
    return _named_after_hosts(found, [one.host or one.host_name for one in found])


def _by_group(found: Sequence[Found]) -> _Labels:
    """Label captures by the communicator of their largest group, which no other job has."""
    declared = (said.groups if (said := metadata_of(one)) else () for one in found)
    sized = ([(len(group.global_ranks), group.group_id) for group in groups] for groups in declared)
    return _named_after_hosts(found, [max(groups, default=(0, ""))[1] for groups in sized])


def _named_after_hosts(found: Sequence[Found], keys: Sequence[str]) -> _Labels:
    """Name parts that differ by names of hosts, which are not shown: by the hosts' numbers, or count them."""
    labels = {}
    for number, key in enumerate(dict.fromkeys(keys), 1):
        hosts = {one.host for one, own in zip(found, keys, strict=True) if own == key}
        numbers = sorted(int(host) for host in hosts if host is not None and host.isdecimal())
        is_known = len(numbers) == len(hosts)
        shown = f"{'host' if len(numbers) == 1 else 'hosts'}-{format_number_ranges(numbers)}"
        labels[key] = shown if is_known else f"job-{number}"
    if len(set(labels.values())) < len(labels):
        labels = {key: f"job-{number}" for number, key in enumerate(labels, 1)}
    return [labels[key] for key in keys]


def _aliases(found: Sequence[Found]) -> frozenset[str]:
    """Return names of all of these captures: folders above them, and their host with or without number."""
    each = [
        {
            one.folder,
            *Path(one.folder).parts,
            one.host_name,
            _NUMBER_AT_END.sub("", one.host_name),
            _FIRST_NUMBER.sub(r"\1", one.host_name),
        }
        for one in found
    ]
    return frozenset(set.intersection(*each) - {"", "/"})


#: Signs together, tried until no rank is twice. Where few ranks are twice they are strays of another time, if
#: anything: the job is not cut because of them.
_FEW: tuple[Sequence[tuple[_Sign, ...]], ...] = (((),), ((_by_time,),))
_ROUNDS: tuple[Sequence[tuple[_Sign, ...]], ...] = (
    ((),),
    ((_by_folder,), (_by_time,), (_by_name,), (_by_first_number,), (_by_group,)),
    ((_by_host,),),
    tuple(combinations((_by_folder, _by_host, _by_time), 2)),
)
