"""Outputs held against files that `make gold` renews."""

from __future__ import annotations

import os
from pathlib import Path

GOLD = Path(__file__).parents[2] / "gold" / "reports"


def assert_gold(name: str, text: str) -> None:
    """Hold `text` against a gold file; with RENEW_GOLD=1 write the file instead."""
    path = GOLD / name
    if os.environ.get("RENEW_GOLD") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is missing: make gold"
    assert text == path.read_text(encoding="utf-8"), f"{name} differs: read the difference, then make gold"
