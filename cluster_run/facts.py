"""A fact: what is known, as a kind and named values. Reports make sentences of it, in any language.

`findings.json`, `notes.json` and `problems.json` of `cluster_words` list the kinds, each with its sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: A number, a name, or several of them. The unit of a number is in its name (`_us`, `_bytes`, `_share`).
Value = bool | int | float | str | None | tuple["Value", ...]


@dataclass(frozen=True)
class Fact:
    """One thing that is known. `values` are in the order in which they were given; equal facts are one."""

    kind: str
    values: tuple[tuple[str, Value], ...] = ()

    def __getitem__(self, name: str) -> Value:
        """Return the value called `name`.

        Raises:
            KeyError: the fact has no such value.
        """
        return dict(self.values)[name]

    def plain(self) -> dict[str, object]:
        """Return the fact as an object of JSON."""
        return {"kind": self.kind, **{name: _plain(value) for name, value in self.values}}


def fact(kind: str, **values: Value) -> Fact:
    """Return a fact."""
    return Fact(kind, tuple(values.items()))


def fact_of(plain: Mapping[str, object]) -> Fact:
    """Return the fact that `Fact.plain` wrote.

    Raises:
        KeyError: it has no kind.
        TypeError: a value is no number, name or list of them.
    """
    values = {name: _value(value) for name, value in plain.items() if name != "kind"}
    return Fact(str(plain["kind"]), tuple(values.items()))


def _plain(value: Value) -> object:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _value(plain: object) -> Value:
    if isinstance(plain, list):
        return tuple(map(_value, plain))
    if plain is None or isinstance(plain, bool | int | float | str):
        return plain
    raise TypeError(f"no value of a fact: {plain!r}")
