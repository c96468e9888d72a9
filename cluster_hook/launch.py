"""Runs a module apart from its surroundings: `python -I launch.py MODULE ARGUMENT…`, as `python -m` would.

`-I` alone would do where the project is installed in the interpreter's own environment. Elsewhere (a user's
site, a checkout) the directory that this file was loaded from is added; the current directory never is.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    root = str(Path(__file__).parents[1])
    if root not in sys.path:
        sys.path.insert(0, root)
    # The module's own arguments: `run_module` puts its file in the first place.
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
