"""Healthy jobs that differ by chance alone: the fast suite tries the first one, the whole suite all.

Two show that it is no luck that nobody is blamed; what a fault looks like is shown by one. How often either
holds is measured by `benchmarks.detection`.
"""

from __future__ import annotations

from typing import Any

import pytest


def seeds(first: int, *others: int) -> list[Any]:
    """Return the values of a parameter, of which all but the first are slow."""
    return [first, *(pytest.param(one, marks=pytest.mark.slow) for one in others)]
