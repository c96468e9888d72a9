"""Dataclasses whose methods are compiled when they are called are the same as any others."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Each line tells something of classes that are defined here, so that both ways can be compared.
PROGRAM = """
import copy, dataclasses, inspect, pickle, sys
if sys.argv[1] == "later":
    from cluster_analysis.lean_values import compile_methods_when_called
    compile_methods_when_called()
from dataclasses import dataclass, field

@dataclass(frozen=True)
class Point:
    \"\"\"A place.\"\"\"
    x: int
    y: float = 0.5
    names: tuple = field(default_factory=tuple)

@dataclass(frozen=True)
class Named(Point):
    \"\"\"A place with a name.\"\"\"
    name: str = ""

    def __post_init__(self):
        object.__setattr__(self, "name", self.name.upper())

@dataclass(order=True, slots=True)
class Sorted:
    \"\"\"Comparable.\"\"\"
    key: int
    other: list = field(default_factory=list, compare=False)

class Below(Named):
    pass

def told(make):
    try:
        return repr(make())
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def changed(one):
    one.x = 3

def taken(one):
    del one.x

for make in (
    lambda: Point(1), lambda: Point(1, y=2.0), lambda: Point(), lambda: Point(1, 2, 3, 4), lambda: Point(z=1),
    lambda: Named(1, name="a"), lambda: Below(2, name="b"), lambda: Below(2, name="b") == Named(2, name="b"),
    lambda: Point(1) == Point(1), lambda: Point(1) == Named(1), lambda: Point(1) != Point(2),
    lambda: Point(1) == 1, lambda: hash(Point(1)) == hash((1, 0.5, ())),
    lambda: len({Point(1), Point(1), Named(1)}),
    lambda: changed(Point(1)), lambda: taken(Point(1)), lambda: changed(Below(1)),
    lambda: dataclasses.replace(Named(1, name="c"), x=5),
    lambda: pickle.loads(pickle.dumps(Named(1, name="d"))),
    lambda: copy.deepcopy(Point(1, names=("a",))), lambda: dataclasses.asdict(Named(1)),
    lambda: dataclasses.astuple(Point(4)), lambda: sorted([Sorted(2), Sorted(1, [3])]),
    lambda: hash(Sorted(1)), lambda: Sorted(1) < Sorted(2), lambda: Sorted(1, []) == Sorted(1, [2]),
    lambda: Point.__match_args__,
    lambda: changed(Sorted(1)), lambda: Point.__init__.__name__, lambda: Point.__eq__.__qualname__,
    lambda: (Point(1), inspect.signature(Point.__init__))[1], lambda: Point.__doc__,
):
    print(told(make))
print(type(dataclasses._create_fn).__name__ if hasattr(dataclasses, "_create_fn") else "")
"""


@pytest.mark.timeout(600)
def test_values_behave_the_same_both_ways() -> None:
    said = {
        way: subprocess.run(
            [sys.executable, "-c", PROGRAM, way], capture_output=True, text=True, timeout=580, check=True
        ).stdout
        for way in ("later", "at once")
    }
    assert said["later"] == said["at once"]
    assert "FrozenInstanceError: cannot assign to field 'x'" in said["later"]
