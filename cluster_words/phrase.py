"""A phrase in both languages, and how it is filled with values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

from cluster_run.facts import Fact
from cluster_run.ids import format_number_ranges
from cluster_run.said.chinese import Language, in_chinese
from cluster_words import amounts, terms
from cluster_words.texts import Template

_LATIN_MEETS_CHINESE = re.compile(r"[0-9A-Za-z%][\u4e00-\u9fff]|[\u4e00-\u9fff][0-9A-Za-z]")
_BOTH_CHINESE = re.compile(r"[\u4e00-\u9fff]{2}")
#: Ranges of numbers that are listed; more say nothing to a reader.
_MAX_RANGES = 6
#: Ranks and runs that are listed one by one.
_MAX_LISTED = 8


@dataclass(frozen=True)
class Phrase:
    """The same words in both languages."""

    en: str
    zh: str

    def of(self, language: Language) -> str:
        """Return the words in one of them."""
        return self.zh if language == "zh" else self.en


def fill(template: Template, values: Mapping[str, Any]) -> Phrase:
    """Fill the placeholders of both languages.

    A placeholder's format says how its value is written: `percent` of a share, `change` of one that may be
    below 0, `ms` of µs, `mb` of bytes, `ranges`, `all_ranges`, `listed` and `times` of numbers, `parts` of
    figures, `names`, `some`, `and`, `or`, `to`, `shares`, `say_rank` and `part_options` of names, `n` for how
    many, `term` of a word that both languages have, `said` of another program's words, `role` of who does the
    same work, `metric` and `metrics` of what the fleet compares, `counted` of what cards count, `capital` of
    a phrase, and `one|many` or `none|one|many` for the words that fit the number, which `#` stands for.

    Raises:
        KeyError: a placeholder has no value.
    """
    english, chinese = template
    return Phrase(_ENGLISH.vformat(english, (), values), _CHINESE.vformat(chinese, (), values))


def of_fact(table: Mapping[Any, Template], fact: Fact) -> Phrase:
    """Return what a table says of a fact, by its kind and values."""
    return fill(table[fact.kind], dict(fact.values))


def joined(phrases: Iterable[Phrase], between: tuple[str, str] = (" ", "")) -> Phrase:
    """Return phrases one after the other, with what stands `between` two of them in each language."""
    found = list(phrases)
    return Phrase(between[0].join(one.en for one in found), between[1].join(one.zh for one in found))


class _Filler(Formatter):
    """A formatter with the formats that `fill` names."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def format_field(self, value: Any, format_spec: str) -> Any:
        if isinstance(value, Phrase):
            text = value.of(self._language)
            return text[:1].upper() + text[1:] if format_spec == "capital" else text
        if "|" in format_spec:
            *none, one, many = format_spec.split("|")
            number = _number(value)
            return (none[0] if none and number == 0 else one if number == 1 else many).replace(
                "#", str(number)
            )
        form = _FORMS.get(format_spec)
        return super().format_field(value, format_spec) if form is None else form(value, self._language)


class _Chinese(_Filler):
    """A formatter with a blank between a value and its text just where Latin meets Chinese."""

    def vformat(self, format_string: str, args: Any, kwargs: Mapping[str, Any]) -> str:
        text = ""
        for literal, name, format_spec, _ in self.parse(format_string):
            text = _beside(text, literal)
            if name is not None:
                value, _ = self.get_field(name, args, kwargs)
                text = _beside(text, str(self.format_field(value, format_spec or "")))
        return text


def _beside(before: str, after: str) -> str:
    first, second = before.rstrip(" "), after.lstrip(" ")
    meet = first[-1:] + second[:1]
    if _LATIN_MEETS_CHINESE.fullmatch(meet):
        return f"{first} {second}"
    return first + second if _BOTH_CHINESE.fullmatch(meet) else before + after


def _number(value: Any) -> Any:
    return len(value) if isinstance(value, tuple) else value


