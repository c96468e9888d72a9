"""communication_matrix.json by the compiled reader: a link a row, in the file's order, without totals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources.compiled.arrays import texts
from cluster_analysis.sources.compiled.operator_columns import Levels, shared
from cluster_analysis.sources.compiled.reader import compiled
from cluster_analysis.sources.link_names import LinkNames, links_table

_Codes = npt.NDArray[np.int32]


class LinkColumns:
    """The columns of one file."""

    def __init__(self, given: Mapping[str, Any], levels: Levels) -> None:
        self.given = given
        self.steps = levels.steps
        self.is_p2p = levels.is_p2p
        self.has_missing = bool(given["n_missing"])
        self.has_negative = bool(given["n_negative"])


def link_columns(content: bytes, steps: frozenset[int] | None) -> LinkColumns | None:
    """Return the links of a communication_matrix.json; None where Python must read it.

    That is: there is no compiled reader, the file is not of the plain form, or steps of it are left out.
    """
    compiled_reader = compiled()
    given = None if compiled_reader is None else compiled_reader.links(content)
    if given is None:
        return None
    levels = Levels(given)
    return LinkColumns(given, levels) if levels.all_in(steps) else None


def links_of(files: Sequence[LinkColumns], ranks: Sequence[int]) -> pa.Table:
    """Return LINKS of one or more files, each of its rank, one file behind the other."""
    counts = [len(one.steps) for one in files]
    keys, known_keys, of_file = _keys(files)
    given = [one.given for one in files]
    operators, known_operators = shared(given, "operators", "operator_names")
    transports, known_transports = shared(given, "transports", "transport_names")
    described = LinkNames(keys, known_keys, of_file, operators, known_operators).described()
    filed_p2p = pa.array(np.concatenate([one.is_p2p for one in files]))
    transport = pa.array(transports, mask=transports < 0)
    columns = {
        "rank": pa.array(np.repeat(np.array(ranks, np.int32), counts)),
        "step": pa.array(np.concatenate([one.steps for one in files])),
        "src_local": pa.array(_joined(files, "sources", np.int32)),
        "dst_local": pa.array(_joined(files, "destinations", np.int32)),
        "transport": pa.DictionaryArray.from_arrays(transport, pa.array(known_transports, pa.string())),
        "size_bytes": pa.array(_joined(files, "sizes_bytes", np.float64), from_pandas=True),
        "time_us": pa.array(_joined(files, "times_us", np.float64), from_pandas=True),
    }
    return links_table(described, filed_p2p, columns)


def _joined(files: Iterable[LinkColumns], name: str, kind: type[np.generic]) -> npt.NDArray[Any]:
    return np.frombuffer(b"".join([one.given[name] for one in files]), kind)


def _keys(files: Sequence[LinkColumns]) -> tuple[_Codes, list[str], list[int]]:
    """Return the key of each row, the keys of all files, and the file of each of these."""
    known = [texts(one.given["key_names"]).to_pylist() for one in files]
    counts = [len(one) for one in known]
    begins = np.cumsum([0, *counts[:-1]], dtype=np.int32)
    rows = [np.frombuffer(one.given["keys"], np.int32) for one in files]
    shifted = [codes + begin for codes, begin in zip(rows, begins, strict=True)]
    files_of_keys = np.repeat(np.arange(len(files)), counts).tolist()
    return np.concatenate(shifted), list(chain.from_iterable(known)), files_of_keys
