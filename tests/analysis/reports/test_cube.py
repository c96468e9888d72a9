import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis import schema
from cluster_analysis.reports.cube import METRICS, build_cube, step_parts, unusual_steps
from tests.analysis.reports import builder


def test_each_cell_is_its_row_of_the_table():
    result = builder.degraded()
    cube = build_cube(result)

    for name, (table, column) in METRICS.items():
        rows = result.tables[table].select(["rank", "step", column]).to_pylist()
        for row in rows:
            cell = cube.values[name][cube.ranks.index(row["rank"]), cube.bins.index((row["step"],))]
            assert cell == pytest.approx(row[column], rel=1e-6)


def test_rows_in_another_order_give_the_same_cube():
    result = builder.degraded()
    order = np.random.default_rng(1).permutation(result.tables["steps"].num_rows)
    shuffled = {**result.tables, "steps": result.tables["steps"].take(pa.array(order))}
    other = builder.with_tables(result, shuffled)

    for name, values in build_cube(result).values.items():
        np.testing.assert_array_equal(values, build_cube(other).values[name])


def test_too_many_cells_put_steps_together_as_means():
    result = builder.degraded(builder.Job(tp=2, dp=2, pp=2, n_steps=6))
    whole = build_cube(result)
    cube = build_cube(result, max_cells=8 * 3)

    assert cube.bins == ((10, 11), (12, 13), (14, 15))
    pairs = whole.values["computing"].reshape(8, 3, 2).mean(axis=2)
    np.testing.assert_allclose(cube.values["computing"], pairs, rtol=1e-6)


def test_a_rank_without_a_row_is_not_a_number_and_not_zero():
    result = builder.healthy()
    steps = result.tables["steps"]
    kept = steps.filter(pa.array([rank != 3 for rank in steps["rank"].to_pylist()]))
    cube = build_cube(builder.with_tables(result, {**result.tables, "steps": kept}))

    assert np.isnan(cube.values["computing"][3]).all()
    assert not np.isnan(cube.values["wait"][3]).any()


def test_no_tables_give_ranks_and_no_times():
    cube = build_cube(builder.with_tables(builder.healthy(), {}))

    assert len(cube.ranks) == 32
    assert cube.values == {}


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
