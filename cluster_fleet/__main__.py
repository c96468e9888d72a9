"""Entry point of `cluster-fleet` and `python -m cluster_fleet`."""

from __future__ import annotations

from cluster_fleet.cli import main
from cluster_run.standard_streams import command

run = command(main)

if __name__ == "__main__":
    run()
