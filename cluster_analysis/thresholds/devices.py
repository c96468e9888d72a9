"""Slow ranks and hosts, their kernels and their pauses: the numbers that decide, each with its reason."""

from __future__ import annotations

# Computing.
#: Healthy devices of one kind scatter by 0.1 to 3 % (own measurements; Sinha et al., SC'22), most by this
#: much.
HEALTHY_SIGMA = 0.005

# Idle time.
#: It differs between healthy hosts by this share of itself, before the first operator too (CPU load, NUMA):
#: no fault below. Two pauses as alike as this have one cause; two different ones rarely agree so well.
IDLE_SIGMA = 0.15
#: Share of its steps in which a healthy rank or host stands still by accident.
ACCIDENTS = 0.02

# Kernels.
#: Kinds of kernels below this share of a device's computing explain nothing.
SMALL_SHARE = 0.02
#: Kinds of kernels that are named.
N_NAMED = 3

# Steady kernels.
#: Types whose times scatter among peers by up to this much do the same work on all of them, where samples
#: hardly differ from step to step (devices of one kind do by up to a percent). Where they do, types know no
#: samples whose times scatter by so many times less than usual. Slower than half of it on the whole, or there
#: is nothing for kernels to explain.
STEADY_SIGMA = 0.02
STEADIER_FACTOR = 1.5
#: In the names of kernels that update weights.
OPTIMIZERS = ("adam", "momentum", "adagrad", "rmsprop", "lamb", "lars", "sgd")
