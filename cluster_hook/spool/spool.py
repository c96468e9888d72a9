"""The spool of requests: directories between which a request moves by rename, so that a crash loses none.

pending/<key>.job    dropped by the epilog; the key is the job's number
active/<key>.job     taken by a drain; active/<key>.lock is held by the process that works on it
done/<key>.json      how it ended
failed/<key>.json    why it was given up, with the request beside it as <key>.job
attempts/<key>.json  how often it was tried, and when last
log/<key>.log        what the commands said
untold/<key>.json    a message that was not sent yet
done/<key>.told      why a message was not sent, empty where it was
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from cluster_hook.spool.request import MAX_REQUEST_BYTES
from cluster_run.errors import InputError, read_as
from cluster_run.files import json_of, lock_held, naming, write_text_whole

_AREAS = ("pending", "active", "done", "failed", "attempts", "log", "untold")
#: Earlier epilogs added the number of restarts.
_KEY = re.compile(r"[0-9]+(?:-[0-9]+)?")


@dataclass(frozen=True)
class Attempts:
    """How often a request was tried, when last (seconds since 1970), and why it is not done."""

    number: int = 0
    last_s: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Spool:
    """A spool directory. Only a process that holds `drain_lock` may move requests."""

    root: Path

    def prepare(self) -> None:
        """Make the directories that are missing.

        Raises:
            InputError: the spool is missing, or others than its owner may write to it, who could then have
                commands run in anybody's name.
        """
        if not self.root.is_dir():
            raise InputError(
                f"{self.root}: there is no such spool", "deploy/slurm/install_epilog.sh makes it"
            )
        for area in _AREAS:
            (self.root / area).mkdir(mode=0o700, exist_ok=True)
        self.refuse_public()

    def refuse_public(self) -> None:
        """Check that nobody else can write requests.

        Raises:
            InputError: others can.
        """
        for directory in (self.root, self.root / "pending"):
            if directory.stat().st_mode & 0o022:
                raise InputError(f"{directory} can be written by others", f"chmod go-w {directory}")

    def epilog_ran_s(self) -> float | None:
        """Return when the epilog ran last, in seconds since 1970; None where it never did."""
        return _changed_s(self.root / "pending" / ".epilog-ran")

    def drained_s(self) -> float | None:
        """Return when a drain began last, in seconds since 1970; None where none ever did."""
        return _changed_s(self.root / "drain.lock")

    def drain_settings(self) -> Mapping[str, object]:
        """Return what the last drain noted of how it runs; empty where none ever did."""
        with contextlib.suppress(OSError, ValueError):
            document = json_of((self.root / "drain.lock").read_bytes())
            return document if isinstance(document, dict) else {}
        return {}

    @contextmanager
    def drain_lock(self, settings: Mapping[str, object] | None = None) -> Iterator[bool]:
        """Hold the lock of the one drain that may run; yields False where another drain holds it.

        The drain notes its settings in it, for whoever wants to see what it sees.
        """
        path = self.root / "drain.lock"
        with lock_held(path) as descriptor:
            if descriptor is not None:
                with naming(path):
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, json.dumps(settings or {}).encode(), 0)
                    os.utime(descriptor)
            yield descriptor is not None

    def path(self, area: str, key: str, suffix: str) -> Path:
        """Return the path of a file of the request `key`."""
        return self.root / area / f"{key}{suffix}"

    def keys(self, area: str) -> tuple[str, ...]:
        """Return the keys of the requests in an area, the oldest first."""
        found = []
        for path in (self.root / area).glob("*.job"):
            if _KEY.fullmatch(path.stem):
                with contextlib.suppress(FileNotFoundError):
                    found.append((path.stat().st_mtime_ns, path.stem))
        return tuple(key for _, key in sorted(found))

    def content(self, area: str, key: str) -> bytes:
        """Return the content of a request.

        Raises:
            InputError: it cannot be read, is a link, or is too large to be one.
        """
        path = self.path(area, key, ".job")
        with read_as(f"{path}: the request cannot be read"):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as stream:
                content = stream.read(MAX_REQUEST_BYTES + 1)
        if len(content) > MAX_REQUEST_BYTES:
            raise InputError(f"{path}: too large to be a request")
        return content

    def dropped_s(self, key: str) -> float:
        """Return when a request that waits was dropped, in seconds since 1970."""
        return self.path("pending", key, ".job").lstat().st_mtime

    def move(self, key: str, origin: str, target: str) -> None:
        """Move a request; atomic, and its age stays."""
        os.rename(self.path(origin, key, ".job"), self.path(target, key, ".job"))

    def put_back(self, key: str) -> None:
        """Let a request that was taken wait again; where it was dropped anew meanwhile, the new one stays."""
        with contextlib.suppress(FileExistsError):
            os.link(self.path("active", key, ".job"), self.path("pending", key, ".job"))
        self.path("active", key, ".job").unlink()
        self.path("active", key, ".lock").unlink(missing_ok=True)

    def attempts(self, key: str) -> Attempts:
        """Return how often a request was tried."""
        try:
            document = json_of(self.path("attempts", key, ".json").read_bytes())
            return Attempts(
                int(document["number"]), float(document["last_s"]), str(document.get("reason", ""))
            )
        except (OSError, ValueError, KeyError, TypeError):
            return Attempts()

    def set_attempts(self, key: str, attempts: Attempts) -> None:
        """Record how often a request was tried."""
        write_text_whole(self.path("attempts", key, ".json"), json.dumps(asdict(attempts)) + "\n")

    def is_done(self, key: str, content: bytes) -> bool:
        """Whether this very request was finished, and the drain died before it removed it.

        One that was dropped later is another end of the job, or of one with the same number.
        """
        record = self.path("done", key, ".json")
        try:
            document = json_of(record.read_bytes())
            is_later = self.path("pending", key, ".job").lstat().st_mtime_ns > record.stat().st_mtime_ns
            return not is_later and bool(document["request_sha256"] == request_digest(content))
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def note_reported(self, key: str, trouble: str) -> None:
        """Record that the message of a request was sent, or why not."""
        write_text_whole(self.path("done", key, ".told"), trouble)

    def reported(self, key: str) -> str | None:
        """Return why the message of a request was not sent, empty where it was; None where none was tried."""
        try:
            return self.path("done", key, ".told").read_text()
        except OSError:
            return None

    def forget(self, key: str, area: str) -> None:
        """Remove a finished request and what was kept to work on it."""
        self.path(area, key, ".job").unlink(missing_ok=True)
        for kept_in, suffix in (("attempts", ".json"), ("active", ".lock")):
            self.path(kept_in, key, suffix).unlink(missing_ok=True)

    def worker_lock(self, key: str) -> AbstractContextManager[int | None]:
        """Hold the lock of one request; yields the descriptor to pass on, or None where a worker holds it.

        The worker inherits the descriptor, so the lock lives as long as the worker, even when the drain
        that started it was killed.
        """
        return lock_held(self.path("active", key, ".lock"))

    def prune(self, keep_s: float) -> None:
        """Remove the records of requests that ended more than `keep_s` seconds ago."""
        oldest = time.time() - keep_s
        for area in ("done", "failed", "log", "untold"):
            for path in (self.root / area).glob("[!.]*"):
                with contextlib.suppress(FileNotFoundError):
                    if path.lstat().st_mtime < oldest:
                        path.unlink()


def _changed_s(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def request_digest(content: bytes) -> str:
    """Return what tells one request from another."""
    return hashlib.sha256(content).hexdigest()
