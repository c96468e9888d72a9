"""What the hardware counted of links while a capture ran: network cards, and ports of HCCS, UB and SIO.

NETDEV_STATS holds what came since the sample before (msprof subtracts), so it is summed. Of ROCE and NIC
nobody says whether they count on, so the largest sample is taken: as many there were at least. Of bandwidths
the largest sample tells what a port can do; the mean would tell how busy it was. Made after msprof's tables,
not seen for real.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.errors import BadFileError, Remark
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
_LARGEST = {
    "nic_errors_count": ("rxErrors", "txErrors"),
    "nic_dropped_count": ("rxDropped", "txDropped"),
}
#: What tells ports apart, and the columns of bandwidths. Only those of HCCS have a documented unit.
_PORTS = {
    "HCCS": ("0", ("txThroughput", "rxThroughput")),
    "UB": ("portId", ("txUdmaBind", "rxUdmaBind")),
    "SIO": ("name", ("txDat", "rxDat")),
}


def read_link_counters(path: Path, remark: Remark) -> list[Counter]:
    """Return the counters that this version and the options of the capture left.

    Raises:
        BadFileError: the database cannot be read.
    """
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
