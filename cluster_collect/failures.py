"""Why a host is not complete: one word for programs, a reason and an advice for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Every word that `failure` can be in manifest.json and in the JSON results, and what it means.
#: Programs rely on the words; the texts of reasons and advices may change.
FAILURES: Mapping[str, str] = {
    "unreachable": "no connection could be made, in the last attempt",
    "lost-connection": "the connection broke, or the data ended early, in the last attempt",
    "stalled": "it hung, or sent less than --least-rate, in the last attempt",
    "deadline": "the time of --host-deadline or --deadline was over; what came is kept",
    "unfinished": "the call still waited for it when this manifest was written",
    "unknown-name": "the address does not resolve",
    "host-key": "the host key is unknown, changed or revoked",
    "login": "user, key or password was refused",
    "ssh-setup": "our own side: key file, certificate, SSH configuration, no common algorithm",
    "become": "sudo on the host does not let us be become_user without a password",
    "no-shell": "the host runs no commands for us and offers no SFTP",
    "no-profiler-root": "the profiler root is missing or cannot be entered",
    "no-data": "nothing below the profiler root is profiler data, or matches --what",
    "prepare": "the prepare command failed; what came is kept",
    "listing": "not everything below the profiler root could be listed",
    "left-out": "links that were not followed, or names that cannot be used here, hide profiler data",
    "ranks-missing": "all files came, but not those of all ranks that the rank table gives to the host",
    "files-missing": "some files could not be fetched; the result names them",
    "files-unstable": "some files were still being written; the result names them",
    "no-room": "its files, or some of them, do not fit on the disk of this machine; the other hosts go on",
    "remote-failure": "a program or a file operation on the host failed",
    "hostile-data": "the host sent what it must not send; nothing more was taken from it",
    "unexpected": "a mistake of ours; the result names the place in the program",
}


_WHAT_TO_CHECK = (
    "check profiler_root, then --what, --exclude, --since and --capture; of r1.x device_regex and output_dir"
)
_MOST_NAMES = 6


@dataclass(frozen=True)
class Failure:
    """Why a host is not complete. `word` is a key of FAILURES, empty when the host is complete."""

    word: str = ""
    reason: str = ""
    advice: str = ""


def nothing_found(profiler_root: str, capture: str = "", names: Sequence[str] = ()) -> Failure:
    """Return the failure of a host without profiler data.

    `capture` is the one that the root lies inside of, if it does; `names` are what is there instead.
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
    if "symbolic link" in reason:
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
