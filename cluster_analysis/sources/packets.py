"""Packet sizes, summed over the operators of a group: the same from every form of a capture."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from itertools import chain, compress, count, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis import schema
from cluster_analysis.sources import numbers

TRANSPORTS = ("HCCS", "RDMA", "PCIE", "SIO")


class PacketSums:
    """Counts and times of packets by step, group, transport and size in MB, as text."""

    def __init__(self) -> None:
        #: Step, transport and number of entries of each call of `add`; the others hold the entries.
        self._places: list[tuple[int, str, int]] = []
        self._rows: list[int] = []
        self._sizes: list[str] = []
        #: Count and ms, in 8 bytes each.
        self._pairs = bytearray()

    def add(
        self, step: int, transport: str, row: int, packets: Sequence[dict[str, tuple[float, float]]]
    ) -> None:
        """Add the packets `{MB: (count, ms)}` of operators; `row` is the first one's place among all."""
        used = list(filter(None, packets))
        if not used:
            return
        lengths = list(map(len, used))
        n_entries = sum(lengths)
        self._places.append((step, transport, n_entries))
        rows = compress(count(row), packets)
        self._rows += rows if n_entries == len(used) else np.repeat(list(rows), lengths).tolist()
        self._sizes += chain.from_iterable(used)
        pairs = chain.from_iterable(map(dict.values, used))
        self._pairs += struct.pack(f"{2 * n_entries}d", *chain.from_iterable(pairs))

    def table(self, rank: int, groups: pa.DictionaryArray) -> pa.Table:
        """Return PACKETS, in order; `groups` names each operator's group.

        The sums are exact, so the order of adding makes no difference.
        """
        if not self._places:
            return schema.empty(schema.PACKETS)
        lengths = [length for _, _, length in self._places]
        steps, step_places = np.unique([step for step, _, _ in self._places], return_inverse=True)
        transports, transport_places = np.unique([name for _, name, _ in self._places], return_inverse=True)
        names, group_places = _groups(groups, self._rows)
        sizes, size_places = _sizes(self._sizes)
        # One number names step, group, transport and size, in the order of the table.
        shape = (len(steps), len(names), len(transports), len(sizes))
        places = (np.repeat(step_places, lengths), group_places, np.repeat(transport_places, lengths))
        codes = np.ravel_multi_index((*places, size_places), shape)
        order = np.argsort(codes, kind="stable")
        order = order[~np.isnan(sizes[size_places[order]])]
        if not len(order):
            return schema.empty(schema.PACKETS)
        begins = [0, *(np.flatnonzero(np.diff(codes[order])) + 1).tolist(), len(order)]
        pairs = np.frombuffer(self._pairs).reshape(-1, 2)[order]
        counts, times = pairs[:, 0].tolist(), pairs[:, 1].tolist()
        at = np.unravel_index(codes[order[begins[:-1]]], shape)
        columns = {
            "rank": numbers.constant(rank, len(begins) - 1, pa.int32()),
            "step": pa.array(steps[at[0]], pa.int64()),
            "group": numbers.encoded([names[place] for place in at[1].tolist()]),
            "transport": numbers.encoded(transports[at[2]].tolist()),
            "packet_bytes": pa.array(sizes[at[3]] * numbers.BYTES_PER_MB),
            "n_packets": pa.array([round(math.fsum(counts[a:b])) for a, b in pairwise(begins)], pa.int64()),
            "total_us": pa.array(
                [math.fsum(times[a:b]) * numbers.US_PER_MS for a, b in pairwise(begins)], pa.float64()
            ),
        }
        return pa.table(columns, schema=schema.PACKETS)


def _groups(groups: pa.DictionaryArray, rows: list[int]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the names of all groups, sorted, and the place of each row's group among them."""
    known = groups.dictionary.to_pylist()
    order = sorted(range(len(known)), key=known.__getitem__)
    return [known[at] for at in order], np.argsort(order)[groups.indices.to_numpy()[rows]]


def _sizes(texts: list[str]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the distinct sizes, sorted, NaN last for what is no number, and each text's place among them."""
    encoded = pc.dictionary_encode(pa.array(texts, pa.string()))
    # One number can be written in two ways.
    numeric, _ = numbers.to_float64(encoded.dictionary)
    known, places = np.unique(numeric.to_numpy(zero_copy_only=False), return_inverse=True)
    return known, places[encoded.indices.to_numpy()]
