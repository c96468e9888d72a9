"""What the writer of the run directory needs of this machine."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from cluster_collect.store.writer import RunWriter


def test_a_system_that_cannot_flush_one_disk_flushes_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As macOS: its library knows no syncfs."""
    flushed: list[str] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    monkeypatch.setattr(os, "sync", lambda: flushed.append("all"))
    RunWriter(tmp_path, min_free_bytes=0).flush_to_disk()
    assert flushed == ["all"]
