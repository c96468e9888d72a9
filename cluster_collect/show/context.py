"""What the results of a call say beside the hosts' answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cluster_collect.spec import HostSpec
from cluster_collect.transports.ssh.command import TRIED_BY_HAND, ssh_command
from cluster_run.ids import HostId
from cluster_run.said.chinese import Language


@dataclass(frozen=True)
class Surroundings:
    """What a summary knows beside the hosts' answers.

    `free_bytes` is the space here, None where unknown; `missing` says which ranks have no host, and
    `absent_ranks` which of those that were asked for have no capture. Where `are_reduced` hosts send columns
    of their large files, so that sizes on the hosts are more than what comes.
    """

    run: Path
    seconds: float = 0.0
    free_bytes: int | None = None
    min_free_bytes: int = 0
    specs: Mapping[HostId, HostSpec] = field(default_factory=dict)
    missing: str = ""
    absent_ranks: str = ""
    warnings: tuple[str, ...] = ()
    are_reduced: bool = False
    language: Language = "en"

    @property
    def lacks_something(self) -> bool:
        """Whether a rank is missing, however well the hosts did."""
        return bool(self.missing or self.absent_ranks)

    def command_to_try(self, host: HostId, failure: str) -> str:
        """Return the command that shows a failure by hand; empty where none does."""
        spec = self.specs.get(host)
        return ssh_command(spec) if spec is not None and failure in TRIED_BY_HAND else ""
