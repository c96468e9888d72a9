"""The advice: when each rule holds, what it says, and which findings it explains."""

from __future__ import annotations

import pytest

from cluster_analysis.describe.places import memory_peaks
from cluster_analysis.describe.rules import RULES, advice, advised
from cluster_analysis.tables import schema
from cluster_run.findings import Finding
from cluster_run.ids import Rank
from cluster_words.checks import next_check, rule_sentences
from tests.analysis.describe.test_described import EMPTY, NOWHERE, kernel, rows_of


def variable(rank: int, name: str, value: str) -> dict[str, object]:
    """A row of ENVIRONMENT."""
    return {"rank": rank, "variable": name, "value": value}


def test_a_rank_with_more_memory_than_its_peers_is_advised_on() -> None:
    records = [
        {"rank": rank, "component": "APP", "time_us": 0.0, "reserved_bytes": size}
        for rank, size in enumerate((10e9, 10e9, 15e9))
    ]
    table = memory_peaks(rows_of(schema.MEMORY, *records), schema.COUNTERS.empty_table(), NOWHERE)
    (found,) = advice({**EMPTY, "memory_peaks": table}).to_pylist()
    assert (found["rule"], found["ranks"]) == ("memory_beside_peers", [2])
    assert "50 %" in found["sentence"]


@pytest.mark.parametrize(
    ("rule", "table", "row"),
    [
        ("ai_cpu", "kernels", kernel(3, "Sort", 9.0, core_type="AI_CPU")),
        ("format_changes", "kernels", kernel(3, "TransData", 9.0)),
        ("byte_alignment", "packets", {"rank": 3, "packet_bytes": 700.0, "total_us": 5.0}),
        ("input_queue", "counters", {"rank": 3, "metric": "input_queue_usage_share", "value": 0.5}),
        ("compiled_at_run_time", "apis", {"rank": 3, "api": "aclopCompileAndExecute", "n_calls": 21}),
        ("queue_empty", "counters", {"rank": 3, "metric": "input_queue_empty_share", "value": 0.4}),
        ("next_empty", "counters", {"rank": 3, "metric": "input_next_empty_share", "value": 0.1}),
        ("late_launches", "counters", {"rank": 3, "metric": "dispatched_late_share", "value": 0.7}),
        ("cpu_busy", "counters", {"rank": 3, "metric": "host_cpu_busy_share", "label": "all", "value": 0.9}),
        ("blocking_launch", "environment", variable(3, "ASCEND_LAUNCH_BLOCKING", "1")),
        ("log_level", "environment", variable(3, "ASCEND_GLOBAL_LOG_LEVEL", "0")),
        ("sent_again", "counters", {"rank": 3, "metric": "retry_operators_count", "value": 2.0}),
    ],
)
def test_a_rule_holds_for_the_rank_that_shows_it(rule: str, table: str, row: dict[str, object]) -> None:
    (found,) = advice({**EMPTY, table: rows_of(EMPTY[table].schema, row)}).to_pylist()
    assert (found["rule"], found["ranks"]) == (rule, [3])
    assert found["next_check"]
    assert found["source"]


def test_a_rank_whose_environment_differs_from_most_is_advised_on() -> None:
    rows = [variable(rank, "HCCL_RDMA_TC", "132" if rank == 2 else "") for rank in range(4)]
    (found,) = advice({**EMPTY, "environment": rows_of(schema.ENVIRONMENT, *rows)}).to_pylist()
    assert (found["rule"], found["ranks"], found["value"]) == ("other_environment", [2], 1.0)


def test_products_at_less_than_half_of_the_typical_speed_are_bound() -> None:
    fast = kernel(3, "MatMul", 60.0, flops_count=6e9)
    slow = kernel(3, "MatMul", 90.0, input_shapes="1,1", flops_count=1e9)
    (found,) = advice({**EMPTY, "kernels": rows_of(schema.KERNELS, fast, slow)}).to_pylist()
    assert (found["rule"], found["value"]) == ("bound_operators", pytest.approx(0.6))


def test_every_rule_speaks_both_languages_and_fills_in_the_same_values() -> None:
    for rule in RULES:
        said, check = rule_sentences(rule.name, (3, 4), 0.5)
        assert said.en != said.zh, rule.name
        assert check.en != check.zh, rule.name
        assert "4" not in said.zh or "张卡" in said.zh


def finding(kind: str, cause: str, *ranks: int) -> Finding:
    """A finding that names these ranks."""
    return Finding(
        kind,
        kind,
        "warning",
        tuple(map(Rank, ranks)),
        (),
        (),
        cause,
        "persistent",
        (),
        1.0,
        0.1,
        1.0,
        "high",
        (),
    )  # type: ignore[arg-type]


def test_a_rule_explains_a_slow_rank_only_where_the_others_are_free_of_it() -> None:
    kernels = [kernel(rank, "Sort", 9.0, core_type="AI_CPU" if rank == 3 else "AI_CORE") for rank in range(4)]
    table = advice({**EMPTY, "kernels": rows_of(schema.KERNELS, *kernels)})
    slow, late = advised([finding("slow_rank", "compute", 3), finding("slow_rank", "input", 3)], table, 4)
    assert [one["rule"] for one in slow.advice] == ["ai_cpu"]
    assert "AI CPU" in next_check(slow).en
    assert "AI Core 支持的" in next_check(slow).zh
    assert late.advice == ()
    everywhere = [kernel(rank, "Sort", 9.0, core_type="AI_CPU") for rank in range(4)]
    table = advice({**EMPTY, "kernels": rows_of(schema.KERNELS, *everywhere)})
    assert advised([finding("slow_rank", "compute", 3)], table, 4)[0].advice == ()


def test_nothing_recorded_gives_no_advice() -> None:
    assert advice(EMPTY).num_rows == 0
    assert len({rule.name for rule in RULES}) == len(RULES)
