"""Failures as the manifest tells them: the word, the reason and the advice, and no address in them.

Whoever reads a run directory shows hosts by their numbers, unless asked for addresses. The result of the
collection itself names them, for the person who has to log in.
"""

from __future__ import annotations

import re
from dataclasses import replace

from cluster_collect.spec import HostSpec
from cluster_run.manifest import HostOutcome

#: The server that a reason is about stands in front of it; a path has a slash, and stays.
_SERVER = re.compile(r"^\[?[\w.%:-]+\]?(?::\d+)?: ")
_NUMERIC = re.compile(
    r"(?<![\w.:])\[?(?:(?:\d{1,3}\.){3}\d{1,3}|(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?:%\w+)?)\]?(?::\d{1,5})?(?![\w.:])"
)


def without_addresses(outcome: HostOutcome, spec: HostSpec) -> HostOutcome:
    """Return an outcome whose reason and advice name neither the host's addresses nor those of jump hosts."""
    jumps = [part.rpartition("@")[2].partition(":")[0] for part in (spec.jump or "").split(",")]
    names = {
        **dict.fromkeys(jumps, "the jump host"),
        spec.server_id: "the host",
        spec.address: "the host",
    }
    return replace(
        outcome,
        reason=_cleaned(_SERVER.sub("", outcome.reason, count=1), names),
        advice=_cleaned(outcome.advice, names),
    )


def _cleaned(text: str, names: dict[str, str]) -> str:
    for name in sorted(filter(None, names), key=len, reverse=True):
        text = re.sub(rf"(?<![\w./-])\[?{re.escape(name)}\]?(?::\d{{1,5}})?(?![\w/-])", names[name], text)
    return _NUMERIC.sub("an address", text)
