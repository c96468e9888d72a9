"""A release: the sdist builds and holds its tests, links survive, checksums and SBOM are right."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from cluster_run.version import VERSION
from tools.release import SUMS, build_sdist, checksums, requirements, sbom

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, built from a copy: a build leaves traces."""
    return build_sdist(tmp_path_factory.mktemp("sdist"))


def names_in(sdist: Path) -> set[str]:
    """The files of a source distribution, below its own directory."""
    with tarfile.open(sdist) as archive:
        return {one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()}


@pytest.mark.slow
def test_the_sdist_holds_sources_tests_and_what_they_need(sdist: Path) -> None:
    names = names_in(sdist)
    assert sdist.name == f"cluster_profiler-{VERSION}.tar.gz"
    wanted = {
        *("Makefile", "README.md", "CHANGELOG.md", "pyproject.toml", "requirements/collect.txt"),
        *("tests/test_release.py", "tools/setup.sh", "tools/system_packages.sh", "docs/findings.md"),
        *("demo/__main__.py", "deploy/kubernetes/chart/Chart.yaml", "tests/gold/reports/ticket-healthy.md"),
        *("mkdocs.yml", "cluster_run/man/cluster-analyse.1"),
    }
    wanted |= {str(path.relative_to(ROOT)) for path in ROOT.glob("cluster_analysis/sources/compiled/*.[ch]")}
    assert wanted <= names
    assert not [name for name in names if name.endswith((".pyc", ".so"))]


@pytest.mark.slow
def test_a_wheel_built_from_the_sdist_has_the_metadata_and_the_links(sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = next(tmp_path.iterdir())
    code = "from setuptools import build_meta; build_meta.build_wheel('out')"
    url = "https://git.example/ai/cluster-profiler"
    environment = {**os.environ, "CLUSTER_PROFILER_URL": url, "CLUSTER_PROFILER_PURE": "1"}
    (source / "out").mkdir()
    subprocess.run([sys.executable, "-c", code], cwd=source, env=environment, check=True, capture_output=True)
    (wheel,) = (source / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"cluster_profiler-{VERSION}.dist-info/METADATA").decode()
    assert "Author: the cluster-profiler developers" in text
    assert f"Project-URL: Repository, {url}" in text
    assert "Classifier: Typing :: Typed" in text
    assert "Requires-Dist: dask" in text
    relative = re.findall(r"\]\((?![a-z]+:|#)([^)]+)\)", text)
    assert relative == []
    assert f"({url}/blob/HEAD/docs/findings.md)" in text
    assert f"({url}/raw/HEAD/docs/images/report.png)" in text


def test_checksums_are_those_that_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"wheel")
    (tmp_path / SUMS).write_text("old")
    assert checksums(tmp_path) == f"{hashlib.sha256(b'wheel').hexdigest()}  a.whl\n"


def test_the_sbom_names_each_requirement_with_its_version() -> None:
    found = json.loads(sbom(requirements()))
    assert found["bomFormat"] == "CycloneDX"
    names = {one["name"] for one in found["components"]}
    assert {"dask", "asyncssh", "msgspec", "pyarrow"} <= names
    assert all(one["purl"].endswith(one["version"]) for one in found["components"])
