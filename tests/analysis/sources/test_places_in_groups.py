"""Who sits where, and where links lead, when metadata is thin or a rank's data is missing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.tables.hccl_names import group_hash
from cluster_analysis.topology.build import map_links
from tests.analysis.sources.builders import GROUP, LinkRow, Op, write_capture
from tests.analysis.sources.four_ranks import RANKS, own_links, problems_of, read_all, topology_of


def test_21_context_parallel_ranks_have_their_places(tmp_path: Path) -> None:
    arguments = {
        "tensor_model_parallel_size": 2,
        "pipeline_model_parallel_size": 1,
        "data_parallel_size": 1,
        "context_parallel_size": 2,
        "world_size": 4,
    }
    for rank in range(RANKS):
        write_capture(tmp_path, rank, metadata={"distributed_args": arguments}, links=own_links(rank))
    topology = topology_of(*read_all(tmp_path))
    assert topology.parallel.cp == 2
    assert topology.tp_index == {0: 0, 1: 1, 2: 0, 3: 1}
    assert topology.stages == {0: 0, 1: 0, 2: 0, 3: 0}


def test_23_without_metadata_groups_come_from_the_links(job: dict[int, Path]) -> None:
    topology = topology_of(*read_all(job[0].parent))
    assert topology.groups[GROUP].ranks == (0, 1, 2, 3)
    assert topology.groups[GROUP].confidence == "medium"


def test_25_links_to_a_rank_without_data_stay_where_metadata_names_it(tmp_path: Path) -> None:
    group = {"10.0.0.1%eth0_60000_0_17": {"group_name": "tp", "global_ranks": [0, 1, 2, 3]}}
    metadata = {"parallel_group_info": group, "distributed_args": {"world_size": 4}}
    declared = "10.0.0.1%eth0_60000_0_17"
    links = {"step50": [LinkRow(f"allreduce-top1@{group_hash(declared)}", 0, other) for other in range(4)]}
    ops = {"step50": [Op(f"hcom_allReduce__210_0_1@{group_hash(declared)}")]}
    for rank in (0, 1, 3):
        write_capture(tmp_path, rank, metadata=metadata, ops=ops, links=links)
    capture, tables = read_all(tmp_path)
    assert [problem[2] for problem in problems_of(capture, tables)] == ["no profiler data of 1 of 4 ranks: 2"]
    mapped, lost = map_links(tables[0].links, topology_of(capture, tables))
    assert mapped["dst_rank"].to_pylist() == [0, 1, 2, 3]
    assert lost == ()


def test_links_of_all_ranks_are_mapped(job: dict[int, Path]) -> None:
    capture, tables = read_all(job[0].parent)
    links = pa.concat_tables([one.links for one in tables.values()])
    mapped, lost = map_links(links, topology_of(capture, tables))
    assert lost == ()
    assert {(row["src_rank"], row["dst_rank"]) for row in mapped.to_pylist()} == {
        (one, other) for one in range(RANKS) for other in range(RANKS)
    }


# Where the files of a rank lie.
def test_what_may_not_be_looked_for_is_not_there(tmp_path: Path) -> None:
    # A name that is too long fails as a directory without the right to enter does, and for root, too.
    assert columns_of(tmp_path / ("x" * 250)) is None
