"""Sends and receives that a rank's files lack: the numbers that decide, each with its reason."""

from __future__ import annotations

from cluster_analysis.thresholds.common import HALFWAY

# Messages.
#: A rank that lacks more of its messages than this did something else than its stage.
MAX_MISSING_SHARE = HALFWAY
#: A sender waits for its receiver that does not leave before it came in this share of the replicas.
MOSTLY_SHARE = 0.9
#: A rank works at most so much faster or slower than its replicas.
MOST_PACE_FACTOR = 10.0
#: Replicas that are asked for the order of calls, and how many more calls than the rank has there they show.
N_ASKED = 5
N_FURTHER = 4
