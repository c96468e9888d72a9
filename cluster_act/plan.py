"""Decides which cases are acted on, and why others are not. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cluster_act.values import Case, Planned
from cluster_fleet.identity import is_hash
from cluster_fleet.judging.probes import CLEARED, CONFIRMED, probes_of
from cluster_words.headings import of_act

DAY_S = 86400.0
#: States of an action that stands: `intended` may have been done before we were killed.
STANDING = ("intended", "done")
_NODE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def planned(
    cases: Sequence[Case], past: Sequence[Mapping[str, Any]], way: str, *,
    budget: int, now_s: float, unconfirmed: bool,
) -> list[Planned]:  # fmt: skip
    """Decide about each case, in order.

    Args:
        cases: the costliest first.
        past: actions of the audit log, as the fleet gives them.
        way: how it would be done.
        budget: most nodes within 24 hours, by all ways together.
        now_s: seconds since 1970.
        unconfirmed: whether one run is enough.
    """
    standing = {(one["way"], one["node"], one["unit"]): one["state"] for one in past if is_standing(one)}
    spent = {one["node"] for one in past if now_s - one["at_s"] < DAY_S and one["state"] in STANDING}
    probed = probes_of(past, now_s)
    found = []
    for case in cases:
        of_probe = probed.get(f"{case.node}:{case.device}")
        key = (way, case.node, case.unit)
        why = None
        if standing.get(key) == "done":
            why = of_act("done_already")
        elif not has_name(case):
            why = of_act("namesake" if case.has_namesake else "no_name")
        elif of_probe == CLEARED:
            why = of_act("cleared")
        elif not case.is_confirmed and not unconfirmed and of_probe != CONFIRMED:
            why = of_act("unconfirmed")
        elif case.node not in spent and len(spent) >= budget and key not in standing:
            why = of_act("budget", n=budget)
        else:
            spent.add(case.node)
        found.append(Planned(case, why))
    return found


def has_name(case: Case) -> bool:
    """Whether its node can be named to others: by a name, not by a hash of its address, and it alone."""
    return _NODE.fullmatch(case.node) is not None and not is_hash(case.node) and not case.has_namesake


def is_standing(action: Mapping[str, Any]) -> bool:
    """Whether an action of the log was done, or may have been, and was not undone."""
    return action["state"] in STANDING and action["undone_s"] is None
