"""Where an extra is not installed, people are told which, and nothing else is lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cluster_simulate.cli import main as simulate
from tests.commands import ran

_JOB = ("--tp", "1", "--pp", "1", "--dp", "2", "--steps", "3", "--dated", "1000000000", "-q")


def _without(library: str, package: str, *given: str) -> str:
    """Return what a command says where a library cannot be imported."""
    main = f"import sys\nsys.modules[{library!r}] = None\nfrom {package}.cli import main\n"
    ended = ran([sys.executable, "-c", f"{main}sys.exit(main(sys.argv[1:]))", *given], timeout=120)
    return ended.stdout + ended.stderr


@pytest.mark.parametrize(("package", "given"), [("cluster_fleet", ["status"]), ("cluster_act", ["--log"])])
def test_a_command_that_needs_an_extra_names_it(package: str, given: list[str]) -> None:
    said = _without("sqlalchemy", package, *given, "--db", "fleet.db")
    assert "sqlalchemy is not installed (pip install 'cluster-profiler[fleet]')" in said


def test_a_run_is_judged_though_the_fleet_cannot_be_asked_for_want_of_an_extra(tmp_path: Path) -> None:
    simulate([str(tmp_path / "run"), *_JOB])
    said = _without("sqlalchemy", "cluster_analysis", str(tmp_path / "run"), "--no-output", "--fleet", "f.db")
    assert "2 ranks and 3 steps" in said
    assert (
        "sqlalchemy is not installed (pip install 'cluster-profiler[fleet]'): nothing is known of"
        in " ".join(said.split())
    )


def test_a_host_that_needs_an_extra_names_it_and_the_other_hosts_go_on(tmp_path: Path) -> None:
    simulate([str(tmp_path / "run"), *_JOB])
    data = tmp_path / "run" / "cluster_profiler" / "1" / "profiler"
    (tmp_path / "hosts.yaml").write_text(
        f"version: 1\nhosts:\n  - {{local: {data}, server_id: near}}\n"
        f"  - {{address: 127.0.0.1, transport: paramiko, profiler_root: {data}}}\n"
    )
    given = ("--inventory", str(tmp_path / "hosts.yaml"), "--check")
    said = " ".join(_without("paramiko", "cluster_collect", *given).split())
    assert "paramiko is not installed → pip install 'cluster-profiler[paramiko]'" in said
    assert "1 of 2 hosts ready" in said
