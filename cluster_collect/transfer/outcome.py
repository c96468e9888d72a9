"""Sums up one host: what was found, what came, what did not, why, and what to do about it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cluster_collect.faults import HostError
from cluster_collect.remote.clock import ClockOffset, best
from cluster_collect.selection.captures import ranks_missing, ranks_of
from cluster_collect.selection.select import Refused, Selection
from cluster_collect.spec import HostSpec
from cluster_collect.transfer.survey import Survey
from cluster_collect.transfer.ways.intake import Intake
from cluster_collect.wording import count
from cluster_run.ids import HostId
from cluster_run.layout import host_directory
from cluster_run.manifest import CollectedFile, FileList, Hardware, HostOutcome, HostState
from cluster_run.ranktable import RankTable

#: Beside the host's `profiler` directory.
PREPARE_LOG_NAME = "prepare.log"


@dataclass
class OutcomeSoFar:
    """What is known of a host while it is collected."""

    error: HostError | None = None
    prepare_problem: str = ""
    survey: Survey | None = None
    clocks: list[ClockOffset] = field(default_factory=list)
    files: list[CollectedFile] = field(default_factory=list)
    refused: tuple[Refused, ...] = ()
    unstable: set[bytes] = field(default_factory=set)
    wire_bytes: int = 0
    same_files_as: HostId | None = None
    raw_because: str = ""
    over_limits: set[bytes] = field(default_factory=set)
    hardware: Hardware | None = None

    @property
    def has_all(self) -> bool:
        """Whether all that was selected is in the run directory."""
        return self.error is None and all(file.state in ("stored", "skipped") for file in self.files)

    def take(self, intake: Intake, present: dict[bytes, CollectedFile], selection: Selection) -> None:
        """Note how each selected file fares, in the order of the selection."""
        self.files = []
        for placed in selection.files:
            path = placed.entry.path
            file = intake.failed.get(path) or intake.stored.get(path) or present.get(path)
            if path in self.unstable:
                file = intake.stored.get(path) or intake.mismatched.get(path) or file
                if file is not None:
                    file = replace(
                        file, state="unstable", reason="still being written: it changed while it was read"
                    )
            self.files.append(file or intake.described(placed, reason="not fetched"))


def outcome_of(
    spec: HostSpec,
    so_far: OutcomeSoFar,
    kept: Sequence[CollectedFile],
    seconds: float,
    ranks: Set[int] | None = None,
    table: RankTable | None = None,
) -> HostOutcome:
    """Return the host's line of the manifest; of `ranks` alone it was asked for something, None for all."""
    listed = (*so_far.files, *kept, *map(not_taken, so_far.refused))
    files = FileList(listed, packed=True)
    failure = _why(spec, so_far, may_be_empty=ranks is not None)
    if table is not None and not failure.word and so_far.same_files_as is None:
        found = ranks_of(file.source for file in listed if file.state == "stored")
        missing = ranks_missing(table, spec.server_id, found, ranks)
        advice = "did these ranks write a profile? look at profiler_root of this host, and at the rank table"
        failure = Failure("ranks-missing", missing, advice) if missing else failure
    return replace(
        summed_up(spec, failure, files, so_far.clocks),
        seconds=round(seconds, 3),
        wire_bytes=so_far.wire_bytes,
        same_files_as=so_far.same_files_as or "",
        raw_because=so_far.raw_because,
        n_over_limits=len(so_far.over_limits),
        hardware={} if so_far.hardware is None else _plain(so_far.hardware),
    )


def summed_up(
    spec: HostSpec, failure: Failure, files: FileList, clocks: Iterable[ClockOffset] = ()
) -> HostOutcome:
    """Return how a host fared, be it collected from or looked at."""
    state: HostState = "complete" if not failure.reason else "partial" if files.n_stored else "failed"
    clock = best(clocks)
    return HostOutcome(
        host=spec.host,
        server_id=spec.server_id,
        state=state,
        files=files,
        reason=failure.reason,
        advice=failure.advice,
        clock_offset_ms=None if clock is None else round(clock.offset_ms, 3),
        clock_uncertainty_ms=None if clock is None else round(clock.uncertainty_ms, 3),
        failure=failure.word,
    )


def _plain(hardware: Hardware) -> dict[str, object]:
    """As JSON gives it back: with lists."""
    return {**asdict(hardware), "chips": [asdict(chip) for chip in hardware.chips]}


