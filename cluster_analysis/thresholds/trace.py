"""One step of all ranks, and what of it is missing: the numbers that decide, each with its reason."""

from __future__ import annotations

from cluster_analysis.thresholds.common import FEWEST_PEERS

# Reduction.
#: Share of the data-parallel transfers that computing must cover for them to be on a stream of their own.
FREE_DATA_SHARE = 0.25
#: Other collectives for each of them that it takes to tell, else they are the main stream themselves.
OTHER_CALLS_SHARE = 0.5

# Collectives.
#: Times its usual transfer from which the shortest elapse of an operator holds waiting for a missing rank.
WAITED_FACTOR = 3.0
#: If members were in an operator for this much longer than usual, µs, and at least this many were, the
#: operator lasted that long: that all of them just waited for the one whose record is lost is a rare chance.
STOOD_STILL_US = 200_000.0
ENOUGH_TOGETHER = 10

# Matching.
#: More calls than this missing on one rank: the group's tail is left unmatched instead of searched.
MAX_MISSING = 64

# Absent members.
#: Transfers of one kind in one group scatter by less than this share of themselves.
STEADY_SHARE = 0.1
ENOUGH_STEADY = FEWEST_PEERS
#: Complete operators of a kind that it takes to say what a transfer usually lasts.
ENOUGH_COMPLETE = 2
