"""communication_matrix.json by the compiled reader: a link a row, in the file's order, without totals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources.compiled.operator_columns import Levels, figures, named, whole
from cluster_analysis.sources.compiled.reader import compiled


@dataclass(frozen=True)
class LinkColumns:
    """The columns of one file; texts are dictionaries, `op_names` null where the file names no operator."""

    steps: npt.NDArray[np.int64]
    is_p2p: npt.NDArray[np.bool_]
    keys: pa.DictionaryArray
    op_names: pa.Array
    sources: pa.Array
    destinations: pa.Array
    transports: pa.DictionaryArray
    sizes_bytes: pa.Array
    times_us: pa.Array
    has_missing: bool
    has_negative: bool


def link_columns(content: bytes, steps: frozenset[int] | None) -> LinkColumns | None:
    """Return the links of a communication_matrix.json; None where Python must read it.

    That is: there is no compiled reader, the file is not of the plain form, or steps of it are left out.
    """
    compiled_reader = compiled()
    given = None if compiled_reader is None else compiled_reader.links(content)
    if given is None:
        return None
    levels = Levels(given)
    if not levels.all_in(steps):
        return None
    return LinkColumns(
        levels.steps,
        levels.is_p2p,
        named(given["keys"], given["key_names"]),
        named(given["operators"], given["operator_names"]).dictionary_decode(),
        whole(given["sources"], pa.int32()),
        whole(given["destinations"], pa.int32()),
        named(given["transports"], given["transport_names"]),
        figures(given["sizes_bytes"], given["n_missing"]),
        figures(given["times_us"], given["n_missing"]),
        bool(given["n_missing"]),
        bool(given["n_negative"]),
    )
