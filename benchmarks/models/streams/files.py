"""Write a job that was run as torch_npu writes it: one `*_ascend_pt` directory a rank, below one a host.

Formats: msprof-analyze.md, section 1, and real captures. Times in communication.json are ms, sizes MB of 10^6
bytes; ranks in the matrix are local to their group.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from benchmarks.models.format import group_number, write_json
from benchmarks.models.streams.account import step_times
from benchmarks.models.streams.links import Carried
from benchmarks.models.streams.ops import BLOCKS, COLLECTIVE, EXCHANGE, KERNELS, Op
from benchmarks.models.streams.program import Program

_BEGUN_US = 1_764_246_877_000_000.0
_FIRST_STEP = 10
_TRANSPORTS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")
_NAMES = {"tp": "tp", "cp": "cp", "dp": "dp", "pp": "pp", "ep": "exp", "world": "default_group"}
_HEADER = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)
#: What a small model runs. The optimizer is in every table, and knows nothing of samples.
_SMALL = ("ApplyAdamWV2", "MatMulV3", "FlashAttentionScoreGrad", "GroupedMatmul", "Add")


#: What is written of a transport that carried nothing.
_UNUSED: dict[str, Any] = {
    "Transit Size(MB)": 0,
    "Transit Time(ms)": 0.0,
    "Bandwidth(GB/s)": 0,
    "Large Packet Ratio": 0,
    "Size Distribution": {},
}


def write(program: Program, folder: Path) -> None:
    """Write all ranks' directories as they would lie in a run directory."""
    job = program.job
    run = folder / "cluster_profiler"
    offsets = _clocks(program)
    for rank in range(job.n_ranks):
        host = job.host(rank)
        capture = (
            run / str(host + 1) / "profiler" / f"node{host + 1}_{4000 + rank}_20260101000000000_ascend_pt"
        )
        output = capture / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        _RankFiles(program, rank, offsets[host]).write(capture, output)
    lines = [f"192.0.2.{host + 1} {host + 1}\n" for host in range(job.n_hosts)]
    (folder / "host_ips_mapping.txt").write_text("".join(lines))


def _clocks(program: Program) -> list[tuple[float, float]]:
    """Return each host's offset in µs and its drift."""
    varying = program.job.varying
    dice = random.Random(f"{program.seed}/clocks")
    return [
        (dice.gauss(0.0, varying.clock_sigma_ms) * 1000.0, dice.gauss(0.0, varying.drift_ppm) * 1e-6)
        for _ in range(program.job.n_hosts)
    ]


