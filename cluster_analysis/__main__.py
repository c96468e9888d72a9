"""`python -m cluster_analysis`, and the script `cluster-analyse`."""

from __future__ import annotations

import sys

from cluster_analysis.cli import main


def run() -> None:
    """Run the command with the arguments of this process and exit with its code."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
