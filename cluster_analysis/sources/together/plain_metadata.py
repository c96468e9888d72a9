"""profiler_metadata.json of several ranks: what each says of itself, and all their variables in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from msgspec import Struct, field

from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.sources.reading import path_of
from cluster_analysis.sources.text.environment_json import Variables, environment_of_ranks, variables_of
from cluster_analysis.sources.text.json_text import read_bytes
from cluster_analysis.sources.text.metadata_json import parse_metadata
from cluster_analysis.sources.together.plain_text import FileOfRank
from cluster_analysis.sources.together.whole import Whole, whole
from cluster_analysis.tables.model import RankMetadata


class PlainMetadata(Struct, frozen=True):
    """Metadata by path; ENVIRONMENT of those files that record variables, and the table of all of them."""

    metadata: Mapping[str, RankMetadata] = field(default_factory=dict)
    environment: Mapping[str, pa.Table] = field(default_factory=dict)
    wholes: tuple[Whole, ...] = ()


def plain_metadata(files: Sequence[FileOfRank]) -> PlainMetadata:
    """Return what is plain of these files, each of which is read once for both."""
    metadata: dict[str, RankMetadata] = {}
    variables: dict[str, tuple[int, Variables]] = {}
    for path, rank in files:
        try:
            content = read_bytes(path_of(path))
            metadata[path] = parse_metadata(content)
            own = variables_of(content)
        except (BadFileError, ValueError, TypeError, ArithmeticError, LookupError):
            continue
        if own:
            variables[path] = rank, own
    if not variables:
        return PlainMetadata(metadata)
    table = whole(environment_of_ranks(variables.values()), [len(own) for _, own in variables.values()])
    return PlainMetadata(metadata, dict(zip(variables, table.parts, strict=True)), (table,))
