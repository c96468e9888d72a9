"""Makes what a release consists of: sdist, wheels for both machines, an SBOM, checksums; checked by twine.

python -m tools.release DIRECTORY

Set CLUSTER_PROFILER_URL to the address of the repository: it becomes the URL of the project, and links of the
README lead there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from packaging.requirements import Requirement

from cluster_run.version import VERSION
from tools.bundle import MACHINES, ROOT, build_wheel, compiled_wheel, copy_of_project

SUMS = "SHA256SUMS"
SBOM = f"cluster-profiler-{VERSION}.cdx.json"
_REQUIREMENTS = ("collect.txt", "analysis.txt")


def build_sdist(directory: Path) -> Path:
    """Build the source distribution, which holds the tests and what they need."""
    code = f"from setuptools import build_meta; print(build_meta.build_sdist({str(directory)!r}))"
    command = [sys.executable, "-c", code]
    with tempfile.TemporaryDirectory() as scratch:
        copy = copy_of_project(Path(scratch) / "source")
        done = subprocess.run(command, cwd=copy, check=True, capture_output=True, text=True)  # noqa: S603
    return directory / done.stdout.split()[-1]


def requirements() -> list[Requirement]:
    """Return what all four commands need."""
    texts = ((ROOT / "requirements" / name).read_text() for name in _REQUIREMENTS)
    lines = (line.strip() for text in texts for line in text.splitlines())
    found = dict.fromkeys(line for line in lines if line and not line.startswith("#"))
    return sorted(map(Requirement, found), key=lambda one: one.name)


def sbom(needed: Iterable[Requirement]) -> str:
    """Return a CycloneDX document of what is needed: versions and licences as they are installed here."""
    components: list[dict[str, object]] = []
    for one in needed:
        try:
            known = metadata(one.name)
        except PackageNotFoundError:
            components.append({"type": "library", "name": one.name})
            continue
        licence = next((known[name] for name in ("License-Expression", "License") if name in known), "")
        component: dict[str, object] = {
            "type": "library",
            "name": one.name,
            "version": known["Version"],
            "purl": f"pkg:pypi/{one.name.lower()}@{known['Version']}",
        }
        if licence and "\n" not in licence:
            component["licenses"] = [{"license": {"name": licence}}]
        components.append(component)
    own = {"type": "application", "name": "cluster-profiler", "version": VERSION}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {**own, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
    }
    return json.dumps(document, indent=1) + "\n"


def checksums(directory: Path) -> str:
    """Return SHA-256 of each file, as `sha256sum -c` reads it."""
    files = sorted(path for path in directory.iterdir() if path.is_file() and path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def make_release(directory: Path) -> list[Path]:
    """Make all of it in a directory, which must not hold anything yet."""
    directory.mkdir(parents=True)
    build_sdist(directory)
    with tempfile.TemporaryDirectory() as scratch:
        wheels = [build_wheel(Path(scratch)), *(compiled_wheel(Path(scratch), one) for one in MACHINES)]
        for wheel in wheels:
            if wheel is not None:
                wheel.replace(directory / wheel.name)
    (directory / SBOM).write_text(sbom(requirements()), "utf-8")
    (directory / SUMS).write_text(checksums(directory), "utf-8")
    return sorted(directory.iterdir())


def main() -> None:
    """Make the release and have twine check it."""
    parser = argparse.ArgumentParser(description="Makes a release.")
    parser.add_argument("directory", type=Path)
    made = make_release(parser.parse_args().directory / f"release-{VERSION}")
    packages = [str(one) for one in made if one.suffix in (".gz", ".whl")]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *packages], check=True)  # noqa: S603
    print("\n".join(map(str, made)))


if __name__ == "__main__":
    main()