def short_ranges(numbers: Iterable[int], _: Language = "en") -> str:
    """Format numbers as `0-7,12`, and `0,8,16,24,32,40,…` where they are more than a reader takes in."""
    parts = format_number_ranges(numbers).split(",")
    return ",".join(parts) if len(parts) <= _MAX_RANGES else f"{','.join(parts[:_MAX_RANGES])},…"


def _listed(numbers: tuple[int, ...], language: Language) -> str:
    shown = _names(map(str, numbers[:_MAX_LISTED]), language)
    n_more = len(numbers) - _MAX_LISTED
    if n_more <= 0:
        return shown
    return f"{shown} 等 {len(numbers)} 张" if language == "zh" else f"{shown} and {n_more} more"


def _between(english: str, chinese: str) -> Callable[[Iterable[Any], Language], str]:
    """Return what joins values by these words."""
    return lambda values, language: (chinese if language == "zh" else english).join(map(str, values))


_names, _and = _between(", ", "、"), _between(" and ", " 与 ")


def _some(values: tuple[str, ...], language: Language) -> str:
    n_more = len(values) - _MAX_LISTED
    more = (f" 等，另有 {n_more} 个" if language == "zh" else f" and {n_more} more") if n_more > 0 else ""
    return _names(values[:_MAX_LISTED], language) + more


def _part_options(values: tuple[str, ...], language: Language) -> str:
    return _some(tuple(f"--part {shlex.quote(value)}" for value in values), language)


def _times(values: tuple[float, ...], language: Language) -> str:
    least, most = min(values), max(values)
    return f"{least:.2f}" if least == most else f"{least:.2f}{'～' if language == 'zh' else ' to '}{most:.2f}"


def _shares(values: tuple[tuple[str, float], ...], language: Language) -> str:
    return _names(tuple(f"{name} {amounts.percent(share)}" for name, share in values), language)


def _say_rank(values: tuple[tuple[str, int], ...], language: Language) -> str:
    said = "为卡" if language == "zh" else "says rank"
    return _names(tuple(f"{name} {said} {rank}" for name, rank in values), language)


def _said(value: str | tuple[str, ...], language: Language) -> str:
    if isinstance(value, tuple):
        return _some(tuple(_said(one, language) for one in value), language)
    return in_chinese(value) if language == "zh" else value


def _term(value: str, language: Language) -> str:
    english, chinese = terms.TERMS[value]
    return chinese if language == "zh" else english


def _metric(value: str, language: Language) -> str:
    name, _, kind = value.partition(":")
    english, chinese = terms.METRICS[name]
    return (chinese if language == "zh" else english).format(kind)


def _counted(values: tuple[str, ...], language: Language) -> str:
    if not values:
        return ""
    named = _and(tuple(_term(one, language) for one in values), language)
    return f"；{named}比九成设备多" if language == "zh" else f"; more {named} than nine in ten devices"


def _role(value: tuple[Any, ...], language: Language) -> str:
    name, *number = value
    english, chinese = terms.ROLES[name]
    return (chinese if language == "zh" else english).format(*number)


_FORMS: Mapping[str, Callable[[Any, Language], str]] = {
    "percent": lambda value, _: amounts.percent(value),
    "change": lambda value, _: f"{100 * value:+.1f} %",
    "metric": _metric,
    "metrics": lambda value, language: _names(tuple(_metric(one, language) for one in value), language),
    "ms": lambda value, _: amounts.milliseconds(value),
    "mb": lambda value, _: f"{value / 1e6:.2f} MB",
    "ranges": short_ranges,
    "all_ranges": lambda value, _: format_number_ranges(value),
    "listed": _listed,
    "names": _names,
    "some": _some,
    "part_options": _part_options,
    "times": _times,
    "or": _between(" or ", " 或 "),
    "and": _and,
    "to": _between(" to ", " 到 "),
    "shares": _shares,
    "say_rank": _say_rank,
    "n": lambda value, _: str(len(value)),
    "parts": lambda value, _: " / ".join("-" if one is None else f"{one:.5f}" for one in value),
    "term": _term,
    "said": _said,
    "role": _role,
    "counted": _counted,
}
_ENGLISH, _CHINESE = _Filler("en"), _Chinese("zh")
