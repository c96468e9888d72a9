"""Entry point of `cluster-hook` and `python -m cluster_hook`."""

from __future__ import annotations

import sys

from cluster_hook.cli import main


def run() -> None:
    """Run the command and exit with its code."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
