"""Who sent what to whom: the numbers that decide, each with its reason."""

from __future__ import annotations

# Plans.
#: Clocks aligned at the ends of collectives agree to about this.
CLOCK_TOLERANCE_US = 1000.0
#: Share of messages that may contradict a schedule (lost records, hiccups of the clocks).
MAX_CONTRADICTED = 0.1
GROUPS_TRIED = 4

# Schedules.
#: Model chunks of a stage in an interleaved pipeline, at most.
MAX_CHUNKS = 8
