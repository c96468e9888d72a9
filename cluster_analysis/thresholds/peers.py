"""How far ranks lie from their peers: the numbers that decide, each with its reason."""

from __future__ import annotations

from cluster_analysis.thresholds.common import FEWEST_PEERS, TOLERANCE_SHARE

# Deviation.
#: Far from its peers is a step of so many sigmas; others' events are the like of it from this part of it on.
EVENT_SIGMAS = 6.0
LIKE_AN_EVENT_SHARE = 0.5
#: So many of the largest deviations, each so many times what healthy ranks scatter by, are no rank's chance.
LEAST_RECORDS = 3
RECORD_SIGMAS = 4.0
#: With fewer steps, what lasts and what varies cannot be told apart.
ENOUGH_STEPS = FEWEST_PEERS
#: Up to so many peers a role's own scale is shrunk to that of all roles, which is worth so many degrees of
#: freedom more.
FEW_PEERS = 16
FEW_PEERS_DF = 6.0
LEAST_DF = 4
#: With more rows, leaving one out changes no median that matters.
MANY_ROWS = 32
#: Standard error of a Theil-Sen slope over that of least squares, for white noise.
THEIL_SEN_ERROR = 1.1

# Dense.
#: A pause sits in one place, not everywhere: with more idle time beyond its peers' than this share of its
#: computing, nobody knows how much of a rank's gaps it computed.
MOST_PAUSE_SHARE = 0.02
#: Gaps that exceed a rank's local time by a larger share hold waiting for others.
MOST_WAITING_SHARE = TOLERANCE_SHARE
#: With less of its time outside of experts, that part of a job says little on the rest.
LEAST_DENSE_SHARE = 0.1
