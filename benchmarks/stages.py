"""Processor time of each stage of one analysis, with one worker: `python -m benchmarks.stages RUN OUTPUT`.

Prints a JSON object of seconds by stage, in order. `start` holds the interpreter and its imports.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from cluster_analysis.options import AnalyseOptions
from cluster_analysis.outputs.everything import write_everything
from cluster_analysis.pipeline import examined


def main() -> None:
    """Analyse a run as `cluster-analyse --workers 1 --no-insight` does, and say where the time went."""
    run, output = map(Path, sys.argv[1:3])
    stages = {"start": 0.0}
    last = "start", 0.0

    def tell(what: str, _done: int, _total: int) -> None:
        nonlocal last
        if what != last[0]:
            now_s = time.process_time()
            stages[last[0]] += now_s - last[1]
            stages.setdefault(what, 0.0)
            last = what, now_s

    options = AnalyseOptions(run=run, output=output, n_workers=1, write_insight=False)
    with examined(options, tell) as one:
        write_everything(one, tell)
    tell("end", 1, 1)
    print(json.dumps({name: round(value, 3) for name, value in stages.items() if name != "end"}))


if __name__ == "__main__":
    main()
