"""All that is made of the databases of several ranks together."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_analysis.sources.together.plain_databases import (
    links_of_databases,
    operators_of_databases,
    steps_of_databases,
)
from cluster_analysis.sources.together.plain_kernels import kernels_of_databases
from cluster_analysis.sources.together.plain_peers import peers_of_databases
from cluster_analysis.sources.together.plain_text import FileOfRank
from cluster_analysis.sources.together.ready import Ready

_Files = Sequence[FileOfRank]


def ready_of_databases(
    steps: _Files, communications: _Files, links: _Files, kernels: _Files, peers: _Files
) -> Ready:
    """Return what is plain of databases: of each the paths of those that are to be asked for it."""
    small, of_steps = steps_of_databases(steps)
    operators, of_operators = operators_of_databases(communications)
    matrices, of_links = links_of_databases(links)
    of_tasks = kernels_of_databases(kernels)
    of_tasks |= peers_of_databases(peers)
    wholes = (*of_steps, *of_operators, *of_links)
    return Ready(operators, matrices, small, of_tasks=of_tasks, wholes=wholes)
