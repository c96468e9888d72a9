"""Operators of communication and packet sizes of one rank or of several, from every form of a capture."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct, field

from cluster_analysis.tables import schema


class CommunicationTables(Struct, frozen=True):
    """Operators of one rank: COLLECTIVES, PACKETS; OPERATOR_SPANS of a text, HOST_SUMS of its columns."""

    collectives: pa.Table
    packets: pa.Table
    spans: pa.Table = field(default_factory=partial(schema.empty, schema.OPERATOR_SPANS))
    sums: pa.Table = field(default_factory=partial(schema.empty, schema.HOST_SUMS))


def without_packets(collectives: pa.Table | None) -> CommunicationTables | None:
    """Return COLLECTIVES of a file that holds no packets; None where there are none."""
    return None if collectives is None else CommunicationTables(collectives, schema.empty(schema.PACKETS))


class PacketEntries(Struct, frozen=True):
    """One packet size of one operator each, in columns of equal length.

    Attributes:
        ranks: the operator's rank.
        steps: its step.
        groups: its communication group (dictionary).
        transports: index into TRANSPORTS.
        sizes: packet size in MB, as text (dictionary).
        figures: number of packets and their time in ms, (n, 2).
    """

    ranks: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int64]
    groups: pa.DictionaryArray
    transports: npt.NDArray[np.integer]
    sizes: pa.DictionaryArray
    figures: npt.NDArray[np.float64]
