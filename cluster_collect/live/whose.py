"""Find the job that a capture would reach, before anything is sent. In doubt nothing is sent.

All processes of a host that map one memory file get the same capture, whoever they are: the file has
no job and no user in its name. So a host is fit only if those processes are one job's, and one living process
reads for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cluster_collect.live.host.processes import SHARED
from cluster_collect.live.options import LINES, WayName
from cluster_collect.live.outcome import Lost
from cluster_collect.live.sight import JobName, Process, Sight
from cluster_run.ids import HostId

#: The clock of processes ticks in hundredths, and file times come from another one.
_CLOCK_S = 2.0


@dataclass(frozen=True)
class Target:
    """The processes of one job on one host that a capture is asked of, by one way."""

    way: WayName
    job: JobName
    ranks: tuple[Process, ...]
    monitor: Process | None = None

    @property
    def root(self) -> str:
        """Prefix of the job's paths on the host."""
        return self.ranks[0].root

    @property
    def configuration(self) -> str:
        """The directory of the configuration, as the host's own shell sees it."""
        return self.root + self.ranks[0].configuration


@dataclass(frozen=True)
class Decision:
    """Which hosts a capture may be asked of, and why not of the others."""

    targets: Mapping[HostId, Target]
    refusals: Mapping[HostId, Lost]


def _refused(reason: str, advice: str) -> Lost:
    return Lost("refused", reason, advice)


def decide(sights: Iterable[Sight], wanted: str = "", via: WayName | None = None) -> Decision:
    """Return where the wanted job is, or why not.

    Args:
        wanted: a job's number or name, a process, or a directory that it works in or is configured by; empty
            for the only one there is.
        via: the way, where the user has chosen one.
    """
    targets: dict[HostId, Target] = {}
    refusals: dict[HostId, Lost] = {}
    sights = list(sights)
    names = _jobs_meant(sights, wanted) if wanted else None
    for sight in sights:
        one = _decide_host(sight, wanted, names, via)
        if isinstance(one, Target):
            targets[sight.host] = one
        else:
            refusals[sight.host] = one
    return _one_job(targets, refusals)


def _jobs_meant(sights: Sequence[Sight], wanted: str) -> frozenset[JobName]:
    """Return the names of the jobs that `wanted` means on any host: a process is on one of them only."""
    return frozenset(
        one.job
        for sight in sights
        for one in sight.processes
        if _is_meant(one, wanted) and one.job != JobName()
    )


def _is_wanted(process: Process, wanted: str, names: frozenset[JobName]) -> bool:
    # A directory is all that tells MindSpore's jobs, and it is not in any process.
    is_named_so = process.way == "mindspore" and wanted.startswith("/")
    return process.job in names or is_named_so or _is_meant(process, wanted)


def _is_meant(process: Process, wanted: str) -> bool:
    if wanted.startswith("/"):
        directory = wanted.rstrip("/")
        return directory in (process.configuration.rstrip("/"), process.directory)
    pids = {str(process.pid), str(process.parent)} if wanted.isdecimal() else set()
    return wanted in {process.job.scheduler, process.job.run, process.job.master} | pids


def _decide_host(
    sight: Sight, wanted: str, names: frozenset[JobName] | None, via: WayName | None
) -> Target | Lost:
    by_memory: dict[str, list[Process]] = defaultdict(list)
    for process in sight.processes:
        by_memory[process.memory.id if process.memory else "servers"].append(process)
    groups = [
        group
        for group in by_memory.values()
        if (names is None or any(_is_wanted(one, wanted, names) for one in group))
        and (via is None or any(one.way == via for one in group))
    ]
    if not groups:
        return _nobody(sight, wanted, via)
    if len(groups) > 1:
        listed = "; ".join(sorted(_described(group) for group in groups))
        return _refused(f"several jobs wait for captures here: {listed}", "name one with --job")
    return _decide_group(groups[0], wanted)


def _nobody(sight: Sight, wanted: str, via: WayName | None) -> Lost:
    hidden = [file for file in sight.memory if file.uid != sight.uid] if sight.uid else []
    if hidden:
        return _refused(
            f"{hidden[0].name} is of user {hidden[0].uid}, whose processes this login cannot see",
            "log in as that user, or as root, or set become: sudo",
        )
    if sight.processes:
        others = "; ".join(sorted({one.job.text for one in sight.processes}))
        what = f"the job {wanted}" if wanted else f"a job that waits for {via}"
        return _refused(f"{what} is not here, but others are: {others}", "check --job and --via")
    return _refused(
        "no process that this login can see waits for a capture",
        _next_time(via or "file"),
    )


def _next_time(way: WayName) -> str:
    return "\n  ".join(("start the job with these two lines next time:", *LINES[way]))


def _described(group: Sequence[Process]) -> str:
    ranks = sorted(one.rank for one in group if one.rank is not None and not one.is_monitor)
    return f"{group[0].job.text} (ranks {ranks[0]}–{ranks[-1]})" if ranks else group[0].job.text


