"""Draws the jobs: layouts, machines, and how things scatter.

Scatter as measured on real files: devices 0.05 to 1 %, hosts up to 3 % in how they dispatch, kernels 1 to
2 %, links 0.26 %, one transfer in some hundred much slower.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from benchmarks.models.flows.shape import Shape

#: Layouts by name. What a class of faults needs is chosen among these.
LAYOUTS: Mapping[str, Shape] = {
    "data 16": Shape(data=16, layers=3),
    "data 32": Shape(data=32, layers=3),
    "tensor 4 data 8": Shape(tensor=4, data=8, tensor_mb=12, gradients_mb=60),
    "tensor 8 data 4": Shape(tensor=8, data=4, tensor_mb=16, gradients_mb=60),
    "tensor 8 data 8": Shape(tensor=8, data=8, tensor_mb=16, gradients_mb=60),
    "tensor 2 data 4 stages 4": Shape(tensor=2, data=4, stages=4, micros=4, tensor_mb=10),
    "tensor 4 data 4 stages 2": Shape(tensor=4, data=4, stages=2, micros=4, tensor_mb=10),
    "interleaved, data 8": Shape(data=8, stages=4, micros=4, chunks=2, layers=1, message_mb=30),
    "interleaved, tensor 2": Shape(tensor=2, data=4, stages=4, micros=4, chunks=2, layers=1, tensor_mb=10),
    "context 4 data 8": Shape(context=4, data=8),
    "context 4 data 8, apart": Shape(context=4, data=8, is_context_outside=True, ring_mb=12),
    "context 8 data 4": Shape(context=8, data=4, ring_mb=10),
    "tensor 2 context 4 data 4": Shape(tensor=2, context=4, data=4, tensor_mb=10),
    "experts 8 data 16": Shape(data=16, experts=8),
    "experts 8 data 32": Shape(data=32, experts=8),
    "experts 4 data 16, fused": Shape(data=16, experts=4, is_fused=True),
    "experts 16 data 16, fused": Shape(data=16, experts=16, is_fused=True, experts_mb=20),
}


def drawn(dice: random.Random, mode: str, fault_class: str | None, layouts: tuple[str, ...]) -> Shape:
    """Draw a job of one of some layouts, of all where none is named."""
    is_hard = mode == "hard"
    name = dice.choice(layouts or tuple(LAYOUTS))
    shape = _machine(LAYOUTS[name], dice)
    has_unlike_lengths = fault_class == "samples"
    sigma = (
        dice.uniform(0.1, 0.3)
        if has_unlike_lengths
        else dice.choice([0.0, 0.0, 0.1, 0.2])
        if is_hard
        else 0.0
    )
    return replace(
        shape,
        steps=8
        if fault_class in ("foreign traffic", "rank, pauses", "ranks, pauses")
        else dice.randint(4, 7),
        work_ms=shape.work_ms * dice.uniform(0.8, 2.0),
        idle_ms=dice.uniform(0.03, 0.25),
        input_ms=dice.uniform(0.5, 5.0),
        tensor_mb=shape.tensor_mb * dice.uniform(0.5, 1.5),
        ring_mb=shape.ring_mb * dice.uniform(0.6, 2.0),
        message_mb=shape.message_mb * dice.uniform(0.6, 1.6),
        experts_mb=shape.experts_mb * dice.uniform(0.6, 1.6),
        gradients_mb=shape.gradients_mb * dice.uniform(0.7, 3.0),
        buckets=dice.choice([1, 2, 4]),
        is_gather_beside=dice.random() < 0.5,
        attention=dice.uniform(0.3, 0.5),
        kernel_sigma=0.02 if is_hard else 0.01,
        device_sigma=0.0005 * 20 ** (dice.random() if is_hard else 0.7 * dice.random()),
        host_sigma=dice.uniform(0.0005, 0.008 if is_hard else 0.003),
        dispatch_sigma=dice.uniform(0.001, 0.03),
        slow_singles=dice.choice([0.0, 0.01, 0.03]) if is_hard else 0.002,
        length_sigma=sigma,
        expert_sigma=0.02 if is_hard and shape.experts > 1 else 0.005,
        hiccups=0.006 if is_hard else 0.001,
        checkpoint_every=dice.choice([0, 3, 4]) if is_hard else 0,
        checkpoint_ms=dice.uniform(5, 60),
        skew_ms=dice.uniform(0.5, 5.0) if is_hard else 0.3,
        # Nothing but the table of operators shows what waits inside a kernel.
        form="text" if shape.is_fused else dice.choice(["text", "text", "database"]),
        wait_fields=dice.choice(["full", "mixed", "none"]) if is_hard else dice.choice(["full", "none"]),
        lost_share=dice.choice([0.0, 0.0, 0.002]) if is_hard else 0.0,
        has_sizes=dice.random() < 0.7,
    )


def _machine(shape: Shape, dice: random.Random) -> Shape:
    """Draw hosts of 8 or 16 devices, of one mesh or of two, and racks of one to four hosts."""
    per_host = 16 if shape.n_ranks >= 32 and dice.random() < 0.35 else 8
    per_mesh = 8 if per_host == 16 else dice.choice([8, 8, 4])
    is_a_pair = dice.random() < 0.15
    return replace(
        shape,
        per_host=per_host,
        per_mesh=per_mesh,
        is_mesh_striped=per_mesh < per_host and shape.tensor == 1 and dice.random() < 0.3,
        far_transport=dice.choice(["PCIE", "HCCS"]),
        devices_per_card=2 if is_a_pair else 1,
        hosts_per_rack=dice.choice([1, 2, 2]) if shape.n_ranks // per_host > 2 else 1,
        uplink_share=dice.choice([1.0, 0.75, 0.5]),
    )
