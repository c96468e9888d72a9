"""Which job a seed gives, and what is wrong with it: the families of jobs and the classes of faults."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from benchmarks.models.streams.job import Exchanges, Fault, Job, Schedule

Dice = random.Random


# -- families of jobs -----------------------------------------------------------------------------------


def data_only(dice: Dice) -> Job:
    """Data parallelism only, gradients beside computing by 0 to 80 %: the commonest job there is."""
    layers = dice.choice((8, 12, 16))
    return Job(
        dp=dice.choice((16, 32, 32)),
        layers=layers,
        microbatches=dice.choice((1, 1, 2)),
        data=dice.choice(("bucketed", "bucketed", "zero1", "zero3", "at_end")),
        layers_a_bucket=dice.choice((1, 2, 4)),
        beside_share=dice.choice((0.0, 0.2, 0.4, 0.6, 0.8)),
        layer_us=dice.choice((2500.0, 4000.0, 8000.0)),
        gradient_mb=dice.choice((25.0, 60.0, 120.0)),
        norm=dice.random() < 0.7,
        kernel_contention=dice.choice((0.0, 0.05, 0.12)),
    )


def tensor_data(dice: Dice) -> Job:
    """Tensor parallelism inside hosts, data parallelism between them."""
    tp = dice.choice((4, 8))
    return Job(
        tp=tp,
        dp=32 // tp,
        cp=1,
        layers=dice.choice((6, 8)),
        microbatches=dice.choice((1, 2)),
        data=dice.choice(("bucketed", "zero1", "at_end")),
        beside_share=dice.choice((0.0, 0.4, 0.8)),
        layer_us=dice.choice((3000.0, 6000.0)),
        gradient_mb=dice.choice((40.0, 80.0)),
    )


def context(dice: Dice) -> Job:
    """Context parallelism beside tensor parallelism."""
    return Job(tp=2, cp=2, dp=4, pp=dice.choice((1, 2)), layers=3, microbatches=4, layer_us=5000.0,
               exchanges="mixed", activation_mb=24.0, data=dice.choice(("bucketed", "zero1")))  # fmt: skip


def experts(dice: Dice) -> Job:
    """Experts over groups of data-parallel ranks."""
    return Job(dp=dice.choice((16, 32)), ep=dice.choice((4, 8)), layers=6, microbatches=2,
               layer_us=dice.choice((3000.0, 5000.0)), gradient_mb=40.0, beside_share=dice.choice((0.0, 0.5)),
               data=dice.choice(("bucketed", "zero1")))  # fmt: skip


def pipeline(dice: Dice) -> Job:
    """Pipelines of every published schedule, their messages single, mixed or in batches."""
    tp, pp, dp = dice.choice(((1, 4, 4), (2, 4, 4), (4, 2, 4), (1, 2, 8), (2, 2, 8), (1, 8, 2), (4, 4, 2)))
    schedule: Schedule = dice.choice(("1f1b", "1f1b", "interleaved", "zero_bubble", "gpipe"))
    exchanges: Exchanges = dice.choice(("single", "mixed", "batched"))
    chunks = 2 if schedule == "interleaved" else 1
    return Job(
        tp=tp,
        pp=pp,
        dp=dp,
        ranks_per_host=dice.choice((4, 8)) if tp * dp < 16 else 8,
        layers=2 if chunks == 2 or tp > 1 else 3,
        microbatches=pp * dice.choice((1, 2)) if pp > 2 else 4,
        chunks=chunks,
        schedule=schedule,
        exchanges=exchanges,
        rendezvous=exchanges == "batched" and schedule == "1f1b" and dice.random() < 0.5,
        data=dice.choice(("bucketed", "zero1", "at_end")),
        beside_share=dice.choice((0.0, 0.5, 0.8)),
        layer_us=dice.choice((4000.0, 8000.0)),
        gradient_mb=dice.choice((60.0, 150.0)),
        activation_mb=dice.choice((8.0, 32.0)),
    )


FAMILIES: tuple[Callable[[Dice], Job], ...] = (
    data_only,
    data_only,
    pipeline,
    pipeline,
    tensor_data,
    context,
    experts,
)


def with_noise(job: Job, mode: str, dice: Dice) -> Job:
    """Return the job with what varies in it: little in plain jobs, all that healthy jobs do in hard ones."""
    job = replace(job, varying=replace(job.varying, wait_fields=dice.choice(("full", "zero", "mixed"))))
    job = replace(job, varying=replace(job.varying, matrix=dice.choice(("operators", "samples"))))
    if mode == "plain":
        return job
    varying = replace(
        job.varying,
        kernel_sigma=dice.choice((0.005, 0.012)),
        device_sigma=dice.choice((0.002, 0.005)),
        step_sigma=dice.choice((0.004, 0.012)),
        sample_sigma=dice.choice((0.0, 0.0, 0.05, 0.15)),
        expert_sigma=dice.choice((0.0, 0.05)) if job.ep > 1 else 0.0,
        contended_share=dice.choice((0.005, 0.03)),
        pause_share=dice.choice((0.0, 0.004)),
        pause_every=dice.choice((0, 0, 2)),
        exit_jitter_us=dice.choice((15.0, 80.0)),
        clock_sigma_ms=dice.choice((2.0, 20.0)),
        lost_share=dice.choice((0.0, 0.0, 0.002, 0.02, 0.05)),
        small_tables=dice.random() < 0.3,
    )
    if job.pp > 1 and dice.random() < 0.4:
        varying = replace(varying, stage_work=(1.0, *[1.0] * (job.pp - 2), dice.choice((1.1, 1.25))))
    return replace(job, varying=varying, idle_share=dice.choice((0.02, 0.06)))


# -- classes of faults ----------------------------------------------------------------------------------


def _rank(job: Job, dice: Dice) -> tuple[int, ...]:
    return (dice.randrange(job.n_ranks),)


def _slow_rank(job: Job, dice: Dice) -> list[Fault]:
    return [Fault("slow_rank", dice.choice((1.07, 1.12, 1.25)), ranks=_rank(job, dice))]


def _some_kernels(job: Job, dice: Dice) -> list[Fault]:
    return [Fault("slow_rank", dice.choice((1.3, 1.5)), ranks=_rank(job, dice), op="MatMulV3")]


def _one_step(job: Job, dice: Dice) -> list[Fault]:
    steps = frozenset({dice.randrange(1, job.steps)})
    return [Fault("slow_rank", dice.choice((1.4, 1.6)), ranks=_rank(job, dice), steps=steps)]


def _intermittent(job: Job, dice: Dice) -> list[Fault]:
    steps = frozenset(dice.sample(range(job.steps), max(2, job.steps * 2 // 5)))
    return [Fault("slow_rank", 1.3, ranks=_rank(job, dice), steps=steps)]


def _trend(job: Job, dice: Dice) -> list[Fault]:
    return [Fault("slow_rank", 1.3, ranks=_rank(job, dice), rises=True)]


def _rank_dispatch(job: Job, dice: Dice) -> list[Fault]:
    return [Fault("slow_rank", dice.choice((4.0, 7.0)), ranks=_rank(job, dice), cause="dispatch")]


def _two_ranks(job: Job, dice: Dice) -> list[Fault]:
    first, second = dice.sample(range(job.n_ranks), 2)
    factor = dice.choice((1.1, 1.2))
    return [Fault("slow_rank", factor, ranks=(first,)), Fault("slow_rank", factor + 0.08, ranks=(second,))]


def _two_equal_ranks(job: Job, dice: Dice) -> list[Fault]:
    first, second = dice.sample(range(job.n_ranks), 2)
    return [Fault("slow_rank", 1.2, ranks=(one,)) for one in (first, second)]


def _host(job: Job, host: int, cause: str, dice: Dice) -> Fault:
    ranks = job.ranks_of(host)
    if cause == "input":
        return Fault("slow_host", add_ms=job.layer_us * job.layers * job.microbatches * 0.0003 + 5.0,
                     factor=1.0001, cause="input", ranks=ranks, host=host)  # fmt: skip
    if cause == "dispatch":
        return Fault("slow_host", dice.choice((4.0, 7.0)), cause="dispatch", ranks=ranks, host=host)
    return Fault("slow_host", dice.choice((1.08, 1.15)), ranks=ranks, host=host)


def _host_of(cause: str) -> Callable[[Job, Dice], list[Fault]]:
    return lambda job, dice: [_host(job, dice.randrange(job.n_hosts), cause, dice)]


def _host_is_stage(job: Job, dice: Dice) -> list[Fault]:
    # Later stages wait for the first one anyway: late input of theirs costs nothing.
    cause = dice.choice(("input", "compute"))
    fault = _host(job, 0 if cause == "input" else dice.randrange(job.n_hosts), cause, dice)
    told = ("slow_host", "stage_imbalance", "input_bound", "host_bound")
    return [replace(fault, accepted=told)]


def _two_hosts(job: Job, dice: Dice) -> list[Fault]:
    return [_host(job, host, "compute", dice) for host in dice.sample(range(job.n_hosts), 2)]


def _host_and_rank(job: Job, dice: Dice) -> list[Fault]:
    host = dice.randrange(job.n_hosts)
    other = dice.choice([rank for rank in range(job.n_ranks) if job.host(rank) != host])
    return [_host(job, host, "compute", dice), Fault("slow_rank", 1.25, ranks=(other,))]


def _used_links(job: Job) -> list[tuple[int, int]]:
    """Return links that some call uses: neighbours in rings and meshes, and along pipelines."""
    found = set()
    for name, ranks in job.groups().items():
        if name.startswith("world"):
            continue
        if name.startswith("pp") or len({job.host(rank) for rank in ranks}) > 1:
            found |= {
                (ranks[i], ranks[(i + 1) % len(ranks)]) for i in range(len(ranks) - name.startswith("pp"))
            }
        else:
            found |= {(a, b) for a in ranks for b in ranks if a != b}
    return sorted(found)


def _link(job: Job, dice: Dice) -> list[Fault]:
    a, b = dice.choice(_used_links(job))
    links = {(a, b)} if dice.random() < 0.3 else {(a, b), (b, a)}
    return [Fault("slow_link", dice.choice((2.0, 4.0)), cause="link", links=frozenset(links))]


def _nic(job: Job, dice: Dice) -> list[Fault]:
    ends = sorted({end for a, b in _used_links(job) if job.host(a) != job.host(b) for end in (a, b)})
    return [Fault("slow_nic", dice.choice((3.0, 6.0)), cause="link", ranks=(dice.choice(ends),))]


def _card_at_times(job: Job, dice: Dice) -> list[Fault]:
    return [replace(one, calls_share=dice.choice((0.33, 0.5))) for one in _nic(job, dice)]


def _lost_packets(job: Job, dice: Dice) -> list[Fault]:
    links = [one for one in _used_links(job) if job.host(one[0]) != job.host(one[1])]
    add_ms, share = dice.uniform(8.0, 35.0), dice.choice((0.08, 0.16))
    hit = frozenset([dice.choice(links)])
    return [Fault("retransmission", add_ms=add_ms, cause="link", links=hit, calls_share=share)]


def _host_pair(job: Job, dice: Dice) -> list[Fault]:
    pairs = sorted({(job.host(a), job.host(b)) for a, b in _used_links(job) if job.host(a) != job.host(b)})
    a, b = dice.choice(pairs)
    return [Fault("slow_host_pair", 3.0, cause="link", host=a, other_host=b)]


def _uplink(job: Job, dice: Dice) -> list[Fault]:
    return [Fault("slow_uplink", dice.choice((2.0, 4.0)), cause="link", host=dice.randrange(job.n_hosts))]


def _stalled(job: Job, dice: Dice) -> list[Fault]:
    names = [name for name in job.groups() if name.startswith("dp")]
    hit = tuple(dice.sample(names, min(2, len(names))))
    told = ("retransmission", "periodic_pause", "exposed_communication", "slow_uplink", "slow_host_pair")
    steps = frozenset({dice.randrange(job.steps)})
    return [
        Fault(
            "stalled_groups", add_ms=290.0, factor=2.0, cause="stall", groups=hit, steps=steps, accepted=told
        )
    ]


def _retransmission(job: Job, dice: Dice) -> list[Fault]:
    name = dice.choice([name for name in job.groups() if name.startswith("dp")])
    steps = frozenset({dice.randrange(job.steps)})
    return [Fault("retransmission", add_ms=4000.0, factor=2.0, cause="stall", groups=(name,), steps=steps)]


def _stage_host(dice: Dice) -> Job:
    return replace(pipeline(dice), tp=2, dp=4, pp=4, ranks_per_host=8, microbatches=4, layers=2)


def _replica_host(dice: Dice) -> Job:
    if dice.random() < 0.5:
        return replace(tensor_data(dice), tp=8, dp=4, layers=6)
    job = replace(pipeline(dice), tp=2, dp=4, pp=4, ranks_per_host=8, microbatches=4, layers=2)
    return replace(job, order=("tp", "cp", "pp", "dp"))


def _spread(dice: Dice) -> Job:
    """Return a job whose hosts send to each other."""
    return dice.choice((data_only, tensor_data, pipeline, experts))(dice)


def _of_four_hosts(dice: Dice) -> Job:
    return replace(data_only(dice), dp=32) if dice.random() < 0.6 else replace(tensor_data(dice), tp=4, dp=8)


def _long(dice: Dice) -> Job:
    return replace(_any(dice), steps=10, layers=2)


def _any(dice: Dice) -> Job:
    return dice.choice(FAMILIES)(dice)


#: Class → (a job for it, its faults).
CLASSES: dict[str, tuple[Callable[[Dice], Job], Callable[[Job, Dice], list[Fault]]]] = {
    "rank, data only": (data_only, _slow_rank),
    "rank, all kernels": (_any, _slow_rank),
    "rank, some kernels": (_any, _some_kernels),
    "rank, one step": (_any, _one_step),
    "rank, intermittent": (_long, _intermittent),
    "rank, trend": (_long, _trend),
    "rank, dispatch": (_any, _rank_dispatch),
    "two ranks": (_any, _two_ranks),
    "two equal ranks": (_any, _two_equal_ranks),
    "host, compute": (_of_four_hosts, _host_of("compute")),
    "host, dispatch": (_of_four_hosts, _host_of("dispatch")),
    "host, input": (_of_four_hosts, _host_of("input")),
    "host is a stage": (_stage_host, _host_is_stage),
    "host is a replica": (_replica_host, _host_of("compute")),
    "two hosts of four": (_of_four_hosts, _two_hosts),
    "host and rank": (_of_four_hosts, _host_and_rank),
    "link": (_spread, _link),
    "network card": (_spread, _nic),
    "host pair": (_of_four_hosts, _host_pair),
    "uplink": (_of_four_hosts, _uplink),
    "stalled groups": (_spread, _stalled),
    "retransmission": (_spread, _retransmission),
}
#: The same of faults that are looked at by their name alone: jobs drawn in turn have none.
BY_NAME: dict[str, tuple[Callable[[Dice], Job], Callable[[Job, Dice], list[Fault]]]] = {
    "card, a third of the calls": (_spread, _card_at_times),
    "lost packets": (_spread, _lost_packets),
}


def scenario(mode: str, seed: int, fault_class: str | None) -> tuple[Job, list[Fault]]:
    """Return the job of a seed, and what is wrong with it: nothing without a class."""
    dice = random.Random(f"{mode}/{seed}/{fault_class}")
    make, faults = {**CLASSES, **BY_NAME}[fault_class] if fault_class else (_any, lambda _job, _dice: [])
    job = with_noise(make(dice), mode, dice)
    if job.tp == job.pp == 1:
        # How gradients that are not beside computing are sent: all frameworks differ.
        job = replace(job, held_on_main=dice.random() < 0.4, counts_tokens=dice.random() < 0.3)
    if fault_class == "host is a replica" and mode == "hard":
        # Samples change from step to step; the host does not.
        job = replace(job, varying=replace(job.varying, sample_sigma=0.1))
    return job, faults(job, dice)
