"""`python -m cluster_collect`, and the script `cluster-collect`."""

from __future__ import annotations

import sys

from cluster_collect.cli import main


def run() -> None:
    """Run the command and exit with its code."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
