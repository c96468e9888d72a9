"""What was read of several ranks together, for whoever reads them one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
from msgspec import Struct, field

from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.reading import OrRead
from cluster_analysis.sources.text.communication_json import CommunicationTables
from cluster_analysis.sources.together.whole import Whole
from cluster_analysis.tables.model import RankMetadata

_ReadTable = Callable[[Path, Remark], pa.Table | None]


class Ready(Struct, frozen=True):
    """What was read already, by path: operators, links, tables of small files, and metadata.

    `wholes` are the tables that pieces of these are of. `devices` has the device that a file of step times
    says it is of, None where it names none or several.
    """

    communications: Mapping[str, CommunicationTables] = field(default_factory=dict)
    links: Mapping[str, pa.Table] = field(default_factory=dict)
    small: Mapping[str, pa.Table] = field(default_factory=dict)
    devices: Mapping[str, int | None] = field(default_factory=dict)
    metadata: Mapping[str, RankMetadata] = field(default_factory=dict)
    wholes: tuple[Whole, ...] = ()

    def or_read(self, read: _ReadTable) -> OrRead[pa.Table]:
        """Return what gives the table of a small file: the one that is ready, or else what `read` gives."""
        return OrRead(self.small, read)

    def or_communication(
        self, read: Callable[[Path, Remark], CommunicationTables | None]
    ) -> OrRead[CommunicationTables]:
        """Return the same of communication files."""
        return OrRead(self.communications, read)

    def or_links(self, read: _ReadTable) -> OrRead[pa.Table]:
        """Return the same of links."""
        return OrRead(self.links, read)

    def or_metadata(self, read: Callable[[Path, Remark], RankMetadata | None]) -> OrRead[RankMetadata]:
        """Return the same of metadata."""
        return OrRead(self.metadata, read)


NOTHING_READY = Ready()
