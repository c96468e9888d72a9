"""Slow hosts: the numbers that decide, each with its reason."""

from __future__ import annotations

# Slow host.
#: Idle time, also that before the first operator, differs between healthy hosts by this share of itself (CPU
#: load, NUMA): no fault below.
HOST_IDLE_SIGMA = 0.15
#: All ranks may pause in half of the steps (garbage collection, checkpoints). Steps up to this quantile have
#: no pause: where the middle of the steps is clearly more than they have, that is what is usual.
CALM_QUANTILE = 0.25
#: Degrees of freedom that the assumption on idle time is worth, and those of a tail with many peers.
PRIOR_DF = 14
TAIL_DF = 30
#: Of few units the median deviation says little: the largest, divided by this, counts too.
FEW_UNITS_FACTOR = 1.5
#: How healthy hosts' idle time scatters is an assumption, not a measurement of this job's.
IDLE_CAUTION_FACTOR = 5.0
#: Peer hosts that it takes to say how a healthy one scatters: among fewer, the median of all that is taken
#: out of each step is mostly one of them, which then seems steady.
ENOUGH_HOSTS = 5
#: Degrees of freedom from which replicas tell how a host's level scatters over steps.
ENOUGH_UNITS_DF = 20.0
