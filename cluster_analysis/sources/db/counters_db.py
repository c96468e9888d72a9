"""Reads what databases say of a capture as a whole: clock, retries, the data loader, counters of links.

Links are network cards, and ports of HCCS, UB and SIO.

NETDEV_STATS holds what came since the sample before (msprof subtracts), so it is summed. For ROCE and NIC it
is not known whether they accumulate, so the largest sample is taken: a lower bound. Of bandwidths the largest
sample shows what a port can do; the mean would show how busy it was. These tables were made after msprof's,
not seen for real.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.db.tasks import OPERATOR, TASK, last_task_ns
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.names import DATA_LOADER
from cluster_analysis.tables.schema import Counter

#: Columns of NETDEV_STATS for each metric.
_SUMMED = {
    "roce_resent_packets_count": ("roceNewPktRty",),
    "roce_bad_packets_count": ("roceTxErrPkt", "roceRxErrPkt"),
    "roce_congestion_packets_count": ("roceTxCnpPkt", "roceRxCnpPkt"),
    "mac_pause_frames_count": ("macTxPfcPkt", "macRxPfcPkt"),
    "mac_bad_bytes": ("macTxBadByte", "macRxBadByte"),
}
#: Columns of ROCE and NIC.
_LARGEST = {"nic_errors_count": ("rxErrors", "txErrors"), "nic_dropped_count": ("rxDropped", "txDropped")}
#: Key of a port, and the columns of bandwidths. Only those of HCCS have a documented unit.
_PORTS = {
    "HCCS": ("0", ("txThroughput", "rxThroughput")),
    "UB": ("portId", ("txUdmaBind", "rxUdmaBind")),
    "SIO": ("name", ("txDat", "rxDat")),
}


def read_task_counters(path: Path, remark: Remark) -> list[Counter]:
    """Return the clock of the AI cores, and operators that were sent again or went another way."""
    found: list[Counter] = []
    with open_database(path, remark) as database:
        if database.has("AICORE_FREQ", "freq"):
            found += _clock(database)
        if database.has("PYTORCH_API", "startNs", "endNs", "name"):
            span = "CAST(endNs AS INTEGER) - CAST(startNs AS INTEGER)"
            (spent,) = database.rows(
                f"SELECT TOTAL({span}) FROM PYTORCH_API JOIN STRING_IDS ON id = name WHERE value LIKE ?",
                (f"{DATA_LOADER}%",),
            )[0]
            found.append(("data_loader_us", "", float(spent) / numbers.NS_PER_US))
        for column in ("retry", "relay"):
            if database.has(OPERATOR, column):
                ((n,),) = database.rows(f"SELECT COUNT(*) FROM {OPERATOR} WHERE {column} > 0")
                found.append((f"{column}_operators_count", "", float(n)))
    return found


def clock_changes(database: Database) -> list[tuple[Any, ...]]:
    """Return times at which the clock of the AI cores was set, ns, and its values, MHz, in order; never 0."""
    if database.has("AICORE_FREQ", "timestampNs"):
        return database.rows(
            "SELECT CAST(timestampNs AS INTEGER), freq FROM AICORE_FREQ WHERE freq > 0 ORDER BY 1"
        )
    return database.rows("SELECT 0, freq FROM AICORE_FREQ WHERE freq > 0")


def _clock(database: Database) -> list[Counter]:
    """Return the lowest, mean and highest clock; the mean over time, as a record holds until the next one."""
    rows = database.once(clock_changes)
    if not rows:
        return []
    end_ns = rows[-1][0]
    if database.has(TASK, "startNs", "endNs"):
        end_ns = max(end_ns, last_task_ns(database))
    mhz = [float(row[1]) for row in rows]
    lasted_ns = [
        until - since for (since, _), until in zip(rows, [*(row[0] for row in rows[1:]), end_ns], strict=True)
    ]
    if not any(lasted_ns):
        lasted_ns = [1] * len(mhz)
    mean = sum(one * ns for one, ns in zip(mhz, lasted_ns, strict=True)) / sum(lasted_ns)
    values = {"min": min(mhz), "mean": mean, "max": max(mhz)}
    return [("aicore_frequency_mhz", label, value) for label, value in values.items()]


def read_link_counters(path: Path, remark: Remark) -> list[Counter]:
    """Return the counters that this version and the options of the capture left."""
    found: list[Counter] = []
    with open_database(path, remark) as database:
        for metric, columns in _SUMMED.items():
            found += _by_column(database, "NETDEV_STATS", metric, columns, "TOTAL")
        for table in ("ROCE", "NIC"):
            for metric, columns in _LARGEST.items():
                found += _by_column(database, table, metric, columns, "MAX", f"{table} ")
        for table in _PORTS:
            found += _peaks(database, table)
        if _has(database, "CCU", "startNs", "endNs"):
            spent = "typeof(startNs) = 'integer' AND typeof(endNs) = 'integer' AND endNs >= startNs"
            ((n_rows, ns),) = database.rows(f"SELECT COUNT(*), TOTAL(endNs - startNs) FROM CCU WHERE {spent}")
            if n_rows:
                found.append(("ccu_operators_us", "", ns / numbers.NS_PER_US))
    return found


def _has(database: Database, table: str, *columns: str) -> bool:
    with suppress(BadFileError):  # columns of an older version lack it
        return database.has(table, *columns)
    return False


def _by_column(
    database: Database, table: str, metric: str, columns: tuple[str, ...], function: str, of: str = ""
) -> list[Counter]:
    found: list[Counter] = []
    for column in columns:
        if _has(database, table, column):
            is_count = f"typeof({column}) = 'integer' AND {column} >= 0"
            ((n_rows, value),) = database.rows(
                f"SELECT COUNT(*), {function}({column}) FROM {table} WHERE {is_count}"
            )
            if n_rows:
                found.append((metric, of + column, float(value)))
    return found


def _peaks(database: Database, table: str) -> list[Counter]:
    """Return the largest bandwidth of each port and way; without ports that never carried anything."""
    port, columns = _PORTS[table]
    found: list[Counter] = []
    for column in columns:
        if _has(database, table, column, *([] if port == "0" else [port])):
            rows = database.rows(
                f"SELECT {port}, MAX({column}) FROM {table} "
                f"WHERE typeof({column}) IN ('integer', 'real') AND {column} > 0 GROUP BY 1 ORDER BY 1"
            )
            found += [
                (f"{table.lower()}_peak_bytes_per_s", f"{column} {number}", float(most))
                for number, most in rows
            ]
    return found
