"""Insight's `Total Op Info`: the sums over the operators of a group as text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.sources.numbers import BYTES_PER_MB, US_PER_MS
from cluster_analysis.tables import schema
from cluster_analysis.tables.schema import rows_of

#: In the spelling of columns.
TRANSPORTS = tuple(name.lower() for name in schema.TRANSPORTS)
TIMES = ("elapse", "transit", "wait", "synchronization", "idle")
#: In the order of the file.
_BANDS = ("rdma", "hccs", "pcie", "sdma", "sio")
_RATIO_DIGITS = 4

#: Text of the `Size Distribution` by rank, step, group and transport.
Distributions = dict[tuple[int, int, str, str], str]


def distributions_of(packets: pa.Table) -> Distributions:
    """Return the packet sizes of PACKETS as the inside of a JSON object: `"2.064384": [12, 1.58]`."""
    keys = ("rank", "step", "group", "transport")
    texts: dict[tuple[int, int, str, str], list[str]] = {}
    for rank, step, group, transport, size, count, total in rows_of(
        packets, *keys, "packet_bytes", "n_packets", "total_us"
    ):
        entry = f'"{(size or 0.0) / BYTES_PER_MB!r}": [{count or 0}, {(total or 0.0) / US_PER_MS!r}]'
        texts.setdefault((rank, step, group or "", (transport or "").lower()), []).append(entry)
    return {key: ", ".join(entries) for key, entries in texts.items()}


def total_texts(totals: pa.Table, distributions: Distributions) -> list[str]:
    """Return the two objects of `Total Op Info` of each row of TOTALS."""
    ms = {name: _scaled(totals, f"{name}_us", US_PER_MS) for name in (*TIMES, *TRANSPORTS)}
    mb = {name: _scaled(totals, f"{name}_bytes", BYTES_PER_MB) for name in TRANSPORTS}
    # SDMA is what the copy engines move, whatever the wire.
    ms["sdma"] = ms["hccs"] + ms["pcie"] + ms["sio"]
    mb["sdma"] = mb["hccs"] + mb["pcie"] + mb["sio"]
    wait, transit, synchronization = ms["wait"], ms["transit"], ms["synchronization"]
    time_info = [ms[name].tolist() for name in TIMES]
    time_info += [
        ratios(wait, wait + transit).tolist(),
        ratios(synchronization, synchronization + transit).tolist(),
    ]
    bands = [
        (name, [ms[name].tolist(), mb[name].tolist(), ratios(mb[name], ms[name]).tolist()]) for name in _BANDS
    ]
    keys = list(rows_of(totals, "rank", "step", "group"))
    band_texts = [
        [
            f'"{name.upper()}": {{"Transit Time(ms)": {time!r}, "Transit Size(MB)": {size!r}, '
            f'"Size Distribution": {{{distributions.get((rank, step, group or "", name), "")}}}, '
            f'"Bandwidth(GB/s)": {bandwidth!r}}}'
            for (rank, step, group), time, size, bandwidth in zip(keys, *columns, strict=True)
        ]
        for name, columns in bands
    ]
    return [
        f'{{"Communication Time Info": {{"Elapse Time(ms)": {elapse!r}, "Transit Time(ms)": {transit!r}, '
        f'"Wait Time(ms)": {wait!r}, "Synchronization Time(ms)": {synchronization!r}, '
        f'"Idle Time(ms)": {idle!r}, "Wait Time Ratio": {wait_ratio!r}, '
        f'"Synchronization Time Ratio": {synchronization_ratio!r}}}, '
        f'"Communication Bandwidth Info": {{{", ".join(texts)}}}}}'
        for (elapse, transit, wait, synchronization, idle, wait_ratio, synchronization_ratio), texts in zip(
            zip(*time_info, strict=True), zip(*band_texts, strict=True), strict=True
        )
    ]


def _scaled(table: pa.Table, name: str, unit: float) -> FloatArray:
    scaled: FloatArray = table[name].fill_null(0.0).to_numpy() / unit
    return scaled


def ratio(numerator: float, denominator: float) -> float:
    """Return the quotient as the profilers round it; 0 where there is nothing to divide by."""
    return round(numerator / denominator, _RATIO_DIGITS) if denominator else 0.0


def ratios(numerators: FloatArray, denominators: FloatArray) -> FloatArray:
    """Return `ratio` of each pair."""
    pairs = zip(numerators.tolist(), denominators.tolist(), strict=True)
    return np.array([ratio(*pair) for pair in pairs], np.float64)
