"""Ranks of captures whose own names say none, or say one of several captures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from msgspec import structs

from cluster_analysis.discovery.found import Found, as_rank
from cluster_analysis.sources.db.profiler_db import read_n_mapped_ranks
from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.sources.text.metadata_json import read_metadata
from cluster_analysis.tables.model import RankMetadata
from cluster_run.facts import Fact, fact
from cluster_run.ids import Rank
from cluster_run.problem import Problem

_RANK_FOLDER = re.compile(r"^rank[-_ ]?(\d+)$", re.IGNORECASE)


def with_ranks(found: list[Found], problems: list[Problem]) -> tuple[list[Found], list[Fact]]:
    """Return the captures whose rank is known. Problems of those that are known now go.

    Names of files may say no rank, or one of several captures (processes without RANK_ID all say 0, launchers
    count on each host). Then what says each rank once counts. The only capture of a job of one is rank 0.
    """
    ranks = [one.rank for one in found]
    if None not in ranks and len(set(ranks)) == len(ranks):
        return found, []
    declared = (own.own_rank if (own := metadata_of(one)) else None for one in found)
    said = _each_once(map(_rank_of_folder, found)) or _each_once(declared)
    notes = []
    if not said and ranks == [None] and _n_ranks(found[0]) <= 1:
        said, notes = [Rank(0)], [fact("only_capture_is_rank_0")]
    if not said:
        return [one for one in found if one.rank is not None], []
    problems[:] = [one for one in problems if one.kind != "rank_not_known"]
    return [structs.replace(one, rank=rank) for one, rank in zip(found, said, strict=True)], notes


def _each_once(ranks: Iterable[Rank | None]) -> list[Rank]:
    """Return the ranks; nothing where one is unknown, or there twice."""
    found: dict[Rank, None] = {}
    for rank in ranks:
        if rank is None or rank in found:
            return []
        found[rank] = None
    return list(found)


def _rank_of_folder(one: Found) -> Rank | None:
    """Return the rank of a capture; where its files say none, N of itself or the folder above it: `rankN`."""
    if one.rank is not None:
        return one.rank
    named = _RANK_FOLDER.match(one.directory.name) or _RANK_FOLDER.match(one.directory.parent.name)
    return as_rank(named.group(1)) if named else None


def metadata_of(found: Found) -> RankMetadata | None:
    """Return what a capture's metadata says; None without, or where reading will report it as damaged."""
    with suppress(BadFileError):
        return read_metadata(found.files["metadata"]) if "metadata" in found.files else None
    return None


def _n_ranks(found: Found) -> int:
    """Return the number of ranks of the job by a capture's own statement; 0 without one."""
    if "metadata" in found.files:
        return said.world_size if (said := metadata_of(found)) else 0
    with suppress(BadFileError):  # reading that rank reports it
        return read_n_mapped_ranks(found.files["profiler_db"]) if "profiler_db" in found.files else 0
    return 0
