"""How a column of the page's tables is written follows from its name."""

from __future__ import annotations

from cluster_analysis.reports.page.described import described_sections
from cluster_analysis.tables.columns_described import Flops, Groups
from tests.analysis.copies import replace
from tests.analysis.reports import builder


def test_counts_members_shares_and_texts_are_told_apart() -> None:
    tables = {
        "groups": Groups.of_rows([{"role": "tp", "group": "7", "n_ranks": 2, "ranks": [4, 5]}]),
        "flops": Flops.of_rows([{"rank": 4, "of": "all", "flops_count": 5e13, "share_of_largest": 0.5}]),
    }
    sections = described_sections(replace(builder.healthy(), tables=tables))
    assert {one.title: one.rows for one in sections} == {
        "described.table.groups": [["tp", "7", "2", "4-5"]],
        "described.table.flops": [["4", "all", "50.0", "–", "50"]],
    }
