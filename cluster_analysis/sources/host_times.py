"""Work of the host: before the first operator of a step, and while its device idled.

Calls of the host nest: a copy calls others of its name. So times are unions of spans, never sums.

| metric | label | what |
| --- | --- | --- |
| head_copy_us | host | in `aten::copy_` before a step's first operator, summed over steps |
| head_copy_us | device | copies that the device made meanwhile |
| idle_us | synchronising, collecting, dispatching, elsewhere | the host while its device ran nothing |
| dispatch_delay_us | median | from the launch of a kernel on the host to its start on the device |
| dispatched_late_share | | kernels that started within 50 µs of their launch: the device waited for it |

Idle time lies between the first and the last operator of a step, summed over steps: that is its free time.
Collecting is Python's garbage collector, where it was recorded (`gc_detect_threshold` of torch_npu).
Spans are int64 (N, 2): begin and end, ns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from cluster_analysis.sources import numbers
from cluster_analysis.tables.schema import Counter

#: Events that free_analysis of msprof-analyze takes for a launch.
_LAUNCH_US = 50.0
Spans = npt.NDArray[np.int64]


class HostTimes(Struct, frozen=True):
    """A capture's records of the host, and of the time its device had nothing to run.

    `causes` holds the host's calls by cause of waiting: a moment counts for the first cause that holds.
    """

    steps: Spans
    busy: Spans
    copies: Spans
    device_copies: Spans
    causes: Mapping[str, Spans]
    delays_us: npt.NDArray[np.float64]
    has_framework: bool

    def counters(self) -> list[Counter]:
        """Return the counters above; none that the capture lacks."""
        heads, idles = [], []
        busy = merged(self.busy)
        for begin, end in self.steps.tolist():
            own = busy[(busy[:, 1] > begin) & (busy[:, 0] < end)]
            if len(own):
                heads.append((begin, max(int(own[0, 0]), begin)))
                idles += list(zip(own[:-1, 1].tolist(), own[1:, 0].tolist(), strict=True))
        found = self._dispatch()
        if self.has_framework and heads:
            head = np.array(heads, np.int64)
            found += [
                ("head_copy_us", "host", _common_us(merged(self.copies), head)),
                ("head_copy_us", "device", _common_us(merged(self.device_copies), head)),
            ]
        if idles and any(len(one) for one in self.causes.values()):
            found += self._idle(merged(np.array(idles, np.int64)))
        return found

    def _idle(self, idle: Spans) -> list[Counter]:
        rest = idle
        found: list[Counter] = []
        for name, spans in self.causes.items():
            whole = merged(spans)
            found.append(("idle_us", name, _common_us(whole, rest)))
            rest = _without(rest, whole)
        found.append(("idle_us", "elsewhere", float((rest[:, 1] - rest[:, 0]).sum()) / numbers.NS_PER_US))
        return found

    def _dispatch(self) -> list[Counter]:
        """How long kernels wait on the device: the slant of the timeline's HostToDevice lines, as numbers.

        Upright lines, a start right behind the launch, mean that the host is too slow.
        """
        if not len(self.delays_us):
            return []
        return [
            ("dispatch_delay_us", "median", float(np.median(self.delays_us))),
            ("dispatched_late_share", "", float(np.mean(self.delays_us < _LAUNCH_US))),
        ]


def as_spans(rows: object) -> Spans:
    """Return begins and ends of events that took any time."""
    spans = np.array(rows, np.int64).reshape(-1, 2)
    return np.asarray(spans[spans[:, 1] > spans[:, 0]])


def merged(spans: Spans) -> Spans:
    """Return the union of spans: those that touch made one, by their begin."""
    if not len(spans):
        return spans
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    ends = np.maximum.accumulate(spans[:, 1])
    first = np.r_[True, spans[1:, 0] > ends[:-1]]
    last = np.r_[np.flatnonzero(first)[1:] - 1, len(spans) - 1]
    return np.stack([spans[first, 0], ends[last]], axis=1)


def _common_us(left: Spans, right: Spans) -> float:
    """Return how long both hold, of two unions."""
    covered = sum(int(one[:, 1].sum() - one[:, 0].sum()) for one in (left, right))
    both = merged(np.concatenate([left, right]))
    return (covered - int((both[:, 1] - both[:, 0]).sum())) / numbers.NS_PER_US


def _without(left: Spans, right: Spans) -> Spans:
    """Return the parts of `left` outside of `right`, both unions."""
    if not len(left) or not len(right):
        return left
    edges = np.unique(np.concatenate([left.ravel(), right.ravel()]))
    begin, end = edges[:-1], edges[1:]
    inside = [
        np.searchsorted(one[:, 0], begin, "right") - np.searchsorted(one[:, 1], begin, "right")
        for one in (left, right)
    ]
    kept = (inside[0] > 0) & (inside[1] == 0)
    return np.stack([begin[kept], end[kept]], axis=1)
