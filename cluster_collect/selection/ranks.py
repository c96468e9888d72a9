"""Which ranks the names of files speak of, held against the rank table. No content is looked at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from cluster_run.ids import ServerId
from cluster_run.ranktable import RankTable

#: In the captures of PyTorch and MindSpore. Other names hold the number of a device, or no number.
_RANK = re.compile(r"(?:.*/)?[^/]+_ascend_(?:pt|ms)/profiler_info_(\d{1,6})\.json", re.DOTALL)


def ranks_of(sources: Iterable[str]) -> set[int]:
    """Return the ranks whose captures are among the paths of a host."""
    return {int(match[1]) for match in map(_RANK.fullmatch, sources) if match is not None}


def ranks_missing(table: RankTable, server_id: ServerId, found: set[int]) -> str:
    """Say which ranks of the table a host should hold and does not; empty where none is known to lack."""
    owners = {int(place.rank): place.server_id for place in table.places}
    expected = {rank for rank, owner in owners.items() if owner == server_id}
    missing = sorted(expected - found)
    if not found or not missing:
        return ""
    text = f"holds {len(expected) - len(missing)} of its {len(expected)} ranks: {spans(missing)} missing"
    others = Counter(owners[rank] for rank in found - expected if rank in owners)
    if others:
        other, n_ranks = others.most_common(1)[0]
        text += f"; {n_ranks} that it holds are those of {other} in the rank table: are the two swapped?"
    return text


def spans(numbers: Sequence[int]) -> str:
    """Return ascending numbers as `0-3,7`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
