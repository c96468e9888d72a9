"""Chinese of English messages, of our programs and of those that they call: templates recognise them.

A reason is written down in English, in a manifest or a journal, and read again by later calls and by other
commands. So what is shown is made Chinese where it is shown, from the English text alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from string import Formatter
from typing import Literal

from cluster_run.said.acting import ACTING
from cluster_run.said.files import FILES
from cluster_run.said.hosts import HOSTS
from cluster_run.said.inventories import INVENTORIES, KINDS
from cluster_run.said.live import LIVE, USAGE
from cluster_run.said.progress import PROGRESS, WORDS

Language = Literal["en", "zh"]
#: What stands between two things that are said together.
_BETWEEN = ((": ", "："), ("; ", "；"))
#: Values that are said, too; all others are names, numbers and paths.
_SAID = frozenset({"why", "what", "where", "which", "rest", "then", "advice"})
_KINDS = frozenset({"kind", "kind_of"})
#: A name, number or path: no second sentence is in it.
_NAME = r"(?:(?!; |: ).)*?"
#: How values are written that stand in short templates, which would fit other texts as well.
_FORMS = {
    **dict.fromkeys(("n", "m", "hosts"), r"[\d,]+"),
    **dict.fromkeys(("size", "all", "room", "free"), r"[\d.,]+(?: \w+)?"),
    "node": r"[A-Za-z0-9.-]+",
    "time": r"[\dhmins.: ]+",
}
#: What a line may begin with that is no part of what is said.
_MARK = re.compile(r"\s*(?:→ )?")


def translated(text: str, language: Language) -> str:
    """Return a text of one or more lines in a language; marks and blanks before a line stay."""
    return text if language == "en" else "\n".join(map(_line, text.split("\n")))


def word(text: str, language: Language) -> str:
    """Return a single word of a table or a bar in a language."""
    return text if language == "en" else WORDS.get(text, text)


def help_texts() -> Mapping[str, str]:
    """Return what the parsers of all commands say: English → Chinese."""
    from cluster_run.said.help import analyse, collect, fleet, hook, simulate  # noqa: PLC0415 - for help alone

    return {
        **analyse.ANALYSE,
        **collect.COLLECT,
        **fleet.FLEET,
        **hook.HOOK,
        **simulate.SIMULATE,
    }


def in_chinese(text: str) -> str:
    """Return what one line says in Chinese. What no template knows stays as it was said: names, for example.

    Values that are said are looked up as well, so that a reason within a sentence is Chinese too.
    """
    for needle, pattern, meaning in _patterns():
        found = pattern.fullmatch(text) if needle in text else None
        if found is not None:
            values = found.groupdict()
            values |= {name: in_chinese(values[name]) for name in _SAID & values.keys()}
            values |= {name: KINDS.get(values[name], values[name]) for name in _KINDS & values.keys()}
            return meaning.format(**values)
    for between, chinese in _BETWEEN:
        before, _, after = text.partition(between)
        if after:
            parts = in_chinese(before), in_chinese(after)
            return (between if parts == (before, after) else chinese).join(parts)
    return text


def _line(text: str) -> str:
    mark = _MARK.match(text)
    begin = mark.end() if mark else 0
    return text[:begin] + in_chinese(text[begin:])


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    """Return all templates, those with the most words of their own first: they say it most exactly.

    Each has its longest piece beside it: to look for that costs little.
    """
    catalogues = (ACTING, FILES, HOSTS, INVENTORIES, PROGRESS, LIVE, USAGE)
    every = [item for one in catalogues for item in one.items()]
    every.sort(key=lambda one: -sum(map(len, _words(one[0]))))
    return tuple(
        (max(_words(english), key=len), re.compile(_pattern(english)), chinese) for english, chinese in every
    )


def _words(template: str) -> Iterable[str]:
    return (literal for literal, *_ in Formatter().parse(template))


def _pattern(template: str) -> str:
    return "".join(_pieces(template))


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
