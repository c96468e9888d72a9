"""Whether the profiler has parsed a job's captures: later versions leave `analyse.done` when they have."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from cluster_run.layout import PARSED_MARK_NAME, PARSER_RESTS_S, PROFILER_OUTPUT_NAME

_LOOK_S = 2.0


def wait_until_parsed(root: Path, patience_s: float = 600.0) -> None:
    """Wait for the captures below `root` that are being parsed, `patience_s` seconds at most.

    One that has its mark says that this version of the profiler leaves it; then those without it, whose
    files still change, are waited for. If one is never parsed to its end, the analysis says what is missing.
    """
    # Late: the analysis' own modules bring pyarrow, and most calls of the hook need none of it.
    from cluster_analysis.discovery.walk import walk  # noqa: PLC0415

    end_s = time.monotonic() + patience_s
    outputs = [one / PROFILER_OUTPUT_NAME for one in walk(root).ascend]
    if not any((one / PARSED_MARK_NAME).exists() for one in outputs):
        return
    while any(_is_being_parsed(one) for one in outputs) and time.monotonic() < end_s:
        time.sleep(_LOOK_S)


def _is_being_parsed(output: Path) -> bool:
    if not output.is_dir() or (output / PARSED_MARK_NAME).exists():
        return False
    changed_s = [output.stat().st_mtime]
    with contextlib.suppress(OSError), os.scandir(output) as entries:
        changed_s += [entry.stat().st_mtime for entry in entries]
    return time.time() - max(changed_s) < PARSER_RESTS_S
