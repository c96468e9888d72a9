"""What kernels say of a slow device, and when they say nothing, from statistics written by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cluster_analysis.judge.measures.steady import kernels_of
from cluster_analysis.judge.reasons import with_kernels
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import build_view
from cluster_analysis.tables.kernels import kernel_calls
from cluster_analysis.tables.schema import OPERATORS
from cluster_run.facts import fact
from cluster_run.ids import Rank
from cluster_words.findings import SENTENCES
from cluster_words.phrase import fill
from tests.analysis.jobs import SMALL, judged
from tests.analysis.said import summary
from tests.analysis.totals import evidence_of_computing, on_hosts, peers_agree

N_RANKS = 6
SLOW = 2
N_CALLS = 1000
#: Kinds of kernels: the unit that runs them, and what a call of a healthy device takes in µs.
KERNELS = {
    "MatMulV2": ("AI_CORE", 500.0),
    "Add": ("AI_VECTOR_CORE", 300.0),
    "Cast": ("AI_VECTOR_CORE", 200.0),
    "Fill": ("AI_VECTOR_CORE", 5.0),
}
WHERE = on_hosts(N_RANKS, N_RANKS)
VIEW = build_view(evidence_of_computing(peers_agree(N_RANKS, 3), WHERE), WHERE)
PLAIN = (fact("rank_computing", slower_share=0.2, n_peers=5, role=("job",), n_steps=3),)


def suspect(*, kind: str = "slow_rank", cause: str = "compute") -> Suspect:
    return Suspect(
        key=f"{kind}-{SLOW}",
        kind=kind,  # type: ignore[arg-type]
        ranks=(Rank(SLOW),),
        hosts=(),
        cause=cause,  # type: ignore[arg-type]
        pattern="persistent",
        step_positions=(0, 1, 2),
        evidence=(),
        facts=PLAIN,
    )


def statistics(
    slower: dict[str, float], *, calls: dict[str, int] | None = None, ranks: range = range(N_RANKS)
) -> pa.Table:
    """OPERATORS of all ranks; the slow one's kernels take so many times as long, called so often."""
    rows = []
    for rank in ranks:
        for name, (core, us) in KERNELS.items():
            own_us = us * (slower.get(name, 1.0) if rank == SLOW else 1.0)
            n = (calls or {}).get(name, N_CALLS) if rank == SLOW else N_CALLS
            rows.append(
                {
                    "rank": rank, "op_type": name, "core_type": core, "n_calls": n, "total_us": n * own_us,
                    "min_us": own_us, "avg_us": own_us, "max_us": own_us,
                }
            )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=OPERATORS)


def told(table: pa.Table, one: Suspect | None = None) -> str:
    """What is added to the summary."""
    (explained,) = with_kernels(
        kernels_of(kernel_calls(table, VIEW.ranks), VIEW.role), VIEW, [one or suspect()]
    )
    assert explained.facts[: len(PLAIN)] == PLAIN
    added = explained.facts[len(PLAIN) :]
    return " ".join(fill(SENTENCES[one.kind], {"over": "", **dict(one.values)}).en for one in added)  # type: ignore[index]


def test_all_kinds_alike_point_to_the_clock() -> None:
    words = told(statistics(dict.fromkeys(KERNELS, 1.2)))
    assert words.startswith("All kinds of kernels are slower (MatMulV2 20 %, Add 20 %, Cast 20 %)")
    assert "clock" in words


def test_only_matrix_kernels_point_to_power_and_only_vector_kernels_to_memory() -> None:
    assert told(statistics({"MatMulV2": 1.3})).startswith(
        "Only its matrix kernels are slower (MatMulV2 30 %)"
    )
    assert told(statistics({"Add": 1.3, "Cast": 1.3})).startswith("Only its vector kernels are slower (Add")


def test_a_mixture_is_named_and_explained_by_nothing() -> None:
    assert told(statistics({"MatMulV2": 1.3, "Cast": 1.3})) == (
        "These kernels are slower: MatMulV2 30 %, Cast 30 %; its other kernels are not."
    )


def test_each_slow_kind_is_evidence_beside_its_peers() -> None:
    table = statistics({"MatMulV2": 1.3})
    (explained,) = with_kernels(kernels_of(kernel_calls(table, VIEW.ranks), VIEW.role), VIEW, [suspect()])
    (row,) = explained.evidence
    assert (row.metric, row.value, row.peers_median, row.n_peers) == (
        "kernel_MatMulV2_us",
        650.0,
        500.0,
        N_RANKS - 1,
    )


def test_a_kind_that_is_called_more_often_is_other_work_and_is_not_compared() -> None:
    table = statistics({"MatMulV2": 1.3, "Add": 1.3}, calls={"MatMulV2": 1100})
    assert "MatMulV2" not in told(table)


def test_kernels_of_fewer_than_three_peers_say_nothing() -> None:
    assert told(statistics(dict.fromkeys(KERNELS, 1.2), ranks=range(4))) != ""
    assert told(statistics(dict.fromkeys(KERNELS, 1.2), ranks=range(3))) == ""


def test_a_kind_that_takes_next_to_no_time_is_not_named_however_slow_it_is() -> None:
    assert "Fill" not in told(statistics({"MatMulV2": 1.3, "Fill": 2.0}))


ALL_SLOWER = statistics(dict.fromkeys(KERNELS, 1.2))


@pytest.mark.parametrize(
    ("table", "one"),
    [
        pytest.param(statistics({}), suspect(), id="kernels that are not slower"),
        pytest.param(statistics({"Cast": 1.02}), suspect(), id="kernels that are hardly slower"),
        pytest.param(ALL_SLOWER, suspect(kind="slow_host"), id="a host"),
        pytest.param(ALL_SLOWER, suspect(cause="input"), id="a late start"),
        pytest.param(OPERATORS.empty_table(), suspect(), id="a run without statistics"),
    ],
)
def test_where_kernels_explain_nothing_no_word_is_added(table: pa.Table, one: Suspect) -> None:
    assert told(table, one) == ""


def test_kernels_explain_and_change_neither_cost_nor_alarm() -> None:
    before = suspect()
    kernels = kernels_of(kernel_calls(statistics({"MatMulV2": 1.3}), VIEW.ranks), VIEW.role)
    (after,) = with_kernels(kernels, VIEW, [before])
    for name in ("key", "is_alarm", "p_value", "confidence", "excess_us", "pattern"):
        assert getattr(after, name) == getattr(before, name)


# Kernels as evidence for why a device is slow; synthetic and simulated.
@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("slow_rank:1.2", "All kinds of kernels are slower"),
        ("slow_rank:1.3,op=vector", "Only its vector kernels are slower"),
        ("slow_rank:1.3,op=cube", "Only its matrix kernels are slower"),
    ],
)
def test_a_slow_device_names_the_kernels_that_are_slower(scenario: str, words: str) -> None:
    (finding,) = judged(SMALL, scenario).alarms
    assert words in summary(finding)
    assert any(row.metric.startswith("kernel_") for row in finding.evidence)


def test_a_late_start_says_nothing_of_kernels() -> None:
    (finding,) = judged(SMALL, "slow_rank:1.1,cause=input").alarms
    assert "kernels" not in summary(finding)
