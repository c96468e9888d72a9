"""A simulated job as tables of the analysis, as if its files had been written and read."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cluster_analysis.tables import schema
from cluster_analysis.tables.model import DeclaredGroup, Group, RankMetadata, Topology
from cluster_analysis.tables.rank_tables import RankTables
from cluster_run.ids import DeviceId, HostId, ParallelSizes, Rank
from cluster_simulate.files.capture_text import profiler_level
from cluster_simulate.files.captured import LocalIds, op_names
from cluster_simulate.files.entries import VARIANTS, link_entries
from cluster_simulate.files.kernels import kernel_statistics
from cluster_simulate.files.observed import OpView, observe, seen_ranks, seen_steps
from cluster_simulate.files.totals import step_totals
from cluster_simulate.job import layout as kinds
from cluster_simulate.job.arrays import Ints
from cluster_simulate.job.job import HCCS, PCIE, RDMA, TRANSPORTS, SimulatedJob
from cluster_simulate.job.spec import Framework

_OP_TYPES = tuple(name.lower() for name in kinds.OP_KINDS)


def tables(job: SimulatedJob, framework: Framework = "pt") -> Mapping[Rank, RankTables]:
    """Return what a reader would make of each rank's files; ranks and steps that are missing are left out."""
    view = observe(job)
    detail = job.spec.detail
    whole = {
        "collectives": _collectives(job, view) if detail != "totals" else schema.COLLECTIVES.empty_table(),
        "links": _links(job, view, framework) if detail == "full" else schema.LINKS.empty_table(),
        "packets": _packets(job, view) if detail != "totals" else schema.PACKETS.empty_table(),
        "steps": _steps(job, framework),
        "operators": _operators(job),
    }
    ranks = seen_ranks(job)
    parts = {name: _cut(table, ranks) for name, table in whole.items()}
    declared = _declared(job)
    return {
        Rank(rank): RankTables(
            {Rank(rank): _metadata(job, declared[rank])},
            **{name: part[rank] for name, part in parts.items()},
        )
        for rank in ranks
    }


def topology(job: SimulatedJob) -> Topology:
    """Return where every rank sits and its groups, as complete metadata and a rank table would give them."""
    spec = job.spec
    ranks = range(spec.n_ranks)
    groups = {
        hash_: Group(hash_, role, tuple(Rank(rank) for rank in members), label)
        for hash_, role, members, label in zip(
            job.groups.hashes, job.groups.roles, job.groups.members, job.groups.labels, strict=True
        )
    }
    return Topology(
        ranks=tuple(Rank(rank) for rank in ranks),
        hosts={Rank(rank): HostId(str(spec.host_of(rank) + 1)) for rank in ranks},
        devices={Rank(rank): DeviceId(spec.device_of(rank)) for rank in ranks},
        groups=groups,
        parallel=ParallelSizes(spec.tp, spec.pp, spec.dp, spec.cp, spec.ep),
        stages={Rank(rank): rank // spec.stage_ranks for rank in ranks},
        tp_index={Rank(rank): rank % spec.tp for rank in ranks},
        dp_index={Rank(rank): rank // (spec.tp * spec.cp) % spec.dp for rank in ranks},
    )


def _cut(table: pa.Table, ranks: list[int]) -> dict[int, pa.Table]:
    """Return the rows of each rank of a table that is ordered by rank."""
    column = table["rank"].to_numpy()
    first = np.searchsorted(column, ranks, side="left")
    last = np.searchsorted(column, ranks, side="right")
    return {rank: table.slice(int(a), int(b - a)) for rank, a, b in zip(ranks, first, last, strict=True)}


def _text(codes: Ints, values: tuple[str, ...]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.astype(np.int32)), pa.array(list(values), pa.string())
    )


def _collectives(job: SimulatedJob, view: OpView) -> pa.Table:
    ops = view.ops
    columns = {
        "rank": ops.rank,
        "step": ops.step + job.spec.first_step,
        "group": _text(ops.group, job.groups.hashes),
        "op_name": pa.array(op_names(job, view.ops), pa.string()),
        "op_type": _text(ops.kind, _OP_TYPES),
        "op_index": ops.number,
        "is_p2p": np.isin(ops.kind, list(kinds.P2P_KINDS)),
        "start_ns": view.start_ns,
        "elapse_us": view.elapse_us,
        "transit_us": view.transit_us,
        "wait_us": view.wait_us,
        "synchronization_us": view.synchronization_us,
        "idle_us": view.idle_us,
    }
    links = view.links
    for name, code in (("hccs", HCCS), ("rdma", RDMA), ("pcie", PCIE), ("sio", -1)):
        here = links.transport == code
        columns[f"{name}_bytes"] = np.bincount(links.op[here], links.size_bytes[here], len(ops))
        columns[f"{name}_us"] = np.bincount(links.op[here], links.time_us[here].round(2), len(ops)).round(2)
    return _table(columns, schema.COLLECTIVES)


def _links(job: SimulatedJob, view: OpView, framework: Framework) -> pa.Table:
    entries = link_entries(view, framework)
    names = op_names(job, view.ops)
    local = LocalIds(job)
    return _table(
        {
            "rank": entries.rank,
            "step": entries.step + job.spec.first_step,
            "group": _text(entries.group, job.groups.hashes),
            "is_p2p": np.isin(entries.kind, list(kinds.P2P_KINDS)),
            "op_type": _text(entries.kind, _OP_TYPES),
            "variant": _text(entries.variant, VARIANTS),
            "op_name": pa.array(
                [names[row] if row >= 0 else None for row in entries.op.tolist()], pa.string()
            ),
            "src_local": local.of(entries.group, entries.rank),
            "dst_local": local.of(entries.group, entries.dst),
            "src_rank": entries.rank,
            "dst_rank": entries.dst,
            "transport": _text(entries.transport, TRANSPORTS),
            "size_bytes": entries.size_bytes,
            "time_us": entries.time_us,
        },
        schema.LINKS,
    )


def _packets(job: SimulatedJob, view: OpView) -> pa.Table:
    links, ops = view.links, view.ops
    packet = np.rint(links.size_bytes / links.n_packets).astype(np.int64)
    key = np.stack(
        [ops.rank[links.op], ops.step[links.op], ops.group[links.op], links.transport, packet], axis=1
    )
    unique, inverse = _unique_rows(key)
    return _table(
        {
            "rank": unique[:, 0],
            "step": unique[:, 1] + job.spec.first_step,
            "group": _text(unique[:, 2], job.groups.hashes),
            "transport": _text(unique[:, 3], TRANSPORTS),
            "packet_bytes": unique[:, 4].astype(np.float64),
            "n_packets": np.bincount(inverse, links.n_packets, len(unique)).astype(np.int64),
            "total_us": np.bincount(inverse, links.time_us.round(2), len(unique)).round(2),
        },
        schema.PACKETS,
    )


def _unique_rows(key: Ints) -> tuple[Ints, Ints]:
    """Return the different rows in order, and for each row which of them it is."""
    order = np.lexsort(key.T[::-1])
    ordered = key[order]
    is_new = np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)] if len(key) else np.zeros(0, dtype=bool)
    inverse = np.empty(len(key), dtype=np.int64)
    inverse[order] = np.cumsum(is_new) - 1
    return ordered[is_new], inverse


