"""Faults: their kinds, their form on a command line, and their effects on a job.

A scenario is written `kind:severity@place,key=value,…`; `options.SCENARIO_HELP` says it all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from cluster_run.errors import UsageError
from cluster_run.findings import Cause, Pattern
from cluster_run.ids import parse_number_ranges
from cluster_run.kinds import Kind
from cluster_simulate.job.arrays import Bools, Floats, Ints

OpClass = Literal["", "cube", "vector"]
Direction = Literal["both", "tx", "rx", "one"]

#: Part of computing that matrix units do; the rest is vector work.
CUBE_SHARE = 0.62

LINK_KINDS: tuple[Kind, ...] = ("slow_link", "slow_nic", "slow_host_pair", "slow_uplink", "retransmission")
WORKLOAD_KINDS: tuple[Kind, ...] = (
    "stage_imbalance",
    "data_imbalance",
    "expert_imbalance",
    "small_packets",
    "input_bound",
    "host_bound",
)
#: Scenarios are called as the findings that they should give.
_DEFAULT_SEVERITY: dict[Kind, float] = {
    "slow_rank": 1.25, "slow_host": 1.1, "periodic_pause": 80.0, "slow_link": 2.0, "slow_nic": 3.0,
    "slow_host_pair": 2.0, "slow_uplink": 2.0, "retransmission": 4000.0, "stage_imbalance": 1.4,
    "data_imbalance": 0.2, "expert_imbalance": 0.2, "small_packets": 400.0, "input_bound": 80.0,
    "host_bound": 0.35,
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One fault. `severity` is a factor, or what the kind says; hosts count from 0 here, from 1 for people.

    Empty `ranks`, `hosts` and `links` mean that the place is still to be drawn.
    """

    kind: Kind
    severity: float
    ranks: tuple[int, ...] = ()
    hosts: tuple[int, ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    cause: Cause = "unknown"
    pattern: Pattern = "persistent"
    duty: float = 1.0
    op_class: OpClass = ""
    direction: Direction = "both"
    via: Literal["rdma", "hccs"] = "rdma"
    every: int = 1

    @property
    def is_workload(self) -> bool:
        """Whether it is a trait of the job and no fault of a device, host or link."""
        return self.kind in WORKLOAD_KINDS

    @property
    def is_placed(self) -> bool:
        """Whether it has its place, or needs none."""
        return bool(self.ranks or self.hosts or self.links) or self.is_workload


@dataclass(frozen=True)
class LinkEffect:
    """A multiplier of link times by [step], for links that `covers` holds."""

    by_step: Floats
    links: tuple[tuple[int, int], ...] = ()
    src_ranks: tuple[int, ...] = ()
    dst_ranks: tuple[int, ...] = ()
    transports: tuple[int, ...] = ()
    is_between: bool = False

    def covers(self, src: Ints, dst: Ints, transport: Ints) -> Bools:
        """Return which links it slows."""
        hit = np.zeros(src.shape, dtype=bool)
        for one, other in self.links:
            hit |= (src == one) & (dst == other)
        from_here = np.isin(src, self.src_ranks)
        to_there = np.isin(dst, self.dst_ranks)
        wide = (from_here & to_there) if self.is_between else (from_here | to_there)
        return hit | (wide & np.isin(transport, self.transports))

    def factor(self, src: Ints, dst: Ints, transport: Ints, step: int) -> Floats:
        """Return what to multiply each link's time with."""
        return np.where(self.covers(src, dst, transport), self.by_step[step], 1.0)


def parse_scenario(text: str) -> Fault:
    """Parse one scenario.

    Raises:
        UsageError: an unknown kind or key, or a value that is none.
    """
    head, *options = text.split(",")
    name, _, place = head.partition("@")
    kind, _, severity = name.partition(":")
    if kind not in _DEFAULT_SEVERITY:
        raise UsageError(f"no such scenario: {kind!r}", f"one of {', '.join(_DEFAULT_SEVERITY)}")
    try:
        fault = Fault(kind, float(severity) if severity else _DEFAULT_SEVERITY[kind])
        fault = replace(fault, cause=_default_cause(fault))
        for option in options:
            fault = _with_option(fault, option)
        _check_keys_together(fault)
        fault = _with_place(fault, place.rpartition("=")[2]) if place else fault
    except ValueError as error:
        raise UsageError(
            f"not a scenario: {text!r}: {error}", "cluster-simulate --help explains them"
        ) from error
    if not np.isfinite(fault.severity) or fault.severity <= 0:
        raise UsageError(f"not a severity: {severity!r} in {text!r}", "write a number above 0")
    return fault


def _default_cause(fault: Fault) -> Cause:
    if fault.kind == "slow_rank":
        return "compute"
    if fault.kind == "slow_host":
        return "dispatch"
    return "bandwidth" if fault.kind in LINK_KINDS else "unknown"


_CHOICES: dict[str, tuple[str, ...]] = {
    "cause": ("compute", "dispatch", "input"),
    "pattern": get_args(Pattern),
    "op": ("cube", "vector"),
    "via": ("rdma", "hccs"),
}
_FIELDS = {"op": "op_class", "dir": "direction"}
#: Keys that change something, by kind; other kinds have none.
_KEYS: dict[str, tuple[str, ...]] = {
    "slow_rank": ("cause", "pattern", "duty", "op"),
    "slow_host": ("cause", "pattern", "duty", "op"),
    "slow_link": ("pattern", "duty", "dir"),
    "slow_nic": ("pattern", "duty", "dir", "via"),
    "slow_host_pair": ("pattern", "duty"),
    "slow_uplink": ("pattern", "duty", "dir"),
    "periodic_pause": ("every",),
}


def _with_option(fault: Fault, option: str) -> Fault:
    key, _, value = option.partition("=")
    keys = _KEYS.get(fault.kind, ())
    if key not in keys:
        known = f"; it has {', '.join(keys)}" if keys else ""
        raise ValueError(f"{fault.kind} has no key {key!r}{known}")
    if key == "dir":
        choices: tuple[str, ...] = ("both", "one") if fault.kind == "slow_link" else ("both", "tx", "rx")
    else:
        choices = _CHOICES.get(key, ())
    if choices:
        if value not in choices:
            raise ValueError(f"{key} is one of {', '.join(choices)}")
        return replace(fault, **{_FIELDS.get(key, key): value})  # type: ignore[arg-type]
    if key == "duty":
        if not 0.0 < float(value) <= 1.0:
            raise ValueError("duty is a share between 0 and 1")
        return replace(fault, duty=float(value))
    if int(value) < 1:
        raise ValueError("every is a number of steps, 1 or more")
    return replace(fault, every=int(value))


def _check_keys_together(fault: Fault) -> None:
    if fault.duty < 1.0 and fault.pattern != "intermittent":
        raise ValueError("duty needs pattern=intermittent")
    if fault.op_class and fault.cause != "compute":
        raise ValueError("op needs cause=compute")


def links_of(fault: Fault, src: int, dst: int) -> tuple[tuple[int, int], ...]:
    """Return the links that a fault of one slows: both ways, where it says so."""
    both = fault.direction == "both" and fault.kind == "slow_link"
    return ((src, dst), (dst, src)) if both else ((src, dst),)


def _with_place(fault: Fault, place: str) -> Fault:
    if fault.is_workload:
        raise ValueError(f"{fault.kind} is a trait of the whole job and has no place")
    if fault.kind in ("slow_link", "retransmission", "slow_host_pair"):
        if place.count("-") != 1:
            raise ValueError("a link has two ends")
        one, other = map(int, place.split("-"))
        if fault.kind == "slow_host_pair":
            return replace(fault, hosts=(one - 1, other - 1))
        return replace(fault, links=links_of(fault, one, other))
    if fault.kind in ("slow_host", "slow_uplink"):
        return replace(fault, hosts=tuple(int(part) - 1 for part in place.split("+")))
    if place == "all":
        return replace(fault, ranks=(-1,))
    return replace(fault, ranks=tuple(sorted(parse_number_ranges(place))))
