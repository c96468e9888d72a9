"""Flows that share the parts of a network max-min fairly.

Each part is shared out equally among those that pass it, but for those that cannot use their share as
another part holds them up; what they leave goes to the others (progressive filling, Bertsekas and Gallager,
Data Networks, 6.5.2). Rates change whenever a flow begins or ends. Only flows that have to do with it,
directly or by others between, are looked at then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Rates that differ by less are one rate.
_SAME = 1e-9


class Flow:
    """One transfer. `left` is what is still to be moved, in MB; `rate` MB per ms.

    `owner` is the call, or inverted the message, that it is of, with both ends and MB.
    """

    __slots__ = ("began", "ended", "left", "owner", "path", "rate", "since", "version")

    def __init__(self, path: tuple[int, ...], size_mb: float, owner: tuple[int, int, int, float]) -> None:
        self.path, self.left, self.owner = path, size_mb, owner
        self.rate = self.since = self.began = self.ended = 0.0
        self.version = 0


class Sharing:
    """A network. `strangers` are flows of other jobs by part, which take what they get for as long as set."""

    def __init__(self, capacities: Sequence[float]) -> None:
        self.capacities = list(capacities)
        self.strangers = [0] * len(self.capacities)
        self.users: list[dict[Flow, None]] = [{} for _ in self.capacities]

    def begin(self, flows: Sequence[Flow], now: float) -> list[Flow]:
        """Begin flows; return those whose rate has changed, themselves included."""
        for flow in flows:
            flow.began = flow.since = now
            for part in flow.path:
                self.users[part][flow] = None
        alone: list[Flow] = []
        parts: list[int] = []
        for flow in flows:
            if len(flow.path) == 1 and len(self.users[flow.path[0]]) == 1:
                flow.rate = self.capacities[flow.path[0]] / (1 + self.strangers[flow.path[0]])
                alone.append(flow)
            else:
                parts += flow.path
        return alone + self.refresh(parts, now) if parts else alone

    def end(self, flows: Sequence[Flow], now: float) -> list[Flow]:
        """End flows; return those whose rate has changed."""
        for flow in flows:
            flow.ended, flow.left, flow.rate = now, 0.0, 0.0
            for part in flow.path:
                del self.users[part][flow]
        parts = [part for flow in flows for part in flow.path if self.users[part]]
        return self.refresh(parts, now) if parts else []

    def refresh(self, parts: Iterable[int], now: float) -> list[Flow]:
        """Share out anew what has to do with some parts; return the flows whose rate has changed."""
        flows, seen = self._reached(parts)
        if not flows:
            return []
        rates = self._filled(flows, seen)
        changed = []
        for flow, rate in rates.items():
            flow.left = max(0.0, flow.left - flow.rate * (now - flow.since))
            flow.since = now
            if abs(rate - flow.rate) > _SAME * rate:
                flow.rate = rate
                flow.version += 1
                changed.append(flow)
        return changed

    def _reached(self, parts: Iterable[int]) -> tuple[dict[Flow, None], list[int]]:
        """Return the flows that have to do with some parts, and all parts that these pass."""
        stack = list(dict.fromkeys(parts))
        seen = dict.fromkeys(stack)
        flows: dict[Flow, None] = {}
        while stack:
            for flow in self.users[stack.pop()]:
                if flow not in flows:
                    flows[flow] = None
                    for part in flow.path:
                        if part not in seen:
                            seen[part] = None
                            stack.append(part)
        return flows, list(seen)

    def _filled(self, flows: dict[Flow, None], parts: Sequence[int]) -> dict[Flow, float]:
        """Return each flow's rate: the tightest parts are shared out first."""
        left = {part: self.capacities[part] for part in parts}
        n = {part: len(self.users[part]) + self.strangers[part] for part in parts}
        open_ = {part: len(self.users[part]) for part in parts}
        rates: dict[Flow, float] = {}
        while len(rates) < len(flows):
            shares = {part: left[part] / n[part] for part in parts if open_[part]}
            least = min(shares.values())
            bound = least * (1 + _SAME)
            for part in [part for part, share in shares.items() if share <= bound]:
                for flow in self.users[part]:
                    if flow not in rates:
                        rates[flow] = least
                        for other in flow.path:
                            left[other] = max(0.0, left[other] - least)
                            n[other] -= 1
                            open_[other] -= 1
        return rates