class _RankFiles:
    """The files of one rank."""

    def __init__(self, program: Program, rank: int, clock: tuple[float, float]) -> None:
        self.program, self.job, self.rank = program, program.job, rank
        self.offset_us, self.drift = clock
        self.dice = random.Random(f"{program.seed}/files/{rank}")
        self.ops = program.ops[rank]
        self.mine = [(name, ranks) for name, ranks in program.groups.items() if rank in ranks]
        self.ids = {name: f"group_name_{number}" for number, name in enumerate(program.groups)}
        self.hashes = {name: group_number(one) for name, one in self.ids.items()}
        self.counts: dict[str, int] = {}

    def write(self, capture: Path, output: Path) -> None:
        steps, matrix = self._communication()
        write_json(output / "communication.json", steps)
        write_json(output / "communication_matrix.json", matrix)
        rows = [_HEADER]
        for step in range(self.job.steps):
            times = step_times(self.ops, step)
            values = list(times.__dict__.values())[1:]
            rows.append(
                f"{self.rank % self.job.ranks_per_host},{step + _FIRST_STEP},"
                + ",".join(f"{one:.4f}" for one in values)
            )
        (output / "step_trace_time.csv").write_text("\n".join(rows) + "\n")
        (output / "op_statistic.csv").write_text(self._kernels())
        info = {"config": {"experimental_config": {"_profiler_level": "Level1"}}, "rank_id": self.rank}
        write_json(capture / f"profiler_info_{self.rank}.json", info)
        write_json(capture / "profiler_metadata.json", self._metadata())

    def _metadata(self) -> dict[str, Any]:
        job = self.job
        groups = {
            self.ids[name]: {
                "group_name": _NAMES[name.partition("/")[0]],
                "group_rank": ranks.index(self.rank),
                "global_ranks": list(ranks),
            }
            for name, ranks in self.mine
        }
        sizes = {
            "tensor_model_parallel_size": job.tp,
            "pipeline_model_parallel_size": job.pp,
            "data_parallel_size": job.dp,
            "context_parallel_size": job.cp,
            "expert_model_parallel_size": job.ep,
            "rank": self.rank,
            "world_size": job.n_ranks,
        }
        return {"distributed_args": sizes, "parallel_group_info": groups}

    # -- kernels --------------------------------------------------------------------------------------
    def _kernels(self) -> str:
        """Return op_statistic.csv: sums over the whole capture."""
        totals: dict[str, list[float]] = {}
        for op in self.ops:
            if op.kind != KERNELS:
                continue
            # A fault of one type of kernels lengthens the block by what this type takes more.
            parts = self._parts(op)
            for name, time_us, count in parts:
                row = totals.setdefault(name, [0.0, 0.0, 1e18, 0.0])
                row[0] += count
                row[1] += time_us
                row[2] = min(row[2], time_us / count)
                row[3] = max(row[3], time_us / count)
        if self.job.varying.small_tables:
            totals = {name: row for name, row in totals.items() if name in _SMALL}
        whole = sum(row[1] for row in totals.values())
        lines = [
            "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
        ]
        for name, row in sorted(totals.items(), key=lambda one: -one[1][1]):
            n, total, low, high = row
            core = "MIX_AIC" if "Flash" in name else "AI_CORE" if "mul" in name.lower() else "AI_VECTOR_CORE"
            device = self.rank % self.job.ranks_per_host
            lines.append(
                f"{device},{name},{core},{n:.0f},{total:.3f},{low:.3f},{total / n:.3f},{high:.3f},"
                f"{total / whole * 100:.3f}"
            )
        return "\n".join(lines) + "\n"

    def _parts(self, op: Op) -> list[tuple[str, float, int]]:
        weights = [(name, share * self._op_factor(name, op), count) for name, share, count in BLOCKS[op.name]]
        whole = sum(weight for _, weight, _ in weights)
        return [(name, op.busy_us * weight / whole, count) for name, weight, count in weights]

    def _op_factor(self, name: str, op: Op) -> float:
        factor = 1.0
        for fault in self.program.network.faults:
            if fault.op == name and op.rank in fault.ranks:
                factor *= fault.factor_in(op.step, self.job.steps)
        return factor

    # -- communication --------------------------------------------------------------------------------
    def _communication(self) -> tuple[dict[str, Any], dict[str, Any]]:
        steps: dict[str, Any] = {}
        matrix: dict[str, Any] = {}
        varying = self.job.varying
        for step in range(self.job.steps):
            key = f"step{step + _FIRST_STEP}"
            steps[key] = {"p2p": {}, "collective": {}}
            matrix[key] = {"p2p": {}, "collective": {}}
            samples: dict[tuple[str, str, str], list[tuple[str, Carried]]] = {}
            for op in self.ops:
                if op.step != step or op.kind not in (COLLECTIVE, EXCHANGE):
                    continue
                group = op.call.group if op.call else next(n for n, _ in self.mine if n.startswith("pp/"))
                number = self.counts[group] = self.counts.get(group, -1) + 1
                name = f"hcom_{op.name}__{self.hashes[group][-3:]}_{number}_1"
                level = "p2p" if op.kind == EXCHANGE else "collective"
                links = self._links(op)
                if varying.lost_share and self.dice.random() < varying.lost_share:
                    continue
                steps[key][level][f"{name}@{self.hashes[group]}"] = self._entry(op, links)
                for one in links:
                    samples.setdefault((level, op.name, group), []).append((name, one))
            for (level, what, group), rows in samples.items():
                matrix[key][level].update(self._rows(what, group, rows))
        return steps, matrix

    def _links(self, op: Op) -> list[Carried]:
        """Return what went over this rank's own links: what it sent, and of messages what it received."""
        if op.call is not None:
            return [one for one in self._carried(op) if one.source == self.rank]
        found = []
        for message in (*op.sends, *op.receives):
            transport = self.program.network.transport(message.source, message.destination)
            found.append(
                Carried(message.source, message.destination, transport, message.size_mb, message.transfer_us)
            )
        return found

    def _carried(self, op: Op) -> list[Carried]:
        call = op.call
        assert call is not None
        network = self.program.network
        return [
            network.carried(a, b, share * call.size_mb, call.step, noise, call.luck)
            for (a, b, share), noise in zip(network.pairs(call.name, call.ranks), call.noise, strict=True)
            if a == self.rank
        ]

    def _entry(self, op: Op, links: list[Carried]) -> dict[str, Any]:
        elapse = (op.end_us - op.start_us) / 1000.0
        mode = self.job.varying.wait_fields
        is_known = mode == "full" or (mode == "mixed" and self.dice.random() < 0.6)
        transit = wait = 0.0
        if is_known:
            transit = min(elapse, max((one.time_us for one in links), default=0.0) / 1000.0)
            wait = max(0.0, elapse - transit - self.dice.uniform(0.01, 0.05))
        whole = transit + wait
        return {
            "Communication Time Info": {
                "Start Timestamp(us)": round(self._clock(op.start_us), 3),
                "Elapse Time(ms)": elapse,
                "Transit Time(ms)": transit,
                "Wait Time(ms)": wait,
                "Synchronization Time(ms)": wait * 0.98,
                "Idle Time(ms)": elapse - transit - wait,
                "Wait Time Ratio": round(wait / whole, 4) if whole else 0,
                "Synchronization Time Ratio": round(wait * 0.98 / (transit + wait * 0.98), 4) if whole else 0,
            },
            "Communication Bandwidth Info": {name: _bandwidth(name, links) for name in _TRANSPORTS},
        }

    def _clock(self, at_us: float) -> float:
        return _BEGUN_US + self.offset_us + at_us * (1.0 + self.drift)

    def _rows(self, what: str, group: str, rows: list[tuple[str, Carried]]) -> dict[str, Any]:
        """Return the matrix of one kind of operator in one group: single operators, or samples of them."""
        ranks, number = self.program.groups[group], self.hashes[group]
        ends = [
            (f"{ranks.index(one.source)}-{ranks.index(one.destination)}", name, one) for name, one in rows
        ]
        if self.job.varying.matrix == "operators":
            single: dict[str, Any] = {}
            for pair, name, one in ends:
                single.setdefault(f"{name}@{number}", {})[pair] = _link(one, None)
            return single
        kind = {"reduceScatter": "reduce"}.get(what, what.lower())
        found: dict[str, Any] = {}
        by_pair: dict[str, list[tuple[str, Carried]]] = {}
        for pair, name, one in ends:
            by_pair.setdefault(pair, []).append((name, one))
        for pair, some in by_pair.items():
            some.sort(key=lambda row: -row[1].size_mb / row[1].time_us)
            chosen = {"top1": some[0], "middle": some[len(some) // 2], "bottom1": some[-1]}
            for place in (2, 3):
                if len(some) >= place:
                    chosen[f"bottom{place}"] = some[-place]
            for variant, (name, one) in chosen.items():
                found.setdefault(f"{kind}-{variant}@{number}", {})[pair] = _link(one, name)
            size, time_us = sum(one.size_mb for _, one in some), sum(one.time_us for _, one in some)
            total = some[0][1]._replace(size_mb=size, time_us=time_us)
            found.setdefault(f"{kind}-total@{number}", {})[pair] = _link(total, None)
        return found


def _bandwidth(transport: str, links: list[Carried]) -> dict[str, Any]:
    used = [one for one in links if one.transport == ("HCCS" if transport == "SDMA" else transport)]
    if not used:
        return _UNUSED
    size, time_ms = sum(one.size_mb for one in used), sum(one.time_us for one in used) / 1000.0
    sizes: dict[str, list[float]] = {}
    for one in used:
        row = sizes.setdefault(f"{one.size_mb:.6f}", [0, 0.0])
        row[0] += 1
        row[1] += one.time_us / 1000.0
    return {
        "Transit Size(MB)": size,
        "Transit Time(ms)": time_ms,
        "Bandwidth(GB/s)": round(size / time_ms, 4) if time_ms else 0,
        "Large Packet Ratio": 0,
        "Size Distribution": {} if transport == "SDMA" else sizes,
    }


def _link(one: Carried, name: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "Transport Type": one.transport,
        "Transit Size(MB)": one.size_mb,
        "Transit Time(ms)": one.time_us / 1000.0,
        "Bandwidth(GB/s)": round(one.size_mb / one.time_us * 1000.0, 4),
    }
    if name is not None:
        row["Op Name"] = name
    return row
