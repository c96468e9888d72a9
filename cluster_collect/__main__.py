"""`python -m cluster_collect`, and the script `cluster-collect`."""

from __future__ import annotations

import sys

from cluster_collect.cli import main
from cluster_run.standard_streams import prepare_streams


def run() -> None:
    """Run the command and exit with its code."""
    prepare_streams()
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
