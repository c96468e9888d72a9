from __future__ import annotations

from cluster_analysis.sources.rank import read_ranks
from cluster_analysis.tables.model import RankMetadata, RankSource, Selection
from cluster_analysis.tables.rank_tables import RankTables


def read_rank(source: RankSource, selection: Selection | None = None) -> RankTables:
    """One rank by itself, with all that a reader can give."""
    return read_ranks([source], None if selection is None else selection.steps, with_spans=True)


def metadata_of(tables: RankTables) -> RankMetadata:
    """What the only rank says of itself."""
    (metadata,) = tables.metadata.values()
    return metadata
