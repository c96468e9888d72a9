"""MindSpore's database names every operator of a link; the table has the samples of its text form."""

from __future__ import annotations

from pathlib import Path

from cluster_analysis.sources.rank import read_rank
from tests.analysis.sources.builders import GROUP, LinkRow, Op, source_of, write_analysis_db
from tests.analysis.sources.hand_made_databases import BEGIN, NS, database_capture, profiler_db


def links_of(
    root: Path, rows: list[tuple[int, float | None, float]], name: str = "allReduce"
) -> dict[str, dict]:
    """Rows of link 0-1 by variant, from operators `(number, MB, ms)`."""
    output = database_capture(root, "rank0_ascend_ms")
    profiler_db(output / "ascend_mindspore_profiler_0.db")
    keys = {number: f"hcom_{name}__210_{number}_1@{GROUP}" for number, _, _ in rows}
    ops = [Op(key, start=f"{(BEGIN + 35 * NS) / 1000:.1f}") for key in keys.values()]
    links = [LinkRow(keys[n], 0, 1, size=mb, time=ms, op_name=None) for n, mb, ms in rows]  # type: ignore[arg-type]
    path = output / "communication_analyzer.db"
    write_analysis_db(path, {"": ops}, {"": links}, {}, with_step_columns=False)
    table = read_rank(source_of(output.parent)).links
    assert set(table["step"].to_pylist()) == {50}
    return {row["variant"]: row for row in table.to_pylist()}


def test_samples_are_the_fastest_the_middle_and_the_slowest_and_totals_are_sums(tmp_path: Path) -> None:
    found = links_of(tmp_path, [(0, 8.0, 2.0), (1, 8.0, 1.0), (2, 8.0, 4.0), (3, 8.0, 3.0)])
    numbers = {variant: row["op_name"] and row["op_name"].split("_")[-2] for variant, row in found.items()}
    assert numbers == {
        "top1": "1",
        "middle": "3",
        "bottom1": "2",
        "bottom2": "3",
        "bottom3": "0",
        "total": None,
    }
    assert (found["total"]["size_bytes"], found["total"]["time_us"]) == (32_000_000.0, 10_000.0)


def test_a_link_with_one_operator_repeats_it_as_mindspore_does(tmp_path: Path) -> None:
    found = links_of(tmp_path, [(0, 0.1, 0.3)])
    assert set(found) == {"top1", "middle", "bottom1", "bottom2", "bottom3", "total"}
    assert {(row["size_bytes"], row["time_us"]) for row in found.values()} == {(100_000.0, 300.0)}


def test_sums_have_no_more_digits_than_their_parts(tmp_path: Path) -> None:
    found = links_of(tmp_path, [(0, 0.1, 0.1), (1, 0.2, 0.2)])
    assert (found["total"]["size_bytes"], found["total"]["time_us"]) == (300_000.0, 300.0)


def test_a_total_is_not_known_where_a_part_is_not(tmp_path: Path) -> None:
    found = links_of(tmp_path, [(0, 8.0, 2.0), (1, None, 1.0)])
    assert found["total"]["size_bytes"] is None
    assert found["total"]["time_us"] == 3000.0


def test_reduce_scatter_is_told_from_reduce(tmp_path: Path) -> None:
    found = links_of(tmp_path, [(0, 8.0, 2.0)], "reduceScatter")
    assert {row["op_type"] for row in found.values()} == {"reducescatter"}
