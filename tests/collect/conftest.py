"""What holds for all tests of the collector."""

from __future__ import annotations

from hypothesis import settings

# On a loaded machine any example may take long; the time limit of a test is pytest's business.
settings.register_profile("without a deadline", deadline=None)
settings.load_profile("without a deadline")
