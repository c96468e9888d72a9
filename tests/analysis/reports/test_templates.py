"""Compiled templates are kept, and never stand in for another text."""

from __future__ import annotations

import sys
from pathlib import Path

import jinja2
import pytest

from cluster_analysis.reports.templates import KeptTemplates, compile_all


def _rendered(folder: Path, text: str) -> str:
    environment = jinja2.Environment(
        loader=jinja2.DictLoader({"page": text}), bytecode_cache=KeptTemplates(folder), autoescape=True
    )
    return environment.get_template("page").render(name="<rank 3>")


def test_a_compiled_template_is_kept_and_made_anew_for_another_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    folder = tmp_path / "kept"
    first = [_rendered(folder, "{{ name }} is slow") for _ in range(2)]
    assert first == ["&lt;rank 3&gt; is slow"] * 2
    (kept,) = folder.iterdir()
    before = kept.read_bytes()
    assert _rendered(folder, "{{ name }} is healthy") == "&lt;rank 3&gt; is healthy"
    assert kept.read_bytes() != before


def test_what_was_kept_and_is_damaged_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    text = "{{ name }} is slow"
    _rendered(tmp_path, text)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:40])
    assert _rendered(tmp_path, text) == "&lt;rank 3&gt; is slow"


def test_where_nothing_may_be_kept_templates_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "file").write_text("no folder")
    assert _rendered(tmp_path / "file" / "kept", "{{ name }}") == "&lt;rank 3&gt;"


def test_every_template_compiles() -> None:
    compile_all()
