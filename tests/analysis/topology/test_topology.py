from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest

from cluster_analysis.tables import schema
from cluster_analysis.tables.model import Capture, DeclaredGroup, RankMetadata, RankSource, Topology
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.topology.build import build_topology, map_links
from cluster_analysis.topology.roles import role_of_name
from cluster_analysis.topology.use import group_use
from cluster_run.ids import ParallelSizes, Rank
from cluster_run.problem import Problem
from tests.analysis.said import reason

HASH = "1714852152549552321"


def group_id(number: int) -> str:
    return f"{HASH}{number}"


def rows_of(table_schema: pa.Schema, rows: Iterable[dict[str, object]]) -> pa.Table:
    complete = [{field.name: row.get(field.name) for field in table_schema} for row in rows]
    return pa.Table.from_pylist(complete, schema=table_schema)


def tables(
    rank: int,
    operators: Iterable[tuple[str, str, int]] = (),
    links: Iterable[tuple[str, int, int]] = (),
    *,
    link_type: str = "allreduce",
) -> RankTables:
    """One rank: operators `(group, type, how many)` and links `(group, source, destination)`."""
    p2p = ("send", "receive", "batchsendrecv")
    collectives = [
        {
            "rank": rank,
            "step": 1,
            "group": group,
            "op_name": f"{kind}{n}",
            "op_type": kind,
            "is_p2p": kind in p2p,
        }
        for group, kind, count in operators
        for n in range(count)
    ]
    link_rows = [
        {
            "rank": rank,
            "step": 1,
            "group": group,
            "op_type": link_type,
            "is_p2p": link_type in p2p,
            "src_local": source,
            "dst_local": destination,
        }
        for group, source, destination in links
    ]
    return RankTables(
        {Rank(rank): RankMetadata()},
        steps=schema.STEPS.empty_table(),
        collectives=rows_of(schema.COLLECTIVES, collectives),
        links=rows_of(schema.LINKS, link_rows),
        operators=schema.OPERATORS.empty_table(),
        packets=schema.PACKETS.empty_table(),
    )


def build(
    read: Iterable[RankTables], metadata: dict[int, RankMetadata] | None = None
) -> tuple[Topology, tuple[Problem, ...]]:
    read = list(read)
    ranks = tuple(rank for one in read for rank in one.metadata)
    sources = tuple(RankSource(rank, "ascend_pt/text", {}, 0) for rank in ranks)
    use = pa.concat_tables([group_use(one.collectives, one.links) for one in read])
    known = {Rank(rank): one for rank, one in (metadata or {}).items()}
    return build_topology(Capture(sources, ranks), known, use)


def declared(*groups: tuple[str, str, tuple[int, ...]], **sizes: int) -> RankMetadata:
    world_size = sizes.pop("world_size", 0)
    return RankMetadata(
        parallel=ParallelSizes(**sizes),
        world_size=world_size,
        groups=tuple(DeclaredGroup(group, name, tuple(map(Rank, ranks))) for group, name, ranks in groups),
    )


def test_members_come_from_metadata_before_the_data() -> None:
    metadata = declared((group_id(1), "tp", (0, 2)))
    topology, problems = build([tables(0, [(group_id(1), "allreduce", 1)])], {0: metadata})
    assert problems == ()
    assert topology.groups[group_id(1)].ranks == (0, 2)
    assert topology.groups[group_id(1)].confidence == "high"


def test_a_group_without_such_links_has_its_users_as_members() -> None:
    topology, _ = build([tables(rank, [(group_id(1), "allreduce", 1)]) for rank in (5, 3)])
    assert topology.groups[group_id(1)].ranks == (3, 5)


def test_members_without_data_are_told_by_a_line_through_the_known_ones_with_low_confidence() -> None:
    read = [
        tables(rank, links=[(group_id(1), local, other) for other in range(4)])
        for rank, local in ((0, 0), (2, 1))
    ]
    topology, _ = build(read)
    assert topology.groups[group_id(1)].ranks == (0, 2, 4, 6)
    assert topology.groups[group_id(1)].confidence == "low"


def test_a_captured_rank_that_never_mentions_a_group_is_not_guessed_into_it() -> None:
    read = [
        tables(rank, links=[(group_id(1), local, other) for other in range(3)])
        for rank, local in ((0, 0), (1, 1))
    ]
    topology, _ = build([*read, tables(2)])
    assert topology.groups[group_id(1)].ranks == (0, 1)


def test_a_group_of_one_known_rank_is_not_completed() -> None:
    topology, _ = build([tables(3, links=[(group_id(1), 2, 0)])])
    assert topology.groups[group_id(1)].ranks == ()


