"""The files of several ranks, made into tables together: a call into Arrow takes longer than a few rows.

What is not plain (damage, another form, anything of which a reader would have to tell) is left to whoever
reads the ranks one by one, and so are steps that are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from cluster_analysis.sources.columns.place import is_here
from cluster_analysis.sources.together.candidates import has_databases
from cluster_analysis.sources.together.plain_metadata import plain_metadata
from cluster_analysis.sources.together.plain_text import (
    CSV_ROLES,
    FileOfRank,
    plain_csv,
    plain_links,
    plain_operators,
)
from cluster_analysis.sources.together.ready import NOTHING_READY, Ready
from cluster_analysis.sources.together.whole import Whole
from cluster_analysis.tables.model import RankSource


def read_together(sources: Sequence[RankSource], *, with_spans: bool) -> Ready:
    """Return what is plain of the files of some ranks, all steps; `with_spans`: where operators lie, too."""
    small: dict[str, pa.Table] = {}
    devices: dict[str, int | None] = {}
    wholes: list[Whole] = []
    for role in CSV_ROLES:
        plain_files = plain_csv(role, _files(sources, role))
        small |= plain_files.tables
        devices |= plain_files.devices
        wholes += plain_files.wholes
    operators, links = (_files(sources, role) for role in ("communication", "matrix"))
    operators_here, links_here = _here(operators), _here(links)
    communications, all_operators = plain_operators(operators_here, with_spans=with_spans)
    found_links, all_links = plain_links(links_here)
    of_columns = _columns(_others(operators, operators_here), _others(links, links_here))
    communications |= of_columns.communications
    found_links |= of_columns.links
    described = plain_metadata(_files(sources, "metadata"))
    small |= described.environment
    wholes += (*all_operators, *all_links, *described.wholes)
    return Ready(communications, found_links, small, devices, described.metadata, tuple(wholes))


def import_readers(sources: Iterable[RankSource]) -> None:
    """Import what reads these ranks' files, before processes are forked that would each do it."""
    if any(has_databases(one.files) for one in sources):
        import cluster_analysis.sources.db.of_rank  # noqa: F401, PLC0415


def _here(files: Sequence[FileOfRank]) -> list[FileOfRank]:
    return [one for one in files if is_here(one[0])]


def _others(files: Sequence[FileOfRank], some: Sequence[FileOfRank]) -> list[FileOfRank]:
    return [] if len(files) == len(some) else [one for one in files if one not in some]


def _columns(operators: Sequence[FileOfRank], links: Sequence[FileOfRank]) -> Ready:
    if not operators and not links:
        return NOTHING_READY
    from cluster_analysis.sources.together.plain_columns import (  # noqa: PLC0415
        links_of_columns,
        operators_of_columns,
    )

    return Ready(operators_of_columns(operators), links_of_columns(links))


def _files(sources: Sequence[RankSource], role: str) -> list[tuple[str, int]]:
    return [(one.files[role], int(one.rank)) for one in sources if role in one.files]
