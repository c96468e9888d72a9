"""The subcommands for Slurm's users: slurm-submit and slurm-post."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path

from cluster_hook.checks import check_profile_dir
from cluster_hook.follow.pipeline import FollowOptions, failed, follow, not_ended, nothing_to_do
from cluster_hook.job import ReportedJob, is_own_job, job_from_text, parse_request, with_profile_dir
from cluster_hook.options import (
    add_analyse_arguments,
    add_collect_arguments,
    add_tell_arguments,
    follow_options,
    forwarded_tell_arguments,
    forwarded_work_arguments,
    tell_options,
)
from cluster_hook.slurm.as_user import follow_as_its_user
from cluster_hook.slurm.commands import ForgottenJobError, check_submission, read_accounted, read_jobs
from cluster_hook.slurm.submit import NO_DIRECTORY, submit_with_post_job
from cluster_hook.subcommands.json_lines import add_json, print_line, print_trouble, say_on_stderr
from cluster_run.command_line import Commands, language_of, named_path, positive_number
from cluster_run.errors import ExitCode, UsageError, read_as, worst
from cluster_run.said.chinese import translated
from cluster_run.standard_streams import write_result
from cluster_tell.outcome import Outcome, outcome_to_line
from cluster_tell.teller import Teller


def add_slurm_submit(commands: Commands) -> None:
    """Add `slurm-submit`."""
    parser = commands.add_parser(
        "slurm-submit",
        help="submit a job, and the post-job that collects and analyses when it ended",
        description="Submits a job as sbatch does, and a post-job that runs when it ended, however it ended. "
        "Options of cluster-hook come before the script, options of sbatch after it, arguments of the script "
        "after --. In place of a script --wrap COMMAND is taken.",
    )
    _add_profile_dir(parser)
    parser.add_argument(
        "--post-nodes",
        type=positive_number,
        default=1,
        metavar="N",
        help="nodes of the post-job, for --scheduler srun",
    )
    parser.add_argument(
        "--post-arg",
        action="append",
        default=[],
        metavar="ARG",
        help="an sbatch option of the post-job; repeatable",
    )
    parser.add_argument(
        "--parsable", action="store_true", help="print the number of the job and nothing else"
    )
    add_json(parser, "a submission")
    add_analyse_arguments(parser)
    add_collect_arguments(parser)
    add_tell_arguments(parser)
    parser.add_argument("script", help="the job's script")
    parser.add_argument("sbatch", nargs=argparse.REMAINDER, metavar="SBATCH-OPTION … [-- ARGUMENT …]")
    parser.set_defaults(run=_slurm_submit)


def _add_profile_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile-dir",
        metavar="DIR",
        help="where the ranks write, instead of profile_dir=DIR in the job's comment",
    )


def _slurm_submit(arguments: argparse.Namespace) -> ExitCode:
    # Read now, so that a mistake in them is an error here and not in the night.
    follow_options(arguments, has_nodes=True)
    tell_options(arguments)
    if arguments.profile_dir is not None:
        check_profile_dir(arguments.profile_dir)
    if arguments.post_arg or arguments.post_nodes > 1:
        check_submission([*arguments.post_arg, f"--nodes={arguments.post_nodes}"])
    submission = submit_with_post_job(
        [*arguments.sbatch, *filter(None, [arguments.script]), *arguments.script_arguments],
        [f"--nodes={arguments.post_nodes}", *arguments.post_arg],
        [*forwarded_work_arguments(arguments), *forwarded_tell_arguments(arguments)],
        arguments.profile_dir,
    )
    text = submission.job if arguments.parsable else f"Submitted batch job {submission.job}"
    print_line(arguments, text, "submission", **asdict(submission))
    if submission.trouble:
        follow = ["cluster-hook", "slurm-post", "--slurm-job", submission.job]
        where = arguments.profile_dir or ("DIR" if submission.trouble == NO_DIRECTORY else None)
        follow += [] if where is None else ["--profile-dir", where]
        said = (
            f"job {submission.job} was submitted, its post-job was not: {submission.trouble}\n"
            f"  after its end: {shlex.join(follow)}"
        )
        say_on_stderr(arguments, said)
        return ExitCode.INCOMPLETE
    said = f"post-job {submission.post_job} collects and analyses when it ended"
    print(translated(said, language_of(arguments.lang, sys.stderr)), file=sys.stderr)
    return ExitCode.DONE


def add_slurm_post(commands: Commands) -> None:
    """Add `slurm-post`."""
    parser = commands.add_parser(
        "slurm-post",
        help="collect and analyse a job that ended; this is what the post-job runs",
        description="Collects and analyses a job that ended. The job's comment says where its data are: "
        "profile_dir=DIR[,profile_results=DIR][,profile_via=auto|shared|ssh|srun][,rank_table=FILE].",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--slurm-job", metavar="ID", help="the job's number")
    which.add_argument("--job-file", metavar="FILE", type=named_path, help=argparse.SUPPRESS)
    _add_profile_dir(parser)
    parser.add_argument("--known-job", default="", help=argparse.SUPPRESS)
    add_json(parser, "a job: its outcome")
    add_analyse_arguments(parser)
    add_collect_arguments(parser)
    add_tell_arguments(parser)
    parser.set_defaults(run=_slurm_post, parser=parser)


def _read_job(path: Path) -> ReportedJob:
    """Read a job from a file; `-` is stdin, on which the drain gives it."""
    with read_as(f"{path}: the job cannot be read"):
        return job_from_text(sys.stdin.read() if str(path) == "-" else path.read_text())


def _slurm_post(arguments: argparse.Namespace) -> ExitCode:
    known = job_from_text(arguments.known_job) if arguments.known_job else None
    options, telling = follow_options(arguments, has_nodes=True), tell_options(arguments)
    if arguments.profile_dir is not None:
        check_profile_dir(arguments.profile_dir)
    if arguments.job_file is None and not arguments.slurm_job:
        arguments.parser.error("which job? --slurm-job ID is the number that sbatch printed")
    if arguments.job_file is not None:
        jobs: tuple[ReportedJob, ...] = (_read_job(arguments.job_file),)
    else:
        jobs = find_jobs(arguments.slurm_job, known)
    codes = []
    with Teller(telling, lambda job, trouble: print_trouble(arguments, f"job {job}", trouble)) as teller:
        for job in (with_profile_dir(job, arguments.profile_dir) for job in jobs):
            if os.geteuid() == 0 and job.uid != 0:
                work = forwarded_work_arguments(arguments)
                outcome = follow_as_its_user(job, work, deadline_s=options.deadline_s)
            else:
                outcome = follow_one(job, options)
            teller.tell(job.job, outcome)
            line = outcome_to_line(outcome) if arguments.json else outcome.line_in(telling.language) + "\n"
            write_result(line)
            codes.append(outcome.code)
    return worst(*codes)


def find_jobs(number: str, known: ReportedJob | None) -> tuple[ReportedJob, ...]:
    """Return the job as Slurm knows it now, else as it was `known` at submission.

    Raises:
        InputError: Slurm does not answer, or does not know the job any more and nothing was known before.
    """
    try:
        return read_jobs(number)
    except ForgottenJobError:
        if known is None:
            raise
    return (read_accounted(known) or replace(known, nodes=None, state=""),)


def follow_one(job: ReportedJob, options: FollowOptions) -> Outcome:
    """Follow a job when it asks for it; never one of our own."""
    if is_own_job(job.name):
        return nothing_to_do(job, "it is one of the hook's own jobs")
    if not job.has_ended:
        return not_ended(job)
    try:
        request = parse_request(job)
    except UsageError as error:
        return failed(job, None, str(error), is_permanent=True)
    if request is None:
        return nothing_to_do(job, "its comment names no profile_dir (--profile-dir DIR does): left alone")
    return follow(job, request, options)
