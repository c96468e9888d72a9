"""Entry point of `cluster-hook` and `python -m cluster_hook`."""

from __future__ import annotations

import sys

from cluster_hook.cli import main
from cluster_run.plain_signs import print_plainly_where_needed


def run() -> None:
    """Run the command and exit with its code."""
    print_plainly_where_needed()
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
