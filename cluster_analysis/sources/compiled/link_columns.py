"""communication_matrix.json by the compiled reader: a link a row, in the files' order, without totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cluster_analysis.sources.compiled.arrays import array, texts
from cluster_analysis.sources.compiled.operator_columns import RowPlaces
from cluster_analysis.sources.compiled.operator_names import operations_by_stem
from cluster_analysis.sources.compiled.reader import compiled
from cluster_analysis.sources.link_names import LinkNames, links_table


class LinkColumns:
    """The columns of some files, one behind the other."""

    def __init__(self, given: Mapping[str, Any], levels: RowPlaces, ranks: Sequence[int]) -> None:
        self._given = given
        self._levels = levels
        self._ranks = ranks
        #: Of each file how many links it has.
        self.counts = levels.counts
        #: Which rows are of which file and step.
        self.layout = levels.layout

    def links(self) -> pa.Table:
        """Return LINKS, laid by step."""
        given = self._given
        owners = self._levels.owners
        stems, stem_names = given["operator_stems"]
        names = LinkNames(
            array(given["keys"], np.int32),
            texts(given["key_names"]).to_pylist(),
            owners,
            array(given["operators"], np.int32),
            texts(given["operator_names"]),
            operations_by_stem(array(stems, np.int32), texts(stem_names).to_pylist()),
        )
        transports = array(given["transports"], np.int32)
        columns = {
            "rank": pa.array(np.array(self._ranks, np.int32)[owners]),
            "step": pa.array(self._levels.steps),
            "src_local": pa.array(array(given["sources"], np.int32)),
            "dst_local": pa.array(array(given["destinations"], np.int32)),
            "transport": pa.DictionaryArray.from_arrays(
                pa.array(transports, mask=transports < 0), texts(given["transport_names"])
            ),
            "size_bytes": pa.array(array(given["sizes_bytes"], np.float64), from_pandas=True),
            "time_us": pa.array(array(given["times_us"], np.float64), from_pandas=True),
        }
        return links_table(names.described(), pa.array(self._levels.is_p2p), columns)


def links_of_files(
    paths: Sequence[str], ranks: Sequence[int], steps: frozenset[int] | None = None
) -> LinkColumns | None:
    """Return the links of the files of one or more ranks; None where Python must read one of them.

    That is: there is no compiled reader, a file is not of the plain form, there is something to report, or
    steps of it are left out.

    Args:
        paths: where they are; one at a time is in memory.
        ranks: whose they are.
        steps: the steps that are wanted; None for all.
    """
    compiled_reader = compiled()
    if compiled_reader is None:
        return None
    given = compiled_reader.links(paths)
    levels = None if given is None else RowPlaces(given)
    return None if levels is None or not levels.are_plain(steps) else LinkColumns(given, levels, ranks)
