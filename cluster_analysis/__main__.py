"""`python -m cluster_analysis`, and the script `cluster-analyse`."""

from __future__ import annotations

import gc
import sys

from cluster_analysis.cli import main
from cluster_analysis.lean_imports import end_without_tidying, keep_no_spare_memory, keep_no_spare_threads
from cluster_run.standard_streams import prepare_streams


def run() -> None:
    """Run the command with the arguments of this process and exit with its code."""
    prepare_streams()
    gc.disable()  # until all is imported: see `collect_from_now_on`
    keep_no_spare_memory()
    keep_no_spare_threads()
    codes: list[int] = []
    end_without_tidying(codes)
    codes.append(main(sys.argv[1:]))
    gc.freeze()  # Python looks through everything for garbage once more before it ends
    sys.exit(codes[0])


if __name__ == "__main__":
    run()
