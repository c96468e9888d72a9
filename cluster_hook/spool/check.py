"""`cluster-hook check`: whether jobs that ended will be analysed on this site; each answer with what to do.

That slurmctld names the epilog in its configuration does not say that it runs it: after
`scontrol reconfigure` Slurm 22.05 does the first and not the second. So the epilog leaves a mark each time.
Root may read files that the drain's workers may not. So checks run as the users of these workers.
"""

from __future__ import annotations

import io
import os
import pwd
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from cluster_hook.follow.file_systems import is_shared_between_hosts
from cluster_hook.isolation import Identity, identity_of, our_command
from cluster_hook.processes import run_command
from cluster_hook.slurm.commands import read_configuration
from cluster_hook.spool.probe import Answer, Probe, probe
from cluster_hook.spool.spool import Spool
from cluster_run.errors import InputError

#: A drain is started every minute.
_DRAIN_IS_LATE_S = 600.0
_SHORT_S = 60.0
#: The user for whom the spool is checked if none is named.
_NOBODY = "nobody"
#: Writes as much as a request with a long node list, as the epilog does.
_WRITING = 'umask 077; f="$0/.check.$$"; head -c 65536 /dev/zero >"$f"; code=$?; rm -f "$f"; exit $code'


def check(spool: Spool, probed: Probe | None = None) -> Iterator[Answer]:
    """Yield the answers: the epilog's line, the spool, the workers, whether the epilog runs, and the drain.

    With `probed` a small job is submitted, and followed through all of them.

    Raises:
        InputError: Slurm does not answer, or refuses the job.
    """
    configuration = read_configuration()
    epilog = configuration.get("EpilogSlurmctld", "")
    yield _names_epilog(epilog)
    yield _can_be_written(spool, configuration)
    yield _workers_start(spool, probed.user if probed else _somebody())
    if epilog and probed is None:
        yield _runs(spool, configuration)
    yield _is_drained(spool)
    if epilog and probed is not None:
        yield from probe(spool, probed)


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
        owner = pending.stat().st_uid
        spool.refuse_public()
    except OSError as error:
        advice = "make it with deploy/slurm/install_epilog.sh"
        return Answer("problem", f"{pending}: {error.strerror}", advice)
    except InputError as error:
        return Answer("problem", error.message, error.advice)
    # slurmctld says `slurm(64030)`.
    name, _, number = configuration.get("SlurmUser", "").rstrip(")").partition("(")
    slurm_uid = int(number) if number.isdecimal() else 0
    if slurm_uid not in (0, owner):
        return Answer("problem", f"{pending} is not SlurmUser's, who writes there", f"chown {name} {pending}")
    if is_shared_between_hosts(pending):
        advice = "use a local disk: a file server that is away would hold each job in COMPLETING for seconds"
        return Answer("problem", f"{pending} is on a file system of the network", advice)
    return _is_written(pending, slurm_uid)


def _is_written(pending: Path, slurm_uid: int) -> Answer:
    if os.geteuid() not in (0, slurm_uid):
        text = f"whether SlurmUser can write to {pending} is not seen from here"
        return Answer("unknown", text, "run this as root")
    end = run_command(
        ["/bin/sh", "-c", _WRITING, str(pending)],
        name=f"writing to {pending} as user {slurm_uid}",
        deadline_s=_SHORT_S,
        identity=identity_of(slurm_uid),
        log=io.StringIO(),
    )
    if end.code != 0:
        return Answer("problem", end.reason, "requests would be lost: is the disk full or read-only?")
    return Answer("ok", f"requests are dropped into {pending}")


def _somebody() -> Identity | None:
    """Return an ordinary user; None where we are one."""
    if os.geteuid() != 0:
        return None
    try:
        return identity_of(pwd.getpwnam(_NOBODY).pw_uid)
    except KeyError:
        return None


def _workers_start(spool: Spool, user: Identity | None) -> Answer:
    """Say whether a user can start what the drain starts, in the environment that it gets there."""
    whose = user.name if user else "this user"
    settings = spool.drain_settings()
    environment = {name: str(settings[name]) for name in ("PATH", "SLURM_CONF") if settings.get(name)}
    commands = [
        (our_command(package, "--version"), package)
        for package in ("cluster_hook", "cluster_collect", "cluster_analysis")
    ]
    for command, name in [*commands, (["scontrol", "ping"], "scontrol")]:
        end = run_command(
            command,
            name=name,
            deadline_s=_SHORT_S,
            capture=True,
            environment=environment,
            identity=user,
            log=io.StringIO(),
        )
        if end.code == 0:
            continue
        if name == "scontrol":
            path = environment.get("PATH") or os.environ.get("PATH", "")
            advice = "write PATH=… (and SLURM_CONF=…) with Slurm's directory into /etc/cluster-hook.env"
            return Answer("problem", f"the drain does not reach Slurm with PATH={path}: {end.reason}", advice)
        python = os.path.realpath(command[0])
        advice = (
            f"install with umask 022 where all users may read and execute it, such as /opt, by a python3 "
            f"that they may run (this one is {python})"
        )
        return Answer("problem", f"{whose} cannot run {command[0]}: {end.reason}", advice)
    return Answer("ok", f"{whose} can run what the drain starts, and Slurm answers")


def _runs(spool: Spool, configuration: Mapping[str, str]) -> Answer:
    booted_s = _number(configuration.get("BOOT_TIME", ""))
    ran_s = spool.epilog_ran_s()
    if ran_s is not None and ran_s > booted_s:
        return Answer("ok", f"the epilog runs: last {_ago(ran_s)}")
    try:
        changed_s = os.stat(configuration.get("SLURM_CONF", "")).st_mtime
    except OSError:
        changed_s = 0.0
    # Slurm says whole seconds.
    if changed_s > booted_s + 1:
        return Answer(
            "problem",
            "slurm.conf was changed after slurmctld had started, and the epilog has not run since",
            "scontrol reconfigure does not begin to run an epilog on each Slurm: systemctl restart slurmctld "
            "(jobs go on)",
        )
    advice = "cluster-hook check --probe submits a small job and looks"
    return Answer(
        "unknown", "no job has ended since slurmctld started, so the epilog has not run yet", advice
    )


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
