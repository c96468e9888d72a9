"""The replay of a job: the numbers that decide, each with its reason."""

from __future__ import annotations

from cluster_analysis.thresholds.common import TOLERANCE_SHARE

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
