"""Entry point of `cluster-hook` and `python -m cluster_hook`."""

from __future__ import annotations

from cluster_hook.cli import main
from cluster_run.standard_streams import command

run = command(main)

if __name__ == "__main__":
    run()
