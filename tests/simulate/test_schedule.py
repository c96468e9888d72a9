"""Pipeline schedules: complete, in an order that can be run, and as deep as they should be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster_simulate.api import JobSpec
from cluster_simulate.job.schedule import ordered_actions


@st.composite
def pipelines(draw: st.DrawFn) -> JobSpec:
    """Return a job with a pipeline of any shape."""
    pp = draw(st.integers(2, 8))
    vpp = draw(st.integers(1, 3))
    microbatches = pp * draw(st.integers(1, 3)) if vpp > 1 else draw(st.integers(1, 12))
    return JobSpec(pp=pp, vpp=vpp, microbatches=microbatches)


@given(spec=pipelines())
def test_every_chunk_of_every_stage_sees_every_microbatch_forward_and_then_backward(spec: JobSpec) -> None:
    actions = [action for action in ordered_actions(spec) if action.verb == "compute"]
    assert len(actions) == 2 * spec.pp * spec.vpp * spec.microbatches
    place = {(a.stage, a.chunk, a.microbatch, a.is_forward): n for n, a in enumerate(actions)}
    assert len(place) == len(actions)
    for (stage, chunk, microbatch, is_forward), position in place.items():
        if is_forward:
            assert position < place[stage, chunk, microbatch, False]
        ahead = chunk * spec.pp + stage + (-1 if is_forward else 1)
        if 0 <= ahead < spec.pp * spec.vpp:
            assert place[ahead % spec.pp, ahead // spec.pp, microbatch, is_forward] < position


@given(spec=pipelines())
def test_every_send_has_one_receive_after_it(spec: JobSpec) -> None:
    waiting: dict[tuple[int, int, bool, int], int] = {}
    for action in ordered_actions(spec):
        if action.verb == "send":
            key = (action.stage, action.peer, action.is_forward, action.microbatch)
            waiting[key] = waiting.get(key, 0) + 1
        elif action.verb == "receive":
            key = (action.peer, action.stage, action.is_forward, action.microbatch)
            waiting[key] -= 1
            assert waiting[key] >= 0
    assert not any(waiting.values())


def test_a_stage_of_1f1b_holds_as_many_microbatches_as_stages_follow() -> None:
    spec = JobSpec(pp=4, microbatches=8)
    for stage in range(4):
        held, most = 0, 0
        for action in ordered_actions(spec):
            if action.stage == stage and action.verb == "compute":
                held += 1 if action.is_forward else -1
                most = max(most, held)
        assert most == 4 - stage


def test_each_stage_has_one_last_backward() -> None:
    for spec in (JobSpec(pp=4), JobSpec(pp=4, vpp=2), JobSpec(pp=1)):
        last = [action.stage for action in ordered_actions(spec) if action.is_last_backward]
        assert sorted(last) == list(range(spec.pp))
