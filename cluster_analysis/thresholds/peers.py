"""How far ranks lie from their peers: the numbers that decide, each with its reason."""

from __future__ import annotations

from cluster_analysis.thresholds.common import TOLERANCE_SHARE

# Deviation.
#: The largest deviations of all, each so many times what healthy ranks scatter by, are no rank's chance.
RECORD_SIGMAS = 4.0
#: Up to so many peers a role's own scale is shrunk to that of all roles, which is worth so many degrees of
#: freedom more.
FEW_PEERS = 16
FEW_PEERS_DF = 6.0
#: With more rows, leaving one out changes no median that matters.
MANY_ROWS = 32

# Dense.
#: A pause sits in one place, not everywhere: with more idle time beyond its peers' than this share of its
#: computing, nobody knows how much of a rank's gaps it computed.
MOST_PAUSE_SHARE = 0.02
#: Gaps that exceed a rank's local time by a larger share hold waiting for others.
MOST_WAITING_SHARE = TOLERANCE_SHARE
#: With less of its time outside of experts, that part of a job says little on the rest.
LEAST_DENSE_SHARE = 0.1
