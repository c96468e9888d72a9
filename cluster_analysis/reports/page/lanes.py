"""One step as lanes, ready to be drawn: a byte a cell, and the critical path."""

from __future__ import annotations

import numpy as np

from cluster_analysis.reports.page.picture import Picture
from cluster_analysis.result import AnalysisResult


def build_lanes(result: AnalysisResult) -> Picture:
    """Return the lanes of the step that was replayed for them."""
    table, path = result.tables.get("lanes"), result.tables.get("critical_path")
    if table is None or path is None or not table.num_rows:
        return Picture({"lanes": None}, {})
    lanes = {
        "step": table["step"][0].as_py(),
        "cell_us": table["cell_us"][0].as_py(),
        "ranks": table["rank"].to_pylist(),
        "path": [
            [row["rank"], round(row["begin_us"], 1), round(row["end_us"], 1), row["kind"] == "work"]
            for row in path.to_pylist()
        ],
    }
    cells = np.frombuffer(b"".join(table["cells"].to_pylist()), np.uint8)
    return Picture({"lanes": lanes}, {"lanes.cells": cells})
