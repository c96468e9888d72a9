"""Times as longest paths: a call or block is two points, a duration an edge.

A point's time is the longest way to it. There is no clock and no queue; nothing
shares anything with another model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.models.paths.scripts import Hand, Join, Line, Meet, Work

#: Given the edge's number, its length in ms.
Lengths = Callable[[int], float]


@dataclass(eq=False)
class Entry:
    """One operation of one rank: its two points, and what it is."""

    rank: int
    step: int
    line: Line
    start: int
    end: int = -1
    number: int = 0
    group: str = ""
    members: tuple[int, ...] = ()
    #: The edge that is its own length: computing, or the transfer of all members, or of each message.
    edges: list[int] = field(default_factory=list)
    #: Of a call that takes messages: the edges of those who give them.
    taken: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Edge:
    """What a length stands for: `gap`, `work`, `feed`, `meet`, `hand`, `copy` or `exit`, of which entry."""

    what: str
    rank: int
    step: int
    number: int
    entry: Entry | None = None
    other: int = -1


class Paths:
    """The graph of a job. `add` lines rank by rank in any order; `times` solves it."""

    def __init__(self, groups: dict[str, dict[int, tuple[int, ...]]]) -> None:
        self.groups = groups
        self.edges: list[Edge] = []
        self.entries: list[Entry] = []
        self._into: list[list[tuple[int, int]]] = []
        self._order: list[int] | None = None
        self._now: dict[tuple[int, str], int] = {}
        self._meetings: dict[tuple[object, ...], tuple[int, int]] = {}
        self._calls: dict[tuple[int, str], int] = {}
        self._given: dict[str, tuple[int, int]] = {}
        self._wanted: dict[str, Entry] = {}

    def _point(self, *before: tuple[int, int]) -> int:
        self._into.append(list(before))
        return len(self._into) - 1

    def _edge(self, edge: Edge) -> int:
        self.edges.append(edge)
        return len(self.edges) - 1

    def begin(self, rank: int, step: int) -> None:
        """Begin a step of a rank: all it did is over, and its input is fetched."""
        before = [(self._now[rank, track], -1) for track in ("main", "beside") if (rank, track) in self._now]
        feed = self._edge(Edge("feed", rank, step, step))
        begun = self._point(*before)
        self._now[rank, "begun"] = begun
        self._now[rank, "main"] = self._point((begun, feed))
        self._now.pop((rank, "beside"), None)

    def begun(self, rank: int) -> int:
        """Return the point at which the rank's current step began."""
        return self._now[rank, "begun"]

    def add(self, rank: int, step: int, line: Line) -> None:
        """Add one line of a rank's script."""
        if isinstance(line, Join):
            beside = self._now.pop((rank, "beside"), None)
            if beside is not None:
                self._now[rank, "main"] = self._point((self._now[rank, "main"], -1), (beside, -1))
            return
        entry = Entry(rank, step, line, -1, number=len(self.entries))
        gap = self._edge(Edge("gap", rank, step, entry.number, entry))
        before = [(self._now[rank, "main"], gap)]
        track = "beside" if isinstance(line, Meet) and line.is_beside else "main"
        if track == "beside" and (rank, "beside") in self._now:
            before.append((self._now[rank, "beside"], -1))
        entry.start = self._point(*before)
        if isinstance(line, Work):
            entry.edges = [self._edge(Edge("work", rank, step, entry.number, entry))]
            entry.end = self._point((entry.start, entry.edges[0]))
        elif isinstance(line, Meet):
            self._meet(entry, line)
        else:
            self._hand(entry, line)
        self.entries.append(entry)
        self._now[rank, track] = entry.end

    def _meet(self, entry: Entry, line: Meet) -> None:
        members = self.groups[line.group].get(entry.rank, ())
        count = self._calls[entry.rank, line.group] = self._calls.get((entry.rank, line.group), -1) + 1
        key = (line.group, members, count)
        if key not in self._meetings:
            edge = self._edge(Edge("meet", entry.rank, entry.step, entry.number, entry))
            self._meetings[key] = (self._point(), edge)
        together, edge = self._meetings[key]
        self._into[together].append((entry.start, -1))
        leaving = self._edge(Edge("exit", entry.rank, entry.step, entry.number, entry))
        over = self._point((together, edge))
        entry.end = self._point((over, leaving))
        entry.group, entry.members, entry.edges = line.group, members, [edge]

    def _hand(self, entry: Entry, line: Hand) -> None:
        entry.group, entry.members = "pipe", self.groups["pipe"][entry.rank]
        entry.end = self._point(
            (entry.start, self._edge(Edge("copy", entry.rank, entry.step, entry.number, entry)))
        )
        for name, other in line.gives:
            key = f"{entry.step}/{entry.rank}>{other}/{name}"
            edge = self._edge(Edge("hand", entry.rank, entry.step, entry.number, entry, other))
            entry.edges.append(edge)
            self._into[entry.end].append((entry.start, edge))
            self._given[key] = (entry.start, edge)
            if key in self._wanted:
                self._take(self._wanted.pop(key), key)
        for name, other in line.takes:
            key = f"{entry.step}/{other}>{entry.rank}/{name}"
            if key in self._given:
                self._take(entry, key)
            else:
                self._wanted[key] = entry

    def _take(self, entry: Entry, key: str) -> None:
        self._into[entry.end].append(self._given[key])
        entry.taken.append(self._given[key][1])

    def times(self, length: Lengths) -> list[float]:
        """Return the time of every point in ms, by the longest way to it.

        Raises:
            ValueError: points wait for each other, or a message is never given.
        """
        if self._wanted:
            raise ValueError(f"never given: {sorted(self._wanted)[:3]}")
        order = self._sorted()
        found = [0.0] * len(self._into)
        for point in order:
            found[point] = max(
                (found[one] + (length(edge) if edge >= 0 else 0.0) for one, edge in self._into[point]),
                default=0.0,
            )
        return found

    def _sorted(self) -> list[int]:
        if self._order is not None:
            return self._order
        out: list[list[int]] = [[] for _ in self._into]
        missing = [len(before) for before in self._into]
        for point, before in enumerate(self._into):
            for one, _ in before:
                out[one].append(point)
        order = [point for point, count in enumerate(missing) if not count]
        for point in order:
            for follower in out[point]:
                missing[follower] -= 1
                if not missing[follower]:
                    order.append(follower)
        if len(order) != len(self._into):
            raise ValueError("points of the graph wait for each other")
        self._order = order
        return order
