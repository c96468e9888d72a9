"""Waits that no record shows: the numbers that decide, each with its reason."""

from __future__ import annotations

# Unseen waits.
#: Less waiting than this, µs, and than this share of the step, is not looked for.
LEAST_US = 2000.0
LEAST_SHARE = 0.02
#: They go on within this share of the time in which they came.
MOST_SPREAD_SHARE = 0.2
#: Ends of one collective, and clocks, scatter by less than this, µs.
TOGETHER_US = 100.0
#: Idle time in the totals may be less than the waiting by this share, and so many µs.
INEXACT_FACTOR = 1.05
INEXACT_US = 1000.0
#: Share of the groups of one purpose in which the same wait must be found.
MOST_GROUPS_SHARE = 0.75
#: Ranks that idle most, and as many that idle least, are looked at before the rest of a group.
N_EXTREMES = 3
#: A coincidence is believed if chance makes it less often than this.
CHANCE_P_VALUE = 0.03