def test_two_ranks_at_one_local_rank_are_a_contradiction_that_is_told() -> None:
    read = [tables(rank, links=[(group_id(1), 0, 0)]) for rank in (4, 5)]
    topology, problems = build(read)
    assert topology.groups[group_id(1)].ranks == ()
    assert [problem.rank for problem in problems] == [5]
    assert "both local rank 0" in reason(problems[0])


def test_operators_of_r1_with_one_name_in_several_groups_are_not_joined_and_not_a_problem() -> None:
    group = f"{schema.OPERATOR_GROUP_PREFIX}AllReduce-op601"
    read = [tables(rank, links=[(group, rank % 2, (rank + 1) % 2)]) for rank in range(4)]
    topology, problems = build(read)
    assert topology.groups[group].ranks == ()
    assert problems == ()


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("tp", "tp"), ("TP", "tp"), ("dp_cp", "dp"), ("pp_new_stream", "pp"), ("exp", "ep"), ("cp", "cp"),
        ("dp_shard", "dp"), ("dp_replicate", "dp"), ("fsdp", "dp"), ("hsdp", "dp"),
        ("default_group", "world"), ("hccl_world_group", "world"), ("tp-0-1-2-3", "tp"),
        ("tp_dp", "unknown"), ("mp", "unknown"), ("embd", "unknown"), ("", "unknown"),
    ],
)  # fmt: skip
def test_a_name_of_one_domain_is_a_role_and_a_mixed_one_is_unknown(name: str, role: str) -> None:
    assert role_of_name(name) == role


