"""`cluster-hook check`: whether jobs that ended will be analysed on this site; each answer with what to do.

That slurmctld names the epilog in its configuration does not say that it runs it: after
`scontrol reconfigure` Slurm 22.05 does the first and not the second. So the epilog leaves a mark each time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cluster_hook.slurm.commands import cancel, read_configuration, read_jobs, submit
from cluster_hook.spool.spool import Spool
from cluster_run.errors import InputError

#: `unknown`: nothing here tells, and the advice says what would.
AnswerState = Literal["ok", "problem", "unknown"]

#: A drain is started every minute.
_DRAIN_IS_LATE_S = 600.0
PROBE_NAME = "cluster-hook-check"
_PROBE_DEADLINE_S = 120.0


@dataclass(frozen=True)
class Answer:
    """The answer to one question."""

    state: AnswerState
    text: str
    advice: str = ""

    @property
    def line(self) -> str:
        """The answer in one line."""
        return f"{self.state}: {self.text}" + (f"\n  {self.advice}" if self.advice else "")


def check(spool: Spool, *, probes: bool) -> Iterator[Answer]:
    """Yield the answers: the epilog's line, the spool, whether the epilog runs, and the drain.

    With `probes` a job of one second is submitted where nothing else tells whether the epilog runs.

    Raises:
        InputError: Slurm does not answer, or refuses the job.
    """
    configuration = read_configuration()
    epilog = configuration.get("EpilogSlurmctld", "")
    yield _names_epilog(epilog)
    yield _can_be_written(spool, configuration)
    if epilog:
        yield _runs(spool, configuration, probes=probes)
    yield _is_drained(spool)


def _names_epilog(epilog: str) -> Answer:
    if not epilog:
        return Answer(
            "problem",
            "slurm.conf names no EpilogSlurmctld",
            "add EpilogSlurmctld=/etc/slurm/cluster-hook-epilog.sh, then: systemctl restart slurmctld",
        )
    try:
        text = Path(epilog).read_text(errors="replace")
    except OSError as error:
        advice = "run this on the host of slurmctld, as root"
        return Answer("unknown", f"the epilog {epilog} cannot be read here: {error.strerror}", advice)
    if not os.access(epilog, os.X_OK):
        return Answer("problem", f"the epilog {epilog} cannot be executed", f"chmod 755 {epilog}")
    if "cluster-hook" not in text and "epilog_slurmctld.sh" not in text:
        advice = "let it call deploy/slurm/epilog_slurmctld.sh"
        return Answer("problem", f"the epilog {epilog} is another one and does not call ours", advice)
    return Answer("ok", f"slurmctld's epilog is {epilog}")


def _can_be_written(spool: Spool, configuration: Mapping[str, str]) -> Answer:
    pending = spool.root / "pending"
    try:
        status = pending.stat()
        spool.refuse_public()
    except OSError as error:
        advice = "make it with deploy/slurm/install_epilog.sh"
        return Answer("problem", f"{pending}: {error.strerror}", advice)
    except InputError as error:
        return Answer("problem", error.message, error.advice)
    # slurmctld says `slurm(64030)`.
    slurm_user = configuration.get("SlurmUser", "").partition("(")[2].rstrip(")")
    if slurm_user.isdecimal() and int(slurm_user) not in (0, status.st_uid):
        name = configuration["SlurmUser"].partition("(")[0]
        return Answer("problem", f"{pending} is not SlurmUser's, who writes there", f"chown {name} {pending}")
    return Answer("ok", f"requests are dropped into {pending}")


def _runs(spool: Spool, configuration: Mapping[str, str], *, probes: bool) -> Answer:
    booted_s = _number(configuration.get("BOOT_TIME", ""))
    ran_s = spool.epilog_ran_s()
    if ran_s is not None and ran_s >= booted_s:
        return Answer("ok", f"the epilog runs: last {_ago(ran_s)}")
    if probes:
        return _probed(spool)
    try:
        changed_s = os.stat(configuration.get("SLURM_CONF", "")).st_mtime
    except OSError:
        changed_s = 0.0
    if changed_s > booted_s:
        return Answer(
            "problem",
            "slurm.conf was changed after slurmctld had started, and the epilog has not run since",
            "scontrol reconfigure does not begin to run an epilog on each Slurm: systemctl restart slurmctld "
            "(jobs go on)",
        )
    advice = "cluster-hook check --probe submits a job of one second and looks"
    return Answer(
        "unknown", "no job has ended since slurmctld started, so the epilog has not run yet", advice
    )


def _probed(spool: Spool) -> Answer:
    before_s = spool.epilog_ran_s() or 0.0
    job = submit(["--job-name", PROBE_NAME, "--output=/dev/null", "--time=1", "--wrap", "true"])
    end_s = time.monotonic() + _PROBE_DEADLINE_S
    while time.monotonic() < end_s:
        if (spool.epilog_ran_s() or 0.0) > before_s:
            return Answer("ok", f"the epilog ran for job {job}, which was submitted to see that")
        if _has_ended(job):
            time.sleep(2.0)
            if (spool.epilog_ran_s() or 0.0) <= before_s:
                advice = "systemctl restart slurmctld (jobs go on): scontrol reconfigure is not enough"
                return Answer("problem", f"job {job} ended and the epilog did not run", advice)
        time.sleep(0.5)
    cancel(job)
    return Answer("unknown", f"job {job} did not end within {_PROBE_DEADLINE_S:g} s", "look at squeue")


def _has_ended(job: str) -> bool:
    return all(one.has_ended for one in read_jobs(job))


def _is_drained(spool: Spool) -> Answer:
    advice = "systemctl enable --now cluster-hook-drain.timer, or start it by cron"
    looked_s = spool.drained_s()
    n_waiting = len(spool.keys("pending"))
    if looked_s is None:
        return Answer("problem", f"no drain has ever run; {n_waiting} requests wait", advice)
    if time.time() - looked_s > _DRAIN_IS_LATE_S:
        return Answer("problem", f"the last drain ran {_ago(looked_s)}; {n_waiting} requests wait", advice)
    return Answer("ok", f"the drain runs: last {_ago(looked_s)}; {n_waiting} requests wait")


def _ago(at_s: float) -> str:
    seconds = max(0.0, time.time() - at_s)
    if seconds < 120:
        return f"{seconds:.0f} s ago"
    return f"{seconds / 60:.0f} min ago" if seconds < 7200 else f"{seconds / 3600:.0f} h ago"


def _number(text: str) -> float:
    return float(text) if text.isdecimal() else 0.0
