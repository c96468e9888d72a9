"""Slow links, and what is made of them: the numbers that decide, each with its reason."""

from __future__ import annotations

from cluster_analysis.thresholds.common import FEWEST_PEERS

# Links.
#: Below this an operator's time is latency, whatever the bandwidth.
SMALL_BYTES = 100e3
#: Quantile of a class of links that is surely healthy: most links of a job are.
HEALTHY_QUANTILE = 0.3
#: 910A: devices of one half of a host, meshed by HCCS; PCIe lies between the halves.
DEVICES_PER_BOARD = 4
#: Share of a healthy link's observations that are slow for a moment, at least.
CONTENTION_RATE = 0.03
#: The same for moments that are slower than contention makes them.
BEYOND_CONTENTION_RATE = 0.003
#: An observation is as slow as a link's level from this share of it on (of logarithms).
AS_SLOW_SHARE = 0.75

# Link events.
#: Others of its kind that say how long an entry usually lasts.
ENOUGH_OTHERS = 2

# Cover.
#: A hypothesis about more than one link must be seen on at least this many, or it is not separable.
MIN_LINKS = FEWEST_PEERS

# Slow network.
#: An operator that takes this part of its transports' times together uses one after the other.
IN_TURN_SHARE = 0.9

# Group transfers.
#: Teams of one class that are needed for a reference.
FEWEST_TEAMS = FEWEST_PEERS

# Retransmission.
#: Links that alone show their events, as many as are named one by one.
MOST_LINKS = 8

# Retries.
#: So many standard deviations more retries than the other ranks have are this part's own.
RETRY_SIGMAS = 3.0
