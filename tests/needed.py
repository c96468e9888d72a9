"""What some tests need and a machine may lack; `tools/system_packages.sh` installs it."""

from __future__ import annotations

import pytest

from demo.sshd import find_sshd

_NO_SSHD = "no sshd on this machine: install openssh-server"

needs_sshd = pytest.mark.skipif(find_sshd() is None, reason=_NO_SSHD)


def need_sshd() -> None:
    """Skip a test, or all that use a fixture, where there is no sshd."""
    if find_sshd() is None:
        pytest.skip(_NO_SSHD)
