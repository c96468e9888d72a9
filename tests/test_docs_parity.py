"""Each test that the table of parity names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_test_that_the_parity_table_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "parity.md").read_text()))
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^\s*(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(named) > 25
    assert named - there == set()


def test_every_row_of_the_parity_table_says_how_far_it_goes_and_why_not() -> None:
    rows = [line for line in (ROOT / "docs" / "parity.md").read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith(("| ---", "| mode", "| page"))]
    assert len(rows) > 50
    for row in rows:
        _, _, how, test = (cell.strip() for cell in row.strip("|").split("|"))
        grade, _, reason = how.partition(":")
        assert grade.split()[0] in ("better", "equal", "partly", "not"), row
        assert reason or grade in ("better", "equal"), row
        assert test or grade.startswith("not"), row
