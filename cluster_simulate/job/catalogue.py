"""Jobs to judge a detector by: layouts, healthy variations and faults, drawn at random from a seed.

    for seed in range(300):
        case = draw_case(seed, "plain")          # or "hard"; healthy in two of five
        job = simulate(case.spec, case.faults, seed)

`plain`: one fault at most, first noise family, evenly built jobs of every layout. `hard`: second noise
family in half of them, uneven stages, data or experts, silicon spread, pauses, missing files, idle wait
fields, overlapped streams, up to three faults that may hide each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, TypeVar

import numpy as np

from cluster_simulate.job.faults import Fault, parse_scenario
from cluster_simulate.job.noise import generator
from cluster_simulate.job.spec import Healthy, JobSpec, Noise

Hardness = Literal["plain", "hard"]

_T = TypeVar("_T")
_HEALTHY_SHARE = 0.4

#: Layouts by name, 16 to 256 ranks. Micro-batches are few where ranks are many: detectors see the same.
LAYOUTS: Mapping[str, JobSpec] = MappingProxyType(
    {
        "tp4pp4dp4": JobSpec(tp=4, pp=4, dp=4),
        "tp2pp2dp4": JobSpec(tp=2, pp=2, dp=4, tp_mb=24.0),
        "tp8pp1dp2": JobSpec(tp=8, pp=1, dp=2, microbatches=4, segments=4),
        "dp16": JobSpec(tp=1, pp=1, dp=16, microbatches=4, segments=4, dp_buckets=4),
        "tp4pp2dp8": JobSpec(tp=4, pp=2, dp=8, microbatches=4),
        "tp8pp4dp4": JobSpec(tp=8, pp=4, dp=4, microbatches=8),
        "tp8pp4dp8": JobSpec(tp=8, pp=4, dp=8, microbatches=8),
        "tp4pp2dp4ep4": JobSpec(tp=4, pp=2, dp=4, ep=4, microbatches=4, segments=4),
        "tp2pp1dp8ep8": JobSpec(tp=2, pp=1, dp=8, ep=8, microbatches=4, segments=4),
        "tp2pp2dp4cp2": JobSpec(tp=2, pp=2, dp=4, cp=2, microbatches=4),
        "tp4pp4dp2vpp2": JobSpec(tp=4, pp=4, dp=2, vpp=2, microbatches=8),
        "dp32zero3": JobSpec(tp=1, pp=1, dp=32, dp_mode="zero3", microbatches=2, segments=6),
    }
)

#: Faults by name of their family: scenarios to choose from.
FAULTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "device": ("slow_rank:1.03", "slow_rank:1.05", "slow_rank:1.1", "slow_rank:1.2", "slow_rank:1.5"),
        "intermittent device": (
            "slow_rank:1.3,pattern=intermittent,duty=0.3",
            "slow_rank:1.5,pattern=intermittent,duty=0.5",
        ),
        "throttling device": ("slow_rank:1.15,pattern=trend", "slow_rank:1.3,pattern=trend"),
        "one kind of operator": ("slow_rank:1.3,op=cube", "slow_rank:1.4,op=vector"),
        "host idles": ("slow_host:1.02", "slow_host:1.05", "slow_host:1.15"),
        "rank idles": ("slow_rank:1.04,cause=dispatch", "slow_rank:1.1,cause=dispatch"),
        "late input": (
            "slow_host:1.03,cause=input",
            "slow_host:1.1,cause=input",
            "slow_rank:1.08,cause=input",
        ),
        "hot chassis": ("slow_host:1.08,cause=compute", "slow_host:1.2,cause=compute"),
        "link": ("slow_link:1.25", "slow_link:1.5", "slow_link:2", "slow_link:5", "slow_link:4,dir=one"),
        "port": ("slow_nic:2,via=hccs", "slow_nic:4,via=hccs"),
        "nic": ("slow_nic:1.5", "slow_nic:3", "slow_nic:10", "slow_nic:4,dir=tx", "slow_nic:4,dir=rx"),
        "host pair": ("slow_host_pair:1.5", "slow_host_pair:3"),
        "uplink": ("slow_uplink:1.5", "slow_uplink:3"),
        "retransmission": ("retransmission:4000",),
        "pauses of a rank": ("periodic_pause:100,every=2",),
    }
)
_WORKLOADS: tuple[str, ...] = (
    "stage_imbalance:1.4", "stage_imbalance:1.2", "data_imbalance:0.15", "data_imbalance:0.3",
    "small_packets:300", "input_bound:80", "host_bound:0.35", "expert_imbalance:0.15",
    "periodic_pause:80@all,every=2",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One job to judge. `faults` are without a place: the seed gives it."""

    name: str
    spec: JobSpec
    faults: tuple[Fault, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is broken; a workload trait is no fault."""
        return all(fault.is_workload for fault in self.faults)


def draw_case(seed: int, hardness: Hardness) -> Case:
    """Return the case of a seed."""
    rng = generator(seed, f"case-{hardness}")
    names = sorted(LAYOUTS)
    layout = names[int(rng.integers(len(names)))]
    spec = replace(LAYOUTS[layout], steps=int(rng.choice([3, 5, 8, 12])))
    if hardness == "hard":
        spec = _harder(spec, rng)
    scenarios = _scenarios(spec, rng, hardness)
    return Case(
        f"{layout}: {' + '.join(scenarios) or 'healthy'}", spec, tuple(map(parse_scenario, scenarios))
    )


def _scenarios(spec: JobSpec, rng: np.random.Generator, hardness: Hardness) -> list[str]:
    is_healthy = rng.random() < _HEALTHY_SHARE
    n_faults = 0 if is_healthy else 1
    if hardness == "hard" and not is_healthy:
        n_faults = int(rng.choice([1, 1, 2, 3]))
    possible = [name for name in FAULTS if _is_possible(spec, name)]
    families = rng.choice(possible, size=n_faults, replace=False).tolist()
    scenarios = [_one(rng, FAULTS[family]) for family in families]
    if hardness == "hard" and rng.random() < _HEALTHY_SHARE:
        workloads = [one for one in _WORKLOADS if spec.ep > 1 or not one.startswith("expert")]
        if spec.pp == 1 or len(set(spec.healthy.stage_work)) > 1:
            workloads = [one for one in workloads if not one.startswith("stage")]
        if spec.healthy.sequence_sigma or spec.healthy.expert_sigma:
            workloads = [one for one in workloads if not one.startswith(("data", "expert"))]
        scenarios.append(_one(rng, workloads))
    return scenarios


def _is_possible(spec: JobSpec, family: str) -> bool:
    """Return whether a job has the places that a family of faults needs."""
    if family in ("nic", "host pair", "uplink"):
        return spec.n_hosts > 2
    return family != "port" or spec.tp > 2


def _harder(spec: JobSpec, rng: np.random.Generator) -> JobSpec:
    """Return the job with traits that are hard to tell from faults."""
    uneven = tuple(_one(rng, [(1.0,), (1.1, 1.0), (0.9, 1.1)]))
    work = (*uneven, *(1.0,) * spec.pp)[: spec.pp]
    healthy = Healthy(
        stage_work=(*work[:-1], _one(rng, [1.0, 1.0, 1.3])) if spec.pp > 1 else (),
        sequence_sigma=_one(rng, [0.0, 0.0, 0.1, 0.2]),
        expert_sigma=_one(rng, [0.0, 0.05, 0.1]) if spec.ep > 1 else 0.0,
        expert_step_sigma=_one(rng, [0.0, 0.05]) if spec.ep > 1 else 0.0,
        silicon_sigma=_one(rng, [0.003, 0.003, 0.01]),
        gc_every=_one(rng, [0, 0, 3]),
        checkpoint_every=_one(rng, [0, 0, 0, 4]),
        inner_halves=_one(rng, [False, False, True]),
        clock_sigma_ms=_one(rng, [0.1, 2.0, 50.0]),
        drift_ppm=_one(rng, [5.0, 20.0]),
        missing_ranks=_missing(rng, spec.n_ranks),
        uneven_counts=_one(rng, [0, 0, 1]),
    )
    return replace(
        spec,
        p2p=_one(rng, ["eager", "eager", "rendezvous", "batch"]),
        dp_mode=spec.dp_mode if spec.dp_mode == "zero3" else _one(rng, ["flat", "flat", "overlap"]),
        sequence_parallel=_one(rng, [False, False, True]),
        wait_fields=_one(rng, ["full", "idle", "mixed"]),
        tied_embeddings_mb=_one(rng, [0.0, 60.0]),
        small_messages=_one(rng, [0, 0, 3]),
        noise=Noise(family=_one(rng, ["lognormal", "ar1"])),
        healthy=healthy,
    )


def _missing(rng: np.random.Generator, n_ranks: int) -> tuple[int, ...]:
    """Return ranks without files: mostly none, else a few."""
    n = _one(rng, [0, 0, 0, 1, max(1, n_ranks // 20)])
    return tuple(sorted(rng.permutation(n_ranks)[:n].tolist()))


def _one(rng: np.random.Generator, choices: Sequence[_T]) -> _T:
    return choices[int(rng.integers(len(choices)))]