def test_named_groups_place_every_rank_with_high_confidence() -> None:
    metadata = {
        rank: declared(
            (group_id(rank % 2), "pp", (rank % 2, rank % 2 + 2)),
            (group_id(5 + rank // 2), "tp", (rank // 2 * 2, rank // 2 * 2 + 1)),
        )
        for rank in range(4)
    }
    topology, _ = build([tables(rank) for rank in range(4)], metadata)
    assert topology.stages == {0: 0, 1: 0, 2: 1, 3: 1}
    assert topology.tp_index == {0: 0, 1: 1, 2: 0, 3: 1}
    assert (topology.parallel.tp, topology.parallel.pp, topology.confidence) == (2, 2, "high")


def test_declared_sizes_place_ranks_where_groups_have_no_names() -> None:
    sizes = declared(tp=2, pp=2, dp=2, world_size=8)
    topology, _ = build([tables(rank) for rank in range(8)], {0: sizes})
    assert topology.stages == {rank: rank // 4 for rank in range(8)}
    assert topology.tp_index == {rank: rank % 2 for rank in range(8)}
    assert topology.dp_index == {rank: rank // 2 % 2 for rank in range(8)}
    assert topology.confidence == "medium"


def read_tp2_dp2_pp2() -> list[RankTables]:
    """Ranks tp + 2 dp + 4 pp, as Megatron numbers them, with unnamed groups."""
    read = []
    for rank in range(8):
        tp, dp, pp = rank % 2, rank // 2 % 2, rank // 4
        groups = [
            (group_id(100 + dp + 2 * pp), "allreduce", 40, tp),
            (group_id(200 + tp + 2 * pp), "reducescatter", 2, dp),
            (group_id(300 + tp + 2 * dp), "send" if pp == 0 else "receive", 8, pp),
        ]
        links = [(group, local, other) for group, _, _, local in groups for other in (0, 1)]
        read.append(tables(rank, [(group, kind, count) for group, kind, count, _ in groups], links))
    return read


def test_roles_without_any_metadata_are_inferred_from_who_talks_to_whom_with_low_confidence() -> None:
    topology, problems = build(read_tp2_dp2_pp2())
    assert problems == ()
    assert topology.stages == {rank: rank // 4 for rank in range(8)}
    assert topology.tp_index == {rank: rank % 2 for rank in range(8)}
    assert topology.dp_index == {rank: rank // 2 % 2 for rank in range(8)}
    assert topology.parallel == ParallelSizes(tp=2, pp=2, dp=2)
    assert topology.confidence == "low"
    assert {group.confidence for group in topology.groups.values()} == {"medium"}


def test_inference_does_not_depend_on_the_order_of_ranks() -> None:
    read = read_tp2_dp2_pp2()
    assert build(read)[0].groups == build(reversed(read))[0].groups


def test_a_chain_of_pairs_is_one_pipeline() -> None:
    pairs = {
        rank: [(group_id(10 + n), "send", 4) for n in range(3) if rank in (n, n + 1)] for rank in range(4)
    }
    topology, _ = build([tables(rank, groups) for rank, groups in pairs.items()])
    assert topology.stages == {0: 0, 1: 1, 2: 2, 3: 3}


def of_messages(counts: tuple[int, ...]) -> Topology:
    """Three groups of four ranks, in which ranks send and receive so often, and one over distant ranks."""
    read = []
    for rank in range(12):
        n_calls = counts[rank % 4]
        groups = [(group_id(1 + rank // 4), kind, n_calls) for kind in ("send", "receive")]
        read.append(tables(rank, [*groups, (group_id(10 + rank % 4), "allreduce", 2)]))
    return build(read)[0]


def test_a_group_in_which_all_ranks_send_and_receive_as_often_is_a_ring_and_no_pipeline() -> None:
    ring, pipeline = of_messages((6, 6, 6, 6)), of_messages((3, 6, 6, 3))
    assert {ring.groups[group_id(number)].role for number in (1, 2, 3)} == {"cp"}
    assert {pipeline.groups[group_id(number)].role for number in (1, 2, 3)} == {"pp"}
    assert ring.stages == dict.fromkeys(range(12), 0)
    assert pipeline.stages == {rank: rank % 4 for rank in range(12)}


def test_one_group_over_all_ranks_is_data_parallel_when_it_is_the_only_one() -> None:
    topology, _ = build([tables(rank, [(group_id(1), "allreduce", 3)]) for rank in range(4)])
    assert topology.groups[group_id(1)].role == "dp"
    assert topology.parallel.dp == 4
    assert topology.stages == dict.fromkeys(range(4), 0)


@pytest.mark.parametrize("more", [(), ((group_id(3), "alltoall", 16),)], ids=["dense", "experts"])
def test_of_several_groups_over_all_ranks_the_busiest_is_data_parallel(
    more: tuple[tuple[str, str, int], ...],
) -> None:
    groups = [(group_id(1), "allreduce", 1), (group_id(2), "allreduce", 10)]
    experts = [[(group_id(3 + rank // 2), kind, n) for _, kind, n in more] for rank in range(4)]
    topology, _ = build([tables(rank, [*groups, *experts[rank]]) for rank in range(4)])
    assert [topology.groups[group_id(number)].role for number in (1, 2)] == ["world", "dp"]
    assert topology.parallel == ParallelSizes(tp=1, pp=1, dp=4)


def unnamed_pipelines(n_calls: int) -> Topology:
    """Two replicas of two stages, whose neighbours call `n_calls` collectives; the ends share weights."""
    read = []
    for rank in range(4):
        replica, stage = rank % 2, rank // 2
        groups = [
            (group_id(10 + replica), "send" if stage == 0 else "receive", 8),
            (group_id(20 + stage), "allgather", n_calls),
            (group_id(30 + replica), "allreduce", 1),
        ]
        read.append(tables(rank, groups))
    return build(read)[0]


def test_groups_that_share_weights_across_stages_make_no_neighbours_tensor_parallel() -> None:
    topology = unnamed_pipelines(2)
    assert {topology.groups[group_id(30 + replica)].role for replica in (0, 1)} == {"unknown"}
    assert topology.parallel == ParallelSizes(tp=1, pp=2, dp=2)


def test_what_communicates_more_often_than_messages_come_may_be_tensor_or_data_parallel() -> None:
    assert {unnamed_pipelines(40).groups[group_id(20 + stage)].role for stage in (0, 1)} == {"unknown"}


def test_all_to_all_makes_an_expert_group() -> None:
    read = [tables(rank, [(group_id(1 + rank // 2), "alltoallv", 3)]) for rank in range(4)]
    topology, _ = build(read)
    assert {group.role for group in topology.groups.values()} == {"ep"}


@pytest.mark.parametrize(("kind", "role"), [("alltoallv", "ep"), ("allreduce", "unknown")])
def test_where_groups_have_names_what_exchanges_tokens_holds_experts_whatever_it_is_called(
    kind: str, role: str
) -> None:
    mine, world = group_id(1), group_id(2)
    metadata = {
        rank: declared((mine, "ep_intra_node", tuple(range(4))), (world, "dp", tuple(range(4))))
        for rank in range(4)
    }
    topology, _ = build(
        [tables(rank, [(mine, kind, 3), (world, "allreduce", 1)]) for rank in range(4)], metadata
    )
    assert (topology.groups[mine].role, topology.groups[world].role) == (role, "dp")


def test_neighbouring_groups_alone_could_be_tensor_or_data_parallel_and_stay_unknown() -> None:
    read = [tables(rank, [(group_id(1 + rank // 2), "allreduce", 3)]) for rank in range(4)]
    topology, _ = build(read)
    assert {group.role for group in topology.groups.values()} == {"unknown"}


def test_ranks_that_declare_another_job_are_told() -> None:
    metadata = {
        0: declared(tp=2, world_size=4),
        1: declared(tp=2, world_size=4),
        2: declared(tp=8, world_size=8),
    }
    topology, problems = build([tables(rank) for rank in range(4)], metadata)
    assert topology.parallel.tp == 2
    assert [reason(problem) for problem in problems] == ["rank 2 declares another job (2 different sizes)"]


def test_ranks_that_disagree_on_a_group_are_told_and_most_ranks_win() -> None:
    group = group_id(1)
    metadata = {
        0: declared((group, "dp", (0, 1))),
        1: declared((group, "dp", (0, 1))),
        2: declared((group, "dp", (0, 2))),
    }
    topology, problems = build([tables(rank) for rank in range(3)], metadata)
    assert topology.groups[group].ranks == (0, 1)
    said = "rank 2 names other members of group dp than most; 0-1 is used"
    assert [reason(problem) for problem in problems] == [said]


def test_ranks_that_communicate_in_a_group_of_others_are_told() -> None:
    groups = {group_id(1): (0, 1), group_id(2): (2, 3)}
    metadata = {
        rank: declared(*((group, "tp", ranks) for group, ranks in groups.items() if rank in ranks))
        for rank in range(4)
    }
    calls_of = {0: group_id(1), 1: group_id(2), 2: group_id(2), 3: group_id(1)}
    _, problems = build(
        [tables(rank, [(group, "allreduce", 3)]) for rank, group in calls_of.items()], metadata
    )
    assert [reason(problem) for problem in problems] == [
        f"rank {rank} communicates in group tp, which has other members ({members}): files of ranks may have "
        "been exchanged"
        for rank, members in ((3, "0-1"), (1, "2-3"))
    ]


def test_groups_of_one_id_are_told_and_what_to_do() -> None:
    group = group_id(1)
    metadata = {rank: declared((group, "tp", (0, 1) if rank < 2 else (2, 3))) for rank in range(4)}
    _, (problem,) = build([tables(rank) for rank in range(4)], metadata)
    assert reason(problem).startswith(
        "groups of unlike members have the id of tp: operators of 0-1 and of ranks 2-3"
    )
    assert problem.advice == "name_groups_apart"


def test_local_ranks_become_global_ones() -> None:
    read = [
        tables(rank, links=[(group_id(1), local, other) for other in (0, 1)])
        for rank, local in ((3, 0), (11, 1))
    ]
    topology, _ = build(read)
    mapped, problems = map_links(pa.concat_tables([one.links for one in read]), topology)
    assert problems == ()
    assert {(row["src_rank"], row["dst_rank"]) for row in mapped.to_pylist()} == {
        (3, 3),
        (3, 11),
        (11, 3),
        (11, 11),
    }


def test_links_that_cannot_be_mapped_stay_and_are_counted_once_a_group() -> None:
    one = tables(3, links=[(group_id(1), 2, 0), (group_id(1), 2, 1), (group_id(2), 0, 0)])
    topology, _ = build([one])
    mapped, problems = map_links(one.links, topology)
    assert mapped.num_rows == 3
    assert mapped["src_rank"].to_pylist() == [None, None, 3]
    assert [reason(problem) for problem in problems] == [
        f"2 links of group {group_id(1)} could not be mapped to global ranks: its members, 3 or more, "
        "are not known"
    ]


def test_a_job_of_which_only_a_few_ranks_are_known_has_whole_blocks_of_ranks() -> None:
    # Ranks 0 and 1 of 16: their links reach rank 9 of the group over all, and all of a group of eight.
    links = [[(group_id(1), rank, rank), (group_id(1), rank, rank + 8)] for rank in (0, 1)]
    block = [[(group_id(2), rank, other) for other in range(8)] for rank in (0, 1)]
    read = [tables(rank, links=links[rank] + block[rank]) for rank in (0, 1)]
    topology, (problem,) = build(read)
    assert topology.groups[group_id(1)].ranks == tuple(range(16))
    assert topology.groups[group_id(2)].ranks == tuple(range(8))
    assert "reach at least rank 9 and divide it into blocks of 8, so 16 are expected" in reason(problem)


def test_a_job_whose_size_is_declared_is_not_rounded_up() -> None:
    read = [tables(rank, links=[(group_id(1), rank, rank), (group_id(1), rank, rank + 8)]) for rank in (0, 1)]
    topology, problems = build(read, {0: declared(world_size=12)})
    assert topology.groups[group_id(1)].ranks == tuple(range(10))
    assert [reason(problem) for problem in problems] == ["no profiler data of 10 of 12 ranks: 2-11"]


def test_a_ring_of_which_a_rank_has_no_files_is_a_ring_where_others_are() -> None:
    read = []
    for rank in (0, 1, 2, 3, 4, 6, 7):
        groups = [(group_id(1 + rank // 4), kind, 6) for kind in ("send", "receive")]
        links = [(group_id(1 + rank // 4), rank % 4, other) for other in range(4)]
        read.append(tables(rank, groups, links))
    topology = build(read)[0]
    assert {topology.groups[group_id(number)].role for number in (1, 2)} == {"cp"}
    assert set(topology.stages.values()) == {0}
