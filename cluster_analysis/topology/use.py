"""Which groups ranks use, and how: small, and all that the picture of the job needs of the large tables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import IntArray, codes
from cluster_analysis.numeric.sorting import combined, distinct, first_positions
from cluster_analysis.topology.groups import GROUP_USE

#: A rank, group, whether it is point to point, operation: what makes a row of GROUP_USE.
_Use = tuple[int, str, bool, str]
#: A rank and a group.
_Member = tuple[int, str]


def group_use(collectives: pa.Table, links: pa.Table) -> pa.Table:
    """Return which groups ranks use, and how (GROUP_USE).

    Args:
        collectives: COLLECTIVES of some ranks.
        links: LINKS of the same ranks.
    """
    uses, number = _uses(collectives)
    n_calls = np.bincount(number, minlength=len(uses))
    counts = dict(zip(uses, n_calls.tolist(), strict=True))
    own, n_local, peers = _ends(links)
    keys = sorted(counts.keys() | peers.keys())
    local = [own.get(key[:2]) for key in keys]
    columns = [
        *(list(values) for values in zip(*keys, strict=True)),
        [counts.get(key, 0) for key in keys],
        local,
        [n_local.get(key[:2], 0) for key in keys],
        [[one for one in peers.get(key, ()) if one != mine] for key, mine in zip(keys, local, strict=True)],
    ]
    if not keys:
        return GROUP_USE.empty_table()
    arrays = [pa.array(values, field.type) for values, field in zip(columns, GROUP_USE, strict=True)]
    return pa.Table.from_arrays(arrays, schema=GROUP_USE)


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


def _ends(links: pa.Table) -> tuple[dict[_Member, int], dict[_Member, int], dict[_Use, list[int]]]:
    """Return what links say: each member's own local rank where they agree on one, the least number of
    members, and the local ranks that each use names, sorted.
    """
    uses, number = _uses(links)
    source, destination = (links[name].fill_null(-1).to_numpy() for name in ("src_local", "dst_local"))
    is_known = (source >= 0) & (destination >= 0)
    number, source, destination = number[is_known], source[is_known], destination[is_known]
    peers = {uses[at]: ranks for at, ranks in _by_number(np.r_[number, number], np.r_[source, destination])}
    n_local: dict[_Member, int] = {}
    for use, ranks in peers.items():
        n_local[use[:2]] = max(n_local.get(use[:2], 0), ranks[-1] + 1)
    is_own = source == destination
    own: dict[_Member, set[int]] = {}
    for at, ranks in _by_number(number[is_own], source[is_own]):
        own.setdefault(uses[at][:2], set()).update(ranks)
    return {member: next(iter(ranks)) for member, ranks in own.items() if len(ranks) == 1}, n_local, peers


def _by_number(numbers: IntArray, values: IntArray) -> Iterable[tuple[int, list[int]]]:
    """Return each number with its distinct values, sorted."""
    _, pair = combined(numbers, values)
    first = first_positions(pair)
    found: dict[int, list[int]] = {}
    for number, value in zip(numbers[first].tolist(), values[first].tolist(), strict=True):
        found.setdefault(number, []).append(value)
    return found.items()
