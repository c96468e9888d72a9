"""Where the documents say what a kind of finding means, and what to do about it."""

from __future__ import annotations

import os

from cluster_analysis.sentences.phrase import Phrase
from cluster_run.kinds import Kind

#: The address of the site that `make docs` builds, where there is one; the site of the documents uses it too.
BASE_VARIABLE = "CLUSTER_PROFILER_DOCS_URL"


def page_of(kind: Kind) -> Phrase:
    """Return the page of a kind of finding, in both languages.

    Without a site it is the file of the documents, as it lies in the repository.
    """
    base = os.environ.get(BASE_VARIABLE, "").rstrip("/")
    folder, suffix = (base, "html") if base else ("docs", "md")
    return Phrase(f"{folder}/findings.{suffix}#{kind}", f"{folder}/zh/findings.{suffix}#{kind}")
