"""Collects in a process of its own, to be killed: `python -m … SPEC.json RUN [bytes a second]`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transfer.pool import collect
from cluster_run.ids import HostId

#: As `FULL` of the helpers, whose imports would double what a start takes.
OPTIONS = {"what": ("full",), "compression": "none", "backoff_first_s": 0.05, "min_free_bytes": 0}


class Printer(ProgressListener):
    def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
        print(path, flush=True)


def main() -> None:
    specs = [HostSpec(**fields) for fields in json.loads(Path(sys.argv[1]).read_text())]
    rate = int(sys.argv[3]) if len(sys.argv) > 3 else None
    options = CollectOptions(bandwidth_bytes_per_s=rate, **OPTIONS)  # type: ignore[arg-type]
    asyncio.run(collect(specs, Path(sys.argv[2]), options, None, Printer()))


if __name__ == "__main__":
    main()
