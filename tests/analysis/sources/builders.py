"""Small hand-made captures, in text and database form, from one description."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cluster_analysis.tables.model import RankSource, SourceKind
from cluster_run.ids import Rank

OUTPUT = "ASCEND_PROFILER_OUTPUT"
GROUP = "17148521525495523210"
STEP_HEADER = (
    "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive)"
)
#: Computing + not overlapped + free = stage + bubble, as in real files.
STEP_ROW = (8873.75, 101963.203, 4028.675, 105991.878, 25744.05, 136581.003, 0, 101963.203)


@dataclass(frozen=True)
class Op:
    """One operator: times in ms, start in µs as text, packets `{MB: (count, ms)}` over HCCS or RDMA."""

    name: str
    start: str = "1736408883732241.5"
    elapse: float = 79.08952021875
    transit: float = 0.25
    wait: float = 5.625
    synchronization: float = 5.5
    idle: float | None = None
    transport: str = "HCCS"
    packets: Mapping[str, tuple[int, float]] = field(default_factory=lambda: {"2.064384": (12, 1.5)})
    is_p2p: bool = False

    @property
    def rest(self) -> float:
        """Time that is no other, in ms, if `idle` says nothing else."""
        return self.elapse - self.transit - self.wait if self.idle is None else self.idle

    @property
    def size(self) -> float:
        """MB."""
        return sum(float(size) * count for size, (count, _) in self.packets.items())

    @property
    def time(self) -> float:
        """ms over all links."""
        return sum(total for _, total in self.packets.values())


@dataclass(frozen=True)
class LinkRow:
    """One link: `key` such as `allreduce-top1@group`, size in MB, time in ms."""

    key: str
    src: int
    dst: int
    transport: str = "HCCS"
    size: float = 37.781504
    time: float = 2.125
    op_name: str | None = "hcom_allReduce__210_2_1"
    is_p2p: bool = False


def op_json(op: Op, transports: Sequence[str] = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")) -> dict[str, object]:
    """The entry of communication.json."""
    bandwidth = {}
    for name in transports:
        used = name == op.transport or (name == "SDMA" and op.transport in ("HCCS", "PCIE", "SIO"))
        bandwidth[name] = {
            "Transit Size(MB)": op.size if used else 0,
            "Transit Time(ms)": op.time if used else 0,
            "Bandwidth(GB/s)": round(op.size / op.time, 4) if used and op.time else 0,
            "Large Packet Ratio": 0,
            "Size Distribution": {size: list(one) for size, one in op.packets.items()}
            if name == op.transport
            else {},
        }
    return {
        "Communication Time Info": {
            "Start Timestamp(us)": float(op.start),
            "Elapse Time(ms)": op.elapse,
            "Transit Time(ms)": op.transit,
            "Wait Time(ms)": op.wait,
            "Synchronization Time(ms)": op.synchronization,
            "Idle Time(ms)": op.rest,
            "Wait Time Ratio": 0.9,
            "Synchronization Time Ratio": 0.9,
        },
        "Communication Bandwidth Info": bandwidth,
    }


def communication_json(steps: Mapping[str, Sequence[Op]]) -> dict[str, object]:
    """The document, with the totals that the profilers add."""
    return {
        step: {
            kind: {
                **{op.name: op_json(op) for op in ops if op.is_p2p == (kind == "p2p")},
                "Total Op Info": op_json(ops[0]) if ops else {},
            }
            for kind in ("p2p", "collective")
        }
        for step, ops in steps.items()
    }


def matrix_json(steps: Mapping[str, Sequence[LinkRow]], name_key: str = "Op Name") -> dict[str, object]:
    """The document of communication_matrix.json."""
    document: dict[str, dict[str, dict[str, dict[str, object]]]] = {}
    for step, links in steps.items():
        levels: dict[str, dict[str, dict[str, object]]] = {"p2p": {}, "collective": {}}
        for link in links:
            entry: dict[str, object] = {
                "Transport Type": link.transport,
                "Transit Size(MB)": link.size,
                "Transit Time(ms)": link.time,
                "Bandwidth(GB/s)": round(link.size / link.time, 4),
            }
            if link.op_name is not None:
                entry[name_key] = link.op_name
            level = levels["p2p" if link.is_p2p else "collective"]
            level.setdefault(link.key, {})[f"{link.src}-{link.dst}"] = entry
        document[step] = levels
    return document


def step_csv(rows: Mapping[str, Sequence[float]], header: str = STEP_HEADER) -> str:
    """The text of step_trace_time.csv."""
    return "\n".join([header, *(",".join(map(str, (step, *row))) for step, row in rows.items())]) + "\n"


#: While one of them runs, STEP_ROW communicates.
OPS = (
    Op(f"hcom_allReduce__210_0_1@{GROUP}"),
    Op(
        f"hcom_reduceScatter__210_1_1@{GROUP}",
        start="1736408883811334.8",
        elapse=26.90235778125,
        packets={"8.0": (2, 1.0), "4.0": (1, 0.5)},
    ),
    Op(
        f"hcom_send__822_0_1@{GROUP}", transport="RDMA", packets={"20.97152": (1, 0.86381540625)}, is_p2p=True
    ),
)
#: Their totals are what OPS carried.
LINKS = (
    LinkRow(f"allreduce-top1@{GROUP}", 0, 0, "LOCAL", 4.0, 0.01),
    LinkRow(f"allreduce-top1@{GROUP}", 0, 1),
    LinkRow(
        f"allreduce-total@{GROUP}",
        0,
        1,
        op_name=None,
        size=sum(one.size for one in OPS),
        time=sum(one.time for one in OPS),
    ),
)


def write_capture(
    root: Path,
    rank: int,
    name: str = "",
    *,
    ops: Mapping[str, Sequence[Op]] | None = None,
    links: Mapping[str, Sequence[LinkRow]] | None = None,
    steps: str | None = None,
    metadata: object = None,
    suffix: str = "ascend_pt",
    has_info: bool = True,
) -> Path:
    """Write one rank in text form; returns its directory."""
    capture = root / (name or f"node1_{1000 + rank}_20250109123456{rank:03d}_{suffix}")
    output = capture / OUTPUT
    output.mkdir(parents=True)
    (output / "step_trace_time.csv").write_text(steps if steps is not None else step_csv({"50": STEP_ROW}))
    (output / "communication.json").write_text(json.dumps(communication_json(ops or {"step50": OPS})))
    (output / "communication_matrix.json").write_text(json.dumps(matrix_json(links or {"step50": LINKS})))
    if has_info:
        write_info(capture, rank)
    if metadata is not None:
        (capture / "profiler_metadata.json").write_text(json.dumps(metadata))
    return capture


def write_info(capture: Path, rank: int, level: str = "Level1", ended_ns: int = 1736408884023552840) -> None:
    """Write profiler_info_{rank}.json."""
    document = {
        "config": {"experimental_config": {"_profiler_level": level}},
        "end_info": {"collectionTimeEnd": ended_ns},
        "cann_version": "8.3.RC1",
        "rank_id": rank,
    }
    (capture / f"profiler_info_{rank}.json").write_text(json.dumps(document))


def write_analysis_db(
    path: Path,
    ops: Mapping[str, Sequence[Op]],
    links: Mapping[str, Sequence[LinkRow]],
    steps: Mapping[str, Sequence[float]],
    *,
    with_step_columns: bool = True,
) -> None:
    """Write analysis.db; without step columns it is communication_analyzer.db of MindSpore."""
    extra = ", step TEXT, type TEXT" if with_step_columns else ""
    with sqlite3.connect(path) as base:
        if with_step_columns:
            base.execute(
                "CREATE TABLE StepTraceTime (deviceId INTEGER, step TEXT, computing NUMERIC, "
                "communication_not_overlapped NUMERIC, overlapped NUMERIC, communication NUMERIC, "
                "free NUMERIC, "
                "stage NUMERIC, bubble NUMERIC, communication_not_overlapped_and_exclude_receive NUMERIC, "
                "preparing NUMERIC)"
            )
            for step, row in steps.items():
                base.execute(
                    f"INSERT INTO StepTraceTime VALUES ({','.join('?' * 11)})", (4, step, *row, None)
                )
        base.execute(
            "CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, "
            "elapse_time NUMERIC, transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC, "
            f"idle_time NUMERIC{extra})"
        )
        base.execute(
            "CREATE TABLE CommAnalyzerBandwidth (hccl_op_name TEXT, group_name TEXT, transport_type TEXT, "
            "transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, large_packet_ratio NUMERIC, "
            f"package_size NUMERIC, count NUMERIC, total_duration NUMERIC{extra})"
        )
        base.execute(
            "CREATE TABLE CommAnalyzerMatrix (hccl_op_name TEXT, group_name TEXT, src_rank TEXT, "
            "dst_rank TEXT, transport_type TEXT, "
            f"transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC{extra}, op_name TEXT)"
        )
        for step, step_ops in ops.items():
            for op in sorted(step_ops, key=lambda one: not one.is_p2p):
                name, group = op.name.rsplit("@", 1)
                tail = (step, "p2p" if op.is_p2p else "collective") if with_step_columns else ()
                times = (float(op.start), op.elapse, op.transit, op.wait, op.synchronization, op.rest)
                _insert(base, "CommAnalyzerTime", (name, group, *times, *tail))
                summed = ("SDMA",) if op.transport in ("HCCS", "PCIE", "SIO") else ()
                for transport in (op.transport, *summed):
                    sizes = op.packets.items() if transport != "SDMA" else {"0": (0, 0)}.items()
                    for size, (count, total) in sizes:
                        row = (name, group, transport, op.size, op.time, 1.0, 0, float(size), count, total)
                        _insert(base, "CommAnalyzerBandwidth", (*row, *tail))
        for step, step_links in links.items():
            for link in sorted(step_links, key=lambda one: not one.is_p2p):
                name, group = link.key.rsplit("@", 1)
                tail = (step, "p2p" if link.is_p2p else "collective") if with_step_columns else ()
                row = (name, group, str(link.src), str(link.dst), link.transport, link.size, link.time, 1.0)
                _insert(base, "CommAnalyzerMatrix", (*row, *tail, link.op_name))
    base.close()


def _insert(base: sqlite3.Connection, table: str, row: Sequence[object]) -> None:
    base.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", tuple(row))


def source_of(capture: Path, rank: int = 0, kind: SourceKind = "ascend_pt/text", **files: Path) -> RankSource:
    """The source that discovery makes of a capture; or of the files given by role."""
    if not files:
        from cluster_analysis.discovery.ascend import inspect_capture  # noqa: PLC0415

        found, problem = inspect_capture(capture)
        assert found is not None, problem
        files, kind = dict(found.files), found.kind
    return RankSource(Rank(rank), kind, {role: str(path) for role, path in files.items()}, size_bytes=1)
