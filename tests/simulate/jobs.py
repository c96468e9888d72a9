"""Small jobs that cover what jobs can be, for tests and hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from cluster_simulate.api import Healthy, JobSpec, Noise

#: One job of every trait the simulator knows, each a few ranks and steps.
VARIETY = {
    "plain": JobSpec(tp=2, pp=2, dp=2, microbatches=4, steps=3, ranks_per_host=4),
    "rendezvous": JobSpec(tp=1, pp=4, dp=1, microbatches=4, steps=2, ranks_per_host=2, p2p="rendezvous"),
    "batch": JobSpec(tp=2, pp=4, dp=1, microbatches=4, steps=2, ranks_per_host=4, p2p="batch"),
    "interleaved": JobSpec(tp=1, pp=2, dp=2, vpp=2, microbatches=4, steps=2, ranks_per_host=2),
    "overlap": JobSpec(tp=2, pp=2, dp=2, microbatches=4, steps=2, dp_mode="overlap", segments=4),
    "zero3": JobSpec(tp=1, pp=1, dp=8, microbatches=2, steps=2, segments=4, dp_mode="zero3"),
    "experts": JobSpec(tp=1, pp=2, dp=4, ep=2, microbatches=4, steps=2, healthy=Healthy(expert_sigma=0.1)),
    "wide experts": JobSpec(
        tp=1, pp=1, dp=4, ep=4, microbatches=2, steps=2, ranks_per_host=2,
        healthy=Healthy(expert_sigma=0.2),
    ),
    "context": JobSpec(tp=2, pp=1, dp=2, cp=2, microbatches=2, steps=2),
    "halves": JobSpec(tp=8, pp=1, dp=1, microbatches=2, steps=2, healthy=Healthy(inner_halves=True)),
    "tensor only": JobSpec(tp=4, pp=1, dp=1, microbatches=2, steps=2),
    "data only": JobSpec(tp=1, pp=1, dp=4, microbatches=2, steps=2, ranks_per_host=2),
    "alone": JobSpec(tp=1, pp=1, dp=1, microbatches=2, steps=2),
    "rough": JobSpec(
        tp=2, pp=2, dp=2, microbatches=4, steps=3, wait_fields="mixed", noise=Noise(family="ar1"),
        dp_buckets=3,
        healthy=Healthy(sequence_sigma=0.2, gc_every=2, missing_ranks=(3,), missing_steps=(11,),
                        missing_records=0.05, uneven_counts=1),
    ),
}  # fmt: skip

#: These have calls, groups and tables as others have them.
_WRITTEN_AS_OTHERS = ("context", "halves", "tensor only", "data only")
#: Each other job as PyTorch writes it, and as MindSpore does those whose files differ by more than names.
VARIETY_OF_BOTH = [
    *((name, "pt") for name in VARIETY if name not in _WRITTEN_AS_OTHERS),
    *((name, "ms") for name in ("plain", "batch", "alone", "rough")),
]

_DIVISORS = {1: (1,), 2: (1, 2), 3: (1, 3), 4: (1, 2, 4)}


@st.composite
def specs(draw: st.DrawFn) -> JobSpec:
    """Return any small job."""
    pp = draw(st.integers(1, 4))
    dp = draw(st.integers(1, 4))
    vpp = draw(st.integers(1, 2)) if pp > 1 else 1
    return JobSpec(
        tp=draw(st.integers(1, 3)),
        pp=pp,
        dp=dp,
        cp=draw(st.integers(1, 2)),
        ep=draw(st.sampled_from(_DIVISORS[dp])),
        vpp=vpp,
        microbatches=pp * draw(st.integers(1, 2)) if vpp > 1 else draw(st.integers(1, 5)),
        steps=draw(st.integers(1, 3)),
        ranks_per_host=draw(st.integers(1, 8)),
        segments=draw(st.integers(1, 3)),
        p2p=draw(st.sampled_from(["eager", "rendezvous", "batch"])),
        dp_mode=draw(st.sampled_from(["flat", "overlap", "zero3"])),
        wait_fields=draw(st.sampled_from(["full", "idle", "mixed"])),
        noise=Noise(family=draw(st.sampled_from(["lognormal", "ar1"]))),
        healthy=Healthy(
            sequence_sigma=draw(st.sampled_from([0.0, 0.3])),
            hiccup_share=draw(st.sampled_from([0.0, 0.5])),
            missing_records=draw(st.sampled_from([0.0, 0.1])),
            inner_halves=draw(st.booleans()),
        ),
    )
