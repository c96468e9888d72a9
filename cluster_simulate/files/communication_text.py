"""communication.json and communication_matrix.json of one rank: one line, as json.dumps writes it.

The text is put together from templates, which is several times as fast as nested dictionaries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cluster_simulate.files.captured import CapturedJob, filed_as_p2p, matrix_rows
from cluster_simulate.job.job import HCCS, PCIE, RDMA

_NOTHING = (
    '{"Transit Size(MB)": 0, "Transit Time(ms)": 0, "Bandwidth(GB/s)": 0, '
    '"Large Packet Ratio": 0, "Size Distribution": {}}'
)
_EMPTY_LEVEL = "{}"
_LARGE_BYTES = {HCCS: 16e6, RDMA: 1e6, PCIE: 16e6}
_TIME_LABELS = ("Elapse", "Transit", "Wait", "Synchronization", "Idle")


def communication_json(captured: CapturedJob, rank: int) -> bytes:
    """Return communication.json of a rank; `{}` where it did not communicate."""
    view = captured.view
    rows = captured.op_rows[rank]
    steps = view.ops.step[rows].tolist()
    is_p2p = filed_as_p2p(view.ops.kind[rows], captured.framework).tolist()
    times = {
        label: np.round(getattr(view, f"{label.lower()}_us")[rows] / 1e3, 5).tolist()
        for label in _TIME_LABELS
    }
    starts = view.start_us[rows].tolist()
    hashes = captured.job.groups.hashes
    groups = view.ops.group[rows].tolist()
    bandwidth = _bandwidths(captured, rank, rows)
    by_level: dict[tuple[int, bool], list[str]] = {}
    members: dict[tuple[int, bool], list[int]] = {}
    for i, step in enumerate(steps):
        elapse, transit, wait = times["Elapse"][i], times["Transit"][i], times["Wait"][i]
        sync, idle = times["Synchronization"][i], times["Idle"][i]
        text = (
            f'"{captured.names[rows.start + i]}@{hashes[groups[i]]}": {{"Communication Time Info": '
            f'{{"Start Timestamp(us)": {starts[i]!r}, {_time_info(elapse, transit, wait, sync, idle)}}}, '
            f'"Communication Bandwidth Info": {bandwidth[i]}}}'
        )
        by_level.setdefault((step, is_p2p[i]), []).append(text)
        members.setdefault((step, is_p2p[i]), []).append(i)
    levels = {
        key: f"{{{', '.join(texts)}, {_total(times, members[key])}}}" for key, texts in by_level.items()
    }
    return _document(captured, levels)


def matrix_json(captured: CapturedJob, rank: int) -> bytes:
    """Return communication_matrix.json of a rank."""
    name_key = "Op Name" if captured.framework == "pt" else "op_name"
    by_level: dict[tuple[int, bool], dict[str, list[str]]] = {}
    for step, alone, name, group, src, dst, transport, figures, op_name in matrix_rows(captured, rank):
        size_mb, time_ms, gbps = figures
        named = f', "{name_key}": "{op_name}"' if op_name else ""
        link = (
            f'"{src}-{dst}": {{"Transport Type": "{transport}", "Transit Size(MB)": {size_mb!r}, '
            f'"Transit Time(ms)": {time_ms!r}, "Bandwidth(GB/s)": {gbps!r}{named}}}'
        )
        by_level.setdefault((step, alone), {}).setdefault(f"{name}@{group}", []).append(link)
    levels = {
        level: "{" + ", ".join(f'"{key}": {{{", ".join(links)}}}' for key, links in entry.items()) + "}"
        for level, entry in by_level.items()
    }
    return _document(captured, levels)


def _document(captured: CapturedJob, levels: dict[tuple[int, bool], str]) -> bytes:
    first = captured.job.spec.first_step
    steps = sorted({step for step, _ in levels})
    text = ", ".join(
        f'"step{first + step}": {{"p2p": {levels.get((step, True), _EMPTY_LEVEL)}, '
        f'"collective": {levels.get((step, False), _EMPTY_LEVEL)}}}'
        for step in steps
    )
    return f"{{{text}}}".encode()


def _time_info(elapse: float, transit: float, wait: float, sync: float, idle: float) -> str:
    wait_ratio = round(wait / (wait + transit), 4) if wait + transit else 0
    sync_ratio = round(sync / (sync + transit), 4) if sync + transit else 0
    return (
        f'"Elapse Time(ms)": {elapse!r}, "Transit Time(ms)": {transit!r}, "Wait Time(ms)": {wait!r}, '
        f'"Synchronization Time(ms)": {sync!r}, "Idle Time(ms)": {idle!r}, '
        f'"Wait Time Ratio": {wait_ratio!r}, "Synchronization Time Ratio": {sync_ratio!r}'
    )


def _total(times: dict[str, list[float]], members: list[int]) -> str:
    sums = [round(sum(times[label][i] for i in members), 5) for label in _TIME_LABELS]
    info = _time_info(sums[0], sums[1], sums[2], sums[3], sums[4])
    return f'"Total Op Info": {{"Communication Time Info": {{{info}}}, "Communication Bandwidth Info": {{}}}}'


@dataclass(frozen=True)
class TransportFigures:
    """Data of one operator over one transport. `packets` holds count and ms by packet size in MB."""

    size_mb: float
    time_ms: float
    gbps: float
    large_ratio: float
    packets: Mapping[float, tuple[int, float]]


def transport_figures(
    captured: CapturedJob, rank: int, rows: slice
) -> Mapping[tuple[int, int], TransportFigures]:
    """Return, by (operator counted from the rank's first row, transport), a rank's own links summed."""
    links = captured.view.links
    mine = captured.link_rows[rank]
    sums: dict[tuple[int, int], dict[float, tuple[int, float]]] = {}
    for op, transport, size, time, packets in zip(
        (links.op[mine] - rows.start).tolist(),
        links.transport[mine].tolist(),
        links.size_bytes[mine].tolist(),
        links.time_us[mine].round(2).tolist(),
        links.n_packets[mine].tolist(),
        strict=True,
    ):
        sizes = sums.setdefault((op, transport), {})
        count, spent = sizes.get(size / packets, (0, 0.0))
        sizes[size / packets] = (count + packets, spent + time)
    return {key: _figures(key[1], sizes) for key, sizes in sums.items()}


def _figures(code: int, sizes: Mapping[float, tuple[int, float]]) -> TransportFigures:
    size_mb = round(sum(size * count for size, (count, _) in sizes.items()) / 1e6, 6)
    time_ms = round(sum(time for _, time in sizes.values()) / 1e3, 5)
    large = sum(count for size, (count, _) in sizes.items() if size > _LARGE_BYTES[code])
    return TransportFigures(
        size_mb=size_mb,
        time_ms=time_ms,
        gbps=round(size_mb / time_ms, 4) if time_ms else 0,
        large_ratio=round(large / sum(count for count, _ in sizes.values()), 4),
        packets={
            round(size / 1e6, 6): (count, round(time / 1e3, 5)) for size, (count, time) in sizes.items()
        },
    )


def _bandwidths(captured: CapturedJob, rank: int, rows: slice) -> list[str]:
    """Return the text of each operator's bandwidth info."""
    figures = transport_figures(captured, rank, rows)
    texts = []
    for op in range(rows.stop - rows.start):
        rdma, hccs, pcie = (_transport(figures.get((op, code))) for code in (RDMA, HCCS, PCIE))
        copied = _transport(figures.get((op, HCCS)), has_packets=False)
        texts.append(
            f'{{"RDMA": {rdma}, "HCCS": {hccs}, "PCIE": {pcie}, "SDMA": {copied}, "SIO": {_NOTHING}}}'
        )
    return texts


def _transport(figures: TransportFigures | None, has_packets: bool = True) -> str:
    if figures is None:
        return _NOTHING
    packets = ", ".join(
        f'"{size_mb!r}": [{count}, {time_ms!r}]' for size_mb, (count, time_ms) in figures.packets.items()
    )
    ratio = figures.large_ratio if has_packets else 0
    return (
        f'{{"Transit Size(MB)": {figures.size_mb!r}, "Transit Time(ms)": {figures.time_ms!r}, '
        f'"Bandwidth(GB/s)": {figures.gbps!r}, "Large Packet Ratio": {ratio!r}, '
        f'"Size Distribution": {{{packets if has_packets else ""}}}}}'
    )
