"""Thresholds for pairing messages by their times, each with its reason."""

from __future__ import annotations

# Ends.
#: Ends of a message that are less apart, µs, are together.
TOGETHER_US = 1000.0

# Slots.
#: Most numbers of all replicas together, as a multiple of one replica's calls.
MOST_NUMBERS_FACTOR = 1.15

# Coincidences.
#: Clocks that collectives connect agree to about this, and messages arrive about this much later, µs.
CONNECTED_US = 5000.0
#: Logarithm of the odds that differences lie so close together by chance, from which they do not.
EVIDENT_ODDS = 8.0
#: Ends do not coincide if they are apart by more than this many times their usual scatter, and this many µs.
MOST_SIGMA = 5.0
LEAST_TOLERANCE_US = 100.0
#: A call that lasts this many times the scatter of ends has half the weight of a longer one.
LONG_FACTOR = 5.0
LEAST_EVIDENCE_SHARE = 0.1
#: Share of messages that hiccups may let seem to be received before they are sent.
MOST_TOO_EARLY_SHARE = 0.05
#: Ends tell a little more than begins, so that of two that tell the same the ends are believed.
BEGUN_SHARE = 0.9
#: Weight that an end at the edge of the tolerance loses against one in its middle.
EDGE_LOSS_SHARE = 0.9
#: Widths of the windows in which differences of clocks may gather, µs.
WIDTHS_US = (50.0, 200.0, 1000.0, 4000.0)

# Program.
#: A second partner that coincides less often than this share of the first one is an accident.
LEAST_SECOND_SHARE = 0.5
#: Two stages communicate if this share of their calls coincides, and this share of the most that do.
LEAST_STRENGTH = 0.15
LEAST_SHARE = 0.25
#: Extra cost in the next round of a slot claimed twice, as a share of the heaviest edge.
PRICE_STEP = 0.05

# Hints.
#: How much of the waiting a hint must explain to be believed.
LEAST_EXPLAINED_SHARE = 0.9
#: Share of the messages that times tell which a hint must agree with, for the rest to be taken from it.
LEAST_AGREEING_SHARE = 0.8

# Schedules.
#: Model chunks of a stage in an interleaved pipeline, at most.
MAX_CHUNKS = 8
