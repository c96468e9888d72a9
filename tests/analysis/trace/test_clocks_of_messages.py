"""Clocks of stages that messages lay beside each other, where collectives say something else."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.trace.alignment import clock_offsets
from cluster_analysis.trace.calls import calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_analysis.trace.missing.clocks import offsets_by_messages
from cluster_analysis.trace.pairing.ends import programs_of
from tests.analysis.jobs import collectives_table
from tests.analysis.trace.pipelines import one_f_one_b, play, zero_bubble

N_STAGES = 4


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("program", [one_f_one_b(N_STAGES, 6), zero_bubble(N_STAGES, 6)])
def test_both_ends_of_a_message_are_over_together(program: tuple[object, ...], eager: bool) -> None:
    played = play(program, eager=eager)  # type: ignore[arg-type]
    calls = calls_of(collectives_table(played.calls))
    right = clock_offsets(calls, match_calls(calls)[0])
    (found,) = programs_of(calls, right, played.topology)
    of_stage = np.array([0.0, 11_000.0, -4_000.0, 700.0])  # by waits that no record shows
    wrong = right + of_stage[[played.topology.stages[rank] for rank in sorted(played.topology.stages)]]
    off = offsets_by_messages(calls, found, wrong) - right
    assert off - off[0] == pytest.approx(0.0, abs=100.0)


def test_without_messages_clocks_stay_as_collectives_say() -> None:
    played = play(one_f_one_b(N_STAGES, 6))
    calls = calls_of(collectives_table(played.calls))
    offset = clock_offsets(calls, match_calls(calls)[0])
    (found,) = programs_of(calls, offset, played.topology)
    nobody = np.zeros(0, np.int64)
    assert offsets_by_messages(calls, type(found)(found.family, (nobody, nobody)), offset) is offset
