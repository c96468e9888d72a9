"""Two runs of one job: the numbers that decide, each with its reason."""

from __future__ import annotations

# Baseline.
#: Changes smaller than this are not worth a line, however certain; of ranks and links not even as much as
#: makes one of them slow.
LEAST_CHANGE = 0.01
#: Half-width of the band in standard errors: 99 % for a normal distribution.
BAND_SIGMAS = 2.576
#: Two runs of one job differ by this between them (placement, clocks), besides what steps show.
RUN_TO_RUN_SHARE = 0.002
