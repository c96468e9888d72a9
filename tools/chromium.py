"""Debian's Chromium for Playwright: the one without windows where it is, for half the processor time."""

from __future__ import annotations

import shutil

MISSING = "chromium is not installed (Debian: apt-get install chromium-headless-shell)"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def find_chromium() -> str | None:
    """Return the path of a Chromium, None where there is none."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")
