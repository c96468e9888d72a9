"""Where a rank is, as the page says it in both languages; `Place.text` says it elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from cluster_analysis.result import AnalysisResult
from cluster_analysis.sentences.headings import say
from cluster_analysis.sentences.phrase import Phrase
from cluster_run.findings import Place


def locator(result: AnalysisResult) -> Callable[[Place], Phrase]:
    """Return a function that tells a place: `rank 13 = host 2 / device 5`."""

    def locate(place: Place) -> Phrase:
        rank = say("rank", rank=place.rank)
        parts = []
        if place.host is not None:
            address = result.addresses.get(place.host)
            parts.append(Phrase(address, address) if address else say("map.host", host=place.host))
        if place.device is not None:
            parts.append(say("device", device=place.device))
        if not parts:
            return rank
        where = Phrase(" / ".join(one.en for one in parts), " / ".join(one.zh for one in parts))
        return say("locator", rank=rank, place=where)

    return locate
