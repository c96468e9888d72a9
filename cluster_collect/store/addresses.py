"""Failures as the manifest tells them: the word, the reason and the advice, and no address in them.

All programs show hosts by their numbers, unless asked for addresses. The result of the
collection itself names them, for the person who has to log in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from cluster_collect.spec import HostSpec, parse_server
from cluster_run.host_names import IPV4, IPV6
from cluster_run.manifest import HostOutcome

#: A jump host that a reason is about stands in front of it; a path has a slash, and stays.
_SERVER = re.compile(r"^\[?[\w.%:-]+\]?(?::\d+)?: ")
_NUMERIC = re.compile(rf"(?<![\w.:])\[?(?:{IPV4}|{IPV6})\]?(?::\d{{1,5}})?(?![\w.:])")


def without_addresses(outcome: HostOutcome, spec: HostSpec, called: Mapping[str, str]) -> HostOutcome:
    """Return an outcome whose reasons and advice name neither the host's addresses nor those of jump hosts.

    `called` has further names of servers, and what to say instead.
    """
    return replace(
        outcome,
        reason=hidden(outcome.reason, spec, called),
        raw_because=hidden(outcome.raw_because, spec, called),
        advice=_cleaned(outcome.advice, _names(spec, called)),
    )


def hidden(text: str, spec: HostSpec, called: Mapping[str, str]) -> str:
    """Return a message about a host without names and addresses of servers, as `without_addresses`."""
    return _cleaned(_SERVER.sub("", text, count=1), _names(spec, called))


def _names(spec: HostSpec, called: Mapping[str, str]) -> dict[str, str]:
    jumps = [parse_server(part).name for part in (spec.jump or "").split(",")]
    return {
        **called,
        **dict.fromkeys(jumps, "the jump host"),
        spec.server_id: "the host",
        spec.address: "the host",
    }


def _cleaned(text: str, names: dict[str, str]) -> str:
    for name in sorted(filter(None, names), key=len, reverse=True):
        text = re.sub(rf"(?<![\w./-])\[?{re.escape(name)}\]?(?::\d{{1,5}})?(?![\w/-])", names[name], text)
    return _NUMERIC.sub("an address", text)
