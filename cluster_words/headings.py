"""Headings around the findings, and all other words of reports, in both languages.

`words.json` has those of the page, which its scripts need as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cluster_words.phrase import Phrase, fill
from cluster_words.texts import Template, texts

_SAID = texts("headings")
HEADINGS: Mapping[str, Template] = _SAID["headings"]


@cache
def words_of_page() -> Mapping[str, Template]:
    """Return the words of the page by key."""
    text = Path(__file__).with_name("words.json").read_text("utf-8")
    return {key: (english, chinese) for key, (english, chinese) in json.loads(text).items()}


def say(key: str, **values: object) -> Phrase:
    """Return a heading, or words of the page.

    Raises:
        KeyError: there are none of this key, or a value is missing.
    """
    return fill(HEADINGS.get(key) or words_of_page()[key], values)


def counted(what: str, number: int) -> Phrase:
    """Return a number of ranks, hosts, steps, findings or problems."""
    return say(f"count.{what}.one") if number == 1 else say(f"count.{what}", n=f"{number:,}")


def term(words: Mapping[str, Template], name: str) -> Phrase:
    """Return a word of `cluster_words.terms` in both languages."""
    return Phrase(*words[name])


def of_fleet(name: str, **values: object) -> Phrase:
    """Return a heading of cluster-fleet, in the terminal or on its page."""
    return fill(_SAID["fleet"][name], values)


def of_act(name: str, **values: object) -> Phrase:
    """Return a text of cluster-act. Its log is in English."""
    return fill(_SAID["act"][name], values)


def of_message(name: str, **values: object) -> Phrase:
    """Return a sentence of messages about jobs, which hooks and watches send."""
    return fill(_SAID["messages"][name], values)
