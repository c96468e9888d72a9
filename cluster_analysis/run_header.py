"""Head of every report: the run's name and place, when it was recorded, how it was analysed.

Findings of the same input are the same bytes. So what findings.json holds asks no clock: the time of the
recording is the one that the profiler wrote into the names of its directories, and the command names what
decides the findings (not how many workers find them, nor where they are written).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from datetime import datetime, timezone

from cluster_analysis.options import AnalyseOptions
from cluster_analysis.tables.model import RankSource, Topology
from cluster_run.findings import Finding, Place
from cluster_run.ids import format_number_ranges

#: `…_20240513120000123_ascend_pt`, `PROF_000001_20240513120000123_…`: year to second, then parts of it.
_STAMP = re.compile(r"(?:^|_)(20\d{12})\d{0,6}(?=_|$)")
#: The password in a URL, which is not shown.
_PASSWORD = re.compile(r"(://[^/:@]*):[^@]*@")
#: Where a build that must be reproducible says what time it is to be taken for.
EPOCH_VARIABLE = "SOURCE_DATE_EPOCH"


def run_command(options: AnalyseOptions) -> str:
    """Return the command line that finds the same findings again."""
    words = ["cluster-analyse", str(options.reported_run)]
    if options.baseline is not None:
        words += ["--baseline", str(options.baseline)]
    for name, numbers in (("--steps", options.selection.steps), ("--ranks", options.selection.ranks)):
        if numbers is not None:
            words += [name, format_number_ranges(numbers)]
    if options.part is not None:
        words += ["--part", options.part]
    if options.fleet:
        words += ["--fleet", _PASSWORD.sub(r"\1@", options.fleet)]
    return shlex.join(words)


def captured_at(sources: Iterable[RankSource]) -> str | None:
    """Return when the newest capture began, by the clock of its host; None where no name says it."""
    names = {part for source in sources for path in source.files.values() for part in path.split("/")}
    found = [stamp for name in names for stamp in _STAMP.findall(name)]
    for stamp in sorted(found, reverse=True):
        # By the host's own clock: no zone is known.
        try:
            return datetime.strptime(stamp, "%Y%m%d%H%M%S").isoformat()
        except ValueError:
            continue
    return None


def analysed_at() -> str | None:
    """Return the time that SOURCE_DATE_EPOCH gives, in UTC; None without it: findings.json holds no clock."""
    seconds = os.environ.get(EPOCH_VARIABLE, "")
    return _utc(datetime.fromtimestamp(int(seconds), timezone.utc)) if seconds.isdecimal() else None


def now() -> str:
    """Return the time for a page that people read, in UTC."""
    return analysed_at() or _utc(datetime.now(timezone.utc))


def _utc(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def places_of(finding: Finding, topology: Topology) -> tuple[Place, ...]:
    """Return where the ranks of a finding are, then both ends of its links; each rank once."""
    ends = [end for link in finding.links for end in (link.src, link.dst)]
    return tuple(
        Place(rank, topology.hosts.get(rank), topology.devices.get(rank))
        for rank in dict.fromkeys((*finding.ranks, *ends))
    )
