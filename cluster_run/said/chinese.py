"""Chinese of English messages, of our programs and of those that they call: templates recognise them.

A reason is written down in English, in a manifest or a journal, and read again by later calls and by other
commands. So what is shown is made Chinese where it is shown, from the English text alone. The texts stand in
`chinese.json`. In a template `{name}` is a value, and `{s}` an `s` or nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Literal, get_args

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
#: The separator of two phrases, in both languages.
COLON, SEMICOLON, COMMA = (": ", "："), ("; ", "；"), (", ", "，")
#: Values that are said, too; all others are names, numbers and paths.
_SAID = frozenset({"why", "what", "where", "which", "rest", "then", "advice", "jobs"})
_KINDS = frozenset({"kind", "kind_of"})
#: A name, number or path: no second sentence is in it.
_NAME = r"(?:(?!; |: ).)*?"
#: How values are written that stand in short templates, which would fit other texts as well.
_FORMS = {
    **dict.fromkeys(("n", "m", "hosts"), r"[\d,]+(?:\.\d+)?"),
    **dict.fromkeys(("size", "all", "room", "free"), r"[\d.,]+(?: \w+)?"),
    **dict.fromkeys(_KINDS, r"[^,;:]*?"),
    "node": r"[A-Za-z0-9.-]+",
    "time": r"[\dhmins.: ]+",
}
#: Where an advice begins that is said with an error, and anything else in parentheses.
_ASIDE = re.compile(r"(.+?) \(((?:[^()]|\([^()]*\))+)\)")
#: Marks before the text of a line.
_MARK = re.compile(r"\s*(?:→ )?")


def translated(text: str, language: Language) -> str:
    """Return a text of one or more lines in a language; marks and blanks before a line stay."""
    return text if language == "en" else "\n".join(map(_line, text.split("\n")))


def word(text: str, language: Language) -> str:
    """Return a single word of a table or a bar in a language."""
    return text if language == "en" else _catalogue()["words of tables"].get(text, text)


def help_texts() -> Mapping[str, str]:
    """Return what the parsers of all commands say: English → Chinese."""
    return _joined(_catalogue()["help"])


def in_chinese(text: str, *, may_end_with_aside: bool = True) -> str:
    """Return what one line says in Chinese. What no template knows stays as it was said: names, for example.

    Values that are said are looked up as well, so that a reason within a sentence is Chinese too. One advice
    stands behind an error, not a row of them: a text that is quoted may be all parentheses.
    """
    for pattern, meaning in _patterns():
        if (found := pattern.fullmatch(text)) is not None:
            values = found.groupdict()
            values |= {name: in_chinese(values[name]) for name in _SAID & values.keys()}
            kinds = _catalogue()["kinds of values"]
            values |= {name: kinds.get(values[name], values[name]) for name in _KINDS & values.keys()}
            return meaning.format(**values)
    if may_end_with_aside and (found := _ASIDE.fullmatch(text)) is not None:
        # An advice may be of several lines.
        said, aside = in_chinese(found[1], may_end_with_aside=False), translated(found[2], "zh")
        if (said, aside) != found.groups():
            return f"{said}（{aside}）"
    for between, chinese in (COLON, SEMICOLON):
        before, _, after = text.partition(between)
        if after:
            parts = in_chinese(before), in_chinese(after)
            return (between if parts == (before, after) else chinese).join(parts)
    return text


@cache
def _catalogue() -> dict[str, Any]:
    """Return `chinese.json`, all in it English → Chinese: `messages` and `help` by subject, single words."""
    catalogue: dict[str, Any] = json.loads(Path(__file__).with_name("chinese.json").read_text("utf-8"))
    return catalogue


def _joined(subjects: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {english: chinese for one in subjects.values() for english, chinese in one.items()}


def _line(text: str) -> str:
    mark = _MARK.match(text)
    begin = mark.end() if mark else 0
    return text[:begin] + in_chinese(text[begin:])


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return all templates, those with the most words of their own first: they say it most exactly."""
    every = sorted(_joined(_catalogue()["messages"]).items(), key=lambda one: -_n_own_letters(one[0]))
    return tuple((re.compile("".join(_pieces(english))), chinese) for english, chinese in every)


def _n_own_letters(template: str) -> int:
    return sum(len(literal) for literal, *_ in Formatter().parse(template))


def _pieces(template: str) -> Iterator[str]:
    known: set[str] = set()
    for literal, name, *_ in Formatter().parse(template):
        yield re.escape(literal)
        if name == "s":  # of one thing or several
            yield "s?"
        elif name in known:
            yield f"(?P={name})"
        elif name is not None:
            known.add(name)
            yield f"(?P<{name}>{_FORMS.get(name) or ('.*?' if name in _SAID else _NAME)})"
