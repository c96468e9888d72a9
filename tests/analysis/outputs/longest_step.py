"""A report of somebody else: one file, as the registry asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_analysis.result import Reported


def files(given: Reported) -> Iterator[tuple[str, bytes]]:
    """Give one line."""
    yield "longest_step.txt", f"{given.result.document.run.step_ms:.1f} ms\n".encode()
