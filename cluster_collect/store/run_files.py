"""The files of a run directory that are no host's: mapping, rank table, manifest, lock; other people's."""

from __future__ import annotations

import ctypes
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cluster_collect.faults import RunLockedError, UnwritableError, local_error
from cluster_collect.spec import HostSpec
from cluster_collect.store.journal import PREVIOUS_NAME, Journal, refuse_other_hosts
from cluster_collect.wording import printable
from cluster_run.errors import read_as
from cluster_run.files import lock_file, write_bytes_whole, write_text_whole, written_whole
from cluster_run.ids import HostId, ServerId, host_number
from cluster_run.layout import JOURNAL_NAME, MANIFEST_NAME, MAPPING_NAME, PROFILER_TREE_NAME, RANK_TABLE_NAME
from cluster_run.manifest import Manifest, manifest_pieces
from cluster_run.ranktable import format_host_mapping, parse_host_mapping


def prepare_run(
    run: Path, specs: Sequence[HostSpec], journal: Journal, rank_table: Path | None
) -> dict[ServerId, HostId]:
    """Write the mapping of all hosts and the copy of the rank table; return the mapping.

    Hosts of earlier calls keep their lines.

    Raises:
        InputError: the directory belongs to another inventory, or the rank table cannot be read.
        UnwritableError: the directory cannot be written.
    """
    mapping_path = run / MAPPING_NAME
    known = {outcome.server_id: outcome.host for outcome in journal.earlier.values()}
    if mapping_path.exists():
        known |= parse_host_mapping(mapping_path.read_text(errors="replace"))
    wanted = {spec.server_id: spec.host for spec in specs}
    refuse_other_hosts(known, wanted, run)
    mapping = dict(sorted({**known, **wanted}.items(), key=lambda pair: host_number(pair[1])))
    with read_as(f"{rank_table}: the rank table cannot be read"):
        table = None if rank_table is None else rank_table.read_bytes()
    try:
        write_text_whole(mapping_path, format_host_mapping(mapping))
        if rank_table is not None and table is not None:
            write_bytes_whole(run / rank_table_name(rank_table.name), table)
    except OSError as error:
        raise local_error(error, str(run)) or UnwritableError(f"{run}: {error.strerror}") from None
    return mapping


def finish_run(run: Path, manifest: Manifest) -> None:
    """Make everything durable, and then write the manifest, last of all."""
    flush_to_disk(run)
    path = run / MANIFEST_NAME
    try:
        with written_whole(path) as stream:
            for piece in manifest_pieces(manifest):
                stream.write(piece.encode())
    except OSError as error:
        raise local_error(error, str(path)) or UnwritableError(f"{path}: {error.strerror}") from None


def flush_to_disk(run: Path) -> None:
    """Make everything durable that was written to the run directory's file system."""
    descriptor = os.open(run, os.O_RDONLY | os.O_DIRECTORY)
    try:
        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None:  # Linux alone has it
            os.sync()
        elif syncfs(descriptor) != 0:
            raise UnwritableError(f"{run}: not written to disk: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(descriptor)


def rank_table_name(name: str) -> str:
    """Return what the copy of a rank table is called in the run directory."""
    if name == MANIFEST_NAME or name.startswith("."):
        return RANK_TABLE_NAME
    return name if name.endswith(".json") else f"{name}.json"


#: What only a run directory has: with one of them the rest belongs to it.
_MARKS = {MANIFEST_NAME, MAPPING_NAME, PROFILER_TREE_NAME, JOURNAL_NAME, PREVIOUS_NAME}
_N_NAMED = 3


def strangers_warning(run: Path) -> str:
    """Return the warning about a directory that holds other files, and none of a collection."""
    try:
        names = sorted(path.name for path in run.iterdir())
    except OSError:
        return ""  # not there yet, or told when it is written
    others = [name for name in names if name != LOCK_NAME]
    if not others or _MARKS & set(others):
        return ""
    named = ", ".join(others[:_N_NAMED]) + (", …" if len(others) > _N_NAMED else "")
    return (
        f"{run} is no run directory and holds other files ({printable(named)}): "
        "what is collected is put beside them; an empty directory, or a new one, keeps them apart"
    )


LOCK_NAME = ".cluster-collect.lock"


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Hold `run` (made when missing) for this process; the kernel frees it when the process dies.

    Raises:
        RunLockedError: another process holds it; the message names that process.
        UnwritableError: the directory cannot be made or written.
    """
    path = run / LOCK_NAME
    try:
        run.mkdir(parents=True, exist_ok=True)
        descriptor = _acquire(path)
    except OSError as error:
        raise UnwritableError(f"{run}: cannot be written: {error.strerror}") from None
    try:
        os.truncate(descriptor, 0)
        owner = f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S')}"
        with suppress(OSError):  # on a full disk: only the note about us for others is lost
            os.pwrite(descriptor, owner.encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path) -> int:
    descriptor = lock_file(path, wait=False)
    if descriptor is not None:
        return descriptor
    try:
        owner = path.read_text(errors="replace")[:200]
    except OSError:
        owner = ""  # it ended meanwhile
    raise RunLockedError(
        f"{path.parent}: in use by {owner or 'another collection'}",
        "wait for it, or choose another --output",
    )
