"""The local times that make a rank late: computing, and idle time. Waiting for others never does."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.thresholds.common import TWICE
from cluster_analysis.thresholds.judging import HEALTHY_SIGMA
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.findings import Cause


class LocalTime(Struct, frozen=True):
    """One part of a rank's local time. `values` is what is compared: ln of µs of computing, µs of idle time.

    `healthy` is what healthy ranks are known to scatter by; 0 if nothing is. `follows_work`: what a rank was
    given to do may lengthen it, samples or experts' tokens. `has_idle`: idle time is in it, which has
    accidents; computing has none, it is what kernels took. `of_all`: all ranks of the job are peers in it,
    whatever their role. `places`: the parts of a step that it is the sum of, each with its own scatter.
    """

    name: str
    cause: Cause
    values: FloatArray
    time_us: FloatArray
    floor: float
    effect: float
    healthy: float = 0.0
    follows_work: bool = False
    has_idle: bool = True
    of_all: bool = False
    places: tuple[LocalTime, ...] = ()

    @property
    def is_computing(self) -> bool:
        """Whether it is computing; else it is idle time."""
        return self.name == "computing"

    @property
    def event_effect(self) -> float:
        """The least size of an event in a single step; idle time varies more there."""
        return self.effect if self.is_computing else TWICE * self.effect


def local_times(view: JobView, limits: Thresholds) -> tuple[LocalTime, ...]:
    """Computing, and idle time, wherever the first operator of a step falls.

    Computing of experts, whose load is nobody's fault, is left out where it is known.
    """
    # Files of r1.x count idle time as computing.
    step_us, has_idle = view.mean_step_us, not np.nansum(view.free_us) > 0
    computed_us = view.computing_us if view.dense_us is None else view.dense_us
    log_computing = np.log(np.where(computed_us > 0, computed_us, np.nan))
    is_short = len(view.steps) < limits.min_steps_confident
    floor, effect = limits.floor * step_us, limits.local_effect_share_of_step * step_us
    idle, *places = (
        LocalTime("idle", "dispatch", np.where(np.isfinite(view.idle_us), part, np.nan), part, floor, effect)
        for part in (view.idle_us, view.preparing_us, view.idled_us)
    )
    return (
        replace(idle, places=tuple(one for one in places if np.isfinite(one.values).any())),
        LocalTime(
            "computing", "unknown" if has_idle else "compute", log_computing, view.computing_us,
            limits.floor_single if is_short else limits.floor, limits.device_effect,
            healthy=HEALTHY_SIGMA, follows_work=True, has_idle=has_idle,
        ),
    )  # fmt: skip