def _why(spec: HostSpec, so_far: OutcomeSoFar, *, may_be_empty: bool) -> Failure:
    """Why the host is not complete, worst first."""
    if so_far.error is not None:
        return failure_of(so_far.error)
    if so_far.prepare_problem:
        log = host_directory(Path(), spec.host).parent / PREPARE_LOG_NAME
        advice = f"its output is in the run directory, in {log}"
        return Failure("prepare", so_far.prepare_problem, advice)
    if so_far.same_files_as is not None:
        return Failure()
    survey = so_far.survey or Survey(())
    if so_far.files and (why := _why_files(so_far)).word:
        # Directories that could not be listed are worse, and may lack the same right: both are reported.
        also = listing_failure(survey.problem, is_denied=survey.is_denied)
        return replace(also, reason=f"{also.reason}; {why.reason}") if also.word else why
    return why_not_all(spec, len(so_far.files), so_far.refused, survey, may_be_empty=may_be_empty)


def why_not_all(
    spec: HostSpec, n_files: int, refused: Sequence[Refused], survey: Survey, *, may_be_empty: bool
) -> Failure:
    """Why a listing and a selection do not show all profiler data of a host, worst first.

    It `may_be_empty` where some ranks are asked for, which other hosts may have.
    """
    lost = [one for one in refused if one.is_lost]
    if lost:
        return left_out(len(lost), os.fsdecode(lost[0].entry.path), lost[0].reason)
    # The unreadable part may hold all the data.
    if n_files or survey.is_denied or (may_be_empty and not survey.problem):
        return listing_failure(survey.problem, is_denied=survey.is_denied)
    return nothing_found(spec.local or spec.profiler_root, survey.inside, survey.top_names)


def not_taken(refused: Refused) -> CollectedFile:
    """Return the manifest's line for what was found and not taken."""
    entry = refused.entry
    return CollectedFile(
        path="",
        source=os.fsdecode(entry.path),
        size_bytes=entry.size_bytes,
        mtime_ns=entry.mtime_ns,
        sha256="",
        state="failed" if refused.is_lost else "skipped",
        reason=refused.reason,
    )


def _why_files(so_far: OutcomeSoFar) -> Failure:
    failed = [file for file in so_far.files if file.state == "failed"]
    unstable = [file for file in so_far.files if file.state == "unstable"]
    if failed:
        reason = f"{count(len(failed), 'file')} missing: {failed[0].source}: {failed[0].reason}"
        return Failure("files-missing", reason, "see manifest.json for all")
    if unstable:
        reason = f"{count(len(unstable), 'file')} still being written, the first is {unstable[0].source}"
        return Failure("files-unstable", reason, "call it again when the job has ended")
    return Failure()


_WHAT_TO_CHECK = (
    "check profiler_root, then --what, --exclude, --since and --capture; of r1.x device_regex and output_dir"
)
_MOST_NAMES = 6


@dataclass(frozen=True)
class Failure:
    """Why a host is not complete. `word` is for programs, which rely on it: docs/collecting.md has them all.

    It is empty when the host is complete.
    """

    word: str = ""
    reason: str = ""
    advice: str = ""


def failure_of(error: HostError) -> Failure:
    """Return an error as a failure."""
    return Failure(error.failure, error.message, error.advice)


def nothing_found(profiler_root: str, capture: str, names: Sequence[str]) -> Failure:
    """Return the failure of a host without profiler data.

    `capture` is the one that the root lies inside of, empty where there is none; `names` are what is there
    instead.
    """
    reason, advice = f"no profiler data below {profiler_root}", _WHAT_TO_CHECK
    if capture:
        reason += f": that is the inside of the capture {capture.rpartition('/')[2]}"
        advice = f"use its parent as profiler_root: {capture.rpartition('/')[0] or '/'}"
    elif names:
        reason += (
            f"; there is {', '.join(names[:_MOST_NAMES])}{' and more' if len(names) > _MOST_NAMES else ''}"
        )
    return Failure("no-data", reason, advice)


def left_out(n_left_out: int, source: str, reason: str) -> Failure:
    """Return the failure of a host with profiler data that was not taken; `source` is the first of it."""
    others = f" ({n_left_out - 1} more)" if n_left_out > 1 else ""
    advice = "see manifest.json for all"
    if "symbolic link that leads" in reason:
        advice = "mount what it leads to there, or pass it over with --exclude"
    elif "symbolic link" in reason:
        advice = "name the directories that links may lead to: --set follow_links=/data2,/data3"
    return Failure("left-out", f"{source}: {reason}{others}", advice)


def listing_failure(problem: str, *, is_denied: bool) -> Failure:
    """Return the failure of a host that could not list everything, or may not; none without a problem."""
    if not problem:
        return Failure()
    advice = "check the permissions below the profiler root"
    if is_denied:
        advice = "let the login user read it, or set become: sudo for this host"
    return Failure("listing", problem, advice)
