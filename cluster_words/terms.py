"""Words of the field in both languages. The Chinese ones are those of MindStudio Insight and CANN."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_words.texts import Template, texts

_SAID = texts("terms")
#: Roles of groups (the words follow "each"), and kinds of records in files.
TERMS: Mapping[str, Template] = _SAID["terms"]
#: Ranks that do the same work: what they are part of.
ROLES: Mapping[str, Template] = _SAID["roles"]
#: Measures that the fleet compares over runs; the word is that of a transport.
METRICS: Mapping[str, Template] = _SAID["metrics"]
#: Healthy, degraded and unknown differ by sign too: colour alone is not enough.
VERDICT_SIGNS = {"healthy": "✓", "degraded": "▲", "unknown": "?"}
#: Kind of a finding, in two words.
KINDS: Mapping[str, Template] = _SAID["kinds"]
CAUSES: Mapping[str, Template] = _SAID["causes"]
PATTERNS: Mapping[str, Template] = _SAID["patterns"]
CONFIDENCES: Mapping[str, Template] = _SAID["confidences"]
#: Causes of a step's loss.
LOST: Mapping[str, Template] = _SAID["lost"]
