"""The errors of collecting: each with its reason as a word, and whether it is tried again.

A HostError is one host's failure: it becomes its outcome, and never costs the others. All others are of
this machine: they stop everything, and a second call goes on.
"""

from __future__ import annotations

import errno
import traceback
from pathlib import Path
from typing import ClassVar

from cluster_run.errors import ClusterError, InputError


class HostError(ClusterError):
    """One host's failure; `retryable` says whether the same thing may work a moment later.

    `failure` is its word in the results for programs, see `Failure`. `shown_by_ssh` says whether trying
    `ssh` by hand can explain it.
    """

    retryable: ClassVar[bool] = False
    failure: ClassVar[str] = "failed"
    shown_by_ssh: ClassVar[bool] = False


class UnreachableError(HostError):
    """No connection could be made."""

    failure = "unreachable"
    shown_by_ssh = True
    retryable = True


class LostConnectionError(HostError):
    """The connection broke, or a stream ended before it was complete."""

    failure = "lost-connection"
    shown_by_ssh = True
    retryable = True


class StalledError(HostError):
    """A deadline passed without progress."""

    failure = "stalled"
    shown_by_ssh = True
    retryable = True


class DeadlineError(HostError):
    """The time given to this host, or to all of them, is over."""

    failure = "deadline"


class HostNameError(HostError):
    """The host's name does not resolve."""

    failure = "unknown-name"


class HostKeyError(HostError):
    """The host's key is unknown, changed or revoked."""

    failure = "host-key"
    shown_by_ssh = True


class LoginError(HostError):
    """The host refused every credential we have; never tried twice, accounts get locked."""

    failure = "login"
    shown_by_ssh = True


class SshSetupError(HostError):
    """Our own side of SSH: a key file, a certificate, the client's configuration."""

    failure = "ssh-setup"
    shown_by_ssh = True


class BecomeError(HostError):
    """The host lets us in, and sudo there does not let us be the user that the inventory names."""

    failure = "become"
    shown_by_ssh = True


class NoShellError(HostError):
    """The host runs no commands for us, or lacks the programs; its files may still be readable."""

    failure = "no-shell"
    shown_by_ssh = True


class NoProfilerRootError(HostError):
    """The profiler root is missing, unreadable or not a directory."""

    failure = "no-profiler-root"


class RemoteFailureError(HostError):
    """A command or a file operation on the host failed."""

    failure = "remote-failure"


class NoFilesError(RemoteFailureError):
    """The host runs no commands for us, and offers no SFTP either."""

    failure = "no-shell"


class NoColumnsError(RemoteFailureError):
    """Our reader of columns does not run on the host; its files may still be fetched as they are."""


class NoRoomError(HostError):
    """The host's files do not fit on this machine together with those of the others."""

    failure = "no-room"


class HostileDataError(HostError):
    """The host sent something it must not send; nothing more is taken from it."""

    failure = "hostile-data"


class UnexpectedError(HostError):
    """An unforeseen error: a mistake of ours. It names the place in the program, and none of the values."""

    failure = "unexpected"


class DiskFullError(ClusterError):
    """No room left on this machine; what was stored stays, a second call goes on."""


class RunLockedError(ClusterError):
    """Another collection works in the same run directory."""


class UnwritableError(InputError):
    """The run directory cannot be written."""


def as_host_error(error: Exception) -> HostError:
    """Return what ended the work on one host as that host's failure.

    Raises:
        ClusterError: this machine is at fault, which ends the work on all hosts.
    """
    if isinstance(error, HostError):
        return error
    if isinstance(error, OSError):
        error = local_error(error, str(error.filename or "this machine")) or error
    if isinstance(error, ClusterError):
        raise error
    # Not its message: it may hold any values, also secret ones.
    last = traceback.extract_tb(error.__traceback__)[-1:]
    places = [f" at {Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in last]
    return UnexpectedError(
        f"an unforeseen {type(error).__name__}{''.join(places)}",
        "please report this as a mistake of ours; the other hosts go on",
    )


def local_error(error: OSError, path: str) -> ClusterError | None:
    """Return the error that stops the whole collection, or None where only this one file is concerned."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        what, shown_by = f"{path}: no space left on this machine", "df -h, df -i"
        if error.errno == errno.EDQUOT:
            what, shown_by = f"{path}: your quota on this machine is used up", "quota -s"
        return DiskFullError(what, f"make room ({shown_by}) and call it again: it goes on from there")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return UnwritableError(f"{path}: cannot be opened: {error.strerror}", "allow more: ulimit -n 65536")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO):
        return UnwritableError(f"{path}: cannot be written: {error.strerror}")
    return None
