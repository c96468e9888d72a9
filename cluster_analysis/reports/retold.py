"""The chain's sentences of findings.json, told again in Chinese.

findings.json is English and says who waited for whom in few forms of sentence. Their English form in the
dictionary is the pattern by which a sentence is read, their Chinese form says it again. What is in no form
stays as it is.
"""

from __future__ import annotations

import re

from cluster_analysis.reports.words import Dictionary, Phrase

_FORMS = ("chain.direct", "chain.direct.one", "chain.onward", "chain.onward.one")
_NUMBERS = ("n", "rank")
_PLACEHOLDER = re.compile(r"\\{(\w+)\\}")


def retell(sentence: str, dictionary: Dictionary) -> Phrase:
    """Return a sentence of a finding's chain in both languages."""
    for key in _FORMS:
        pattern = _PLACEHOLDER.sub(_any_value, re.escape(dictionary.entries[key][0]))
        found = re.fullmatch(pattern, sentence)
        if found:
            values = found.groupdict()
            group, who = _group(values.pop("group"), dictionary), _who(values.pop("who"), dictionary)
            return Phrase(sentence, dictionary.say(key, group=group, who=who, **values).zh)
    return Phrase(sentence, sentence)


def _any_value(placeholder: re.Match[str]) -> str:
    name = placeholder[1]
    return f"(?P<{name}>{'[0-9,]+' if name in _NUMBERS else '.+'})"


def _group(words: str, dictionary: Dictionary) -> Phrase:
    roles = (
        key
        for key, (english, _) in dictionary.entries.items()
        if key.startswith("role.") and english == words
    )
    key = next(roles, None)
    return dictionary.say(key) if key else Phrase(words, words)


def _who(words: str, dictionary: Dictionary) -> Phrase:
    noun, _, number = words.partition(" ")
    if noun == "rank":
        return dictionary.say("rank", rank=number)
    if noun == "host":
        return dictionary.say("map.host", host=number)
    network = dictionary.say("chain.network")
    return network if words == network.en else Phrase(words, words)
