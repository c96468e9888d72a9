"""Failures as the manifest tells them: the word, the reason and the advice, and no address in them.

All programs show hosts by their numbers, unless asked for addresses. The result of the
collection itself names them, for the person who has to log in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import HostSpec
from cluster_run.host_names import IPV4, IPV6
from cluster_run.ids import HostId
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
    jumps = [part.rpartition("@")[2].partition(":")[0] for part in (spec.jump or "").split(",")]
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


class DiscreetListener(ProgressListener):
    """Passes all progress on in the same way (`--hide-addresses`).

    `names` returns what else the servers on the way to a host are called.
    """

    def __init__(
        self,
        listener: ProgressListener,
        specs: Mapping[HostId, HostSpec],
        names: Callable[[HostSpec], Mapping[str, str]],
    ) -> None:
        self._specs = specs
        self._names = names
        self._listener = listener

    def host_started(self, host: HostId) -> None:
        """Pass it on."""
        self._listener.host_started(host)

    def plan_known(self, host: HostId, n_files: int, n_bytes: int) -> None:
        """Pass it on."""
        self._listener.plan_known(host, n_files, n_bytes)

    def bytes_received(self, host: HostId, n_bytes: int) -> None:
        """Pass it on."""
        self._listener.bytes_received(host, n_bytes)

    def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
        """Pass it on."""
        self._listener.file_stored(host, path, size_bytes)

    def retrying(self, host: HostId, reason: str, wait_s: float) -> None:
        """Pass it on."""
        self._listener.retrying(host, self._hidden(host, reason), wait_s)

    def noted(self, host: HostId, text: str) -> None:
        """Pass it on."""
        self._listener.noted(host, self._hidden(host, text))

    def host_finished(self, outcome: HostOutcome) -> None:
        """Pass it on."""
        spec = self._specs[outcome.host]
        self._listener.host_finished(without_addresses(outcome, spec, self._names(spec)))

    def _hidden(self, host: HostId, text: str) -> str:
        return hidden(text, self._specs[host], self._names(self._specs[host]))
