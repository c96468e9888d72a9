import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.reports.page.cube import METRICS, build_cube
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
