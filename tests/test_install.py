"""A bundle installs without network into an empty environment, and the four commands work from there."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from cluster_simulate.cli import main as simulate
from tools.bundle import ROOT, Target, compiled_wheel, make_bundle, missing_requirements

HERE = Target(platform.machine(), f"{sys.version_info.major}.{sys.version_info.minor}")
COMMANDS = ("cluster-collect", "cluster-analyse", "cluster-simulate", "cluster-hook")
JOB = ("--tp", "2", "--pp", "2", "--dp", "2", "--steps", "3", "--ranks-per-host", "8")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def a_wheel(directory: Path, name: str, *requires: str) -> None:
    """Write a wheel that says what it needs: `name` as in `six-1.0-py3-none-any`."""
    distribution, version = name.split("-")[:2]
    lines = [f"Name: {distribution}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    with zipfile.ZipFile(directory / f"{name}.whl", "w") as archive:
        archive.writestr(f"{distribution}-{version}.dist-info/METADATA", "\n".join(lines) + "\n")


def test_what_only_an_older_python_or_an_extra_needs_is_missed_there_alone(tmp_path: Path) -> None:
    a_wheel(tmp_path, "cluster_profiler-1.0-py3-none-any", "dask>=2", 'six; extra == "slurm"')
    a_wheel(tmp_path, "dask-2.5-py3-none-any", 'zipp>=3; python_version < "3.12"')
    a_wheel(tmp_path, "zipp-2.0-py3-none-any")
    assert missing_requirements(tmp_path, Target("x86_64", "3.10")) == {"zipp>=3"}
    assert missing_requirements(tmp_path, Target("x86_64", "3.12")) == set()
    assert missing_requirements(tmp_path, Target("x86_64", "3.12"), "slurm") == {"six"}


def test_a_wheel_for_another_machine_or_python_does_not_count(tmp_path: Path) -> None:
    a_wheel(tmp_path, "cluster_profiler-1.0-py3-none-any", "numpy")
    a_wheel(tmp_path, "numpy-2.0-cp310-cp310-manylinux_2_17_aarch64.manylinux2014_aarch64")
    assert missing_requirements(tmp_path, Target("aarch64", "3.10")) == set()
    assert missing_requirements(tmp_path, Target("aarch64", "3.11")) == {"numpy"}
    assert missing_requirements(tmp_path, Target("x86_64", "3.10")) == {"numpy"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    alone = ("--no-deps", "--no-cache-dir", "--dest", tmp_path_factory.mktemp("probe"))
    probe = [*PIP, "download", *alone, "six"]
    asked = subprocess.run(probe, capture_output=True, text=True, timeout=150, check=False)
    if asked.returncode:
        pytest.skip(f"pip reaches no package index here: {asked.stderr.strip().splitlines()[-1]}")
    with pytest.MonkeyPatch.context() as patched:
        # With the setuptools that are here (0 means that): pip would install others for each of two wheels.
        patched.setenv("PIP_NO_BUILD_ISOLATION", "0")
        return make_bundle(tmp_path_factory.mktemp("dist"), [HERE], extras="")


def install(programs: Path, bundle: Path, line: str) -> None:
    """Run a line of `pip install` in the bundle, for the environment with these programs."""
    offline = ("install", "--no-compile", "--no-index", "--find-links", "wheels")
    argv = [*PIP, "--python", programs / "python", *offline, *line.split()]
    subprocess.run(argv, cwd=bundle, timeout=150, check=True)


def run(directory: Path, *argv: Path | str) -> str:
    """Run a command of the environment in `directory`, far from the checkout, and return its stdout."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(directory), "LANG": "C.UTF-8"}
    ended = subprocess.run(
        argv, cwd=directory, env=environment, capture_output=True, text=True, timeout=150, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def n_files_to_collect(programs: Path, directory: Path) -> int:
    """Ask cluster-collect what it would fetch from `run1`, read as a shared file system."""
    inventory = "version: 1\nhosts:\n  - {local: run1, server_id: node0}\n"
    (directory / "hosts.yaml").write_text(inventory)
    argv = ("--inventory", "hosts.yaml", "--output", "new", "--dry-run", "--json")
    planned = json.loads(run(directory, programs / "cluster-collect", *argv))
    assert planned["schema"] == "cluster-collect/1"
    return int(planned["hosts"][0]["n_files"])


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_an_empty_environment_collects_without_dask_and_has_four_working_commands_once_all_is_installed(
    bundle: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    programs = tmp_path / "venv" / "bin"
    install(programs, bundle, "-r requirements/collect.txt")
    install(programs, bundle, "--no-deps cluster-profiler")
    assert not list(tmp_path.glob("venv/lib/*/site-packages/dask"))
    assert simulate([str(tmp_path / "run1"), "-q", *JOB]) == 0
    assert n_files_to_collect(programs, tmp_path) > 0
    assert "usage:" in run(tmp_path, programs / "cluster-hook", "--help")

    install(programs, bundle, "cluster-profiler")
    assert str(ROOT) not in run(tmp_path, programs / "python", "-c", "import sys; print(sys.path)")
    for command in COMMANDS:
        assert "usage:" in run(tmp_path, programs / command, "--help")
    ask = "from cluster_analysis.sources.compiled import reader; print(reader.in_use())"
    is_compiled = "compiled" in run(tmp_path, programs / "python", "-c", ask)
    assert is_compiled == any("abi3" in wheel.name for wheel in bundle.glob("wheels/cluster_profiler-*.whl"))

    run(tmp_path, programs / "cluster-simulate", "run2", *JOB)
    run(tmp_path, programs / "cluster-analyse", "run2", "--output", "out")
    assert json.loads((tmp_path / "out" / "findings.json").read_text())["schema"] == "cluster-findings/1"
    assert (tmp_path / "out" / "report.html").stat().st_size


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("machine", "elf_number"), [("x86_64", 62), ("aarch64", 183)])
def test_one_wheel_a_machine_has_the_compiled_reader_for_every_python(
    bundle: Path, tmp_path: Path, machine: str, elf_number: int
) -> None:
    if machine == HERE.machine:
        wheel = next(bundle.glob(f"wheels/cluster_profiler-*_{machine}.whl"), None)
    else:
        wheel = compiled_wheel(tmp_path, machine)
    if wheel is None:
        pytest.skip(f"no compiler for {machine} here")
    assert "-cp310-abi3-" in wheel.name
    assert wheel.name.endswith(f"linux_{machine}.whl") or re.search(rf"manylinux_2_\d+_{machine}", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        header = archive.read(name)[:20]
    assert header[:4] == b"\x7fELF"
    assert int.from_bytes(header[18:20], "little") == elf_number


@pytest.mark.slow
def test_the_install_lines_of_the_bundle_are_those_that_were_run(bundle: Path) -> None:
    text = (bundle / "INSTALL.txt").read_text()
    assert "pip install --no-index --find-links wheels cluster-profiler\n" in text
    assert "pip install --no-index --find-links wheels --no-deps cluster-profiler\n" in text
    assert "pip install --no-index --find-links wheels -r requirements/collect.txt\n" in text
    assert HERE.machine in text
    assert HERE.python in text
