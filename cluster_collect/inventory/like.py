"""`--like RUN`: collect a run directory's hosts and captures again, in another form or some ranks only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path

from cluster_collect.entries import captures_of_ranks, group_of
from cluster_collect.inventory.build import Inventory
from cluster_collect.inventory.load import InventoryRequest
from cluster_collect.inventory.nodesets import fold
from cluster_run.errors import InputError
from cluster_run.ids import format_number_ranges
from cluster_run.layout import MANIFEST_NAME
from cluster_run.manifest import HostOutcome, Manifest, Origin, read_manifest


@dataclass(frozen=True)
class Like:
    """The run directory that a call is to be like."""

    run: Path
    manifest: Manifest

    def request(self, given: InventoryRequest) -> InventoryRequest:
        """Return how its hosts were named; what is `given` stands above it.

        Raises:
            InputError: the manifest does not say, or names a file that is gone, and nothing is given.
        """
        origin = self._origin
        names_hosts = given.file is not None or given.hosts is not None
        if not (names_hosts or origin.inventory or origin.hosts or origin.rank_table):
            raise InputError(
                f"{self.run}: its manifest does not say how its hosts were named",
                "give the inventory that it was collected with: --inventory FILE",
            )
        if origin.inventory and not names_hosts and not Path(origin.inventory).exists():
            raise InputError(
                f"{origin.inventory}: the inventory does not exist", "name where it is now: --inventory FILE"
            )
        table = self.run / origin.rank_table
        return InventoryRequest(
            file=given.file if names_hosts or not origin.inventory else Path(origin.inventory),
            hosts=given.hosts if names_hosts else origin.hosts or None,
            rank_table=given.rank_table or (table if origin.rank_table and table.is_file() else None),
            defaults={**origin.host_defaults, **given.defaults},
            directory=given.directory if names_hosts else Path(origin.directory),
        )

    def environment(self, own: Mapping[str, str]) -> Mapping[str, str]:
        """Return the environment, with the variables that paths were filled in with then."""
        return {**own, **self._origin.variables}

    def narrowed(self, inventory: Inventory, ranks: Set[int] | None) -> Inventory:
        """Return the hosts that hold captures of `ranks` (None: of any), each with those captures.

        Nothing is prepared again: the files are there.

        Raises:
            InputError: no file of the run tells one of the ranks, or no host of it is in the inventory.
        """
        device_ranks = {spec.server_id: spec.device_ranks for spec in inventory.specs}
        wanted = {
            outcome.server_id: captures
            for outcome in self.manifest.hosts
            if (captures := _captures(outcome, ranks, device_ranks.get(outcome.server_id)))
        }
        if not wanted:
            raise InputError(self._why_none(ranks), "--what GLOB and --capture take captures by their paths")
        specs = tuple(
            replace(spec, captures=wanted[spec.server_id], prepare=None)
            for spec in inventory.specs
            if spec.server_id in wanted
        )
        absent = sorted(set(wanted) - {spec.server_id for spec in specs})
        if not specs:
            raise InputError(f"{fold(absent)} of {self.run} is no host of {inventory.name}")
        lost = (f"{fold(absent)} of {self.run} is no host of {inventory.name}: left out",) if absent else ()
        return replace(inventory, specs=specs, warnings=(*inventory.warnings, *lost), output=self.run)

    @property
    def _origin(self) -> Origin:
        return self.manifest.origin or Origin()

    def _why_none(self, ranks: Set[int] | None) -> str:
        known = {
            rank for outcome in self.manifest.hosts for rank in captures_of_ranks(_paths(outcome)).values()
        }
        if ranks is None:
            return f"{self.run}: its manifest names no file"
        if not known:
            return f"{self.run}: the names of its files tell no rank"
        there = format_number_ranges(known)
        return f"{self.run}: it has no capture of rank {format_number_ranges(ranks)}, only of {there}"


def read_like(run: Path) -> Like:
    """Read the run directory that `--like` names.

    Raises:
        InputError: the directory has no manifest that can be read.
    """
    if not (run / MANIFEST_NAME).is_file():
        raise InputError(
            f"{run}: no run directory, for it has no {MANIFEST_NAME}",
            "name the --output of a cluster-collect that came to its end",
        )
    return Like(run, read_manifest(run / MANIFEST_NAME))


def origin_of(request: InventoryRequest, inventory: Inventory, rank_table: str) -> Origin:
    """Return how hosts were named, for the manifest; `rank_table` is its name in the run directory."""
    return Origin(
        inventory=str(request.file.absolute()) if request.file else "",
        hosts=request.hosts or "",
        directory=str(request.directory.absolute()),
        rank_table=rank_table,
        host_defaults=dict(request.defaults),
        variables=dict(inventory.variables),
    )


def _paths(outcome: HostOutcome) -> list[bytes]:
    return [os.fsencode(file.source) for file in outcome.files if file.state in ("stored", "unstable")]


def _captures(
    outcome: HostOutcome, ranks: Set[int] | None, device_ranks: Mapping[int, int] | None
) -> frozenset[str]:
    paths = _paths(outcome)
    if ranks is None:
        return frozenset(os.fsdecode(group_of(path)) for path in paths)
    known = captures_of_ranks(paths, device_ranks)
    return frozenset(os.fsdecode(group) for group, rank in known.items() if rank in ranks)
