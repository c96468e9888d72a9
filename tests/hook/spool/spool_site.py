"""A spool with requests, and drains of it, without Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from cluster_hook.spool.drain import Drained, DrainOptions, drain
from cluster_hook.spool.spool import Attempts, Spool

#: A `scontrol` that has forgotten every job.
STAND_IN = Path(__file__).with_name("stand_in")


@dataclass
class Site:
    """A spool, and what drains of it told."""

    spool: Spool
    work_dir: Path
    told: list[Drained] = field(default_factory=list)

    def drop(
        self, key: str, *, nodes: str = "", comment: str = "profile_dir=p", uid: int | None = None
    ) -> Path:
        """Drop a request; without nodes its job never started, and there is nothing to do."""
        fields = [
            f"job={key.partition('-')[0]}",
            "name=train",
            "user=ada",
            f"uid={os.geteuid() if uid is None else uid}",
            f"nodes={nodes}",
            f"work_dir={self.work_dir}",
            f"comment={comment}",
            "end=",
        ]
        path = self.spool.path("pending", key, ".job")
        path.write_bytes("".join(one + "\0" for one in fields).encode())
        return path

    def drop_that_waits(self, key: str) -> Path:
        """Drop a request whose worker waits for its rank table; return the FIFO."""
        fifo = self.work_dir / f"table-{key}"
        os.mkfifo(fifo)
        self.drop(key, nodes="n1", comment=f"profile_dir=p,profile_via=ssh,rank_table={fifo.name}")
        return fifo

    def options(self, **options: float) -> DrainOptions:
        """Return options that ask no Slurm."""
        return DrainOptions(ask_slurm=lambda job: job, **options)  # type: ignore[arg-type]

    def drain(self, **options: float) -> list[tuple[str, str]]:
        """Drain in this process; return what became of which request."""
        ended = drain(self.spool, self.options(**options), self.told.append)
        assert ended is not None
        return [(one.key, one.state) for one in ended]

    def let_retry_come(self, key: str) -> None:
        """Make the last attempt at a request so old that the next drain tries it again."""
        attempts = self.spool.attempts(key)
        self.spool.set_attempts(key, Attempts(attempts.number, 1.0, attempts.reason))

    def start_drain(self, *options: str, path: str = "") -> subprocess.Popen[str]:
        """Start a drain as cron would."""
        return subprocess.Popen(
            [sys.executable, "-m", "cluster_hook", "drain", f"--spool={self.spool.root}", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PATH": path or f"{STAND_IN}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
        )

    def keys(self, area: str) -> list[str]:
        """Return the requests in an area."""
        return sorted(self.spool.keys(area))

    def reason(self, key: str) -> str:
        """Return why a request was given up."""
        return str(json.loads(self.spool.path("failed", key, ".json").read_text())["reason"])
