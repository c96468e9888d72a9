"""How long to wait before the next attempt."""

from __future__ import annotations

import random


def backoff_s(attempt: int, first_s: float, most_s: float, chance: random.Random) -> float:
    """Return a random wait after attempt number `attempt` (from 1): a doubling bound, full jitter."""
    bound = min(most_s, first_s * 2 ** min(attempt - 1, 32))
    return chance.uniform(0.0, bound)
