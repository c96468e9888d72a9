"""Survey of a host's jobs before anything is sent to it, and the parsing of its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster_collect.faults import HostileDataError
from cluster_collect.live.options import WayName
from cluster_run.errors import spoken
from cluster_run.ids import HostId

_TORCH_MEMORY, _MINDSPORE_MEMORY = "DynamicProfileNpuShm", "DynamicProfileShm"
#: torch_npu's name for the process that reads the configuration for all ranks of a host.
MONITOR_NAME = "DynMonitorProc"


@dataclass(frozen=True)
class JobName:
    """Identity of a job, the same in all processes on all hosts; empty where nothing states it."""

    scheduler: str = ""
    run: str = ""
    master: str = ""

    @property
    def text(self) -> str:
        """Its name for people."""
        parts = [f"Slurm job {self.scheduler}"] if self.scheduler else []
        parts += [f"run {self.run}"] if self.run else []
        parts += [f"master {self.master}"] if self.master else []
        return ", ".join(parts) or "a job without a name"


@dataclass(frozen=True)
class Memory:
    """The memory file by which a host's ranks learn of a capture. `made_s` is None where it is gone."""

    id: str
    name: str
    is_deleted: bool
    made_s: float | None


@dataclass(frozen=True)
class Process:
    """A process that maps a memory file, or an API server. `inner_pid` is its number in its own container,
    `root` what stands before its paths to reach them from the host. Times are by the host's clock.
    """

    pid: int
    parent: int
    inner_pid: int
    name: str
    started_s: float
    job: JobName
    rank: int | None
    n_ranks: int | None
    #: Where its configuration lies; empty where it takes none from a file that the environment names.
    configuration: str
    asks_daemon: bool
    directory: str
    command: tuple[str, ...]
    root: str
    memory: Memory | None
    #: Where a server of vLLM writes its profiles, as far as its environment says it.
    profile_directory: str = ""

    @property
    def is_monitor(self) -> bool:
        """Whether it is the process that reads configurations for the ranks."""
        return self.name == MONITOR_NAME

    @property
    def way(self) -> WayName | None:
        """By which way it waits for a capture, as it was started."""
        if self.memory is None:
            return "vllm"
        if self.memory.name.startswith(_TORCH_MEMORY):
            if self.configuration:
                return "file"
            return "msmonitor" if self.asks_daemon else None
        return "msmonitor" if self.asks_daemon else "mindspore"


@dataclass(frozen=True)
class MemoryFile:
    """A memory file in the host's own /dev/shm."""

    name: str
    uid: int


@dataclass(frozen=True)
class Sight:
    """Survey of one host: what its login can see."""

    host: HostId
    uid: int
    processes: tuple[Process, ...]
    memory: tuple[MemoryFile, ...] = ()


def sight_of(host: HostId, answer: Any) -> Sight:
    """Return the sight that a host's answer tells.

    Raises:
        HostileDataError: it is no such answer.
    """
    try:
        return Sight(
            host=host,
            uid=int(answer["uid"]),
            processes=tuple(_process(one) for one in answer["processes"]),
            memory=tuple(MemoryFile(str(one["name"]), int(one["uid"])) for one in answer["memory"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HostileDataError(
            f"what the host says of its processes makes no sense: {spoken(error)}"
        ) from None


def _process(one: Mapping[str, Any]) -> Process:
    environment: Mapping[str, str] = {str(name): str(value) for name, value in one["environment"].items()}
    memory = one.get("memory")
    return Process(
        pid=int(one["pid"]),
        parent=int(one["parent"]),
        inner_pid=int(one["inner_pid"]),
        name=str(one["name"]),
        started_s=float(one["started_s"]),
        job=_job(environment),
        rank=_number(environment, "RANK", "RANK_ID"),
        n_ranks=_number(environment, "WORLD_SIZE", "RANK_SIZE"),
        configuration=environment.get("PROF_CONFIG_PATH", ""),
        asks_daemon="1" in (environment.get("MSMONITOR_USE_DAEMON"), environment.get("KINETO_USE_DAEMON")),
        directory=str(one["directory"]),
        command=tuple(map(str, one["command"])),
        root=str(one["root"]),
        memory=None
        if memory is None
        else Memory(
            str(memory["id"]),
            str(memory["name"]),
            bool(memory["is_deleted"]),
            None if memory["made_s"] is None else float(memory["made_s"]),
        ),
        profile_directory=environment.get("VLLM_TORCH_PROFILER_DIR", ""),
    )


def _job(environment: Mapping[str, str]) -> JobName:
    master = ":".join(filter(None, (environment.get("MASTER_ADDR"), environment.get("MASTER_PORT"))))
    scheduler = ":".join(filter(None, (environment.get("MS_SCHED_HOST"), environment.get("MS_SCHED_PORT"))))
    run = environment.get("TORCHELASTIC_RUN_ID", "")
    return JobName(environment.get("SLURM_JOB_ID", ""), "" if run == "none" else run, master or scheduler)


def _number(environment: Mapping[str, str], *names: str) -> int | None:
    texts: Sequence[str] = [environment[name] for name in names if name in environment]
    return int(texts[0]) if texts and texts[0].isdecimal() else None
