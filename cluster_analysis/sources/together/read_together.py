"""The files of several ranks, made into tables together: a call into Arrow takes longer than a few rows.

What is not plain (damage, another form, anything of which a reader would have to tell) is left to whoever
reads the ranks one by one, and so are steps that are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cluster_analysis.sources.columns.place import is_here
from cluster_analysis.sources.together.plain_columns import links_of_columns, operators_of_columns
from cluster_analysis.sources.together.plain_databases import (
    links_of_databases,
    operators_of_databases,
    steps_of_databases,
)
from cluster_analysis.sources.together.plain_kernels import kernels_of_databases
from cluster_analysis.sources.together.plain_peers import peers_of_databases
from cluster_analysis.sources.together.plain_text import (
    CSV_ROLES,
    STEP_TRACE,
    plain_csv,
    plain_links,
    plain_operators,
)
from cluster_analysis.sources.together.ready import Ready
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
    communications = operators_of_columns([one for one in operators if not is_here(one[0])])
    found_links = links_of_columns([one for one in links if not is_here(one[0])])
    plain, all_operators = plain_operators(
        [one for one in operators if is_here(one[0])], with_spans=with_spans
    )
    plain_of_links, all_links = plain_links([one for one in links if is_here(one[0])])
    communications |= plain
    found_links |= plain_of_links
    small |= steps_of_databases(_files(sources, "analysis_db", STEP_TRACE))
    communications |= operators_of_databases(_files(sources, "analysis_db", "communication"))
    found_links |= links_of_databases(_files(sources, "analysis_db", "matrix"))
    of_tasks = kernels_of_databases(_files(sources, "profiler_db", "kernel_details"))
    of_tasks |= peers_of_databases(_files(sources, "profiler_db"))
    wholes += (*all_operators, *all_links)
    return Ready(communications, found_links, small, devices, of_tasks, tuple(wholes))


def _files(sources: Sequence[RankSource], role: str, better: str = "") -> list[tuple[str, int]]:
    """Return the files of a role, of those ranks that have none of a better role."""
    return [
        (one.files[role], int(one.rank)) for one in sources if role in one.files and better not in one.files
    ]
