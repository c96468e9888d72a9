"""Settings of the client's configuration that are not honoured are named, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from cluster_collect.transports.ignored_settings import ignored_settings
from cluster_run.ids import HostId, ServerId


def spec_of(config: Path, address: str = "node1", transport: str = "asyncssh") -> HostSpec:
    return HostSpec(HostId("1"), ServerId("s"), address=address, ssh_config=str(config), transport=transport)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


def test_a_setting_that_is_not_honoured_is_named_with_its_line_and_what_happens_instead(config: Path) -> None:
    config.write_text("User me\n\nHost *\n  StrictHostKeyChecking=no\n  ControlPath ~/.ssh/%C\n")
    assert ignored_settings([spec_of(config)]) == (
        f"{config}:4: StrictHostKeyChecking is not honoured: an unknown host key is refused unless "
        "--accept-new-host-keys, a changed one always",
        f"{config}:5: ControlPath is not honoured: every host gets a connection of its own",
    )


@pytest.mark.parametrize(
    "text",
    [
        "User me\nPort 7\nProxyJump gate\nIdentityFile ~/.ssh/k\nCiphers aes256-ctr\nUserKnownHostsFile x",
        "StrictHostKeyChecking ask",
        "StrictHostKeyChecking yes\nControlMaster no\nControlPath none",
        "# StrictHostKeyChecking no",
        "Host other\n  StrictHostKeyChecking no",
        "Host * !node1\n  ControlPath /x",
        'an "unclosed quote',
    ],
)
def test_what_is_honoured_harmless_or_for_other_hosts_is_not_named(config: Path, text: str) -> None:
    config.write_text(text)
    assert ignored_settings([spec_of(config)]) == ()


@pytest.mark.parametrize("criterion", ["final", "canonical"])
def test_a_second_reading_of_the_configuration_is_named(config: Path, criterion: str) -> None:
    config.write_text(f"Match {criterion} host *.example\n  IdentityFile ~/.ssh/other\n")
    (warning,) = ignored_settings([spec_of(config)])
    assert warning.startswith(f"{config}:1: Match {criterion} is not honoured: ")


def test_it_is_named_once_for_many_hosts(config: Path) -> None:
    config.write_text("ControlMaster auto\n")
    assert len(ignored_settings([spec_of(config, f"node{number}") for number in range(9)])) == 1


def test_included_files_count(config: Path, tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("VerifyHostKeyDNS yes\n")
    config.write_text(f"Host node*\n  Include '{tmp_path}/*.conf'\n")
    (warning,) = ignored_settings([spec_of(config)])
    assert warning.startswith(f"{tmp_path}/more.conf:1: VerifyHostKeyDNS is not honoured")
    assert ignored_settings([spec_of(config, "other")]) == ()


def test_files_that_include_themselves_end(config: Path) -> None:
    config.write_text(f"Include {config}\nControlMaster auto\n")
    assert len(ignored_settings([spec_of(config)])) == 1


@pytest.mark.parametrize(("transport", "n_warnings"), [("asyncssh", 0), ("paramiko", 2)])
def test_paramiko_honours_less(config: Path, transport: str, n_warnings: int) -> None:
    config.write_text("ProxyCommand nc %h %p\nCiphers aes256-ctr\n")
    assert len(ignored_settings([spec_of(config, transport=transport)])) == n_warnings


def test_hosts_of_a_shared_file_system_read_no_configuration(config: Path) -> None:
    config.write_text("ControlMaster auto\n")
    assert (
        ignored_settings(
            [HostSpec(HostId("1"), ServerId("s"), local="/x", transport="local", ssh_config=str(config))]
        )
        == ()
    )
