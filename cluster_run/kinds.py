"""Kinds of findings, one record each, and of notes: what judging, reports and the schema use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

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

#: Notes on what could not be judged, and why, by what their reader can do. These can be mended (data that are
#: elsewhere, another capture, a good run to compare with). Reported in this order: first data that only need
#: to be fetched.
_Mend = Literal[
    "ranks_missing",
    "capture_lacks_ranks",
    "one_rank_of_several",
    "waits_for_absent",
    "waited_for_others",
    "no_step_times",
    "ranks_without_step_times",
    "unread_communication",
    "hosts_unknown",
    "hosts_by_devices",
    "no_common_step",
    "other_times",
    "same_times",
    "windows_unlike",
    "windows_not_compared",
    "no_communication_recorded",
    "level0_operators",
    "no_operators",
    "no_communication_matrix",
    "timeline_not_read",
    "few_steps",
    "costly_unexplained",
    "host_may_cost",
    "long_step",
    "uncompared_network",
    "few_peers",
    "unlike_versions",
]
#: These stay: they come from the form of the files or the replay, so each run of the job has them.
_Bear = Literal[
    "steps_as_a_whole",
    "steps_in_one_window",
    "no_start_times",
    "replay_off",
    "replay_far_off",
    "waiting_copied",
    "waited_inside",
    "unpaired_messages",
    "no_groups",
    "no_groups_named",
    "no_groups_of_iterations",
    "mean_step_only",
]
#: These are good to know.
_Know = Literal[
    "steps_of_some_ranks",
    "windows_together",
    "family_left_out",
    "only_capture_is_rank_0",
    "last_step_cut",
    "hosts_are_one",
    "other_models",
    "average_row_differs",
    "fleet_not_asked",
    "fleet_knows_none",
    "fleet_names_others",
]
#: These say that only a part of the data was analysed, beside the verdict; another part can be chosen.
_Choose = Literal["several_runs", "several_captures"]
NoteFact = Literal[_Mend, _Bear, _Know, _Choose]
Action = Literal["mend", "bear", "know", "choose"]
NOTES: Mapping[Action, tuple[NoteFact, ...]] = {
    "mend": get_args(_Mend),
    "bear": get_args(_Bear),
    "know": get_args(_Know),
    "choose": get_args(_Choose),
}
#: A job with one of these notes is not called healthy.
OPEN_NOTES: frozenset[str] = frozenset(
    (
        "one_rank_of_several",
        "waits_for_absent",
        "waited_for_others",
        "ranks_without_step_times",
        "unread_communication",
        "no_common_step",
        "other_times",
        "same_times",
        "windows_unlike",
        "windows_not_compared",
        "costly_unexplained",
        "host_may_cost",
        "long_step",
        "uncompared_network",
        "replay_far_off",
        "waiting_copied",
        "waited_inside",
    )
)