def _steps(job: SimulatedJob, framework: Framework) -> pa.Table:
    totals = step_totals(job, framework)
    steps, ranks = seen_steps(job), seen_ranks(job)
    columns = {
        "rank": np.repeat(ranks, len(steps)),
        "step": np.tile(np.array(steps, dtype=np.int64) + job.spec.first_step, len(ranks)),
    }
    pick = np.ix_(steps, ranks)
    for name in schema.STEPS.names[2:]:
        source = "exclude_receive_us" if name.endswith("exclude_receive_us") else name
        columns[name] = getattr(totals, source)[pick].T.ravel()
    return _table(columns, schema.STEPS)


def _operators(job: SimulatedJob) -> pa.Table:
    rows = [(rank, row) for rank in seen_ranks(job) for row in kernel_statistics(job, rank)]
    return pa.table(
        {
            "rank": pa.array([rank for rank, _ in rows], pa.int32()),
            "op_type": pa.array([row.op_type for _, row in rows], pa.string()).dictionary_encode(),
            "core_type": pa.array([row.core_type for _, row in rows], pa.string()).dictionary_encode(),
            "n_calls": pa.array([row.n_calls for _, row in rows], pa.int64()),
            "total_us": pa.array([row.total_us for _, row in rows], pa.float64()),
            "min_us": pa.array([row.min_us for _, row in rows], pa.float64()),
            "avg_us": pa.array([row.avg_us for _, row in rows], pa.float64()),
            "max_us": pa.array([row.max_us for _, row in rows], pa.float64()),
        },
        schema=schema.OPERATORS,
    )


def _declared(job: SimulatedJob) -> list[tuple[DeclaredGroup, ...]]:
    """Return, by rank, the groups it is in."""
    groups = job.groups
    mine: list[list[DeclaredGroup]] = [[] for _ in range(job.spec.n_ranks)]
    for hash_, label, members, name in zip(
        groups.hashes, groups.labels, groups.members, groups.names, strict=True
    ):
        declared = DeclaredGroup(hash_, label, tuple(Rank(rank) for rank in members), name)
        for rank in members:
            mine[rank].append(declared)
    return [tuple(one) for one in mine]


def _metadata(job: SimulatedJob, declared: tuple[DeclaredGroup, ...]) -> RankMetadata:
    spec = job.spec
    level = profiler_level(spec)
    if not spec.declares_groups:
        return RankMetadata(profiler_level=level)
    return RankMetadata(
        parallel=ParallelSizes(spec.tp, spec.pp, spec.dp, spec.cp, spec.ep),
        world_size=spec.n_ranks,
        groups=declared,
        profiler_level=level,
    )


def _table(columns: Mapping[str, object], wanted: pa.Schema) -> pa.Table:
    arrays = []
    n_rows = len(next(iter(columns.values())))  # type: ignore[arg-type]
    for field in wanted:
        value = columns.get(field.name)
        if value is None:
            # No profiler's file states these in this form.
            arrays.append(pa.nulls(n_rows, field.type))
            continue
        if not isinstance(value, pa.Array):
            value = pa.array(value)
        arrays.append(value if pa.types.is_dictionary(field.type) else value.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=wanted)
