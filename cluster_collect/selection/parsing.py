"""Which captures of a host are being parsed: others have the mark that their parser leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set

from cluster_collect.entries import RemoteEntry, group_of
from cluster_run.layout import PARSED_MARK_NAME, PARSER_RESTS_S, PROFILER_OUTPUT_NAME

_MARK = f"/{PROFILER_OUTPUT_NAME}/{PARSED_MARK_NAME}".encode()
_OUTPUT = f"/{PROFILER_OUTPUT_NAME}/".encode()


def being_parsed(entries: Iterable[RemoteEntry], wanted: Set[bytes], now_ns: int) -> list[bytes]:
    """Return the captures among those `wanted` that are being parsed, in order.

    Versions that leave no mark leave none on the whole host, and nothing tells when they have parsed.

    Args:
        entries: all that the host lists.
        wanted: captures, by their directory.
        now_ns: time on the host, ns since 1970.
    """
    newest_ns: defaultdict[bytes, int] = defaultdict(int)
    parsed = set()
    for entry in entries:
        if _OUTPUT in entry.path:
            group = group_of(entry.path)
            newest_ns[group] = max(newest_ns[group], entry.mtime_ns)
            if entry.path.endswith(_MARK):
                parsed.add(group)
    if not parsed:
        return []
    since_ns = now_ns - int(PARSER_RESTS_S * 1e9)
    return sorted(one for one in wanted & newest_ns.keys() - parsed if newest_ns[one] > since_ns)
