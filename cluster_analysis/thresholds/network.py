"""Slow links, and what is made of them: the numbers that decide, each with its reason."""

from __future__ import annotations

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
