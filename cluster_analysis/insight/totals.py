"""What Insight calls `Total Op Info`: the sums over the operators of a group as text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.sources.numbers import BYTES_PER_MB, US_PER_MS

TRANSPORTS = ("hccs", "rdma", "pcie", "sio")
_TIMES = ("elapse_us", "transit_us", "wait_us", "synchronization_us", "idle_us")
_RATIO_DIGITS = 4
#: Scaled quotients below this are off by less than a millionth, and round otherwise only so near to a tie.
_SURE, _TIE = 1e9, 1e-6

#: Text of the `Size Distribution` by rank, step, group and transport.
Distributions = dict[tuple[int, int, str, str], str]


def distributions_of(packets: pa.Table) -> Distributions:
    """Return the packet sizes of PACKETS as the inside of a JSON object: `"2.064384": [12, 1.58]`."""
    columns = [packets[name].to_pylist() for name in ("rank", "step", "group", "transport")]
    columns += [packets[name].to_pylist() for name in ("packet_bytes", "n_packets", "total_us")]
    texts: dict[tuple[int, int, str, str], list[str]] = {}
    for rank, step, group, transport, size, count, total in zip(*columns, strict=True):
        entry = f'"{(size or 0.0) / BYTES_PER_MB!r}": [{count or 0}, {(total or 0.0) / US_PER_MS!r}]'
        texts.setdefault((rank, step, group or "", (transport or "").lower()), []).append(entry)
    return {key: ", ".join(entries) for key, entries in texts.items()}


def total_json(row: dict[str, float | None], key: tuple[int, int, str], distributions: Distributions) -> str:
    """Return the two objects of one rank's `Total Op Info`.

    Args:
        row: the sums by column of TOTALS.
        key: rank, step and group.
        distributions: see `distributions_of`.
    """
    elapse, transit, wait, synchronization, idle = ((row[name] or 0.0) / US_PER_MS for name in _TIMES)
    sizes = {name: (row[f"{name}_bytes"] or 0.0) / BYTES_PER_MB for name in TRANSPORTS}
    times = {name: (row[f"{name}_us"] or 0.0) / US_PER_MS for name in TRANSPORTS}
    # SDMA is what the copy engines move, whatever the wire.
    sizes["sdma"] = sizes["hccs"] + sizes["pcie"] + sizes["sio"]
    times["sdma"] = times["hccs"] + times["pcie"] + times["sio"]
    bands = ", ".join(
        f'"{name.upper()}": {{"Transit Time(ms)": {times[name]!r}, "Transit Size(MB)": {sizes[name]!r}, '
        f'"Size Distribution": {{{distributions.get((*key, name), "")}}}, '
        f'"Bandwidth(GB/s)": {ratio(sizes[name], times[name])!r}}}'
        for name in ("rdma", "hccs", "pcie", "sdma", "sio")
    )
    return (
        f'{{"Communication Time Info": {{"Elapse Time(ms)": {elapse!r}, "Transit Time(ms)": {transit!r}, '
        f'"Wait Time(ms)": {wait!r}, "Synchronization Time(ms)": {synchronization!r}, '
        f'"Idle Time(ms)": {idle!r}, "Wait Time Ratio": {ratio(wait, wait + transit)!r}, '
        f'"Synchronization Time Ratio": {ratio(synchronization, synchronization + transit)!r}}}, '
        f'"Communication Bandwidth Info": {{{bands}}}}}'
    )


def ratio(numerator: float, denominator: float) -> float:
    """Return the quotient as the profilers round it; 0 where there is nothing to divide by."""
    return round(numerator / denominator, _RATIO_DIGITS) if denominator else 0.0


def ratios(numerators: FloatArray, denominators: FloatArray) -> FloatArray:
    """Return `ratio` of each pair."""
    scale = 10.0**_RATIO_DIGITS
    with np.errstate(all="ignore"):
        scaled = numerators / denominators * scale
        whole = np.rint(scaled)
        is_sure = (np.abs(scaled) < _SURE) & (np.abs(np.abs(scaled - whole) - 0.5) > _TIE)
    rounded: FloatArray = whole / scale
    for at in np.flatnonzero(~is_sure).tolist():
        rounded[at] = ratio(float(numerators[at]), float(denominators[at]))
    return rounded
