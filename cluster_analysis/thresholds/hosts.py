"""Slow hosts: the numbers that decide, each with its reason."""

from __future__ import annotations

# Slow host.
#: Idle time, also that before the first operator, differs between healthy hosts by this share of itself (CPU
#: load, NUMA): no fault below.
HOST_IDLE_SIGMA = 0.15
#: All ranks may pause in half of the steps (garbage collection, checkpoints): where the middle is this many
#: times the lower quartile of steps, that is what is usual.
PAUSED_FACTOR = 2.0
#: Steps up to this quantile have no pause.
CALM_QUANTILE = 0.25
#: Hosts above the middle by this share of the smallest effect get a closer look.
WORTH_SHARE = 0.3
#: Degrees of freedom that the assumption on idle time is worth, and those of a tail with many peers.
PRIOR_DF = 14
TAIL_DF = 30
#: Of so few units the median deviation says little: the largest, divided by this, counts too.
FEW_UNITS = 4
FEW_UNITS_FACTOR = 1.5
#: Where the scatter from step to step is this large a part of the scale, its degrees of freedom count.
COMPARABLE_SHARE = 0.5
#: However few steps and hosts there are, their ranks agree on how a step differs.
LEAST_STEP_DF = 4.0
#: How healthy hosts' idle time scatters is an assumption, not a measurement of this job's.
IDLE_CAUTION_FACTOR = 5.0
#: A slow host with a single peer host holds at least this part of the difference itself.
OWN_PART = 0.25
#: Slow ranks that make a slow host.
FEWEST_SLOW = 2
#: Peer hosts that it takes to say how a healthy one scatters: among fewer, the median of all that is taken
#: out of each step is mostly one of them, which then seems steady.
ENOUGH_HOSTS = 5
#: The same for idle time, of which it is known how healthy hosts differ.
ENOUGH_IDLE_HOSTS = 3
#: Degrees of freedom from which replicas tell how a host's level scatters over steps.
ENOUGH_UNITS_DF = 20.0
