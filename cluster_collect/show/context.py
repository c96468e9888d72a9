"""Facts for a result besides the hosts' answers, and the command that shows a failure by hand."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cluster_collect.faults import HostError
from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId
from cluster_run.said.chinese import Language

_SHOWN_BY_SSH = frozenset(one.failure for one in HostError.__subclasses__() if one.shown_by_ssh)


@dataclass(frozen=True)
class Surroundings:
    """What a summary knows besides the hosts' answers.

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
        return ssh_command(spec) if spec is not None and failure in _SHOWN_BY_SSH else ""


def ssh_command(spec: HostSpec) -> str:
    """Return the command line; empty for a host that is reached otherwise. It holds no secret."""
    if not spec.by_ssh:
        return ""
    options: Sequence[tuple[str, str | int | None]] = (
        ("-F", spec.ssh_config),
        ("-p", spec.port),
        ("-i", spec.identity_file),
        ("-o", spec.certificate_file and f"CertificateFile={spec.certificate_file}"),
        ("-o", spec.known_hosts and f"UserKnownHostsFile={spec.known_hosts}"),
        ("-J", spec.jump),
    )
    words = ["ssh"]
    for option, value in options:
        if value is not None:
            words += [option, str(value)]
    words.append(f"{spec.user}@{spec.address}" if spec.user else spec.address)
    if spec.become:
        words += [*spec.sudo_words, "true"]
    return shlex.join(words)
