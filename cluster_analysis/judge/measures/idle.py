"""Idle time is one quantity of a step, wherever its first operator lies; a rank is held against its peers.

A host that launches late, or a pause, holds up whatever comes next: a step's first operator, or another one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import beyond_chance, median, sigma
from cluster_analysis.thresholds.common import FAR_SIGMAS, TWICE


def shared_by_seat(series: FloatArray, seat: IntArray, role: IntArray) -> FloatArray:
    """How much longer than others a seat always idles (R, 1), like one that loads data; late hosts aside."""
    level, shared = np.maximum(median(series, 1), 0.0), np.zeros(len(series))
    for one in np.unique(seat[seat >= 0]).tolist():
        inside = seat == one
        shared[inside] = np.nan_to_num(np.fmin.reduce(level[inside])) if inside.sum() > 1 else 0.0
    for one in np.unique(role).tolist():
        shared[role == one] -= shared[role == one].min()
    return shared[:, None]


def lost_always_us(view: JobView, own: IntArray, idle_us: FloatArray) -> FloatArray:
    """How much longer than their peers ranks `own` (K,) that are always late idle in each step (K, S).

    A host launches late by chance more or less. Its ranks wait for the latest of them: all idle time of each,
    and not its usual one, tells what they lose together. Once repaired it scatters as that of peers does.
    `idle_us` (R, S) is all that ranks idle, or in one place.
    """
    lost, idle_us = np.zeros((len(own), len(view.steps))), np.nan_to_num(idle_us)
    for inside, longer, of_peers in _beyond_peers(view, own, idle_us):
        measured = np.clip(longer, 0.0, idle_us[own[inside]])
        middle, scatter = float(median(measured.ravel())), float(sigma(measured))
        usual, in_step = float(sigma(of_peers)), sigma(of_peers, 0)
        real = beyond_chance(scatter, usual)
        # Far beyond all else that the host does lies an accident of one rank.
        seen = np.maximum(middle + real * np.minimum(measured - middle, FAR_SIGMAS * scatter), 0.0)
        # A step in which peers scatter by more (checkpoints) tells nothing: the other steps do.
        tells = ~(in_step > np.maximum(TWICE * usual, middle))
        if tells.any():
            seen[:, ~tells] = seen[:, np.resize(np.flatnonzero(tells), int((~tells).sum()))]
        lost[inside] = seen
    return lost


def lost_at_times_us(view: JobView, own: IntArray, idle_us: FloatArray) -> FloatArray:
    """The same for ranks that are late in some steps: the part beyond the scatter of their peers."""
    lost = np.zeros((len(own), len(view.steps)))
    for inside, longer, of_peers in _beyond_peers(view, own, np.nan_to_num(idle_us)):
        lost[inside] = beyond_scatter(longer, np.fmax(sigma(of_peers), sigma(of_peers, 0)))
    return lost


def beyond_scatter(longer: FloatArray, scatter: FloatArray | float) -> FloatArray:
    """How much longer something takes than on peers, beyond their scatter; 0 at least."""
    real = 1.0 - np.square(scatter / np.maximum(longer, 1e-9))
    return np.asarray(np.where(longer > 0, longer, 0.0) * np.maximum(real, 0.0))


def _beyond_peers(
    view: JobView, own: IntArray, time_us: FloatArray
) -> Iterator[tuple[BoolArray, FloatArray, FloatArray]]:
    """Which of `own` (K,) have one role, how much longer than peers they have a time (R, S), and its scatter.

    A host that is a whole stage has all other ranks for peers.
    """
    is_own = np.isin(np.arange(len(view.ranks)), own)
    for role in np.unique(view.role[own]):
        peers = np.flatnonzero((view.role == role) & ~is_own)
        peers = peers if len(peers) else np.flatnonzero(~is_own)
        inside, usual = view.role[own] == role, median(time_us[peers], 0)
        yield inside, time_us[own[inside]] - usual, time_us[peers] - usual
