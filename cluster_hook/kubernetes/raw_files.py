"""Whole files of the ranks that the findings name, from the nodes' own disks, after the verdict.

The verdict does not wait for them: the collectors are asked again, with the findings, and a later sweep lays
what they bring beside the results. Nodes are numbered as in the analysis, and not named.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cluster_hook.kubernetes.node_disks import numbered_nodes
from cluster_hook.kubernetes.node_exchange import (
    ONLY_HOST,
    NodeRequest,
    forget,
    read_ended,
    read_request,
    requests,
    write_request,
)
from cluster_run.errors import InputError, in_words
from cluster_run.files import write_bytes_whole
from cluster_run.ids import HostId
from cluster_run.layout import FINDINGS_NAME, host_directory
from cluster_tell.outcome import Outcome

#: Beside the results of a job: a run directory of the ranks to look at.
RAW_NAME = "raw"
_PARTIAL_NAME = "raw.partial"
_SUFFIX = ".raw"


def with_raw_asked(outcome: Outcome, asked: Path | None, work_dir: str) -> Outcome:
    """Ask the collectors, which `asked` has asked before, for the suspects; return the outcome.

    If no finding names a rank, nothing is asked; if asking fails, the verdict stands.
    """
    request = None if asked is None else read_request(asked)
    names_somebody = outcome.verdict is not None and outcome.verdict.alarms
    if asked is None or request is None or outcome.results is None or not names_somebody:
        return outcome
    again = asked.with_name(asked.name + _SUFFIX)
    try:
        again.mkdir(parents=True, exist_ok=True)
        write_bytes_whole(again / FINDINGS_NAME, (outcome.results / FINDINGS_NAME).read_bytes())
        write_request(again, replace(request, asked_s=time.time(), suspects_for=work_dir))
    except OSError as error:
        why = f"raw files of the suspects: {error.strerror or error}"
        return replace(outcome, reason="; ".join(filter(None, (outcome.reason, why))))
    return outcome


def bring_raw(
    exchange: Path | None, results: Path, now_s: float, patience_s: float
) -> Iterator[tuple[str, str]]:
    """Put what the collectors brought beside the results; a collector that is silent for too long is given
    up.

    Yield where below `results` each job's are, and what is to be said of it.
    """
    if exchange is None:
        return
    for asked, request in list(requests(exchange)):
        waiting = [node for node in request.nodes if read_ended(asked / node) is None]
        if not request.suspects_for or (waiting and now_s - request.asked_s <= patience_s):
            continue
        try:
            text = _brought(asked, request, results)
        except (InputError, OSError) as error:
            text = f"raw files of its suspects: {in_words(error)}"
        yield request.suspects_for, text
        forget(asked)


def _brought(asked: Path, request: NodeRequest, results: Path) -> str:
    """Copy the parts of all nodes, and say what came."""
    work_dir = results / request.suspects_for
    # The collectors may write here too, and they are other pods.
    if not work_dir.resolve().is_relative_to(results.resolve()) or not work_dir.is_dir():
        raise InputError(f"{request.suspects_for!r} is no directory of results")
    partial, run = work_dir / _PARTIAL_NAME, work_dir / RAW_NAME
    shutil.rmtree(partial, ignore_errors=True)
    missing = []
    for number, node in enumerate(numbered_nodes(request, work_dir), start=1):
        part = host_directory(asked / node, ONLY_HOST)
        if (reason := read_ended(asked / node)) != "":
            missing.append(f"host {number}: {reason or 'its collector did not answer'}")
        if part.is_dir() and not part.is_symlink():
            shutil.copytree(part, host_directory(partial, HostId(str(number))), symlinks=True)
    lost = f"; {'; '.join(missing)}" if missing else ""
    if not partial.is_dir():
        return f"no raw files of its suspects came{lost}"
    shutil.rmtree(run, ignore_errors=True)
    partial.rename(run)
    return f"raw files of its suspects are in {RAW_NAME}{lost}"
