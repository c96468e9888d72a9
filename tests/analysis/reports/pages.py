"""Reports of results, as their readers see them: the page without a browser, the terminal, the ticket."""

import base64
import json
import struct
import zlib
from html.parser import HTMLParser

import numpy as np

from cluster_analysis.judge.baseline import Comparison
from cluster_analysis.reports import html, markdown, terminal
from cluster_analysis.result import AnalysisResult, Reported, Shown
from cluster_run.said.chinese import Language


def page_of(result: AnalysisResult, since: Comparison | None = None) -> bytes:
    ((_, page),) = html.files(Reported(result, since))
    return page


def on_terminal(
    result: AnalysisResult,
    width: int = 200,
    since: Comparison | None = None,
    language: Language = "en",
    *,
    colour: bool = False,
) -> str:
    return terminal.text(Reported(result, since), Shown(language, width, colour))


def ticket_of(result: AnalysisResult, since: Comparison | None = None, language: Language = "en") -> str:
    return markdown.ticket_of(Reported(result, since), language)


class Elements(HTMLParser):
    """All elements of a page, and its text outside scripts and styles, in one of its languages."""

    def __init__(self, page: str, language: str = "en") -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._silent = False
        self._language = language
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._silent = tag in ("script", "style")
        if self._language == "zh":
            self.text += _plain(dict(attrs).get("data-zh") or "")

    def handle_endtag(self, tag):
        self._silent = False

    def handle_data(self, data):
        if not self._silent:
            self.text += _plain(data)


def _plain(text: str) -> str:
    """Return a text with the blanks that keep a number and its unit together as plain ones."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def unpack(text: str) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """Read what `pack` wrote as the page's script does: the header without its layout, and the columns."""
    content = zlib.decompress(base64.b64decode(text))
    (length,) = struct.unpack_from("<I", content)
    header = json.loads(content[8 : 8 + length])
    start = 8 + -(-length // 8) * 8
    columns = {
        name: np.frombuffer(content, f"<{short}" if short != "u1" else "u1", count, start + offset)
        for name, (short, offset, count) in header.pop("columns").items()
    }
    return header, columns
