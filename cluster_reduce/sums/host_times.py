"""Host work while its device idled, and before a step's first operator: figures of a timeline.

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
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cluster_reduce.sums.spans import Spans, common, length_of, without

if TYPE_CHECKING:
    from cluster_reduce.sums.spans import Parts

    Figure = tuple[str, str, float]

_NS_PER_US = 1000
#: A kernel that starts sooner after its launch was waited for.
_LAUNCH_US = 50.0
#: Numbers of launches that are looked at together.
_AT_A_TIME = 1 << 20


class HostTimes:
    """Sums of a timeline, taken up event by event."""

    def __init__(self, has_framework: bool = True) -> None:
        self.has_framework = has_framework
        self.steps: list[tuple[int, int]] = []
        self.busy, self.copies, self.device_copies = Spans(), Spans(), Spans()
        self.synchronising, self.collecting, self.dispatching = Spans(), Spans(), Spans()
        self.loading_ns = 0
        self.has_loader = False
        # Numbers of a call or kernel that belong together, and when each began.
        self.launches, self.starts = array("q"), array("q")

    def figures(self) -> list[Figure]:
        """Return metric, label and value; nothing without steps."""
        if not self.steps:
            return []
        found: list[Figure] = []
        if self.has_loader:
            found.append(("data_loader_us", "", self.loading_ns / _NS_PER_US))
        found += self._dispatch()
        busy = self.busy.merged()
        begins, ends = [begin for begin, _ in busy], [end for _, end in busy]
        heads: Parts = []
        idle = Spans()
        for begin, end in self.steps:
            own = busy[bisect_right(ends, begin) : bisect_left(begins, end)]
            if own:
                heads.append((begin, max(own[0][0], begin)))
                for before, after in zip(own, own[1:]):  # noqa: RUF007 - Python 3.7 has no pairwise
                    idle.add(before[1], after[0])
        if heads and self.has_framework:
            for label, copies in (("host", self.copies), ("device", self.device_copies)):
                found.append(("head_copy_us", label, common(copies.merged(), heads) / _NS_PER_US))
        return found + self._idle(idle.merged())

    def _idle(self, rest: Parts) -> list[Figure]:
        causes: dict[str, Parts] = {
            "synchronising": self.synchronising.merged(),
            "collecting": self.collecting.merged(),
            "dispatching": self.dispatching.merged(),
        }
        if not rest or not any(causes.values()):
            return []
        found: list[Figure] = []
        for label, spans in causes.items():
            found.append(("idle_us", label, common(spans, rest) / _NS_PER_US))
            rest = without(rest, spans)
        return [*found, ("idle_us", "elsewhere", length_of(rest) / _NS_PER_US)]

    def _dispatch(self) -> list[Figure]:
        """How long kernels wait on the device: from the first call with their number to their start."""
        delays = array("q", self._delays())
        if not delays:
            return []
        ordered, middle = sorted(delays), len(delays) // 2
        median = ordered[middle] / _NS_PER_US
        if len(ordered) % 2 == 0:
            median = (ordered[middle - 1] / _NS_PER_US + median) / 2
        late = sum(delay / _NS_PER_US < _LAUNCH_US for delay in delays) / len(delays)
        return [("dispatch_delay_us", "median", median), ("dispatched_late_share", "", late)]

    def _delays(self) -> Iterator[int]:
        n_parts = 1 + len(self.launches) // (2 * _AT_A_TIME)
        for part in range(n_parts):
            first: dict[int, int] = {}
            for number, begin in _pairs(self.launches):
                if number % n_parts == part and begin < first.get(number, begin + 1):
                    first[number] = begin
            for number, begin in _pairs(self.starts):
                if number in first:
                    yield begin - first[number]


def _pairs(values: array[int]) -> Iterator[tuple[int, int]]:
    each = iter(values)
    return zip(each, each)
