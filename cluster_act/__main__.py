"""Starts cluster-act."""

from __future__ import annotations

import sys

from cluster_act.cli import main
from cluster_run.standard_streams import prepare_streams


def run() -> None:
    """Run the command and exit with its code."""
    prepare_streams()
    sys.exit(main())


if __name__ == "__main__":
    run()
