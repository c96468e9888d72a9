"""Keeps dataclasses short to make: their methods are compiled when they are first called.

A frozen dataclass has six methods, each a text that Python compiles: 0.1 ms a method, a tenth of a second for
the 160 classes of a run. Most are never compared, hashed or shown, and many are never made.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

#: What Python 3.10 to 3.12 make each method with; later ones compile all methods of a class at once.
_MAKER = "_create_fn"
_PARAMETERS = ("name", "args", "body", "globals", "locals", "return_type")
_LATER = frozenset({"__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"})


def compile_methods_when_called() -> None:
    """Have dataclasses that are defined from now on compile their methods when they are first called.

    Without effect where this Python makes them in another way.
    """
    make: Any = getattr(dataclasses, _MAKER, None)
    if make is None or tuple(inspect.signature(make).parameters) != _PARAMETERS:
        return

    def make_later(name: str, *given: Any, **named: Any) -> Callable[..., Any]:
        if name not in _LATER:
            return make(name, *given, **named)  # type: ignore[no-any-return]
        return _later(name, lambda: make(name, *given, **named))

    setattr(dataclasses, _MAKER, make_later)


def _later(name: str, make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    made: list[Callable[..., Any]] = []

    def method(self: Any, *given: Any, **named: Any) -> Any:
        if not made:
            made.append(make())
            made[0].__qualname__ = method.__qualname__
            for kind in type(self).__mro__:
                if kind.__dict__.get(name) is method:
                    setattr(kind, name, made[0])
        return made[0](self, *given, **named)

    method.__name__ = name
    return method
