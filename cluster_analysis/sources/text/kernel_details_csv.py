"""kernel_details.csv: one row a kernel, in µs. Read where op_statistic.csv is missing, and summed like it;
and by name and shapes, streamed then, since a rank may have hundreds of MB of it.

Its rows of communication stand in for communication.json, which captures of Level0 do not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.errors import BadFileError, Remark, left_out
from cluster_analysis.sources.kernel_groups import KernelSums
from cluster_analysis.sources.text.csv_text import read_columns
from cluster_analysis.tables import schema
from cluster_run.facts import fact

#: Rows of these are communication operators, which communication.json holds.
_COMMUNICATION = pa.array(["HCCL", "COMMUNICATION"])
_DECIMALS = 3
#: Begin of a group's name that means something for one rank only.
OWN_GROUP_PREFIX = "rank:"

_BLOCK_BYTES = 8 * 1024 * 1024
#: Column of the file for each key of KERNELS, and for the two times.
_COLUMNS = {
    "op_type": "Type",
    "core_type": "Accelerator Core",
    "name": "Name",
    "input_shapes": "Input Shapes",
    "output_shapes": "Output Shapes",
    "op_state": "OP State",
}
_DURATION, _WAIT = "Duration(us)", "Wait Time(us)"


def read_kernel_details(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return calls and times of each kind of kernel (OPERATORS), longest first.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    text = read_columns(path, ("Type", "Accelerator Core", "Duration(us)"), remark)
    if text.num_columns < 3:
        raise BadFileError(fact("lacks_one_column", columns=("Type", "Accelerator Core", "Duration(us)")))
    durations, n_bad = numbers.to_float64(text["Duration(us)"])
    if n_bad:
        remark(left_out(n_bad, "duration", "no_number"))
    kernels = pa.table({"type": text["Type"], "core": text["Accelerator Core"], "us": durations})
    is_kernel = pc.invert(pc.is_in(kernels["core"], value_set=_COMMUNICATION))
    kernels = kernels.filter(pc.and_(is_kernel, pc.is_valid(kernels["us"])))
    summed = kernels.group_by(["type", "core"], use_threads=False).aggregate(
        [("us", "count"), ("us", "sum"), ("us", "min"), ("us", "max")]
    )
    summed = summed.sort_by([("us_sum", "descending"), ("type", "ascending"), ("core", "ascending")])
    means = pc.round(pc.divide(summed["us_sum"], pc.cast(summed["us_count"], pa.float64())), _DECIMALS)
    columns = {
        "rank": numbers.constant(rank, summed.num_rows, pa.int32()),
        "op_type": numbers.encoded(summed["type"].to_pylist()),
        "core_type": numbers.encoded(summed["core"].to_pylist()),
        "n_calls": summed["us_count"],
        "total_us": pc.round(summed["us_sum"], _DECIMALS),
        "min_us": summed["us_min"],
        "avg_us": means,
        "max_us": summed["us_max"],
    }
    return pa.table(columns, schema=schema.OPERATORS)


def read_kernel_communication(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return COLLECTIVES by start and length alone; None where the file has no row of communication.

    The name holds three digits of the group's hash, which two groups may share: so a group is of this rank
    alone, and nothing is matched over ranks.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    wanted = ("Step Id", "Name", "Accelerator Core", "Start Time(us)", "Duration(us)")
    text = read_columns(path, wanted, remark)
    if not set(wanted[1:]) <= set(text.column_names):
        return None
    text = text.filter(pc.is_in(text["Accelerator Core"], value_set=_COMMUNICATION)).combine_chunks()
    if not text.num_rows:
        return None
    starts, _ = numbers.to_ns(text["Start Time(us)"].combine_chunks())
    durations, _ = numbers.to_float64(text["Duration(us)"])
    cells = text["Step Id"].to_pylist() if "Step Id" in text.column_names else ["0"] * text.num_rows
    op_names = text["Name"].combine_chunks()
    op_types = names.operations(op_names)
    digits = pc.extract_regex(op_names, r"__(?P<group>\d+)_\d+").field("group")
    given = {
        "rank": numbers.constant(rank, text.num_rows, pa.int32()),
        "step": pa.array([numbers.parse_step(cell) for cell in cells], pa.int64()),
        "group": numbers.encoded([f"{OWN_GROUP_PREFIX}{rank}:{one or ''}" for one in digits.to_pylist()]),
        "op_name": op_names,
        "op_type": op_types,
        "op_index": names.indices_in_group(op_names),
        "is_p2p": names.point_to_point(op_types),
        "start_ns": starts,
        "elapse_us": durations,
    }
    table = pa.table(
        [given.get(one.name, pa.nulls(text.num_rows, one.type)) for one in schema.COLLECTIVES],
        schema=schema.COLLECTIVES,
    )
    return table.filter(pc.and_(pc.is_valid(table["step"]), pc.is_valid(table["elapse_us"])))


def read_kernels(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return KERNELS of one rank; None where the file lacks a column. Memory does not grow with the file.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    header = _header(path)
    if not {"Type", "Accelerator Core", "Name", _DURATION} <= set(header):
        return None
    sums = KernelSums()
    n_bad = 0
    for text in _blocks(path, header):
        durations, bad = numbers.to_float64(text[_DURATION])
        n_bad += bad
        waits = numbers.to_float64(text[_WAIT])[0] if _WAIT in header else pa.nulls(len(text), pa.float64())
        columns = {
            key: pc.replace_substring(text[name], '"', "") if name in header else pa.repeat("", len(text))
            for key, name in _COLUMNS.items()
        }
        block = pa.table({**columns, "us": durations, "wait_us": waits})
        is_kernel = pc.invert(pc.is_in(block["core_type"], value_set=_COMMUNICATION))
        sums.add(block.filter(pc.and_(is_kernel, pc.is_valid(block["us"]))))
    if n_bad:
        remark(left_out(n_bad, "duration", "no_number"))
    return sums.table(rank)


def _header(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            line = stream.readline()
    except OSError as error:
        raise BadFileError(fact("unreadable", detail=str(error.strerror))) from error
    try:
        return [name.strip().strip('"') for name in line.decode("utf-8-sig").split(",")]
    except UnicodeDecodeError as error:
        raise BadFileError(fact("not_utf8", byte=error.start)) from error


def _blocks(path: Path, header: list[str]) -> Iterator[pa.Table]:
    if len(set(header)) < len(header):
        raise BadFileError(fact("not_csv", detail="two columns have one name"))
    wanted = [name for name in (*_COLUMNS.values(), _DURATION, _WAIT) if name in header]
    try:
        reader = pa_csv.open_csv(
            path,
            read_options=pa_csv.ReadOptions(
                use_threads=False, column_names=header, skip_rows=1, block_size=_BLOCK_BYTES
            ),
            # How many lines are left out is told by whoever reads the file for its sums.
            parse_options=pa_csv.ParseOptions(invalid_row_handler=lambda _: "skip"),
            convert_options=pa_csv.ConvertOptions(
                include_columns=wanted,
                column_types={name: pa.string() for name in wanted},
                strings_can_be_null=False,
            ),
        )
        for batch in reader:
            yield pa.Table.from_batches([batch])
    except pa.ArrowInvalid as error:
        if "Empty" in str(error):
            return
        raise BadFileError(fact("not_csv", detail=str(error).splitlines()[0][:300])) from error
