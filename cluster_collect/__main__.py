"""`python -m cluster_collect`, and the script `cluster-collect`."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

from cluster_collect.cli import main
from cluster_run.standard_streams import prepare_streams

#: Python's default is 700: looking for garbage again and again among modules and files that all stay to
#: the end costs a tenth of the time.
_OBJECTS_BETWEEN_GARBAGE_RUNS = 200_000


def run() -> None:
    """Run the command and exit with its code."""
    prepare_streams()
    gc.set_threshold(_OBJECTS_BETWEEN_GARBAGE_RUNS)
    code = main(sys.argv[1:])
    with contextlib.suppress(OSError):  # the reader has seen enough, or its disk is full
        sys.stdout.flush()
        sys.stderr.flush()
    # All is written and closed by now. To take apart every module and value again costs a short call much.
    os._exit(code)


if __name__ == "__main__":
    run()
