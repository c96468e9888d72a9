"""The compiled reader of large files: built where there is a compiler, and left out where not.

`CLUSTER_PROFILER_PURE=1` leaves it out, for a wheel that every machine takes. `CLUSTER_PROFILER_URL` is the
address of the repository. All else is in pyproject.toml.
"""

import os
import re
from pathlib import Path

from setuptools import Extension, setup

COMPILED = Path("cluster_analysis/sources/compiled")
#: One binary for every CPython from this on.
LIMITED_API = "0x030A0000"


def extensions() -> list[Extension]:
    """Return what is to be compiled."""
    if os.environ.get("CLUSTER_PROFILER_PURE"):
        return []
    return [
        Extension(
            "cluster_analysis.sources.compiled._files",
            [str(path) for path in sorted(COMPILED.glob("*.c"))],
            depends=[str(path) for path in sorted(COMPILED.glob("*.h"))],
            define_macros=[("Py_LIMITED_API", LIMITED_API)],
            extra_compile_args=["-std=c11", "-O3", "-g0", "-fvisibility=hidden"],
            py_limited_api=True,
            # Without a compiler the same files are read by Python, more slowly.
            optional=True,
        )
    ]


def readme(url: str) -> str:
    """Return the README; with the repository's address its links to files lead there, wherever it is read."""
    text = Path("README.md").read_text("utf-8")
    if not url:
        return text
    text = re.sub(r"(!\[[^\]]*\]\()(?![a-z]+:|#)", rf"\g<1>{url}/raw/HEAD/", text)
    return re.sub(r"(?<!!)(\[[^\]]*\]\()(?![a-z]+:|#)", rf"\g<1>{url}/blob/HEAD/", text)


#: The address of the repository, as the site has it.
URL = os.environ.get("CLUSTER_PROFILER_URL", "").rstrip("/")
setup(
    ext_modules=extensions(),
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if extensions() else {},
    long_description=readme(URL),
    long_description_content_type="text/markdown",
    project_urls={"Repository": URL, "Changelog": f"{URL}/blob/HEAD/CHANGELOG.md"} if URL else {},
)
