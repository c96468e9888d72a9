"""The event simulation: every step's schedule on every rank's clocks, all ranks of a stage at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cluster_run.errors import UsageError
from cluster_simulate.job import layout as kinds
from cluster_simulate.job.arrays import Floats
from cluster_simulate.job.effects import NOMINAL_MHZ, Effects, effects_of, place_faults, with_workload
from cluster_simulate.job.faults import CUBE_SHARE, Fault
from cluster_simulate.job.job import Ops, SimulatedJob, StepTimes, Waits
from cluster_simulate.job.network import Network
from cluster_simulate.job.noise import generator, noise_seed
from cluster_simulate.job.plant import Plant, build_plant
from cluster_simulate.job.schedule import Action
from cluster_simulate.job.spec import JobSpec
from cluster_simulate.job.streams import MB, Streams
from cluster_simulate.job.work import OPTIMIZER_SPANS, StepWork, segment_scatter, step_work


def simulate(spec: JobSpec, faults: Sequence[Fault] = (), seed: int = 1, run: int = 0) -> SimulatedJob:
    """Simulate a job. Faults without a place get one that depends on the seed only.

    Runs of one seed have the same machines and links, with the same traits, but noise of their own.

    Raises:
        UsageError: a fault that this job cannot have, or a negative seed.
    """
    if seed < 0 or run < 0:
        raise UsageError(f"--seed {seed} --run {run}", "both are numbers from 0")
    effective = with_workload(spec, tuple(faults))
    plant = build_plant(effective, seed)
    placed = place_faults(effective, tuple(faults), seed, plant.used_links())
    effects = effects_of(effective, placed, seed)
    clock = _Run(plant, effects, noise_seed(seed, run))
    for step, work in enumerate(step_work(effective, effects, seed, run)):
        clock.step(step, work)
    ops, links = clock.streams.recorder.arrays(len(plant.layout.table.names))
    waits = clock.streams.recorder.waits()
    _find_first_tasks(clock.times, ops, waits)
    hosts = generator(seed, "clocks")
    offset = hosts.standard_normal(effective.n_hosts) * effective.healthy.clock_sigma_ms * 1e3
    drift = hosts.standard_normal(effective.n_hosts) * effective.healthy.drift_ppm * 1e-6
    step_ms = float(clock.times.end_us[-1].max() / effective.steps / 1e3)
    return SimulatedJob(
        requested=spec,
        spec=effective,
        faults=placed,
        seed=seed,
        run=run,
        groups=plant.layout.table,
        ops=ops,
        waits=waits,
        links=links,
        times=clock.times,
        clock_offset_us=offset,
        clock_drift=drift,
        step_ms=step_ms,
    )


def _find_first_tasks(times: StepTimes, ops: Ops, waits: Waits) -> None:
    """Fill in when the first task of each step began; without operators all computing is at the end."""
    first = times.end_us - times.computing_us
    np.minimum.at(first, (ops.step, ops.rank), ops.start_us - ops.compute_us)
    np.minimum.at(first, (waits.step, waits.rank), waits.at_us - waits.compute_us)
    times.first_task_us[:] = first


class _Run:
    """The schedule of all steps; the clocks are in `streams`."""

    def __init__(self, plant: Plant, effects: Effects, seed: int) -> None:
        spec = plant.spec
        self._seed = seed
        self._plant = plant
        self._spec = spec
        self._effects = effects
        self.streams = Streams(plant, effects.retransmissions)
        shape = (spec.steps, spec.n_ranks)
        self.times = StepTimes(*(np.zeros(shape) for _ in range(7)))
        self._rng = generator(seed, "segments")
        self._n_passes = [0] * spec.pp
        self._gathered: dict[tuple[int, int], Floats] = {}

    def step(self, step: int, work: StepWork) -> None:
        """Run one step from where every rank is."""
        plant, streams, times = self._plant, self.streams, self.times
        self._rng = generator(self._seed, "segments", step)
        self._n_passes = [0] * self._spec.pp
        times.begin_us[step] = streams.clock
        network = Network(self._spec, self._seed, step, self._effects.links)
        streams.begin_step(step, work.preparing_us, network, self._rng)
        for action in plant.actions:
            if action.verb == "compute":
                streams.finish_send(action.stage)
                self._run_pass(action, work)
            elif action.verb == "send":
                streams.send(action)
            else:
                streams.receive(action)
        streams.finish_sends()
        times.backward_us[step] = streams.clock
        self._finish(work)
        times.end_us[step] = streams.clock
        times.computing_us[step] = streams.computed_us
        times.frequency_mhz[step] = NOMINAL_MHZ / self._effects.throttle[step]
        times.cube_us[step] = streams.computed_us * CUBE_SHARE * self._effects.cube_factor[step]

    def _run_pass(self, action: Action, work: StepWork) -> None:
        """Run the forward or backward of one micro-batch through one chunk of a stage."""
        spec = self._spec
        n = spec.stage_ranks
        here = slice(action.stage * n, (action.stage + 1) * n)
        stage_work = spec.healthy.stage_work[action.stage] if spec.healthy.stage_work else 1.0
        base = (
            spec.forward_ms * 1e3 * stage_work / (spec.vpp * spec.segments) * (1 if action.is_forward else 2)
        )
        data = np.repeat(work.data[:, action.microbatch], spec.cp * spec.tp)
        compute = base * data * work.speed[here] * segment_scatter(spec, self._rng, n)
        compute[1::2] *= work.expert[here]
        free = work.free_us[here] * self._rng.gamma(8.0, 1.0 / 8.0, (spec.segments, n))
        is_paused = work.pause_at[here] == self._n_passes[action.stage]
        free[0] += np.where(is_paused, work.pause_us[here], 0.0)
        self._n_passes[action.stage] += 1
        for segment in range(spec.segments):
            self._gather_parameters(action, segment, here)
            self._segment(action, segment, here, compute[segment], free[segment], work.expert)
            self._reduce_gradients(action)

    def _segment(
        self, action: Action, segment: int, here: slice, compute: Floats, free: Floats, load: Floats
    ) -> None:
        """Compute a segment between the collectives of its tensor, context and expert groups."""
        spec, layout, stage = self._spec, self._plant.layout, action.stage
        experts = layout.ep if segment % 2 == 1 else None
        if experts is not None:
            self.streams.collective(experts, kinds.ALL_TO_ALL, spec.ep_mb * MB, stage, load=load)
        if layout.cp is not None and segment % 2 == 0:
            self.streams.collective(layout.cp, kinds.ALL_GATHER, spec.cp_mb * MB, stage)
        self.streams.advance(here, compute, free)
        if experts is not None:
            self.streams.collective(experts, kinds.ALL_TO_ALL, spec.ep_mb * MB, stage)
        if layout.tp is not None:
            self.streams.collective(layout.tp, kinds.ALL_REDUCE, spec.tp_mb * MB, stage)

    def _gather_parameters(self, action: Action, segment: int, here: slice) -> None:
        """ZeRO-3: fetch the next segment's parameters while this one computes; wait for this one's."""
        dp, spec, streams = self._plant.layout.dp, self._spec, self.streams
        if dp is None or spec.dp_mode != "zero3":
            return
        size = spec.dp_mb * MB / 2.0 / (spec.segments * spec.vpp)
        # The first segment has nothing before it to hide behind; the others were asked for one early.
        wanted_now = [0, 1] if segment == 0 else [segment + 1]
        for wanted in wanted_now:
            if wanted < spec.segments:
                streams.collective(dp, kinds.ALL_GATHER, size, action.stage, is_side=True)
                self._gathered[action.stage, wanted] = streams.side[here].copy()
        streams.wait_until(here, self._gathered[action.stage, segment])

    def _reduce_gradients(self, action: Action) -> None:
        """Start reducing the gradients that this segment's backward finished, on the second stream."""
        dp, spec = self._plant.layout.dp, self._spec
        if dp is None or action.is_forward:
            return
        size = spec.dp_mb * MB / spec.segments
        if spec.dp_mode == "zero3":
            self.streams.collective(dp, kinds.REDUCE_SCATTER, size / spec.vpp, action.stage, is_side=True)
        elif spec.dp_mode == "overlap" and action.is_last_backward:
            self.streams.collective(dp, kinds.REDUCE_SCATTER, size, action.stage, is_side=True)

    def _finish(self, work: StepWork) -> None:
        """Reduce gradients, take the norm, step the optimizer, spread the parameters."""
        spec, layout, streams = self._spec, self._plant.layout, self.streams
        streams.wait_until(slice(None), streams.side)
        if layout.dp is not None and spec.dp_mode == "flat":
            for _ in range(spec.dp_buckets):
                streams.collective(layout.dp, kinds.REDUCE_SCATTER, spec.dp_mb * MB / spec.dp_buckets, -1)
        if layout.world.size > 1:  # the norm of the gradients
            streams.collective(layout.world, kinds.ALL_REDUCE, 8.0, -1)
        everyone = slice(0, spec.n_ranks)
        streams.advance(everyone, spec.optimizer_ms * 1e3 * work.speed, OPTIMIZER_SPANS * work.free_us)
        if layout.dp is not None and spec.dp_mode != "zero3":
            streams.collective(layout.dp, kinds.ALL_GATHER, spec.dp_mb * MB / 2.0, -1)
