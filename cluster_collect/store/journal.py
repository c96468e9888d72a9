"""What is already in the run directory: the manifest of a finished call, and the journal of a killed one."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from cluster_collect.entries import RemoteEntry, same_mtime
from cluster_collect.faults import UnwritableError, local_error
from cluster_collect.spec import UNREAD
from cluster_run.errors import ClusterError, InputError
from cluster_run.files import json_of
from cluster_run.ids import HostId, ServerId
from cluster_run.layout import JOURNAL_NAME, MANIFEST_NAME
from cluster_run.manifest import CollectedFile, HostOutcome, file_document, file_from_json, read_manifest

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
#: The manifest of the call before, out of sight while files change under it.
PREVIOUS_NAME = ".cluster-collect.previous"


class Journal:
    """Knows the files of earlier calls, and writes down the files that have their final names.

    Files that only the journal knows were not made durable, so their content is hashed again before they are
    believed; the manifest's are believed when size and time on disk are right.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        # By host and source; which of them only the journal knows.
        self._known: defaultdict[ServerId, dict[str, CollectedFile]] = defaultdict(dict)
        self._claimed: defaultdict[ServerId, set[str]] = defaultdict(set)
        self._is_begun = False
        self._is_torn = False
        # Of what earlier calls left: several sources may share one stored file, which bears the time of one.
        self._mtimes: dict[str, tuple[int, ...]] = {}
        self.earlier: dict[ServerId, HostOutcome] = {}
        self.what: tuple[str, ...] = ()
        self._read_manifest()
        self._read_journal()
        for files in self._known.values():
            for file in files.values():
                self._note_time(file)
        try:
            descriptor = os.open(run / JOURNAL_NAME, _FLAGS, 0o644)
            self._stream = os.fdopen(descriptor, "ab", buffering=0)
            if self._is_torn:
                self._stream.write(b"\n")
        except OSError as error:
            raise UnwritableError(f"{run / JOURNAL_NAME}: cannot be written: {error.strerror}") from None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def _read_manifest(self) -> None:
        path = self._run / MANIFEST_NAME
        if not path.exists():
            path = self._run / PREVIOUS_NAME
        if not path.exists():
            return
        try:
            manifest = read_manifest(path)
        except InputError as error:
            raise InputError(
                f"{error.message}; it says what is already there", "move it away, or choose another --output"
            ) from None
        self.what = manifest.what
        for outcome in manifest.hosts:
            self.earlier[outcome.server_id] = outcome
            for file in outcome.files:
                if file.state == "stored":
                    self._known[outcome.server_id][file.source] = file

    def _read_journal(self) -> None:
        path = self._run / JOURNAL_NAME
        if path.is_symlink() or not path.exists():
            return  # a link is no journal of ours: it is refused where it would be written
        content = path.read_bytes()
        self._is_torn = content != b"" and not content.endswith(b"\n")
        for line in content.splitlines():
            try:
                record = json_of(line)
                server_id = ServerId(record.pop("server_id"))
                file = file_from_json(record)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue  # the line that was being written when the process was killed
            self._known[server_id][file.source] = file
            self._claimed[server_id].add(file.source)

    def record(self, server_id: ServerId, file: CollectedFile) -> None:
        """Write down a file that now has its final name."""
        if not self._is_begun:
            self._begin()
        line = json.dumps({"server_id": server_id, **file_document(file)}) + "\n"
        try:
            self._stream.write(line.encode())
        except OSError as error:
            raise _journal_error(error, self._run) from None
        self._claimed[server_id].discard(file.source)
        self._known[server_id][file.source] = file
        if file.path in self._mtimes:
            self._note_time(file)

    def _note_time(self, file: CollectedFile) -> None:
        known = self._mtimes.get(file.path, ())
        if file.mtime_ns not in known:
            self._mtimes[file.path] = (*known, file.mtime_ns)

    def _begin(self) -> None:
        """From the first new file on no manifest is there that could say something else."""
        manifest = self._run / MANIFEST_NAME
        try:
            if manifest.exists():
                os.replace(manifest, self._run / PREVIOUS_NAME)
        except OSError as error:
            raise _journal_error(error, self._run) from None
        self._is_begun = True

    def knows(self, server_id: ServerId) -> bool:
        """Whether earlier calls, or this one, brought any file of a host."""
        return bool(self._known.get(server_id))

    def forget(self, server_id: ServerId) -> None:
        """Drop from memory what is known of a host that is done."""
        self._claimed.pop(server_id, None)
        self._known.pop(server_id, None)

    def lies_at(self, server_id: ServerId, source: str, path: str) -> bool:
        """Whether earlier calls, or this one, put a file of a host at `path`."""
        known = self._known[server_id].get(source)
        return known is not None and known.path == path

    def stored(
        self, server_id: ServerId, source: str, entry: RemoteEntry, *, hash_again: bool = False
    ) -> CollectedFile | None:
        """Return the file if exactly this version of it is already in the run directory.

        With `hash_again` also the manifest's files are hashed before they are believed.
        """
        file = self._known[server_id].get(source)
        if file is None or not _is_version(file, entry):
            return None
        is_doubtful = hash_again or source in self._claimed[server_id]
        return file if (self._is_whole(file) if is_doubtful else self._is_there(file)) else None

    def begins_with(self, file: CollectedFile, begin: bytes) -> bool:
        """Whether a file that is stored begins so."""
        with open(os.path.join(os.fsencode(self._run), os.fsencode(file.path)), "rb") as stream:
            return stream.read(len(begin)) == begin

    def kept(self, server_id: ServerId, without: Iterable[str]) -> tuple[CollectedFile, ...]:
        """Return a host's files of earlier calls that are still here, `without` some sources.

        The host may have other versions of them by now, or none.
        """
        asked = set(without)
        return tuple(
            file if file.reason == UNREAD else replace(file, reason="kept from an earlier call")
            for source, file in self._known[server_id].items()
            if source not in asked and self._is_there(file)
        )

    def finished(self) -> None:
        """Drop the journal: the manifest has been written and says it all."""
        for name in (JOURNAL_NAME, PREVIOUS_NAME):
            (self._run / name).unlink(missing_ok=True)

    def _is_there(self, file: CollectedFile) -> bool:
        try:
            status = os.stat(
                os.path.join(os.fsencode(self._run), os.fsencode(file.path)), follow_symlinks=False
            )
        except OSError:
            return False
        return status.st_size == file.size_bytes and any(
            same_mtime(status.st_mtime_ns, mtime_ns)
            for mtime_ns in (file.mtime_ns, *self._mtimes.get(file.path, ()))
        )

    def _is_whole(self, file: CollectedFile) -> bool:
        if not self._is_there(file):
            return False
        digest = hashlib.sha256()
        with open(os.path.join(os.fsencode(self._run), os.fsencode(file.path)), "rb") as stream:
            while piece := stream.read(1 << 20):
                digest.update(piece)
        return digest.hexdigest() == file.sha256


def _is_version(file: CollectedFile, entry: RemoteEntry) -> bool:
    of_host = file.size_bytes if file.reduced_from_bytes is None else file.reduced_from_bytes
    return of_host == entry.size_bytes and same_mtime(file.mtime_ns, entry.mtime_ns)


def _journal_error(error: OSError, run: Path) -> ClusterError:
    return local_error(error, str(run)) or UnwritableError(f"{run}: the journal cannot be written")


def refuse_other_hosts(known: dict[ServerId, HostId], wanted: dict[ServerId, HostId], run: Path) -> None:
    """Raise InputError when the run directory's host numbers mean other hosts than this call's."""
    by_number = {host: server_id for server_id, host in known.items()}
    for server_id, host in wanted.items():
        other = by_number.get(host, server_id)
        if other != server_id or known.get(server_id, host) != host:
            raise InputError(
                f"{run}: host {host} is {other} there and {server_id} in this inventory",
                "choose another --output, or keep the order of the inventory",
            )
