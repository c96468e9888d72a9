"""cluster-collect: from the command line to the exit code."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_collect.arguments import Arguments, parse_arguments
from cluster_collect.interruption import interruptible
from cluster_run.errors import ClusterError, ExitCode, InputError, InterruptedRunError

if TYPE_CHECKING:  # heavy modules are imported by the functions that need them: --help needs none
    from cluster_collect.inventory.build import Inventory
    from cluster_collect.plan import HostCheck, HostPlan
    from cluster_collect.progress import Display
    from cluster_collect.surroundings import Surroundings
    from cluster_run.manifest import HostOutcome


@dataclass(frozen=True)
class Job:
    """What is to be done, with everything resolved.

    `missing` says which hosts of the rank table the inventory does not list; empty when it lists all.
    """

    argv: Sequence[str]
    arguments: Arguments
    inventory: Inventory
    run: Path
    rank_table: Path | None
    warnings: tuple[str, ...]
    missing: str


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    arguments = parse_arguments(argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a login shell without UTF-8 must not cost the result
            stream.reconfigure(errors="replace")
    try:
        with interruptible():
            return _run(argv, arguments)
    except ClusterError as error:
        _say_error(error)
        if arguments.json:
            from cluster_collect.json_result import error_json  # noqa: PLC0415

            _print_result(error_json(arguments.mode, error))
        return error.exit_code


def _run(argv: Sequence[str], arguments: Arguments) -> ExitCode:
    job = _prepare(argv, arguments)
    for warning in job.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    from cluster_collect.progress import COLLECTING, display  # noqa: PLC0415
    from cluster_collect.tracker import Verbosity  # noqa: PLC0415

    verb = {"check": "checking", "dry-run": "listing", "collect": COLLECTING}[arguments.mode]
    verbosity = Verbosity(min(arguments.verbosity, max(Verbosity)))
    with display(job.inventory.specs, verbosity, sys.stderr, verb) as shown:
        if arguments.mode == "check":
            finish = _check(job, shown)
        elif arguments.mode == "dry-run":
            finish = _plan(job, shown)
        else:
            finish = _collect(job, shown)
    _print_result(finish.text)
    if finish.next_step and arguments.verbosity > 0:
        print(f"next: {finish.next_step}", file=sys.stderr)
    return finish.code


@dataclass(frozen=True)
class _Finish:
    text: str
    code: ExitCode
    next_step: str = ""


def _prepare(argv: Sequence[str], arguments: Arguments) -> Job:
    from cluster_collect.inventory.limit import limit  # noqa: PLC0415
    from cluster_collect.inventory.load import InventoryRequest, load_inventory  # noqa: PLC0415
    from cluster_collect.inventory.ranks import compare_hosts, read_rank_table  # noqa: PLC0415

    request = InventoryRequest(
        arguments.inventory, arguments.hosts, arguments.rank_table, arguments.host_defaults
    )
    inventory = load_inventory(request, os.environ)
    warnings = list(inventory.warnings)
    rank_table = inventory.rank_table
    missing = ""
    if rank_table is not None:
        table = read_rank_table(rank_table)
        comparison = compare_hosts(inventory, table, str(rank_table))
        warnings += comparison.warnings
        missing = comparison.missing if arguments.limit is None else ""
    if arguments.limit is not None:
        inventory = limit(inventory, arguments.limit)
    inventory = _with_secrets(inventory, arguments)
    run = arguments.output or inventory.output or Path(time.strftime("run-%Y%m%d-%H%M%S"))
    return Job(argv, arguments, inventory, run, rank_table, tuple(warnings), missing)


def _with_secrets(inventory: Inventory, arguments: Arguments) -> Inventory:
    """Ask for what the command line wants to be asked for; what the inventory says wins."""
    specs = inventory.specs
    if arguments.ask_password:
        password = _ask("--ask-password", "password for the hosts without one of their own: ")
        specs = tuple(
            spec if spec.local or spec.password else replace(spec, password=password) for spec in specs
        )
    if arguments.ask_passphrase:
        passphrase = _ask("--ask-passphrase", "passphrase for the identity files: ")
        specs = tuple(
            replace(spec, passphrase=spec.passphrase or passphrase) if spec.identity_file else spec
            for spec in specs
        )
    return replace(inventory, specs=specs)


def _ask(option: str, prompt: str) -> str:
    import getpass  # noqa: PLC0415

    if not sys.stdin.isatty():
        raise InputError(f"{option} needs a terminal", "without one, name an environment variable instead")
    try:
        return getpass.getpass(prompt)
    except EOFError:
        raise InputError(f"{option}: nothing was typed") from None


def _collect(job: Job, shown: Display) -> _Finish:
    from cluster_collect.json_result import collection_json  # noqa: PLC0415
    from cluster_collect.pool import collect  # noqa: PLC0415
    from cluster_collect.runner import run_interruptibly  # noqa: PLC0415
    from cluster_collect.summary import collection_text  # noqa: PLC0415

    begin_s = time.monotonic()
    work = collect(job.inventory.specs, job.run, job.arguments.options, job.rank_table, shown.tracker)
    try:
        manifest = run_interruptibly(work, shown.tick)
    except InterruptedRunError as error:
        raise _interrupted(job, shown, error) from error
    seconds = time.monotonic() - begin_s
    code = _code_of_outcomes(job, manifest.hosts)
    next_step = "" if code == ExitCode.FAILED else f"cluster-analyse {shlex.quote(str(job.run))}"
    around = _surroundings(job, seconds)
    if job.arguments.json:
        return _Finish(collection_json(manifest.hosts, around, code), code, next_step)
    return _Finish(collection_text(manifest.hosts, around), code, next_step)


def _plan(job: Job, shown: Display) -> _Finish:
    from cluster_collect.json_result import plan_json  # noqa: PLC0415
    from cluster_collect.pool import plan  # noqa: PLC0415
    from cluster_collect.runner import run_interruptibly  # noqa: PLC0415
    from cluster_collect.summary import plan_text  # noqa: PLC0415

    work = plan(job.inventory.specs, job.arguments.options, shown.tracker)
    plans = run_interruptibly(work, shown.tick)
    code = _code_of_answers(job, plans)
    if job.arguments.json:
        return _Finish(plan_json(plans, _surroundings(job), code), code)
    return _Finish(plan_text(plans, _surroundings(job)), code)


def _check(job: Job, shown: Display) -> _Finish:
    from cluster_collect.json_result import check_json  # noqa: PLC0415
    from cluster_collect.pool import check  # noqa: PLC0415
    from cluster_collect.runner import run_interruptibly  # noqa: PLC0415
    from cluster_collect.summary import check_text  # noqa: PLC0415

    work = check(job.inventory.specs, job.arguments.options, shown.tracker)
    checks = run_interruptibly(work, shown.tick)
    code = _code_of_answers(job, checks)
    if job.arguments.json:
        return _Finish(check_json(checks, _surroundings(job), code), code)
    return _Finish(check_text(checks, _surroundings(job)), code)


def _surroundings(job: Job, seconds: float = 0.0) -> Surroundings:
    from cluster_collect.surroundings import Surroundings  # noqa: PLC0415

    specs = {spec.host: spec for spec in job.inventory.specs}
    min_free_bytes = job.arguments.options.min_free_bytes
    return Surroundings(
        job.run, seconds, _free_bytes(job.run), min_free_bytes, specs, job.missing, job.warnings
    )


def _free_bytes(run: Path) -> int | None:
    """Return the free space where the run directory is, or will be."""
    for directory in (run, *run.absolute().parents):
        try:
            return shutil.disk_usage(directory).free
        except OSError:
            continue
    return None


def _code_of_outcomes(job: Job, outcomes: Sequence[HostOutcome]) -> ExitCode:
    """Return the code for this call's hosts and for those that earlier calls left in the run directory."""
    asked = {spec.host for spec in job.inventory.specs}
    if all(outcome.state == "failed" for outcome in outcomes if outcome.host in asked):
        return ExitCode.FAILED
    whole = all(
        outcome.state == "complete" and all(file.state in ("stored", "skipped") for file in outcome.files)
        for outcome in outcomes
    )
    return ExitCode.DONE if whole and not job.missing else ExitCode.INCOMPLETE


def _code_of_answers(job: Job, answers: Sequence[HostPlan] | Sequence[HostCheck]) -> ExitCode:
    n_failed = sum(bool(answer.reason) for answer in answers)
    if n_failed == len(answers):
        return ExitCode.FAILED
    return ExitCode.INCOMPLETE if n_failed or job.missing else ExitCode.DONE


def _interrupted(job: Job, shown: Display, error: InterruptedRunError) -> InterruptedRunError:
    tally = shown.tracker.tally
    argv = list(job.argv)
    if job.arguments.output is None and job.inventory.output is None:
        argv += ["--output", str(job.run)]
    return InterruptedRunError(
        f"{error.message}: {tally.n_hosts_done} of {tally.n_hosts} hosts done, what was collected is kept",
        f"go on with: cluster-collect {shlex.join(argv)}",
    )


def _say_error(error: ClusterError) -> None:
    from cluster_collect.wording import printable  # noqa: PLC0415

    print(f"cluster-collect: {printable(error.message)}", file=sys.stderr)
    if error.advice:
        print(f"  → {printable(error.advice)}", file=sys.stderr)


def _print_result(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (head, a pager) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
