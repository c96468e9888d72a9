"""Entry point of `cluster-simulate` and `python -m cluster_simulate`."""

from __future__ import annotations

from cluster_run.standard_streams import command
from cluster_simulate.cli import main

run = command(main)

if __name__ == "__main__":
    run()
