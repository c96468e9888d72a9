"""What every reader of an inventory makes: entries as written, before node sets are expanded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster_collect.inventory.keys import Entry
from cluster_collect.inventory.located import Located


@dataclass(frozen=True)
class Draft:
    """An inventory as written.

    `groups` hold node sets; `aliases` server ids by other names of hosts; `passwords` those of an r1.x
    account file.
    """

    entries: tuple[Entry, ...]
    defaults: Entry
    groups: Mapping[str, Located] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    rank_table: str | None = None
    output: str | None = None
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
