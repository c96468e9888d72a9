"""Values that modules of the analysis share; tables are in `schema`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from cluster_run.facts import Fact
from cluster_run.ids import DeviceId, GroupRole, HostId, ParallelSizes, Rank, Step, host_number
from cluster_run.problem import Problem

if TYPE_CHECKING:
    from cluster_run.findings import Confidence

#: Who wrote a capture, and in which form; shown as `run.sources` of findings.json.
SourceKind = Literal[
    "ascend_pt/text",
    "ascend_pt/db",
    "ascend_ms/text",
    "ascend_ms/db",
    "mindspore_r1/text",
    "prof/text",
    "prof/db",
]


class RankSource(Struct, frozen=True):
    """One capture of one rank on disk. `files` maps a role (`step_trace`, `communication`, …) to a path.

    `windows` are those of its job that are judged together, oldest first: what is added to the step numbers
    of each, and its files; the newest one's are also here. Empty where there is one.
    """

    rank: Rank
    kind: SourceKind
    files: Mapping[str, str]
    size_bytes: int
    host: HostId | None = None
    device: DeviceId | None = None
    part: str = ""
    windows: tuple[tuple[int, RankSource], ...] = ()


class Capture(Struct, frozen=True):
    """Everything discovery found for one part: one window of one job. `addresses` maps hosts to real names.

    `hosts` are those of the run directory. Where there is none (`is_placed`), `topology.hosts` finds them by
    `names`, the host in each capture's name (empty where it names none), and by the ranks' files.
    """

    sources: tuple[RankSource, ...]
    expected_ranks: tuple[Rank, ...]
    problems: tuple[Problem, ...] = ()
    hosts: Mapping[Rank, HostId] = field(default_factory=dict)
    devices: Mapping[Rank, DeviceId] = field(default_factory=dict)
    addresses: Mapping[HostId, str] = field(default_factory=dict)
    #: Remarks for the reader though nothing is missing, such as which of several captures was taken.
    notes: tuple[Fact, ...] = ()
    names: Mapping[Rank, str] = field(default_factory=dict)
    is_placed: bool = True


class DeclaredGroup(Struct, frozen=True):
    """A communication group as one rank's metadata declares it; `group` is the hash of operator names.

    `group_id` is the communicator's own name, from which the hash is made.
    """

    group: str
    name: str
    global_ranks: tuple[Rank, ...]
    group_id: str = ""


class RankMetadata(Struct, frozen=True):
    """Metadata of a capture.

    `own_rank` is whose it is, where all that it says agrees; `device` the device of its host that it is of.
    """

    parallel: ParallelSizes = field(default_factory=ParallelSizes)
    world_size: int = 0
    groups: tuple[DeclaredGroup, ...] = ()
    host_name: str = ""
    host_uid: str = ""
    profiler_level: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    own_rank: Rank | None = None
    device: DeviceId | None = None


class Group(Struct, frozen=True):
    """A communication group with its global members: `ranks[i]` is local rank i."""

    group: str
    role: GroupRole
    ranks: tuple[Rank, ...]
    name: str = ""
    confidence: Confidence = "high"


class Topology(Struct, frozen=True, dict=True):
    """Places of ranks, and their groups. Mappings lack unknown ranks.

    `devices` are numbers of devices on their hosts, by the rank table or else by the captures themselves.
    `starts_agree` says whether the start of an operator means the same on all ranks.
    """

    ranks: tuple[Rank, ...]
    hosts: Mapping[Rank, HostId]
    devices: Mapping[Rank, DeviceId]
    groups: Mapping[str, Group]
    parallel: ParallelSizes
    stages: Mapping[Rank, int]
    tp_index: Mapping[Rank, int] = field(default_factory=dict)
    dp_index: Mapping[Rank, int] = field(default_factory=dict)
    confidence: Confidence = "high"
    starts_agree: bool = True

    @property
    def all_hosts(self) -> tuple[HostId, ...]:
        """The hosts of the ranks, by number."""
        return tuple(sorted(set(self.hosts.values()), key=host_number))

    def place_of(
        self, rank: Rank
    ) -> tuple[HostId | None, DeviceId | None, int | None, int | None, int | None]:
        """Return host, device, stage, and index in TP and DP of a rank."""
        of = self.hosts.get(rank), self.devices.get(rank), self.stages.get(rank)
        return (*of, self.tp_index.get(rank), self.dp_index.get(rank))

    @cached_property
    def stages_in_groups(self) -> Mapping[str, Mapping[int, int]]:
        """The place of each rank in the pipeline of each group, of one stage as the group has them."""
        stage_of = self.stages
        return {
            name: {
                rank: stage
                for stage, rank in enumerate(
                    sorted(dict.fromkeys(group.ranks), key=lambda rank: stage_of.get(rank, 0))
                )
            }
            for name, group in self.groups.items()
        }


class Selection(Struct, frozen=True):
    """Which part of a capture to analyse; None means all of it."""

    steps: frozenset[Step] | None = None
    ranks: frozenset[Rank] | None = None
