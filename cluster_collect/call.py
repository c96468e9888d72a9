"""Carries out one call of cluster-collect: resolves what is asked for, does it, and words the result."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cluster_collect.arguments import Arguments
from cluster_collect.inventory.build import Inventory
from cluster_collect.inventory.like import origin_of, read_like
from cluster_collect.inventory.load import (
    InventoryRequest,
    compare_hosts,
    limit,
    load_inventory,
    with_device_ranks,
)
from cluster_collect.runner import run_interruptibly
from cluster_collect.selection.captures import ranks_of
from cluster_collect.selection.suspects import read_suspects
from cluster_collect.show.context import Surroundings
from cluster_collect.show.json_result import check_json, collection_json, plan_json
from cluster_collect.show.progress import COLLECTING, Display, display
from cluster_collect.show.summary import check_text, collection_text, plan_text
from cluster_collect.show.tracker import Verbosity
from cluster_collect.store.run_files import rank_table_name, strangers_warning
from cluster_collect.transfer.plan import HostLook
from cluster_collect.transfer.pool import collect, look
from cluster_collect.transports.ignored_settings import ignored_settings
from cluster_run.errors import ExitCode, InputError, InterruptedRunError
from cluster_run.ids import HostId, format_number_ranges
from cluster_run.layout import ANALYSIS_OUTPUT_NAME, FINDINGS_NAME
from cluster_run.manifest import HostOutcome, Origin
from cluster_run.ranktable import read_rank_table
from cluster_run.said.chinese import translated

_VERBS = {"check": "checking", "dry-run": "listing", "collect": COLLECTING, "live": COLLECTING}


@dataclass(frozen=True)
class Result:
    """What a call prints on stdout, its exit code, and the command that comes next."""

    text: str
    code: ExitCode
    next_step: str = ""


class _NoSuspectsError(InputError):
    """The findings name nobody: that is good news, and no failure."""


@dataclass(frozen=True)
class _Job:
    """What is to be done, with everything resolved.

    `missing` says which hosts of the rank table the inventory does not list; empty when it lists all.
    `origin` is how the hosts were named.
    """

    argv: Sequence[str]
    arguments: Arguments
    inventory: Inventory
    run: Path
    warnings: tuple[str, ...]
    missing: str
    origin: Origin


def carry_out(argv: Sequence[str], arguments: Arguments) -> Result:
    """Do what the command line asks for; progress and warnings go to stderr.

    Raises:
        ClusterError: it could not be done, or was interrupted.
    """
    try:
        job = _resolve(argv, arguments)
    except _NoSuspectsError as none:
        around = Surroundings(run=arguments.of_ranks.like or Path())
        text = (
            collection_json((), around, ExitCode.DONE)
            if arguments.json
            else f"{translated(none.message, arguments.language)}\n"
        )
        return Result(text, ExitCode.DONE)
    for warning in job.warnings:
        print(translated(f"warning: {warning}", arguments.language), file=sys.stderr)
    verbosity = Verbosity(min(arguments.verbosity, max(Verbosity)))
    work = {"check": _look, "dry-run": _look, "collect": _collect, "live": _live}[arguments.mode]
    with display(
        job.inventory.specs, verbosity, sys.stderr, _VERBS[arguments.mode], arguments.language
    ) as shown:
        return work(job, shown)


def _resolve(argv: Sequence[str], arguments: Arguments) -> _Job:
    request = InventoryRequest(
        arguments.inventory, arguments.hosts, arguments.rank_table, arguments.host_defaults
    )
    like = None if arguments.of_ranks.like is None else read_like(arguments.of_ranks.like)
    arguments = _with_suspects(arguments)
    if like is not None:
        request = like.request(request)
    inventory = load_inventory(request, os.environ if like is None else like.environment(os.environ))
    copy = "" if inventory.rank_table is None else rank_table_name(inventory.rank_table.name)
    origin = origin_of(request, inventory, copy)
    of_table, missing = tuple[str, ...](), ""
    if inventory.rank_table is not None:
        table = read_rank_table(inventory.rank_table)
        if like is None:
            of_table, missing = compare_hosts(inventory, table, str(inventory.rank_table))
        inventory = with_device_ranks(inventory, table)
    if like is not None:
        inventory = like.narrowed(inventory, arguments.options.ranks)
    if arguments.limit is not None:
        inventory, missing = limit(inventory, arguments.limit), ""
    warnings = (*inventory.warnings, *of_table, *ignored_settings(inventory.specs))
    inventory = _with_secrets(inventory, arguments)
    run = arguments.output or inventory.output or Path(time.strftime("run-%Y%m%d-%H%M%S"))
    if arguments.mode == "collect" and (warning := strangers_warning(run)):
        warnings = (*warnings, warning)
    return _Job(argv, arguments, inventory, run, warnings, missing, origin)


def _with_suspects(arguments: Arguments) -> Arguments:
    """Return the arguments with the numbers of the suspects in place of that word, and print them."""
    of_ranks = arguments.of_ranks
    if not of_ranks.suspects:
        return arguments
    findings = of_ranks.findings or (of_ranks.like or Path()) / ANALYSIS_OUTPUT_NAME / FINDINGS_NAME
    suspects = read_suspects(findings)
    if not suspects.ranks:
        raise _NoSuspectsError(f"{findings} names no rank to look at: nothing was fetched")
    peers = f"; peers to compare with: {format_number_ranges(suspects.peers)}" if suspects.peers else ""
    said = f"suspects: {format_number_ranges(suspects.named)}{peers}"
    print(translated(said, arguments.language), file=sys.stderr)
    return replace(arguments, options=replace(arguments.options, ranks=suspects.ranks))


def _with_secrets(inventory: Inventory, arguments: Arguments) -> Inventory:
    """Ask for what the command line wants to be asked for; what the inventory says wins."""
    specs = inventory.specs
    if arguments.ask_password:
        password = _ask("--ask-password", "password for the hosts without one of their own: ")
        specs = tuple(
            spec if spec.local or spec.password else replace(spec, password=password) for spec in specs
        )
    if arguments.ask_passphrase:
        passphrase = _ask("--ask-passphrase", "passphrase for the private keys: ")
        specs = tuple(
            spec if spec.local else replace(spec, passphrase=spec.passphrase or passphrase) for spec in specs
        )
    return replace(inventory, specs=specs)


def _ask(option: str, prompt: str) -> str:
    if not sys.stdin.isatty():
        raise InputError(f"{option} needs a terminal", "without one, name an environment variable instead")
    try:
        return getpass.getpass(prompt)
    except EOFError:
        raise InputError(f"{option}: nothing was typed") from None


def _collect(job: _Job, shown: Display) -> Result:
    begin_s = time.monotonic()
    inventory, options = job.inventory, job.arguments.options
    work = collect(inventory.specs, job.run, options, inventory.rank_table, shown.tracker, job.origin)
    try:
        outcomes = run_interruptibly(work, shown.tick).hosts
    except InterruptedRunError as error:
        raise _interrupted(job, shown, error) from error
    stored = (
        (outcome.host, (file.source for file in outcome.files if file.state == "stored"))
        for outcome in outcomes
    )
    around = _surroundings(job, stored, time.monotonic() - begin_s)
    code = _code_of_outcomes(job, outcomes, around)
    is_empty = code == ExitCode.FAILED or not any(outcome.files.n_stored for outcome in outcomes)
    next_step = "" if is_empty else f"cluster-analyse {shlex.quote(str(job.run))}"
    if job.arguments.json:
        return Result(collection_json(outcomes, around, code), code, next_step)
    return Result(collection_text(outcomes, around), code, next_step)


def _live(job: _Job, shown: Display) -> Result:
    from cluster_collect.live.collected import Hosts  # noqa: PLC0415 - what only a capture needs
    from cluster_collect.live.command import called  # noqa: PLC0415

    assert job.arguments.live is not None
    hosts = Hosts(job.inventory.specs, job.arguments.options, job.inventory.rank_table, job.origin)
    text, code = called(hosts, job.arguments.live, job.run, shown, as_json=job.arguments.json)
    return Result(text, code)


def _look(job: _Job, shown: Display) -> Result:
    looks = run_interruptibly(look(job.inventory.specs, job.arguments.options, shown.tracker), shown.tick)
    is_check = job.arguments.options.check
    found = ((one.outcome.host, (file.source for file in one.files)) for one in looks)
    around = _surroundings(job, None if is_check else found)
    code = _code_of_looks(looks, around)
    if job.arguments.json:
        return Result((check_json if is_check else plan_json)(looks, around, code), code)
    return Result((check_text if is_check else plan_text)(looks, around), code)


def _surroundings(
    job: _Job, sources: Iterable[tuple[HostId, Iterable[str]]] | None, seconds: float = 0.0
) -> Surroundings:
    """Return what a summary knows.

    `sources` are each host's files that came, or would come; None if the hosts were not asked.
    """
    options = job.arguments.options
    asked = options.whole_ranks | (options.ranks or frozenset())
    absent = frozenset[int]()
    if sources is not None and asked:
        devices = {spec.host: spec.device_ranks for spec in job.inventory.specs}
        absent = asked.difference(*(ranks_of(files, devices.get(host)) for host, files in sources))
    return Surroundings(
        run=job.run,
        seconds=seconds,
        free_bytes=_free_bytes(job.run),
        min_free_bytes=options.min_free_bytes,
        specs={spec.host: spec for spec in job.inventory.specs},
        missing=job.missing,
        absent_ranks=format_number_ranges(absent),
        warnings=job.warnings,
        are_reduced=options.columns,
        language=job.arguments.language,
    )


def _free_bytes(run: Path) -> int | None:
    """Return the free space where the run directory is, or will be."""
    for directory in (run, *run.absolute().parents):
        try:
            return shutil.disk_usage(directory).free
        except OSError:
            continue
    return None


def _code_of_outcomes(job: _Job, outcomes: Sequence[HostOutcome], around: Surroundings) -> ExitCode:
    """Return the code for this call's hosts and for those that earlier calls left in the run directory."""
    asked = {spec.host for spec in job.inventory.specs}
    if all(outcome.state == "failed" for outcome in outcomes if outcome.host in asked):
        return ExitCode.FAILED
    whole = all(
        outcome.state == "complete" and all(file.state == "skipped" for file in outcome.files.not_stored)
        for outcome in outcomes
    )
    return ExitCode.DONE if whole and not around.lacks_something else ExitCode.INCOMPLETE


def _code_of_looks(looks: Sequence[HostLook], around: Surroundings) -> ExitCode:
    n_failed = sum(bool(one.outcome.reason) for one in looks)
    if n_failed == len(looks):
        return ExitCode.FAILED
    return ExitCode.INCOMPLETE if n_failed or around.lacks_something else ExitCode.DONE


def _interrupted(job: _Job, shown: Display, error: InterruptedRunError) -> InterruptedRunError:
    """Return the error that says how far it came, and the command that goes on from there."""
    tally = shown.tracker.tally
    argv = list(job.argv)
    if job.arguments.output is None and job.inventory.output is None:
        argv += ["--output", str(job.run)]
    return InterruptedRunError(
        f"{error.message}: {tally.n_hosts_done} of {tally.n_hosts} hosts done, what was collected is kept",
        f"go on with: cluster-collect {shlex.join(argv)}",
    )
