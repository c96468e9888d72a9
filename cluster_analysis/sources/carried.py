"""What each operator of communication.json carried over each transport.

An operator has an entry for every transport, and uses one or none: most entries are zeros, written with the
same letters every time. So the entries come here as text, and only those of other letters are decoded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, islice

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

#: What stands for an entry that is not there.
ABSENT = msgspec.Raw(b"")


class _Transport(msgspec.Struct, gc=False, frozen=True):
    size: float | None = msgspec.field(name="Transit Size(MB)", default=None)
    time: float | None = msgspec.field(name="Transit Time(ms)", default=None)
    packets: dict[str, tuple[float, float]] = msgspec.field(name="Size Distribution", default_factory=dict)


_ONE = msgspec.json.Decoder(_Transport)
_MANY = msgspec.json.Decoder(list[_Transport])
_NOTHING = _Transport(0.0, 0.0)
_NO_ENTRY = msgspec.Raw(b" ")
#: A file that carries nothing somewhere does so among its first entries.
_N_TRIED = 64
_BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Carried(Struct, frozen=True):
    """The figures of entries, in their order; packets only of those that have any, size by size.

    Attributes:
        size_mb: (n,); NaN where the entry does not say.
        time_ms: (n,); NaN where the entry does not say.
        packet_places: the entry of each packet size, by number.
        packet_sizes: in MB, as text.
        packet_figures: number of packets and their time in ms, (n_sizes, 2).
    """

    size_mb: npt.NDArray[np.float64]
    time_ms: npt.NDArray[np.float64]
    packet_places: npt.NDArray[np.int64]
    packet_sizes: list[str]
    packet_figures: npt.NDArray[np.float64]


class BadEntryError(Exception):
    """An entry that is not of the form: its number among the entries, and what is wrong."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place


def carried(entries: Sequence[msgspec.Raw]) -> Carried:
    """Decode entries, views of JSON or ABSENT.

    Raises:
        BadEntryError: one is not of the form; it says which.
    """
    zero = _zero_entry(entries)
    # The plainest loop is the fastest here: nearly all entries end at the comparison.
    others = [place for place, entry in enumerate(entries) if entry != zero]
    given = [place for place in others if len(entries[place])]
    decoded = _decoded(entries, given)
    size_mb, time_ms = np.zeros(len(entries)), np.zeros(len(entries))
    size_mb[others] = time_ms[others] = np.nan
    size_mb[given] = _floats([one.size for one in decoded])
    time_ms[given] = _floats([one.time for one in decoded])
    packets = [one.packets for one in decoded]
    lengths = list(map(len, packets))
    figures = chain.from_iterable(chain.from_iterable(map(dict.values, packets)))
    return Carried(
        size_mb,
        time_ms,
        np.repeat(np.array(given, np.int64), lengths),
        list(chain.from_iterable(packets)),
        np.array(list(figures), np.float64).reshape(-1, 2),
    )


def _zero_entry(entries: Sequence[msgspec.Raw]) -> msgspec.Raw:
    """Return the letters in which this file writes that nothing was carried, if it does."""
    try:
        for entry in islice(filter(len, entries), _N_TRIED):
            if _ONE.decode(entry) == _NOTHING:
                return entry
    except _BAD_JSON:
        # Said below, where all are decoded.
        pass
    return _NO_ENTRY


def _decoded(entries: Sequence[msgspec.Raw], places: Sequence[int]) -> list[_Transport]:
    try:
        return _MANY.decode(b"[" + b",".join([entries[place] for place in places]) + b"]")
    except _BAD_JSON:
        for place in places:
            try:
                _ONE.decode(entries[place])
            except _BAD_JSON as error:
                raise BadEntryError(place, str(error)) from error
        raise


def _floats(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]
