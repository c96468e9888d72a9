"""Write one job of a model, to look at it: python -m benchmarks.models streams hard 101003 OUT 'uplink'."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.models.flows import model as flows
from benchmarks.models.paths import model as paths
from benchmarks.models.queues import model as queues
from benchmarks.models.streams import model as streams

MODELS = {one.NAME: one for one in (streams, paths, queues, flows)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the job, and print what is true of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("mode", choices=("plain", "hard"))
    parser.add_argument("seed", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("fault_class", nargs="?", help="healthy without one")
    options = parser.parse_args(arguments)
    model = MODELS[options.model]
    known = (*model.FAULT_CLASSES, *getattr(model, "BY_NAME", ()))
    if options.fault_class not in (None, *known):
        parser.error(f"class of fault: one of {', '.join(map(repr, known))}")
    job = model.make(options.mode, options.seed, options.fault_class, options.folder)
    print(f"{job.n_ranks} ranks, {job.about}, {job.step_ms:.1f} ms a step, {job.cost_ms:.1f} of it lost")
    for fault in job.faults:
        print(
            f"{fault.kind} ranks {fault.ranks} hosts {fault.hosts} links {fault.links}: {fault.cost_ms:.1f} "
            f"ms with all others repaired, {fault.marginal_ms:.1f} with none"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
