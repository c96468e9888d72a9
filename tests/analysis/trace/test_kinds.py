"""What a kind of operator does is told from its name, in one place."""

from __future__ import annotations

import pytest

from cluster_analysis.trace.calls import is_point_to_point, moves_gradients, moves_tokens, moves_weights


@pytest.mark.parametrize(
    ("op_type", "does"),
    [
        ("allreduce", [moves_gradients]),
        ("reducescatter", [moves_gradients]),
        ("allgather", [moves_weights]),
        ("alltoallv", [moves_tokens]),
        ("batchsendrecv", [is_point_to_point]),
        ("send", [is_point_to_point]),
        ("broadcast", []),
    ],
)
def test_each_kind_of_operator_moves_one_sort_of_data(op_type: str, does: list[object]) -> None:
    asked = (moves_gradients, moves_weights, moves_tokens, is_point_to_point)
    assert [one for one in asked if one(op_type)] == does
