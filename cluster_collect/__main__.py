"""Entry point of `cluster-collect` and `python -m cluster_collect`."""

from __future__ import annotations

from cluster_collect.cli import main
from cluster_run.standard_streams import command

run = command(main)

if __name__ == "__main__":
    run()
