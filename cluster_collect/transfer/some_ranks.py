"""What the manifest says of a host that was asked for some ranks only: how whole all its data are."""

from __future__ import annotations

from dataclasses import replace

from cluster_collect.store.journal import Journal
from cluster_run.manifest import CollectedFile, FileList, HostOutcome


def with_all_ranks(outcome: HostOutcome, journal: Journal) -> HostOutcome:
    """Return how the call before left the host, with the files that are there now.

    A file that could not be fetched in another form is still there in the form that it had. A host of
    which nothing was there is told as it is now.
    """
    earlier = journal.earlier.get(outcome.server_id)
    if earlier is None or earlier.state == "failed":
        return outcome
    there = {file.source for file in journal.kept(outcome.server_id, ())}
    before = {file.source: file for file in earlier.files}

    def as_it_is(file: CollectedFile) -> CollectedFile:
        return before.get(file.source, file) if file.state == "failed" and file.source in there else file

    asked = {file.source for file in outcome.files}
    others = [file for file in earlier.files if file.source not in asked and file.state != "stored"]
    return replace(earlier, files=FileList([*map(as_it_is, outcome.files), *others]))
