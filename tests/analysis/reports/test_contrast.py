"""The colours of the stylesheet: every ink is read on every ground that it stands on."""

import math
import re
from importlib.resources import files

import pytest

STYLES = files("cluster_analysis.reports").joinpath("assets/css/page.css").read_text("utf-8")
INKS = ("ink", "muted", "degraded", "critical", "healthy", "unknown", "accent")
GROUNDS = ("paper", "surface", "sunken")
#: What a verdict says stands on its own tint.
TINTED = [(one, f"{one}-soft") for one in ("healthy", "degraded", "unknown")]


def colours(theme: str) -> dict[str, str]:
    start = STYLES.index(":root {" if theme == "light" else ':root[data-theme="dark"] {')
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", STYLES[start : STYLES.index("}", start)]))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_ink_can_be_read_on_every_ground(theme):
    found = colours(theme)
    pairs = [*((ink, ground) for ink in INKS for ground in GROUNDS), *TINTED]
    pairs += [(ink, soft) for ink in ("ink", "muted") for _, soft in TINTED]
    faint = {
        (ink, ground): round(contrast(found[ink], found[ground]), 2)
        for ink, ground in pairs
        if contrast(found[ink], found[ground]) < 4.5
    }

    assert faint == {}


def contrast(one: str, other: str) -> float:
    """WCAG 2.1 contrast ratio of two #rrggbb colours."""

    def luminance(text: str) -> float:
        channels = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else math.pow((c + 0.055) / 1.055, 2.4) for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
