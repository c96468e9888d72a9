"""Each test has a lab of its own: it changes what is known of hosts, and who may log in."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.sshd import SshLab


@pytest.fixture
def lab(own_lab: SshLab) -> SshLab:
    return own_lab


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any of the developer's own keys, and no agent."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The client's configuration of SSH, empty so far."""
    (tmp_path / "ssh_config").touch()
    return tmp_path / "ssh_config"
