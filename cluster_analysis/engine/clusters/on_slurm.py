"""Settings of Dask's scheduler where workers run on Slurm's nodes, by their names in Dask's configuration."""

from __future__ import annotations

from collections.abc import Mapping

#: Dask looks once in the time for which a worker may be silent, so a hung one costs up to twice as much: a
#: minute, not Dask's ten.
SCHEDULER: Mapping[str, str | int] = {
    "distributed.scheduler.worker-ttl": "30s",
    "distributed.scheduler.allowed-failures": 2,
}
