"""Entry point of `cluster-act` and `python -m cluster_act`."""

from __future__ import annotations

from cluster_act.cli import main
from cluster_run.standard_streams import command

run = command(main)

if __name__ == "__main__":
    run()
