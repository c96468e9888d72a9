"""One time for all pages: they say when the analysis was, and here they are compared byte for byte."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster_analysis.run_header import EPOCH_VARIABLE


@pytest.fixture(scope="session", autouse=True)
def _one_time() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(EPOCH_VARIABLE, "1700000000")
        yield
