"""A run directory of links: data on a shared file system are analysed where they are, not copied.

It gives the analysis what the data themselves do not say: the rank table, which hosts there are, and which
of them left nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_run.files import write_text_whole
from cluster_run.ids import HostId, ServerId
from cluster_run.layout import MANIFEST_NAME, MAPPING_NAME, RANK_TABLE_NAME, host_directory
from cluster_run.manifest import HostOutcome, Manifest, manifest_to_json
from cluster_run.ranktable import format_host_mapping
from cluster_run.version import VERSION

#: The link to the one directory that all hosts share.
_DATA_NAME = "data"


@dataclass(frozen=True)
class View:
    """Directories to link: one of each host, or one for all. Hosts are numbered in this order from 1.

    `pattern` is what the directories of hosts were made of, with `%N` for the name.
    """

    hosts: tuple[ServerId, ...]
    host_directories: tuple[Path, ...] = ()
    data: Path | None = None
    pattern: str = ""
    rank_table: Path | None = None


def write_view(view: View, run: Path) -> None:
    """Write the view as a run directory; one that is there already is brought up to date.

    Raises:
        OSError: it cannot be written.
    """
    hosts = {server_id: HostId(str(number)) for number, server_id in enumerate(view.hosts, start=1)}
    if view.data is not None:
        link_directory(run / _DATA_NAME, view.data)
    outcomes = []
    for (server_id, host), directory in zip(hosts.items(), view.host_directories, strict=False):
        link_directory(host_directory(run, host), directory)
        if directory.is_dir():
            outcomes.append(HostOutcome(host, server_id, "complete"))
        else:
            # With the pattern: the findings tell this reason, and name hosts by their numbers only.
            reason = f"there is no directory {view.pattern}"
            outcomes.append(HostOutcome(host, server_id, "failed", reason=reason))
    write_run_files(run, "view", hosts, outcomes, view.rank_table)


def write_run_files(
    run: Path,
    what: str,
    hosts: Mapping[ServerId, HostId],
    outcomes: Sequence[HostOutcome],
    rank_table: Path | None,
) -> None:
    """Write what says what a run directory of links holds; its manifest last, if there are `outcomes`.

    Raises:
        OSError: it cannot be written.
    """
    if rank_table is not None:
        write_text_whole(run / RANK_TABLE_NAME, rank_table.read_text(encoding="utf-8-sig"))
    write_text_whole(run / MAPPING_NAME, format_host_mapping(hosts))
    if outcomes:
        manifest = Manifest(what=(what,), hosts=tuple(outcomes), tool_version=VERSION)
        write_text_whole(run / MANIFEST_NAME, manifest_to_json(manifest))


def link_directory(link: Path, target: Path) -> None:
    """Make `link` lead to the directory `target`, whatever it led to before.

    Raises:
        OSError: it cannot be made.
    """
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_symlink():
        link.unlink()
    link.symlink_to(target, target_is_directory=True)
