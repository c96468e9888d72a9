"""Which calls ran on a stream of their own: the numbers that decide, each with its reason."""

from __future__ import annotations

# Streams.
#: Up to this many times as much they scatter alike.
ALIKE_SCATTER_FACTOR = 1.2
#: Share of a kind's ranks, and of its calls, that must overlap others for it to be on a stream of its own.
REGULAR_RANKS = 0.2
REGULAR_CALLS = 0.1

# Usual gaps.
#: Calls that overlap another one, at most.
MOST_OVERLAPPED = 4
#: Start and elapse are rounded: the next call may seem to begin this much before the last one ends.
ROUNDED_US = 1.0

# Joins.
#: Ends and starts closer than this are the resolution of the time stamps, not an overlap.
TOLERANCE_US = 5.0
#: A host's clock and its device's counter drift apart: long calls end that much later on paper.
DRIFT = 1e-4
#: A side call that begins this soon after another one's end was queued behind it.
QUEUE_US = 100.0
#: Launched late, calls of a queue begin behind each other to this share of what they scatter counted from
#: their issue: on late hosts of models to .01; where something is computed behind each, to .48 at least.
QUEUE_SCATTER = 0.2
#: And so little later that a rank hits it by chance less often than this.
CHANCE_P_VALUE = 0.03
#: Peers that it takes to tell a join from a coincidence, and the share of them that must show it.
ENOUGH_PEERS = 4
FEW_SHARE = 0.5
#: Counted from the begin of computing, gaps of peers scatter by less than this share of waiting's scatter.
WAIT_SCATTER = 0.5

# Computing.
#: Communication that computing covers, from which it is asked where: this share of what a rank computes, and
#: this many µs.
COVERED_SHARE = 0.01
LEAST_COVERED_US = 200.0
#: Covered time may exceed the totals by this share of it.
COVERED_TOLERANCE = 0.1
#: Computing during calls holds idle time, at most this share of it.
MOST_IDLE_SHARE = 0.05
#: Time of computing gradients, as a multiple of the forward pass.
BACKWARD_FACTOR = 2.0
#: Halvings to find the share to which places are filled: to a millionth.
SHARE_HALVINGS = 20
