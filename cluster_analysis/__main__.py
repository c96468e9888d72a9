"""`python -m cluster_analysis`, and the script `cluster-analyse`."""

from __future__ import annotations

import sys

from cluster_analysis.cli import main


def run() -> None:
    """Run the command with the arguments of this process and exit with its code."""
    # pyarrow imports pandas, where it is installed, as soon as it makes an array: 0.4 s for nothing
    # that is used here. None tells it that there is no such module.
    sys.modules.setdefault("pandas", None)  # type: ignore[arg-type]
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
