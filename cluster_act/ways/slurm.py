"""Drains nodes of Slurm: what runs there may end, nothing new begins. Never from a prolog or epilog."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass

from cluster_act.values import Case, RefusedError, is_ours, reason_of
from cluster_act.ways.process import asked_about_node, run

#: Set by Slurm in its prologs and epilogs, which must not call Slurm's commands.
_IN_SCRIPT = "SLURM_SCRIPT_CONTEXT"
_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})


@dataclass(frozen=True)
class Slurm:
    """`drain_busy`: nodes on which jobs run are drained too; those jobs end by themselves."""

    drain_busy: bool = False

    def check(self) -> None:
        """Refuse where Slurm's commands may not be called, or are not there."""
        if _IN_SCRIPT in os.environ:
            raise RefusedError(
                f"this is Slurm's {os.environ[_IN_SCRIPT]}, which must not drain nodes",
                "call it by a timer, as the drain of cluster-hook is",
            )
        run(["scontrol", "--version"], changes=False)

    def described(self, case: Case) -> tuple[str, str]:
        """Return both command lines."""
        return shlex.join(_drain(case)), shlex.join(_resume(case))

    def apply(self, case: Case) -> str:
        """Drain the node, unless somebody else has, or jobs run there."""
        states, reason = _node(case.node)
        if "DRAIN" in states:
            if is_ours(reason, case):
                return f"{case.node} is drained already"
            raise RefusedError(f"{case.node} is drained by somebody else: {reason}")
        if states & _BUSY and not self.drain_busy:
            raise RefusedError(
                f"jobs run on {case.node}", "call it again when they have ended, or with --drain-busy"
            )
        run(_drain(case), changes=True)
        return f"{case.node} drained"

    def undo(self, case: Case) -> str:
        """Let the node work again, if it is drained for our reason."""
        states, reason = _node(case.node)
        if "DRAIN" not in states:
            return f"{case.node} is not drained any more"
        if not is_ours(reason, case):
            raise RefusedError(f"{case.node} is drained for another reason: {reason}")
        run(_resume(case), changes=True)
        return f"{case.node} resumed"


def _drain(case: Case) -> list[str]:
    return ["scontrol", "update", f"nodename={case.node}", "state=drain", f"reason={reason_of(case)[:200]}"]


def _resume(case: Case) -> list[str]:
    return ["scontrol", "update", f"nodename={case.node}", "state=resume"]


def _node(name: str) -> tuple[frozenset[str], str]:
    """Return the states of a node, and the reason that Slurm has for them."""
    text = asked_about_node(["scontrol", "-o", "show", "node", name])
    state = re.search(r"\bState=(\S+)", text)
    if state is None:
        raise RefusedError(f"Slurm knows no node {name}")
    reason = re.search(r"\bReason=(.*?)(?: \[[^\]]*\])?\s*$", text)
    return frozenset(re.split(r"[^A-Z]+", state[1])), "" if reason is None else reason[1]
