import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.reports.step_time import step_parts, unusual_steps
from cluster_analysis.tables import schema
from tests.analysis.reports import builder


def mean_of(result, rank: int, column: str) -> float:
    rows = result.tables["steps"].to_pylist()
    return float(np.mean([row[column] for row in rows if row["rank"] == rank]))


def test_beside_each_part_stands_the_rank_that_the_first_finding_blames():
    result = builder.degraded()
    parts = {part.name: part for part in step_parts(result)}

    free_us = mean_of(result, builder.SLOW_RANK, "free_us")
    assert parts["free"].beside_us == pytest.approx(free_us)
    assert parts["free"].most_rank is None
    overlapped_us = mean_of(result, builder.SLOW_RANK, "overlapped_us")
    computing_us = mean_of(result, builder.SLOW_RANK, "computing_us")
    assert parts["compute_only"].beside_us == pytest.approx(computing_us - overlapped_us)
    assert parts["compute_only"].is_far
    assert not parts["free"].is_far


def test_without_a_blamed_rank_the_one_with_most_of_a_part_stands_beside_it():
    result = builder.healthy()
    parts = {part.name: part for part in step_parts(result)}

    by_rank = {rank: mean_of(result, rank, "free_us") for rank in range(32)}
    most = max(by_rank, key=by_rank.__getitem__)
    assert parts["free"].most_rank == most
    assert parts["free"].beside_us == pytest.approx(by_rank[most])


def test_one_idle_rank_of_many_is_far_from_the_mean_that_hides_it():
    result = builder.unknown_of(builder.healthy())
    steps = result.tables["steps"]
    free = steps["free_us"].to_numpy().copy()
    free[steps["rank"].to_numpy() == 7] += 60_000
    position = steps.schema.get_field_index("free_us")
    idle = steps.set_column(position, steps.schema.field(position), pa.array(free))
    part = {one.name: one for one in step_parts(builder.with_tables(result, {"steps": idle}))}["free"]

    assert part.most_rank == 7
    assert part.is_far
    assert part.mean_us < 12_000 < 60_000 < part.beside_us


def test_parts_of_a_step_add_up_to_the_whole():
    result = builder.degraded()
    steps = result.tables["steps"]
    whole = sum(
        np.mean(steps[column].to_numpy())
        for column in ("computing_us", "communication_not_overlapped_us", "free_us", "preparing_us")
    )

    assert sum(part.mean_us for part in step_parts(result)) == pytest.approx(whole)


def test_a_step_far_longer_than_the_others_is_named():
    result = builder.healthy()
    steps = result.tables["steps"]
    exposed = steps["communication_not_overlapped_us"].to_numpy().copy()
    exposed[steps["step"].to_numpy() == 11] *= 4
    position = steps.schema.get_field_index("communication_not_overlapped_us")
    longer = steps.set_column(position, steps.schema.field(position), pa.array(exposed))

    assert unusual_steps(result) == ()
    assert unusual_steps(builder.with_tables(result, {"steps": longer})) == (11,)
    assert unusual_steps(builder.with_tables(result, {})) == ()


def test_an_empty_step_table_has_no_parts():
    result = builder.with_tables(builder.healthy(), {"steps": schema.empty(schema.STEPS)})

    assert step_parts(result) == ()
