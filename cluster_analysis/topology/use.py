"""Which groups ranks use, and how: small, and all that the picture of the job needs of the large tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.numeric.sorting import combined, distinct, first_positions
from cluster_analysis.topology.groups import GROUP_USE
from cluster_analysis.trace.calls import codes

#: A rank, group, whether it is point to point, operation: what makes a row of GROUP_USE.
_Use = tuple[int, str, bool, str]


def group_use(collectives: pa.Table, links: pa.Table) -> pa.Table:
    """Return which groups ranks use, and how (GROUP_USE).

    Args:
        collectives: COLLECTIVES of some ranks, or USES of them.
        links: LINKS of the same ranks.
    """
    uses, number = _uses(collectives)
    n = collectives["n"].to_numpy() if "n" in collectives.column_names else None
    n_calls = np.bincount(number, n, len(uses)).astype(np.int64)
    counts = dict(zip(uses, n_calls.tolist(), strict=True))
    own: dict[tuple[int, str], set[int]] = {}
    n_local: dict[tuple[int, str], int] = {}
    peers: dict[_Use, set[int]] = {}
    for key, source, destination in _ends(links):
        if source == destination:
            own.setdefault(key[:2], set()).add(source)
        peers.setdefault(key, set()).update((source, destination))
        n_local[key[:2]] = max(n_local.get(key[:2], 0), source + 1, destination + 1)
    keys = sorted(counts.keys() | peers.keys())
    local = [_only(own.get(key[:2], set())) for key in keys]
    columns = [
        *(list(values) for values in zip(*keys, strict=True)),
        [counts.get(key, 0) for key in keys],
        local,
        [n_local.get(key[:2], 0) for key in keys],
        [sorted(peers.get(key, set()) - {mine}) for key, mine in zip(keys, local, strict=True)],
    ]
    if not keys:
        return GROUP_USE.empty_table()
    arrays = [pa.array(values, field.type) for values, field in zip(columns, GROUP_USE, strict=True)]
    return pa.Table.from_arrays(arrays, schema=GROUP_USE)


def _only(values: set[int]) -> int | None:
    return next(iter(values)) if len(values) == 1 else None


def _uses(table: pa.Table) -> tuple[list[_Use], IntArray]:
    """Return the distinct uses of a table's rows, and the number of each row's (N,)."""
    ranks = table["rank"].to_numpy()
    groups, group = codes(table["group"])
    types, kind = codes(table["op_type"])
    is_p2p = table["is_p2p"].to_numpy()
    _, number = combined(distinct(ranks)[1], group, is_p2p.astype(np.int32), kind)
    first = first_positions(number)
    uses = zip(
        ranks[first].tolist(),
        [groups[at] for at in group[first].tolist()],
        is_p2p[first].tolist(),
        [types[at] for at in kind[first].tolist()],
        strict=True,
    )
    return list(uses), number


def _ends(links: pa.Table) -> list[tuple[_Use, int, int]]:
    """Return each use of links with each known pair of local ranks that it has."""
    uses, number = _uses(links)
    source, destination = (links[name].fill_null(-1).to_numpy() for name in ("src_local", "dst_local"))
    _, pair = combined(number, source + 1, destination + 1)
    first = first_positions(pair)
    first = first[(source[first] >= 0) & (destination[first] >= 0)]
    ends = zip(source[first].tolist(), destination[first].tolist(), strict=True)
    return [(uses[at], *pair) for at, pair in zip(number[first].tolist(), ends, strict=True)]
