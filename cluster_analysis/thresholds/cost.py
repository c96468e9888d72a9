"""Thresholds of costs and of their reporting, each with its reason."""

from __future__ import annotations

from cluster_analysis.thresholds.common import TOLERANCE_SHARE

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
