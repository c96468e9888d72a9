import numpy as np
import pytest

from cluster_analysis.reports.page.traffic import build_traffic
from tests.analysis.reports import builder


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
