"""`cluster-collect --live N`: from the request to the texts of the result."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from cluster_collect.live.collected import Hosts, Taken, analysed, taken
from cluster_collect.live.options import LiveOptions
from cluster_collect.live.outcome import Captured, Lost
from cluster_collect.live.prepare import earlier_bytes, found, peeked
from cluster_collect.live.sessions import opened_sessions
from cluster_collect.runner import run_interruptibly
from cluster_collect.show.progress import Display
from cluster_collect.wording import format_bytes, format_seconds
from cluster_run.errors import ExitCode, worst
from cluster_run.ids import HostId
from cluster_run.layout import ANALYSIS_OUTPUT_NAME, REPORT_NAME
from cluster_run.said.chinese import Language, translated, word

SCHEMA = "cluster-live/1"
#: Time that the job loses by starting and stopping the profiler, in seconds.
_OVERHEAD_S = 2.0
#: From the call to the start of a capture, beside two polls of the job.
_BEFORE_S = 6.0


def called(
    hosts: Hosts, live: LiveOptions, run: Path, shown: Display, *, as_json: bool
) -> tuple[str, ExitCode]:
    """Do what the command line asks for; return what is printed on stdout, and the exit code.

    Raises:
        ClusterError: it could not be done, or was interrupted; nothing is left pending in the job.
    """

    def say(line: str) -> None:
        print(translated(line, live.language), file=sys.stderr, flush=True)

    if hosts.options.dry_run:
        return translated(run_interruptibly(previewed(hosts, live), shown.tick), live.language), ExitCode.DONE
    if live.every_s is not None:
        from cluster_collect.live.watch import watch  # noqa: PLC0415 - it speaks of findings, and brings what that needs

        return watch(hosts, live, run, shown, say)
    result = run_interruptibly(taken(hosts, live, run, shown.tracker, say), shown.tick)
    text = described(result.captured, hosts.names, live.language)
    if as_json:
        text = json.dumps(document(result, hosts.names), indent=1) + "\n"
    code = ExitCode.INCOMPLETE if result.partial else ExitCode.DONE
    if as_json:
        return text, code
    print(text, end="", file=sys.stderr)
    if result.zoomed is not None:
        analysed(result.zoomed)
        say(f"the suspects in detail: {result.zoomed.run / ANALYSIS_OUTPUT_NAME / REPORT_NAME}")
    return "", worst(code, analysed(result, live.language)[0])


async def previewed(hosts: Hosts, live: LiveOptions) -> str:
    """Return what a capture would do, how long it would take and how much it would bring; nothing is sent."""
    async with opened_sessions(hosts.specs, hosts.options, live.quorum) as sessions:
        prepared = await found(sessions, {spec.host: spec for spec in hosts.specs}, live)
        paces = await peeked(prepared)
        targets = [prepared.targets[host] for host in sessions.hosts]
        n_ranks = sum(len(target.ranks) for target in targets)
        lines = [
            f"{targets[0].job.text}: {n_ranks} ranks on {len(targets)} of {len(sessions.names)} hosts, "
            f"by way of {', '.join(sorted({target.way for target in targets}))}"
        ]
        lines += [f"{sessions.names[host]}: {why.reason}" for host, why in sessions.lost.items()]
        n = live.n_steps + live.warmup
        if paces:
            step_s = max(pace.step_s for pace in paces.values())
            poll_s = max(pace.poll_s for pace in paces.values())
            lines.append(
                f"would capture {live.n_steps} steps of about {format_seconds(step_s)} after {live.warmup} "
                f"to warm up: the job runs captured for {format_seconds(n * step_s + _OVERHEAD_S)}, "
                f"{format_seconds(2 * poll_s + _BEFORE_S)} from now"
            )
        else:
            lines.append(
                f"would capture {live.n_steps} steps; how long one takes is not known before the job is asked"
            )
        seen = await earlier_bytes(prepared)
        lines.append(
            f"about {format_bytes(seen * n_ranks * live.n_steps)} on the hosts, as an earlier one took "
            f"{format_bytes(seen)} a rank and step"
            if seen
            else "how many bytes is not known: there is no earlier capture of this command"
        )
        return "\n".join([*lines, "nothing was sent"]) + "\n"


def document(result: Taken, names: Mapping[HostId, str]) -> Mapping[str, object]:
    """Return a capture as a JSON object, for programs."""
    captured = result.captured
    return {
        "schema": SCHEMA,
        "id": captured.id,
        "steps": list(captured.steps),
        "hosts": [names[host] for host in captured.hosts],
        "lost": {names[host]: asdict(why) for host, why in captured.lost.items()},
        "n_bytes": captured.n_bytes,
        "busy_s": round(captured.busy_s, 3),
        "step_s": round(captured.step_s, 6),
        "notes": list(captured.notes),
        "run": str(result.run),
        "zoomed": None if result.zoomed is None else document(result.zoomed, names),
    }


def described(captured: Captured, names: Mapping[HostId, str], language: Language) -> str:
    """Return the text on a capture: the steps, the hosts, which ones are missing and why."""
    n_all = len(captured.hosts) + len(captured.lost)
    lines = [
        f"captured steps {captured.steps[0]}–{captured.steps[-1]} on {len(captured.hosts)} of {n_all} hosts: "
        f"{format_bytes(captured.n_bytes)}, the job ran captured for {format_seconds(captured.busy_s)}"
    ]
    lines += [
        f"{names[host]}: {word(why.word, language)}: {why.reason}{_advice(why)}"
        for host, why in captured.lost.items()
    ]
    lines += [f"note: {note}" for note in captured.notes]
    return translated("\n".join(lines) + "\n", language)


def _advice(why: Lost) -> str:
    return f"\n  → {why.advice}" if why.advice else ""
