"""Numbers that more than one question asks for: each in one place."""

from __future__ import annotations

#: With fewer peers than this nobody can say which of them differs: two that disagree are one each.
FEWEST_PEERS = 3
#: Gaps, totals and replays of healthy captures agree to 1-2 %; what is off by more than this is not believed.
TOLERANCE_SHARE = 0.05
#: Halfway between as usual and as slow as the suspect: what lies above counts as slow.
HALFWAY = 0.5
#: What lasts so much longer than usual, µs, is an event that somebody has to look at.
EVENT_US = 200_000.0
