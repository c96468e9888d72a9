"""The numbers that decide more than one question, each in one place."""

from __future__ import annotations

#: With fewer peers than this it is open which one differs: two that disagree are one each.
FEWEST_PEERS = 3
#: Gaps, totals and replays of healthy captures agree to 1-2 %; what is off by more than this is not believed.
TOLERANCE_SHARE = 0.05
#: Halfway between as usual and as slow as the suspect: what lies above counts as slow. The larger half.
HALFWAY = 0.5
#: Nearly all: of steps, ranks, places.
MOSTLY = 0.75
#: Clearly more: this many times as much as others, or as chance makes.
TWICE = 2.0
#: Sigmas from which a value is far away: the tail of healthy ranks, longer than a normal one, ends before.
FAR_SIGMAS = 6.0
#: Sigmas above the others that are not chance, where one question is asked.
CLEAR_SIGMAS = 3.0
#: Degrees of freedom that any comparison has: with fewer nothing is ever improbable.
LEAST_DF = 4.0
