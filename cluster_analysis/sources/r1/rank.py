"""One rank of MindSpore r1.x to 2.3: its flat files put together."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources import counters
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.measured import OF_R1_STEPS, sound_steps
from cluster_analysis.sources.r1.cluster_analyse import (
    read_r1_cluster_analyse,
    steps_alone,
    steps_of_iterations,
)
from cluster_analysis.sources.r1.hccl import read_r1_costs, read_r1_hccl
from cluster_analysis.sources.r1.input_pipeline import read_input_pipeline
from cluster_analysis.sources.r1.kernels import read_r1_kernels, read_r1_operators
from cluster_analysis.sources.r1.step_trace import read_r1_step_trace
from cluster_analysis.sources.r1.strategy import read_strategy
from cluster_analysis.sources.reading import Reading, of_rank, or_empty
from cluster_analysis.tables import schema
from cluster_analysis.tables.model import RankMetadata
from cluster_analysis.tables.rank_tables import RankTables
from cluster_run.facts import fact
from cluster_run.ids import ParallelSizes

#: The file's name holds the number of stages, the number of ranks, and the rank.
_PIPELINE = re.compile(r"_cluster_analyse_(?P<mode>[a-z-]+)_(?P<stages>\d+)_(?P<size>\d+)_\d+\.csv$")


def read_r1_rank(reading: Reading) -> RankTables:
    """Read all r1.x files of one rank; operators of point-to-point kind say nothing of their peer."""
    rank = reading.source.rank
    trace = reading.first(
        (
            "r1_step_trace",
            lambda path, remark: read_r1_step_trace(path, rank, remark, reading.note("r1_step_trace")),
        )
    )
    iterations, collectives = trace or (None, None)
    iterations = or_empty(iterations, schema.ITERATIONS)
    steps = reading.first(("r1_cluster_analyse", partial(_analysed_steps, reading, iterations)))
    if steps is None:
        steps = steps_of_iterations(iterations, {})
        if steps["step"].to_pylist() == [0]:
            reading.note("r1_step_trace")(fact("mean_step_only"))
    reading.notes.append(fact("no_groups"))
    links = reading.first(("r1_hccl", of_rank(read_r1_hccl, rank)))
    if not steps.num_rows and "r1_step_trace" not in reading.source.files:
        reading.problem(
            fact("no_step_times_of_rank"), "step_trace_raw_*_detail_time.csv", "collect_from_host"
        )
    operators = reading.first(
        ("r1_aicore", of_rank(read_r1_operators, rank)),
        ("r1_gpu_operators", of_rank(read_r1_operators, rank)),
    )
    figures = [
        *reading.joined(("r1_flops", counters.read_flops), ("r1_memory", counters.read_memory_usage)),
        *read_input_pipeline(reading),
    ]
    metadata = reading.first(("r1_strategy", read_strategy))
    links = or_empty(links, schema.LINKS)
    return RankTables(
        {rank: metadata or _metadata(reading.source.files.get("r1_cluster_analyse", ""))},
        steps=steps,
        collectives=_with_moved(or_empty(collectives, schema.COLLECTIVES), links),
        links=links,
        operators=or_empty(operators, schema.OPERATORS),
        iterations=iterations,
        figures={"counters": counters.counter_table(rank, figures), **_tables(reading)},
    )


def _with_moved(collectives: pa.Table, links: pa.Table) -> pa.Table:
    """Return COLLECTIVES with what each operator moved on its links to other ranks, null where none is known.

    Operators of unlike sizes take unlike times.
    """
    moved: dict[tuple[int, str], float] = {}
    columns = ("step", "op_name", "src_local", "dst_local", "size_bytes")
    for step, name, source, destination, size_bytes in schema.rows_of(links, *columns):
        if source != destination and size_bytes > 0:
            moved[step, name] = moved.get((step, name), 0.0) + size_bytes
    of_each = [moved.get(key) for key in schema.rows_of(collectives, "step", "op_name")]
    return schema.with_columns(collectives, payload_bytes=pa.array(of_each, pa.float64()))


def _tables(reading: Reading) -> dict[str, pa.Table]:
    """Return the tables of FIGURES that r1.x has, besides the counters."""
    rank, files = reading.source.rank, reading.source.files
    framework = Path(files["r1_framework"]) if "r1_framework" in files else None
    found = {
        "kernels": reading.first(
            ("r1_aicore_detail", lambda path, remark: read_r1_kernels(path, rank, framework, remark))
        ),
        "communication_costs": reading.first(("r1_hccl", of_rank(read_r1_costs, rank))),
    }
    return {name: table for name, table in found.items() if table is not None}


def _analysed_steps(reading: Reading, iterations: pa.Table, path: Path, remark: Remark) -> pa.Table:
    analysed = read_r1_cluster_analyse(path, remark)
    is_alone = "r1_step_trace" not in reading.source.files
    steps = (
        steps_alone(reading.source.rank, analysed) if is_alone else steps_of_iterations(iterations, analysed)
    )
    return sound_steps(steps, remark, OF_R1_STEPS)


def _metadata(cluster_analyse: str) -> RankMetadata:
    match = _PIPELINE.search(cluster_analyse)
    if not match:
        return RankMetadata()
    stages, size = int(match.group("stages")), int(match.group("size"))
    return RankMetadata(parallel=ParallelSizes(pp=stages), world_size=size)
