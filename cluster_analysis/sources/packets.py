"""Packet sizes of operators: the same from every form of a capture. `compiled/packet_sums.py` sums them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct


class PacketEntries(Struct, frozen=True):
    """One packet size of one operator each, in columns of equal length.

    Attributes:
        steps: the operator's step.
        groups: its communication group (dictionary).
        transports: index into TRANSPORTS.
        sizes: packet size in MB, as text (dictionary).
        figures: number of packets and their time in ms, (n, 2).
    """

    steps: npt.NDArray[np.int64]
    groups: pa.DictionaryArray
    transports: npt.NDArray[np.integer]
    sizes: pa.DictionaryArray
    figures: npt.NDArray[np.float64]
