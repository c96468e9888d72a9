"""Slow ranks, their kernels and their pauses: the numbers that decide, each with its reason."""

from __future__ import annotations

# Clocks.
#: A clock so many standard deviations of its peers' below theirs is no chance.
CLOCK_SIGMAS = 3.0

# Kernels.
#: Kinds of kernels below this share of a device's computing explain nothing.
SMALL_SHARE = 0.02
#: Slower than this on the whole, or there is nothing to explain.
LEAST_EXCESS = 0.01
#: Slow kinds with this share of the time are all that matter.
NEARLY_ALL_SHARE = 0.9
#: Other numbers of calls, by more than this share, are other work.
AS_OFTEN_SHARE = 0.01
#: Kinds of kernels that are named.
N_NAMED = 3

# Steady kernels.
#: Types whose times scatter among peers by up to this much do the same work on all of them, where samples
#: hardly differ from step to step (devices of one kind do by up to a percent). Where they do, types know no
#: samples whose times scatter by so many times less than usual.
STEADY_SIGMA = 0.02
STEADIER_FACTOR = 1.5
#: A type that is so many sigmas less slow than the steady ones says that it is not the device.
MOST_SIGMAS = 2.0

# Pauses.
#: Two pauses as alike as this have one cause; the chance of two different ones rarely agrees so well.
ALIKE_SHARE = 0.15
#: Accidents are as alike by chance as their lengths differ (as a share of them), and no less often than this.
LEAST_ALIKE_SHARE = 0.03
#: Healthy ranks pause by accident in so many of their steps; a job's own rate counts beside that of so many.
USUAL_RATE = 0.004
USUAL_CELLS = 100
#: All ranks pause where a step idles longer than usual by so many of the smallest effects of one rank.
JOB_PAUSE_FACTOR = 4
