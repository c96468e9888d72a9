"""`python -m cluster_analysis`, and the script `cluster-analyse`."""

from __future__ import annotations

import os
import sys

from cluster_analysis.cli import main
from cluster_run.standard_streams import prepare_streams


def run() -> None:
    """Run the command with the arguments of this process and exit with its code."""
    prepare_streams()
    # To be set before these libraries are imported. Arrow's own allocator reserves 18 MB in each process, and
    # NumPy starts threads for matrices: none here is large.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
