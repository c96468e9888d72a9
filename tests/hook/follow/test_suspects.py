"""After the verdict the raw files of the suspects are fetched; where that fails the verdict stands."""

from __future__ import annotations

import dataclasses
import shlex
import shutil
from pathlib import Path

import pytest

from cluster_hook.follow.pipeline import FollowOptions, follow
from cluster_hook.job import parse_request
from cluster_reduce.form import SUFFIX
from cluster_run.errors import ExitCode
from cluster_tell.outcome import Outcome
from demo.sshd import SshLab
from tests.analysis.runs import write_small_run
from tests.commands import program
from tests.hook.jobs import a_job
from tests.needed import needs_sshd

pytestmark = [
    pytest.mark.slow,
    needs_sshd,
]
#: Lets so many commands in, and no more.
_ONLY = """\
touch "{folder}/$$"
[ "$(ls "{folder}" | wc -l)" -le {n} ] || exit 1
exec sh -c "$SSH_ORIGINAL_COMMAND"
"""


def followed(work: Path, options: FollowOptions, n_commands: int = 1000) -> Outcome:
    """Follow a job of two nodes, each of which runs so many commands; rank 3, on the first one, is slow."""
    simulated = write_small_run(work / "simulated", steps=3)
    lines = []
    with SshLab(work / "ssh") as lab:
        for number in (1, 2):
            shutil.copytree(
                simulated / "cluster_profiler" / str(number) / "profiler", work / f"disk-n{number}"
            )
            (work / f"asked-{number}").mkdir()
            only = _ONLY.format(folder=work / f"asked-{number}", n=n_commands)
            script = program(work / f"only-{number}", only)
            server = lab.start(f"127.0.0.{number + 1}", settings={"ForceCommand": shlex.quote(str(script))})
            lines += [f"Host n{number}", f"  HostName {server.address}", f"  Port {server.port}"]
        lines += ["Host *", f'  IdentityFile "{lab.identity_file}"']
        lines += [f'  UserKnownHostsFile "{lab.known_hosts}"']
        (work / "config").write_text("\n".join(lines) + "\n")
        job = a_job(work_dir=work, nodes=("n1", "n2"), comment="profile_dir=disk-%N,profile_via=ssh")
        job = dataclasses.replace(job, began_s=1.0)
        request = parse_request(job)
        assert request is not None
        return follow(job, request, options)


# The tests may be those of root, and readers do not run as root unasked.
SUSPECTS = FollowOptions(
    keep_raw="suspects",
    collect_more=("--columns-as-root", "--attempts=1"),
    host_defaults=None,
    shows_report=False,
)


def test_a_host_that_is_gone_after_the_verdict_costs_the_raw_files_and_not_the_verdict(
    tmp_path: Path,
) -> None:
    options = dataclasses.replace(SUSPECTS, host_defaults={"ssh_config": str(tmp_path / "config")})
    outcome = followed(tmp_path, options, n_commands=1)
    assert (outcome.state, outcome.code) == ("analysed", ExitCode.INCOMPLETE)
    assert outcome.verdict is not None
    assert outcome.verdict.verdict == "degraded"
    assert outcome.reason.startswith("raw files of the suspects: ")
    assert "n1" not in outcome.line.replace(str(tmp_path), ""), "hosts are told by their numbers"
    (run,) = filter(Path.is_dir, tmp_path.glob("cluster-run-*"))
    assert len(list(run.rglob(f"communication.json{SUFFIX}"))) == 8, "nothing that was there is lost"
