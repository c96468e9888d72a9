"""Kinds of findings, one record each: what judging, reports and the schema use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FaultKind = Literal["slow_rank", "slow_host", "slow_link", "slow_nic", "slow_host_pair", "slow_uplink"]
WorkloadKind = Literal[
    "stage_imbalance",
    "data_imbalance",
    "expert_imbalance",
    "small_packets",
    "retransmission",
    "periodic_pause",
    "input_bound",
    "host_bound",
    "exposed_communication",
]
Kind = FaultKind | WorkloadKind
#: What a finding is about.
Subject = Literal["rank", "host", "link", "nic", "host_pair", "uplink", "job"]
#: Causes of a step's loss; `other` is the loss that no finding explains.
Part = Literal["slow_devices", "stages", "samples", "experts", "communication", "pauses", "other"]
#: Unit into which work is divided: if each unit lies in one host, uneven work looks like slow hosts.
Unit = Literal["stage", "replica", "expert"]


@dataclass(frozen=True)
class KindRecord:
    """Properties of all findings of one kind.

    `part` is what their cost is counted as. `is_fault`: a part of the machine is worse than its peers; the
    others are about the work. `may_be_fault`: the ranks or hosts that they name may be at fault, also where
    they are no alarm. `is_event`: it happened, and lasts in no step. `unit`: unit of the uneven work. A loss
    that is not `is_repairable` is one that no peer does without. `by_itself`: a single rank's files can show
    it.
    """

    subject: Subject
    part: Part | None = None
    is_fault: bool = False
    may_be_fault: bool = False
    is_event: bool = False
    unit: Unit | None = None
    is_repairable: bool = True
    by_itself: bool = False


KINDS: Mapping[str, KindRecord] = {
    "slow_rank": KindRecord("rank", "slow_devices", is_fault=True, may_be_fault=True),
    "slow_host": KindRecord("host", "slow_devices", is_fault=True, may_be_fault=True),
    "slow_link": KindRecord("link", "communication", is_fault=True, may_be_fault=True),
    "slow_nic": KindRecord("nic", "communication", is_fault=True, may_be_fault=True),
    "slow_host_pair": KindRecord("host_pair", "communication", is_fault=True, may_be_fault=True),
    "slow_uplink": KindRecord("uplink", "communication", is_fault=True, may_be_fault=True),
    "stage_imbalance": KindRecord("job", "stages", unit="stage"),
    "data_imbalance": KindRecord("job", "samples", unit="replica"),
    "expert_imbalance": KindRecord("job", "experts", unit="expert"),
    "small_packets": KindRecord("job", by_itself=True),
    "retransmission": KindRecord("link", "communication", may_be_fault=True, is_event=True),
    "periodic_pause": KindRecord("rank", "pauses", may_be_fault=True),
    "input_bound": KindRecord("job", by_itself=True),
    "host_bound": KindRecord("job", by_itself=True),
    "exposed_communication": KindRecord("job", is_repairable=False, by_itself=True),
}
FAULT_KINDS: frozenset[str] = frozenset(name for name, record in KINDS.items() if record.is_fault)
#: Faults of one device or one host, which may be taken out of service.
UNIT_KINDS: frozenset[str] = frozenset(
    name for name in FAULT_KINDS if KINDS[name].subject in ("rank", "host", "nic")
)
#: Faults of a host: its ranks follow from it.
HOST_KINDS: frozenset[str] = frozenset(name for name in FAULT_KINDS if KINDS[name].subject == "host")

#: A job with one of these notes is not called healthy.
OPEN_NOTES: frozenset[str] = frozenset((
    "one_rank_of_several", "waits_for_absent", "waited_for_others", "ranks_without_step_times",
    "unread_communication", "no_common_step", "other_times", "same_times", "windows_unlike",
    "windows_not_compared", "costly_unexplained", "host_may_cost", "long_step",
    "uncompared_network", "replay_far_off", "waiting_copied", "waited_inside",
))  # fmt: skip