def _decide_group(group: Sequence[Process], wanted: str) -> Target | Lost:
    """Decide on all processes that share one memory file."""
    if group[0].memory is None:
        return Target("vllm", group[0].job, tuple(group))
    pids = {one.pid for one in group}
    orphans = [one for one in group if one.is_monitor and one.parent not in pids]
    if orphans:
        return _refused(
            f"process {orphans[0].pid} is the monitor of a job that was killed: it reads that job's "
            "configuration, and this job's ranks would take it",
            f"end it (kill {orphans[0].pid}) and remove {SHARED}/{group[0].memory.name}; the running job "
            "can be captured after its next start only",
        )
    # A rank's children map what it maps: those that load its data have no other part in this.
    children = [one for one in group if one.is_monitor or _is_forked_from(one, group)]
    ranks = [one for one in group if one not in children]
    named = [one for one in children if one.is_monitor]
    # MindSpore gives its monitor no name; only the presence of a child is known.
    monitors = named if named or not ranks or ranks[0].way != "mindspore" else children[:1]
    jobs = {(one.job, one.configuration, one.asks_daemon) for one in ranks}
    if len({one.job for one in ranks}) > 1:
        listed = "; ".join(sorted({one.job.text for one in ranks}))
        return _refused(
            f"jobs share one memory file ({group[0].memory.name}), each would be captured too: {listed}",
            "jobs that start in the same hour on one host share it: give each its own container or /dev/shm",
        )
    if len(jobs) > 1:
        listed = ", ".join(sorted({one.configuration or "the daemon" for one in ranks}))
        return _refused(
            f"ranks that share one memory file were started for different configurations: {listed}",
            "these may be two jobs: nothing is sent to them",
        )
    return _with_monitor(ranks, monitors, wanted)


def _is_forked_from(one: Process, group: Sequence[Process]) -> bool:
    """Whether it was forked from a rank: it then runs the same command, under the same environment."""
    return any(
        one.parent == other.pid and one.rank == other.rank and one.command == other.command for other in group
    )


def _with_monitor(ranks: Sequence[Process], monitors: Sequence[Process], wanted: str) -> Target | Lost:
    memory = ranks[0].memory if ranks else None
    way = ranks[0].way if ranks else None
    if way == "mindspore" and wanted.startswith("/"):
        # Its environment does not say where its configuration is: the user does.
        ranks = [replace(one, configuration=wanted.rstrip("/")) for one in ranks]
    if memory is None or way is None:
        return _refused(
            "its processes map a profiler's memory file, and neither PROF_CONFIG_PATH nor "
            "MSMONITOR_USE_DAEMON is set",
            _next_time("file"),
        )
    numbers = [one.rank for one in ranks if one.rank is not None]
    if len(set(numbers)) < len(numbers):
        return _refused(
            f"rank {max(numbers, key=numbers.count)} is there twice by one memory file: two jobs",
            "give each job its own container or /dev/shm",
        )
    if memory.made_s is not None and memory.made_s < min(one.started_s for one in ranks) - _CLOCK_S:
        return _refused(
            f"{SHARED}/{memory.name} is older than every rank that maps it: it is a dead job's",
            "remove it before the job's next start; this job cannot be captured",
        )
    if len(monitors) != 1 or memory.is_deleted:
        return _refused(
            f"{len(monitors)} processes read configurations for these ranks, and one is needed"
            if len(monitors) != 1
            else f"the memory file {memory.name} was removed while its job ran",
            "the rank that starts it has ended or was killed: the job can be captured after its next start",
        )
    return Target(way, ranks[0].job, tuple(sorted(ranks, key=lambda one: one.pid)), monitors[0])


def _one_job(targets: Mapping[HostId, Target], refusals: Mapping[HostId, Lost]) -> Decision:
    """Refuse all where the hosts' targets are not one job: nothing says which of them is meant."""
    jobs = {target.job for target in targets.values()}
    numbers = [one.rank for target in targets.values() for one in target.ranks if one.rank is not None]
    sizes = {one.n_ranks for target in targets.values() for one in target.ranks if one.n_ranks is not None}
    if len(jobs) > 1:
        listed = "; ".join(sorted(job.text for job in jobs))
        why = _refused(f"the hosts run different jobs: {listed}", "name one with --job")
    elif len(set(numbers)) < len(numbers) or len(sizes) > 1:
        twice = sorted({one for one in numbers if numbers.count(one) > 1})
        what = f"rank {twice[0]} is on two hosts" if twice else f"jobs of {sizes} ranks"
        why = _refused(
            f"the hosts run two jobs that call themselves the same: {what}",
            "name one with --job, or --limit",
        )
    else:
        return Decision(targets, refusals)
    return Decision({}, {**refusals, **dict.fromkeys(targets, why)})
