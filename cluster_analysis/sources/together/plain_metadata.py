"""profiler_metadata.json of several ranks: what each says of itself, and all their variables in one table."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_analysis.sources.reading import path_of
from cluster_analysis.sources.text.environment_json import Variables, environment_of_ranks, variables_of
from cluster_analysis.sources.text.json_text import read_bytes
from cluster_analysis.sources.text.metadata_json import parse_metadata
from cluster_analysis.sources.together.refused import FileOfRank
from cluster_analysis.tables.model import RankMetadata
from cluster_analysis.tables.ranks_tables import Pieces


def plain_metadata(files: Sequence[FileOfRank], n_ranks: int) -> tuple[list[RankMetadata], Pieces]:
    """Return what each rank says of itself, and ENVIRONMENT of those that record variables.

    Each file is read once for both. Without files nothing is known of `n_ranks` ranks.

    Raises:
        BadFileError: a file is no such file.
    """
    metadata: list[RankMetadata] = []
    variables: list[tuple[int, Variables]] = []
    for path, rank in files:
        content = read_bytes(path_of(path))
        metadata.append(parse_metadata(content))
        own = variables_of(content)
        if own:
            variables.append((rank, own))
    environment = (environment_of_ranks(variables),) if variables else ()
    return metadata or [RankMetadata()] * n_ranks, environment
