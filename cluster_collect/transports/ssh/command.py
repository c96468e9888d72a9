"""The `ssh` command that reaches a host the way the collector does: to be tried by hand."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cluster_collect.spec import HostSpec
from cluster_collect.transports.become import sudo_words

#: Failures that trying by hand can explain.
TRIED_BY_HAND = frozenset(
    {"unreachable", "lost-connection", "stalled", "host-key", "login", "ssh-setup", "no-shell", "become"}
)


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
        words += [*sudo_words(spec), "true"]
    return shlex.join(words)
