"""The outer form that communication.json and communication_matrix.json share.

Objects by step, in each the levels `p2p` and `collective`, in each the operators. Captures without steps
have the levels, or the operators themselves, at the top.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from cluster_reduce.json_walk import DamagedError, Walk

#: Other tools make `13.0` of a step when they write a table anew.
_STEP = re.compile(r"\s*(?:step[ _]?)?(?:([0-9]{1,18})(?:\.0+)?)?\s*", re.IGNORECASE)
_TOTAL_PREFIX = "Total"
_P2P = "p2p"
_LEVELS = (_P2P, "collective")
_CUT_OFF = ("truncated", "filled_with_nul")


class Level(NamedTuple):
    """Operators of one level of one step: by key what it says, and where in the text that lies.

    `place` and `byte` say where in the file the step is.
    """

    step: int
    is_p2p: bool
    operators: dict[str, tuple[dict[str, Any], int, int]]
    place: str
    byte: int

    def wrong(self, detail: str) -> DamagedError:
        """Return that something in it is not of the form."""
        return DamagedError("not_of_form_in", {"place": self.place, "byte": self.byte, "detail": detail})


def no_more_than_usual(*facts: tuple[str, dict[str, Any]]) -> None:
    """Refuse a file with anything to report."""
    raise DamagedError(*facts[0])


class Levels:
    """The levels of a file without totals; step 0 where it has none.

    Args:
        content: the file.
        tell: takes facts, each a kind and values, about parts of a file; the rest counts.
    """

    def __init__(self, content: bytes, tell: Callable[..., None]) -> None:
        self.walk = Walk(content)
        self._tell = tell
        self._left_out: dict[str, list[str]] = {"no_step": [], "no_level": [], "twice": []}

    def __iter__(self) -> Iterator[Level]:
        """Yield them, the steps in the order of the file, of each what lies between two ranks first.

        From a truncated file come the steps before the last one that began.

        Raises:
            DamagedError: nothing of the file can be used.
        """
        # The step that began last is whole when the next one begins.
        last: list[Level] = []
        others: dict[str, Any] = {}
        began = None
        n_whole = 0
        try:
            for key in self._once("", self.walk.members(), parse_step):
                step = parse_step(key)
                if step is not None:
                    yield from last
                    n_whole += began is not None
                    began = key
                    last = self._of_step(step, key)
                elif key.casefold() in _LEVELS:
                    last.append(self._level(0, key, key, self.walk.at))
                else:
                    others[key] = self._operator()
            self.walk.end()
        except DamagedError as error:
            if error.kind not in _CUT_OFF or not n_whole:
                raise
            self._tell((error.kind, error.values), ("says_nothing_from", {"step": began}))
            last = []
        yield from last
        yield from self._without_steps(others, has_steps=began is not None)
        for what, keys in self._left_out.items():
            if keys:
                values = {"first": repr(keys[0]), "n_keys": len(keys), "what": what}
                self._tell(("keys_left_out", values))

    def _without_steps(self, others: dict[str, Any], has_steps: bool) -> Iterator[Level]:
        """Yield the entries at the top where operators do; report all others."""
        own = {key: one for key, one in others.items() if not key.startswith(_TOTAL_PREFIX)}
        if has_steps or not (len(own) < len(others) or any("@" in key for key in own)):
            self._left_out["no_step"] += own
        else:
            level = Level(0, False, own, "the file", 0)
            for _, (operator, _, _) in own.items():
                _require_object(level, operator)
            yield level

    def _of_step(self, step: int, key: str) -> list[Level]:
        begin = self.walk.at
        found = []
        try:
            for name in self._once(key, self.walk.members(), str.casefold):
                if name.casefold() in _LEVELS:
                    found.append(self._level(step, name, key, begin))
                else:
                    self.walk.value()
                    self._left_out["no_level"].append(f"{key}/{name}")
        except DamagedError as error:
            if error.kind == "not_of_form":
                raise self._empty(step, key, begin).wrong(error.values["detail"]) from None
            raise
        return sorted(found, key=lambda level: not level.is_p2p)

    def _level(self, step: int, name: str, key: str, begin: int) -> Level:
        level = self._empty(step, key, begin)._replace(is_p2p=name.casefold() == _P2P)
        for operator in self._once(f"{key}/{name}", self.walk.members()):
            found = self._operator()
            _require_object(level, found[0])
            if not operator.startswith(_TOTAL_PREFIX):
                level.operators[operator] = found
        return level

    def _empty(self, step: int, key: str, begin: int) -> Level:
        return Level(step, False, {}, repr(key), self.walk.bytes_at([begin])[0])

    def _operator(self) -> tuple[Any, int, int]:
        begin = self.walk.at
        return self.walk.value(), begin, self.walk.at

    def _once(self, place: str, keys: Iterator[str], meaning: Callable[[str], object] = str) -> Iterator[str]:
        """Yield keys whose meaning, or else they themselves, was not there; of others the value is passed."""
        known = set()
        for key in keys:
            said = meaning(key)
            said = key if said is None else said
            if said in known:
                self.walk.value()
                self._left_out["twice"].append(f"{place}/{key}" if place else key)
            else:
                known.add(said)
                yield key


def _require_object(level: Level, operator: object) -> None:
    if type(operator) is not dict:
        raise level.wrong(f"{type(operator).__name__} in place of an object")


def parse_step(text: str) -> int | None:
    """Return the step that `step13`, `13` or `step` names; 0 where none is numbered; None for other text.

    A capture without steps is one window; MindSpore calls it step 0, PyTorch leaves the number out.
    """
    match = _STEP.fullmatch(text)
    return None if match is None else int(match.group(1) or 0)
