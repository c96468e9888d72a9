"""Gathers the wheels of the project and of what it needs, for clusters without network.

python -m tools.bundle DIRECTORY [--machine x86_64]… [--python 3.11]… [--extras paramiko,slurm]

Makes DIRECTORY/bundle-VERSION with `wheels/`, `requirements/collect.txt` and `INSTALL.txt`. One folder serves
all machines: pip on the target takes the wheels that fit.
"""

from __future__ import annotations

import argparse
import email.parser
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

from cluster_run.version import VERSION

ROOT = Path(__file__).parent.parent
MACHINES = ("x86_64", "aarch64")
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
EXTRAS = "paramiko,slurm"
# Minor versions of glibc 2 that wheels name. Newer Arrow needs 2.28 (openEuler 20.03, Debian 10, RHEL 8).
_GLIBC_MINORS = (28, 27, 26, 24, 17)
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")

_INSTALL = """\
cluster-profiler {version}, with all that it needs.
For Linux on {machines}, CPython {pythons}, glibc 2.28 or newer.
Its own wheel is here for each of these machines, with a compiled reader, and once for all others, without it.
Run these lines in this directory, in an environment of its own (python3 -m venv ~/cluster-profiler).

All four commands:
    pip install --no-index --find-links wheels cluster-profiler

With what is extra here ({extras}):
    pip install --no-index --find-links wheels 'cluster-profiler[EXTRA]'

cluster-collect alone, for a login node:
    pip install --no-index --find-links wheels -r requirements/collect.txt
    pip install --no-index --find-links wheels --no-deps cluster-profiler
"""


@dataclass(frozen=True)
class Target:
    """A kind of machine that the bundle is for, such as aarch64 with CPython 3.10."""

    machine: str
    python: str

    @property
    def platforms(self) -> list[str]:
        """The platform tags of wheels that run there, the preferred first."""
        return [
            *(f"manylinux_2_{minor}_{self.machine}" for minor in _GLIBC_MINORS),
            f"manylinux2014_{self.machine}",
            f"linux_{self.machine}",
        ]

    @property
    def tags(self) -> frozenset[Tag]:
        """All tags of wheels that run there."""
        major, minor = map(int, self.python.split("."))
        interpreter = f"cp{major}{minor}"
        return frozenset(
            [
                *cpython_tags((major, minor), platforms=self.platforms),
                *compatible_tags((major, minor), interpreter, self.platforms),
            ]
        )

    @property
    def markers(self) -> dict[str, str]:
        """What the markers of requirements (PEP 508) are evaluated with."""
        return {
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "platform_machine": self.machine,
            "platform_system": "Linux",
            "sys_platform": "linux",
            "os_name": "posix",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }


def make_bundle(directory: Path, targets: list[Target], extras: str = EXTRAS) -> Path:
    """Make the bundle anew and return its directory. CalledProcessError: pip failed, and said why."""
    bundle = directory / f"bundle-{VERSION}"
    shutil.rmtree(bundle, ignore_errors=True)
    wheels = bundle / "wheels"
    wheels.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        own = build_wheel(Path(temporary))
        shutil.copy(own, wheels)
        for machine in dict.fromkeys(target.machine for target in targets):
            compiled = compiled_wheel(Path(temporary), machine)
            if compiled is None:
                print(f"bundle: no compiler for {machine}: ranks are read in Python there", file=sys.stderr)
            else:
                shutil.copy(compiled, wheels)
        for target in targets:
            _download(target, f"{own}[{extras}]" if extras else str(own), wheels, extras)
    (bundle / "requirements").mkdir()
    shutil.copy(ROOT / "requirements" / "collect.txt", bundle / "requirements")
    text = _INSTALL.format(
        version=VERSION,
        machines=" and ".join(dict.fromkeys(target.machine for target in targets)),
        pythons=", ".join(dict.fromkeys(target.python for target in targets)),
        extras=extras.replace(",", ", ") or "(none)",
    )
    (bundle / "INSTALL.txt").write_text(text)
    return bundle


def build_wheel(directory: Path) -> Path:
    """Build the project's own wheel for every machine into `directory`, without the compiled reader."""
    _pip(
        "wheel",
        "--no-deps",
        "--wheel-dir",
        str(directory),
        str(copy_of_project(directory / "pure", "tests", "docs")),
        CLUSTER_PROFILER_PURE="1",
    )
    return next(directory.glob("*-none-any.whl"))


def compiled_wheel(directory: Path, machine: str) -> Path | None:
    """Build the wheel with the compiled reader for `machine`; None where nothing compiles for it."""
    compiler = _compiler(machine)
    if compiler is None:
        return None
    built = directory / machine
    environment = {
        "CC": compiler,
        "LDSHARED": f"{compiler} -shared",
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
    }
    source = copy_of_project(directory / f"source-{machine}", "tests", "docs")
    _pip("wheel", "--no-deps", "--wheel-dir", str(built), str(source), **environment)
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        if not any(name.endswith(".so") for name in archive.namelist()):
            return None
    return _named_after_its_library(wheel)


