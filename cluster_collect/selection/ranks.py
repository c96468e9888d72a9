"""Ranks by the names of files, compared with the rank table. No content is read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Set

from cluster_collect.entries import captures_of_ranks
from cluster_run.ids import ServerId, format_number_ranges
from cluster_run.ranktable import RankTable


def ranks_of(sources: Iterable[str], device_ranks: Mapping[int, int] | None = None) -> set[int]:
    """Return the ranks whose captures are among the paths of a host."""
    return set(captures_of_ranks(map(os.fsencode, sources), device_ranks).values())


def ranks_missing(table: RankTable, server_id: ServerId, found: set[int], wanted: Set[int] | None) -> str:
    """Say which ranks of the table a host should hold and does not; empty where none is known to lack.

    Of the ranks `wanted` only, unless that is None.
    """
    owners = {int(place.rank): place.server_id for place in table.places}
    expected = {
        rank for rank, owner in owners.items() if owner == server_id and (wanted is None or rank in wanted)
    }
    missing = sorted(expected - found)
    if not found or not missing:
        return ""
    n_held, lost = len(expected) - len(missing), format_number_ranges(missing)
    text = f"holds {n_held} of its {len(expected)} ranks: {lost} missing"
    others = Counter(owners[rank] for rank in found - expected if rank in owners)
    if others:
        other, n_ranks = others.most_common(1)[0]
        text += f"; {n_ranks} that it holds are those of {other} in the rank table: are the two swapped?"
    return text
