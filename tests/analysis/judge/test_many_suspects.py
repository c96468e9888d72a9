"""However many suspects of one kind there are, none of another kind is dropped before its cost is known."""

from __future__ import annotations

from cluster_analysis.thresholds.limits import Thresholds
from cluster_simulate.api import JobSpec
from tests.analysis.jobs import judged

JOB = JobSpec(tp=8, pp=1, dp=4, steps=5, microbatches=2)
#: Of each host's mesh the links between neighbours: too few at any rank to be its port's.
MESHES = range(0, 32, 8)
SLOW_LINKS = [f"slow_link:1.3@{first + n}-{first + n + 1}" for first in MESHES for n in range(0, 8, 2)]
SLOW_LINKS += [f"slow_link:1.3@{first + n}-{first + 7 - n}" for first in MESHES for n in range(3)]
SLOW = 5


def test_a_slow_device_is_told_among_dozens_of_slow_links() -> None:
    found = judged(JOB, f"slow_rank:1.3@{SLOW}", *SLOW_LINKS)
    assert len(found.of_kind("slow_link")) == Thresholds().max_info  # the others are costed, and cost less
    (rank,) = found.of_kind("slow_rank")
    assert rank.ranks == (SLOW,)
    assert rank.is_alarm
