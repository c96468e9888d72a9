"""Acts by a command of the site's own; what it is to do stands in its environment."""

from __future__ import annotations

import shlex

from cluster_act.values import Case, reason_of
from cluster_act.ways.process import run, words


class Command:
    """A line is split as a shell would, and no shell runs it; `apply` or `undo` is its last argument."""

    def __init__(self, line: str) -> None:
        """Take the words of the line; raise a UsageError where there are none."""
        self._argv = words(line, "--command")

    def check(self) -> None:
        """Nothing can be said of a command of the site's own before it runs."""

    def described(self, case: Case) -> tuple[str, str]:
        """Return both command lines."""
        line = shlex.join(self._argv)
        return f"{line} apply  # for {case.node}", f"{line} undo  # for {case.node}"

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
        said = run([*self._argv, verb], changes=True, environment=variables).strip().splitlines()
        return f"{case.node}: {verb}: {said[-1] if said else 'done'}"
