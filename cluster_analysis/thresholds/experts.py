"""Experts of unequal load: the numbers that decide, each with its reason."""

from __future__ import annotations

#: Holders of experts that it takes to say that they differ.
FEWEST_HOLDERS = 4
#: Their spread must be this many times what chance makes of it.
NOISE_FACTOR = 2.0
