"""Slow links, and what is made of them: the numbers that decide, each with its reason."""

from __future__ import annotations

# Links.
#: A link is slow from so much longer on, for the same bytes.
LINK_EFFECT = 0.10
#: Below this an operator's time is latency, whatever the bandwidth.
SMALL_BYTES = 100e3
#: Quantile of a class of links that is surely healthy: most links of a job are.
HEALTHY_QUANTILE = 0.3
