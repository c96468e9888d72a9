"""Acts by a command of the site's own; what it is to do stands in its environment."""

from __future__ import annotations

from dataclasses import dataclass

from cluster_act.values import Case, reason_of
from cluster_act.ways.process import run, words


@dataclass(frozen=True)
class Command:
    """`line` is split as a shell would, and no shell runs it; `apply` or `undo` is its last argument."""

    line: str

    def check(self) -> None:
        """Refuse without a command that can be read."""
        words(self.line, "--command")

    def described(self, case: Case) -> tuple[str, str]:
        """Return both command lines."""
        return f"{self.line} apply  # for {case.node}", f"{self.line} undo  # for {case.node}"

    def apply(self, case: Case) -> str:
        """Call it with `apply`."""
        return self._call(case, "apply")

    def undo(self, case: Case) -> str:
        """Call it with `undo`."""
        return self._call(case, "undo")

    def _call(self, case: Case, verb: str) -> str:
        variables = {
            "CLUSTER_ACT_NODE": case.node,
            "CLUSTER_ACT_DEVICE": "" if case.device is None else str(case.device),
            "CLUSTER_ACT_UNIT": case.unit,
            "CLUSTER_ACT_REASON": reason_of(case),
            "CLUSTER_ACT_TOKEN": case.token,
        }
        argv = [*words(self.line, "--command"), verb]
        said = run(argv, changes=True, environment=variables).strip().splitlines()
        return f"{case.node}: {verb}: {said[-1] if said else 'done'}"
