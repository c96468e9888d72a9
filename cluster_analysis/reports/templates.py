"""The page's templates, compiled once. The only module that knows jinja2.

Compiling them takes a tenth of a second. What comes of it is kept where Python keeps its own compiled
modules, if that may be written, and is only taken for the very text that it was made of.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
from importlib.util import cache_from_source
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket

from cluster_run.said.line_breaks import kept_together


def templates() -> jinja2.Environment:
    """Return the environment that holds the templates of `assets`; what they call is not in it yet."""
    assets = Path(__file__).with_name("assets")
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(assets),
        bytecode_cache=KeptTemplates(Path(cache_from_source(str(assets / "report.html"))).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_kept_together,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _kept_together(value: object) -> object:
    """Keep numbers and their units on one line; what is markup already stays as it is."""
    return kept_together(value) if type(value) is str else value


def compile_all() -> None:
    """Compile every template, so that no run has to."""
    environment = templates()
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)


class KeptTemplates(jinja2.FileSystemBytecodeCache):
    """Compiled templates in a folder of Python's compiled modules."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder), f"%s.{sys.implementation.cache_tag}.jinja")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what was kept, if it is whole."""
        try:
            super().load_bytecode(bucket)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep it, if Python may keep its own modules."""
        if sys.dont_write_bytecode:
            return
        with contextlib.suppress(OSError):  # where we may not write, each run compiles
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)


if __name__ == "__main__":
    sys.dont_write_bytecode = False
    compile_all()
