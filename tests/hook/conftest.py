"""Settings for the tests of the hook."""

from __future__ import annotations

from hypothesis import settings

# No test asserts a time, and hypothesis would by default.
settings.register_profile("hook", deadline=None)
settings.load_profile("hook")
