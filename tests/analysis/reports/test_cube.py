import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.reports.page.cube import METRICS, build_cube
from cluster_analysis.reports.page.traffic import build_traffic
from cluster_analysis.reports.step_time import step_parts, unusual_steps
from cluster_analysis.tables import schema
from tests.analysis.copies import with_column
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


def test_pairs_of_hosts_hold_the_sums_of_their_links():
    traffic = build_traffic(builder.degraded())
    for name in ("size", "time"):
        total = traffic.columns[f"link.{name}"].sum()
        assert traffic.columns[f"pair.{name}"].sum() == pytest.approx(total, rel=1e-5)
    assert traffic.columns["pair.n"].sum() == len(traffic.columns["link.src"])


def test_a_cut_list_of_links_keeps_the_slowest_and_says_how_many_there_were():
    result = builder.degraded()
    traffic = build_traffic(result, max_links=10)
    links = set(zip(traffic.columns["link.src"].tolist(), traffic.columns["link.dst"].tolist(), strict=True))
    assert {builder.SLOW_LINK, builder.SLOW_LINK[::-1]} <= links
    assert len(traffic.columns["link.src"]) <= 10
    assert traffic.header["links_total"] == result.tables["links"].num_rows


def test_a_cut_list_of_links_leaves_the_pairs_of_hosts_complete():
    whole, cut = build_traffic(builder.degraded()), build_traffic(builder.degraded(), max_links=10)
    for name in ("pair.src", "pair.dst", "pair.size", "pair.time"):
        np.testing.assert_array_equal(whole.columns[name], cut.columns[name])


def test_groups_come_by_lost_time_and_name_the_rank_they_waited_for():
    groups = build_traffic(builder.degraded()).header["groups"]
    waits = [group["wait_us"] for group in groups]
    assert waits == sorted(waits, reverse=True)
    assert groups[0]["last_rank"] == builder.SLOW_RANK
    assert groups[0]["last_share"] == pytest.approx(1.0)


def test_waiting_of_a_group_is_that_of_one_rank_in_one_step():
    result = builder.degraded()
    first = build_traffic(result).header["groups"][0]
    rows = [row for row in result.tables["matched"].to_pylist() if row["group"] == first["group"]]
    total = sum(row["total_wait_us"] for row in rows)
    assert first["wait_us"] == pytest.approx(total / first["n_ranks"] / len(result.document.run.steps))


def test_only_findings_that_blame_ranks_have_a_chain_of_waiting():
    chains = build_traffic(builder.degraded()).header["chains"]
    assert list(chains) == [f"slow_rank-{builder.SLOW_RANK}"]


def test_a_chain_starts_with_the_groups_of_the_culprit_and_goes_on_to_those_they_kept_waiting():
    result = builder.degraded()
    chain = build_traffic(result).header["chains"][f"slow_rank-{builder.SLOW_RANK}"]
    first = [one for one in chain if one["level"] == 1]
    assert {one["last_rank"] for one in first} == {builder.SLOW_RANK}
    assert len(first) == 3
    longest = max(one["wait_us"] for one in chain)
    assert all(one["wait_us"] > 0.05 * longest for one in chain)
    assert len({one["group"] for one in chain}) == len(chain)


def test_no_tables_give_an_empty_answer():
    traffic = build_traffic(builder.with_tables(builder.healthy(), {}))
    assert traffic.columns == {}
    assert traffic.header["groups"] == []
    assert traffic.header["operators"] == []


def mean_of(result, rank: int, column: str) -> float:
    rows = result.tables["steps"].to_pylist()
    return float(np.mean([row[column] for row in rows if row["rank"] == rank]))


def test_beside_each_part_stands_the_rank_that_the_first_finding_blames():
    result = builder.degraded()
    parts = {part.name: part for part in step_parts(result)}
    free_us = mean_of(result, builder.SLOW_RANK, "free_us")
    assert parts["free"].compared_us == pytest.approx(free_us)
    assert parts["free"].most_rank is None
    overlapped_us = mean_of(result, builder.SLOW_RANK, "overlapped_us")
    computing_us = mean_of(result, builder.SLOW_RANK, "computing_us")
    assert parts["compute_only"].compared_us == pytest.approx(computing_us - overlapped_us)
    assert parts["compute_only"].is_far
    assert not parts["free"].is_far


def test_without_a_blamed_rank_the_one_with_most_of_a_part_stands_beside_it():
    result = builder.healthy()
    parts = {part.name: part for part in step_parts(result)}
    by_rank = {rank: mean_of(result, rank, "free_us") for rank in range(32)}
    most = max(by_rank, key=by_rank.__getitem__)
    assert parts["free"].most_rank == most
    assert parts["free"].compared_us == pytest.approx(by_rank[most])


def test_one_idle_rank_of_many_is_far_from_the_mean_that_hides_it():
    result = builder.unknown_of(builder.healthy())
    steps = result.tables["steps"]
    free = steps["free_us"].to_numpy().copy()
    free[steps["rank"].to_numpy() == 7] += 60_000
    idle = with_column(steps, "free_us", free)
    part = {one.name: one for one in step_parts(builder.with_tables(result, {"steps": idle}))}["free"]
    assert part.most_rank == 7
    assert part.is_far
    assert part.mean_us < 12_000 < 60_000 < part.compared_us


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
    longer = with_column(steps, "communication_not_overlapped_us", exposed)
    assert unusual_steps(result) == ()
    assert unusual_steps(builder.with_tables(result, {"steps": longer})) == (11,)
    assert unusual_steps(builder.with_tables(result, {})) == ()


def test_an_empty_step_table_has_no_parts():
    result = builder.with_tables(builder.healthy(), {"steps": schema.STEPS.empty_table()})
    assert step_parts(result) == ()
