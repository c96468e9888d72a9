"""Executes docs/tutorial.ipynb and stores what its cells show.

python -m tools.renew_tutorial

A cell shows what it prints and the value of its last line, as text and as what the value says of itself in
HTML or PNG. That is all the tutorial needs of a kernel.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.ipynb"
#: Not those of the terminal in which it is executed.
_DISPLAY = ("display.width", 110, "display.max_columns", 20, "display.max_colwidth", 60)


def executed(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the notebook with new outputs; what it writes goes into `folder`."""
    scope: dict[str, object] = {}
    cells = list[dict[str, Any]]()
    before = Path.cwd()
    os.chdir(folder)
    try:
        with pd.option_context(*_DISPLAY):
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    number = 1 + sum(one["cell_type"] == "code" for one in cells)
                    outputs = list(_outputs(cell["source"], scope, number))
                    cells.append({**cell, "execution_count": number, "outputs": outputs})
                else:
                    cells.append(cell)
    finally:
        os.chdir(before)
    return {**notebook, "cells": cells}


def _outputs(source: str, scope: dict[str, object], number: int) -> Iterator[dict[str, Any]]:
    tree, value, printed = ast.parse(source), None, io.StringIO()
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "tutorial", "exec"), scope)  # noqa: S102 - our own document
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "tutorial", "eval"), scope)  # noqa: S307 - as above
    if printed.getvalue():
        yield {"output_type": "stream", "name": "stdout", "text": printed.getvalue()}
    if value is not None:
        shown = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
        yield {**shown, "data": _data(value)}


def _data(value: Any) -> dict[str, str]:
    data = {"text/plain": repr(value)}
    if hasattr(value, "_repr_png_"):
        # A picture's own text is where it lies in memory.
        data = {"text/plain": f"<{type(value).__name__}>"}
        data["image/png"] = base64.b64encode(value._repr_png_()).decode()
    elif hasattr(value, "_repr_html_"):
        html = value._repr_html_()
        data |= {"text/html": html} if html else {}
    return data


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as given:
        found = executed(json.loads(PAGE.read_text("utf-8")), Path(given))
    PAGE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(PAGE)