def _named_after_its_library(wheel: Path) -> Path:
    """Name the oldest C library that a wheel runs with, as its symbols say: `manylinux_2_17_x86_64`."""
    if find_spec("auditwheel") is None or find_spec("wheel") is None:
        return wheel
    shown = _python("auditwheel", "show", str(wheel))
    found = re.search(r'following\s+platform\s+tag:\s+"(manylinux_\d+_\d+_\w+)"', shown)
    if found is None:
        return wheel
    name = _python("wheel", "tags", "--remove", f"--platform-tag={found.group(1)}", str(wheel))
    return wheel.with_name(name.split()[-1])


def _python(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603


def _compiler(machine: str) -> str | None:
    """Return a C compiler for `machine`: zig for any, else the system's own for its own machine."""
    if find_spec("ziglang") is not None:
        # Isolated: pip hides what is installed from the processes of a build.
        return f"{sys.executable} -I -m ziglang cc -target {machine}-linux-gnu.2.{_GLIBC_MINORS[-1]}"
    names = ["cc", "gcc"] if machine == platform.machine() else [f"{machine}-linux-gnu-gcc"]
    return next((name for name in names if shutil.which(name)), None)


def copy_of_project(copy: Path, *left_out: str) -> Path:
    """Copy the project to build there: a build writes next to the sources, where others may read."""
    made = ("__pycache__", ".*", "build", "dist", "*.egg-info", "*.so", "demo-out")
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*made, *left_out))
    return copy


def _download(target: Target, own: str, wheels: Path, extras: str) -> None:
    """Download until nothing is missing: pip reads markers for the Python it runs on, not for the target."""
    wanted: set[str] = set()
    while True:
        platforms = [word for tag in target.platforms for word in ("--platform", tag)]
        _pip(
            *("download", "--only-binary=:all:", "--implementation=cp", f"--python-version={target.python}"),
            *(*platforms, "--dest", str(wheels), own, *sorted(wanted)),
        )
        missing = missing_requirements(wheels, target, extras)
        if not missing:
            return
        if missing <= wanted:
            raise SystemExit(f"bundle: no wheel for {target} of: {', '.join(sorted(missing))}")
        wanted |= missing


def missing_requirements(wheels: Path, target: Target, extras: str = "") -> set[str]:
    """Return what the project needs on `target` and the folder does not hold, such as `{"zipp>=3.20"}`."""
    fitting: dict[str, list[Path]] = {}
    for wheel in sorted(wheels.glob("*.whl")):
        name, _, _, tags = parse_wheel_filename(wheel.name)
        if tags & target.tags:
            fitting.setdefault(name, []).append(wheel)
    missing: set[str] = set()
    seen: set[tuple[Path, str]] = set()
    todo = [(wheel, extra) for wheel in fitting["cluster-profiler"] for extra in ("", *extras.split(","))]
    while todo:
        wheel, extra = todo.pop()
        if (wheel, extra) in seen:
            continue
        seen.add((wheel, extra))
        for text in _requirements(wheel):
            requirement = Requirement(text)
            if requirement.marker and not requirement.marker.evaluate({**target.markers, "extra": extra}):
                continue
            found = [
                candidate
                for candidate in fitting.get(canonicalize_name(requirement.name), [])
                if requirement.specifier.contains(parse_wheel_filename(candidate.name)[1])
            ]
            if not found:
                requirement.marker = None
                missing.add(str(requirement))
            todo.extend((one, part) for one in found for part in ("", *requirement.extras))
    return missing


def _requirements(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.parser.BytesParser().parsebytes(archive.read(name), headersonly=True)
    return metadata.get_all("Requires-Dist") or []


def _pip(*arguments: str, **environment: str) -> None:
    subprocess.run([*_PIP, *arguments], env={**os.environ, **environment}, check=True)  # noqa: S603


def main() -> None:
    """Make the bundle and print its size."""
    parser = argparse.ArgumentParser(description="Gather wheels for clusters without network.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--machine", action="append", choices=MACHINES)
    parser.add_argument("--python", action="append", choices=PYTHONS)
    parser.add_argument("--extras", default=EXTRAS)
    options = parser.parse_args()
    targets = [
        Target(machine, python)
        for machine in options.machine or MACHINES
        for python in options.python or PYTHONS
    ]
    try:
        bundle = make_bundle(options.directory, targets, options.extras)
    except subprocess.CalledProcessError as error:
        sys.exit(f"bundle: pip failed ({error.returncode}); what it said is above")
    sizes = [wheel.stat().st_size for wheel in bundle.glob("wheels/*.whl")]
    print(f"{bundle}: {len(sizes)} wheels, {sum(sizes) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
