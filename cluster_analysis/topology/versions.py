"""Which versions of the profiler wrote a job's captures, and what that forbids to compare.

The start of an operator is the first event of its master plane since May 2026, and of any plane before:
starts of ranks of unlike versions are not compared. Ends mean the same in all.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster_analysis.tables.model import RankMetadata
from cluster_run.facts import Fact, fact
from cluster_run.ids import Rank

_PROFILER = "cann_version"


def unlike_versions(metadata: Mapping[Rank, RankMetadata]) -> tuple[Fact, ...]:
    """Return what is to be known where ranks say that unlike versions recorded them; nothing else."""
    known = {one.versions[_PROFILER] for one in metadata.values() if one.versions.get(_PROFILER)}
    return (fact("unlike_versions", versions=tuple(sorted(known))),) if len(known) > 1 else ()
