"""The numbers that decide on records, calls and the replay, each with its reason."""

from cluster_analysis.thresholds.common import FEWEST_PEERS, TOLERANCE_SHARE

# Windows.
#: Windows of ranks that began and ended together differ by less: processes stop within a step.
OTHER_LENGTH_SHARE = 0.1
#: How often an operator ran is the same number of iterations where it agrees this well; kernels of the begin
#: and end of a window are counted in one of two ranks.
SAME_COUNT_SHARE = 0.02
#: Kinds of operators that must agree on the number of iterations: others depend on the data.
MOST_KINDS = 0.8
#: A step that was cut is recognised against the steps before it, which must be alike.
FEWEST_WHOLE_STEPS = 2

# Reduction.
#: Share of the data-parallel transfers that computing must cover for them to be on a stream of their own.
FREE_DATA_SHARE = 0.25
#: Other collectives for each of them that it takes to tell, else they are the main stream themselves.
OTHER_CALLS_SHARE = 0.5

# Collectives.
#: Times its usual transfer from which the shortest elapse of an operator holds waiting for a missing rank.
WAITED_FACTOR = 3.0
#: If members were in an operator for this much longer than usual, µs, and at least this many were, the
#: operator lasted that long: that all of them just waited for the one whose record is lost is a rare chance.
STOOD_STILL_US = 200_000.0
ENOUGH_TOGETHER = 10

# Matching.
#: More calls than this missing on one rank: the group's tail is left unmatched instead of searched.
MAX_MISSING = 64

# Absent members.
#: Transfers of one kind in one group scatter by less than this share of themselves.
STEADY_SHARE = 0.1
ENOUGH_STEADY = FEWEST_PEERS
#: Complete operators of a kind that it takes to say what a transfer usually lasts.
ENOUGH_COMPLETE = 2

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

# Copied waiting.
#: A rank's gaps agree with its totals to 1-2 % of them; what is off by more holds waiting.
GAP_TOLERANCE = TOLERANCE_SHARE

# Idle time.
#: Share of a rank's steps whose gaps hold least waiting: they show the idle time during calls.
QUIET_SHARE = 0.25

# Rounds of the replay.
#: Leads that change by less from round to round change no step time that anybody quotes.
SETTLED_US = 20.0

# Message times.
#: This share of the sends between two ranks is quick, whatever holds up the rest, in percent.
QUICK_SENDS_PERCENT = 25
#: A send this many times as long as the quick ones was held up, by its receiver or by the network.
LONG_SEND = 1.5
#: Fewer held-up sends than this say nothing, and change nothing.
MIN_LONG_SHARE = 0.02
#: This share of the messages between two ranks is surely not held up by third ones.
QUICK_QUANTILE = 0.1
#: A receive that takes the transfer, give or take this share, met its sender; so do this many, if sends wait.
MEETING_SPREAD = 0.5
MEETING_SHARE = 0.5
#: A batch this many times as long as its pair of ranks usually takes was held up, if that is this share
#: of all or more.
HELD_UP_FACTOR = 3.0
SHORT_MESSAGE_SHARE = 0.3

# Role gaps.
#: Share of the steps of ranks that must be complete to be laid side by side.
MOST_SHARE = 0.5
