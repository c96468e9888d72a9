"""Kernels, memory and clocks of real captures, against other files of the same captures."""

from __future__ import annotations

from collections import defaultdict

import pyarrow.compute as pc
import pytest

from cluster_run.ids import Rank
from tests.analysis.real.captures import needs_captures, read

pytestmark = needs_captures


@pytest.mark.parametrize("name", ["qwen3-4ranks-pt", "resnet-2of8-pt-text", "resnet-2of8-pt-db"])
def test_kernels_by_shape_add_up_to_the_statistic_by_type(name: str) -> None:
    _, tables = read(name)
    one = tables[Rank(0)]
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in one.figures["kernels"].to_pylist():
        sums[row["op_type"], row["core_type"]][0] += row["n_calls"]
        sums[row["op_type"], row["core_type"]][1] += row["total_us"]
    stated = {
        (row["op_type"], row["core_type"]): [row["n_calls"], row["total_us"]]
        for row in one.operators.to_pylist()
    }
    assert sums.keys() == stated.keys()
    for key, (n_calls, total_us) in stated.items():
        assert sums[key][0] == n_calls
        assert sums[key][1] == pytest.approx(total_us, abs=0.02), key


def test_kernels_of_one_job_have_the_same_shapes_in_text_and_database() -> None:
    left, right = (read(f"resnet-2of8-pt-{form}")[1][Rank(0)].figures["kernels"] for form in ("text", "db"))
    keys = ["op_type", "core_type", "name", "input_shapes", "output_shapes", "n_calls", "flops_count"]
    assert sorted(map(str, left.select(keys).to_pylist())) == sorted(map(str, right.select(keys).to_pylist()))


def test_matrix_products_of_qwen3_run_at_a_speed_that_the_device_has() -> None:
    kernels = read("qwen3-4ranks-pt")[1][Rank(0)].figures["kernels"]
    products = kernels.filter(pc.is_valid(kernels["flops_count"]))
    per_s = pc.sum(products["flops_count"]).as_py() / (pc.sum(products["total_us"]).as_py() / 1e6)
    assert 100e12 < per_s < 400e12


@pytest.mark.parametrize("name", ["qwen3-4ranks-pt", "resnet-2of8-pt-text"])
def test_the_peaks_of_memory_over_time_are_the_peaks_of_the_records(name: str) -> None:
    figures = read(name)[1][Rank(0)].figures
    peaks = {
        row["label"]: row["value"]
        for row in figures["counters"].to_pylist()
        if row["metric"] == "memory_peak_reserved_bytes"
    }
    for component, peak in peaks.items():
        rows = [row for row in figures["memory"].to_pylist() if row["component"] == component]
        assert max(row["reserved_bytes"] or 0.0 for row in rows) == pytest.approx(peak)
        assert len(rows) <= 121


def test_the_clock_of_resnet_is_1800_mhz_throughout() -> None:
    figures = read("resnet-2of8-pt-db")[1][Rank(0)].figures
    assert figures["frequency"]["frequency_mhz"].to_pylist() == [1800.0]
    assert "aclrtMemcpyAsync" in figures["apis"]["api"].to_pylist()
