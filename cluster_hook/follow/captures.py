"""Which captures below a directory are a job's (those that began while it ran), and whether they are parsed.

Jobs that run one after the other often write to one directory. Files there at the end of a job may be the
previous job's, or already the next one's.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster_hook.job import OF_SLURM, ReportedJob, Wording
from cluster_run.errors import InputError
from cluster_run.layout import ANALYSIS_OUTPUT_NAME, PARSED_MARK_NAME, PARSER_RESTS_S, PROFILER_OUTPUT_NAME

#: The ranks of a job begin a capture within this time of each other.
_TOGETHER_S = 10.0


class NoProfileError(InputError):
    """The job wrote no capture that could be its own."""


@dataclass(frozen=True)
class OwnAndOthers:
    """When each capture below a directory began, in seconds since 1970; split by whose they are."""

    own: Mapping[Path, float]
    others: Mapping[Path, float]


def captures_of(job: ReportedJob, root: Path, mirror: Path, wording: Wording = OF_SLURM) -> Path:
    """Return the directory that holds the job's captures below `root`, and no others.

    That is `root` itself, unless others lie below it too: then `mirror`, a tree of links to all but those.

    Raises:
        NoProfileError: all captures below `root` are of other times than the job's.
        OSError: the links cannot be made.
    """
    survey = survey_captures(job, root)
    if survey.others and job.began_s is None:
        raise NoProfileError(
            "it is not known any more when this job began, nor which captures there are its own",
            wording.own_directory,
        )
    if not survey.others:
        return root
    if not survey.own:
        raise NoProfileError(
            f"this job wrote no profile: {_why_not(job, survey.others)}",
            f"if they are the job's, clocks differ: {wording.own_directory}",
        )
    _clear(mirror)
    _link_all_but(root, mirror, frozenset(survey.others))
    return mirror


def survey_captures(job: ReportedJob, root: Path) -> OwnAndOthers:
    """Return when the captures below `root` began. A file of r1.x is a capture of its own."""
    # Late: it brings msgspec, and `--help` needs the standard library alone.
    from cluster_analysis.discovery.walk import walk  # noqa: PLC0415

    began: dict[Path, float | None] = {}
    for one, form in walk(root).captures.items():
        if form == "legacy":
            began.update((path, path.stat().st_mtime) for path in _legacy_files(one))
        else:
            began[one] = _oldest_s(one)
    known = {path: at_s for path, at_s in began.items() if at_s is not None}
    own = {path: at_s for path, at_s in known.items() if _ran_at(job, at_s)}
    own = {path: at_s for path, at_s in own.items() if not _is_of_the_next(job, at_s, own.values())}
    return OwnAndOthers(own, {path: at_s for path, at_s in known.items() if path not in own})


def _ran_at(job: ReportedJob, at_s: float) -> bool:
    """Whether a capture that began then can be the job's; none can if it is unknown when the job began."""
    # Slurm cuts times to whole seconds.
    return job.began_s is not None and (
        job.began_s <= at_s and (job.ended_s is None or at_s < job.ended_s + 1)
    )


def _is_of_the_next(job: ReportedJob, at_s: float, all_s: Collection[float]) -> bool:
    """Whether a capture of the second in which the job ended is the next job's, which began in it.

    The ranks of a job begin a capture together, so the job's own is near others of the job's.
    """
    if job.ended_s is None or at_s < job.ended_s:
        return False
    before_s = [one for one in all_s if one < job.ended_s]
    return bool(before_s) and at_s - max(before_s) > _TOGETHER_S


def _oldest_s(capture: Path) -> float | None:
    """Return when a capture began: its oldest file, which parsing it later does not change.

    Nothing deeper than one directory is looked at: the thousands of raw files below are no older.
    """
    times = []
    for directory in (capture, *_folders(capture)):
        with contextlib.suppress(OSError), os.scandir(directory) as entries:
            times += [entry.stat().st_mtime for entry in entries if entry.is_file()]
    return min(times, default=None)


def _folders(directory: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        yield from [Path(entry.path) for entry in entries if entry.is_dir()]


def _legacy_files(directory: Path) -> Iterator[Path]:
    from cluster_analysis.discovery.legacy import FILES  # noqa: PLC0415  as above

    for path in sorted(directory.iterdir()):
        if path.is_file() and any(pattern.match(path.name) for pattern in FILES.values()):
            yield path


def _why_not(job: ReportedJob, others: Mapping[Path, float]) -> str:
    newest_s = max(others.values())
    n = f"the newest of {len(others)} captures" if len(others) > 1 else "the only capture"
    if job.began_s is not None and newest_s < job.began_s:
        return f"{n} there began {_clock(newest_s)}, before the job did ({_clock(job.began_s)})"
    assert job.ended_s is not None
    return f"{n} there began {_clock(newest_s)}, after the job ended ({_clock(job.ended_s)})"


def _clock(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))


def _link_all_but(root: Path, mirror: Path, others: frozenset[Path]) -> None:
    """Make `mirror` a tree of links to what is below `root`, without `others`."""
    holding = {parent for path in others for parent in path.parents}
    mirror.mkdir(parents=True)
    for path in sorted(root.iterdir()):
        if path in others or path.name == ANALYSIS_OUTPUT_NAME:
            continue
        if path in holding:
            _link_all_but(path, mirror / path.name, others)
        else:
            (mirror / path.name).symlink_to(path.absolute())


def _clear(mirror: Path) -> None:
    """Remove the links of an earlier attempt, and nothing else."""
    if not mirror.is_dir():
        return
    for path in mirror.iterdir():
        if path.is_symlink():
            path.unlink()
        elif path.is_dir():
            _clear(path)
    mirror.rmdir()


_LOOK_S = 2.0


def wait_until_parsed(root: Path, patience_s: float = 600.0) -> None:
    """Wait for the captures below `root` that are being parsed, `patience_s` seconds at most.

    If one capture has its mark, this version of the profiler leaves marks; then captures without it, whose
    files still change, are waited for. If one is never parsed to its end, the analysis says what is missing.
    """
    # Late: it brings msgspec, and `--help` needs the standard library alone.
    from cluster_analysis.discovery.walk import walk  # noqa: PLC0415

    end_s = time.monotonic() + patience_s
    forms = walk(root).captures
    outputs = [one / PROFILER_OUTPUT_NAME for one, form in forms.items() if form == "ascend"]
    if not any((one / PARSED_MARK_NAME).exists() for one in outputs):
        return
    while any(_is_being_parsed(one) for one in outputs) and time.monotonic() < end_s:
        time.sleep(_LOOK_S)


def _is_being_parsed(output: Path) -> bool:
    if not output.is_dir() or (output / PARSED_MARK_NAME).exists():
        return False
    changed_s = [output.stat().st_mtime]
    with contextlib.suppress(OSError), os.scandir(output) as entries:
        changed_s += [entry.stat().st_mtime for entry in entries]
    return time.time() - max(changed_s) < PARSER_RESTS_S
