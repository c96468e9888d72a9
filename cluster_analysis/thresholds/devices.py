"""Slow ranks and hosts, their kernels and their pauses: the numbers that decide, each with its reason."""

from __future__ import annotations

# Hosts.
#: Idle time, also that before the first operator, differs between healthy hosts by this share of itself (CPU
#: load, NUMA): no fault below.
HOST_IDLE_SIGMA = 0.15
#: All ranks may pause in half of the steps (garbage collection, checkpoints): steps up to here are usual.
CALM_QUANTILE = 0.25

# Kernels.
#: Kinds of kernels below this share of a device's computing explain nothing.
SMALL_SHARE = 0.02
#: Slower than this on the whole, or there is nothing to explain.
LEAST_EXCESS = 0.01
#: Slow kinds with this share of the time are all that matter.
NEARLY_ALL_SHARE = 0.9
#: Kinds of kernels that are named.
N_NAMED = 3

# Steady kernels.
#: Types whose times scatter among peers by up to this much do the same work on all of them, where samples
#: hardly differ from step to step (devices of one kind do by up to a percent). Where they do, types know no
#: samples whose times scatter by so many times less than usual.
STEADY_SIGMA = 0.02
STEADIER_FACTOR = 1.5

# Pauses.
#: Two pauses as alike as this have one cause; the chance of two different ones rarely agrees so well.
ALIKE_SHARE = 0.15
