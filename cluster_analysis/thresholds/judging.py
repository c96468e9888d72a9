"""The numbers that decide what is slow, and what it costs, each with its reason."""

from cluster_analysis.thresholds.common import TOLERANCE_SHARE

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

# Links.
#: A link is slow if it takes this much longer for the same bytes, or more. Others see none below it either
#: (Greyhound, ATC'25), and such a link costs 1 % of the step of a simulated job of 64 ranks.
LINK_EFFECT = 0.10
#: Below this an operator's time is latency, whatever the bandwidth.
SMALL_BYTES = 100e3
#: Quantile of a class of links that is surely healthy: most links of a job are.
HEALTHY_QUANTILE = 0.3
#: What a part that may be broken costs, in slow links: as few parts as possible explain them all.
PRICE_OF_PART = 1.0
#: The same for each healthy link that it would make slow: one weighs as much as two slow ones.
PRICE_OF_HEALTHY = 2.0

# Whatif.
#: A step whose replay is off by more is not asked what a repair saves, while half of the steps can be.
GOOD_ERROR = TOLERANCE_SHARE
#: Suspects that are repaired one after the other, the costliest; as many hosts are taken for late ones, and
#: twice as many alarms repaired but for one: these, and those that lose most. The rest costs less.
N_IN_TURN = 4

# Placement.
#: TP/CP peers that it takes to say where in the step a device loses its time.
ENOUGH_TP_CP_PEERS = 2
#: Gaps shorter than this share of the mean hold no computing to speak of.
LEAST_WORK = 0.05
#: Where all wait for one late rank inside kernels, this share of what they wait beyond their quickest call is
#: chance, for which all wait once the rank is repaired: .08 to .55 on 17 jobs of `flows`, .33 in the middle.
CHANCE_SHARE = 1.0 / 3.0

# Attribution.
#: Waiting below this a step is not reported.
LEAST_WAITING_US = 200.0
#: Rows of a chain: who waits, through which group.
N_LINKS_OF_CHAIN = 4

# Detection.
#: Healthy ranks that are "repaired" to see what that alone seems to save, and findings that get a chain.
N_PLACEBOS = 2
N_CHAINS = 5
#: Peers that a finding names, to be opened beside its own ranks: one could be odd itself.
N_PEERS_NAMED = 2

# Open questions.
#: Ratio of a repair's upper saving to its lower one from which on its cost is unknown.
WIDE_INTERVAL = 1.5
#: If a rank was late by this share of the extra communication of all, the step may be that rank's.
LATE_SHARE = 0.1

# Baseline.
#: Changes smaller than this are not worth a line, however certain; of ranks and links not even as much as
#: makes one of them slow.
LEAST_CHANGE = 0.01
#: Half-width of the band in standard errors: 99 % for a normal distribution.
BAND_SIGMAS = 2.576
#: Two runs of one job differ by this between them (placement, clocks), besides what steps show.
RUN_TO_RUN_SHARE = 0.002
