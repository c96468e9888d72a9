"""Analysed runs, as those of the fleet's tests."""

from __future__ import annotations

from tests.fleet.conftest import runs

__all__ = ["runs"]
