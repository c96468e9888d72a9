"""Starts cluster-simulate."""

from __future__ import annotations

import sys

from cluster_run.plain_signs import print_plainly_where_needed
from cluster_simulate.cli import main


def run() -> None:
    """Run the command and exit with its code."""
    print_plainly_where_needed()
    sys.exit(main())


if __name__ == "__main__":
    run()
