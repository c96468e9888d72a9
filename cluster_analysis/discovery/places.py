"""Finds where the ranks ran: by rank table, host mapping, manifest, and the folders of their data.

Hosts that see one file system are read once, so the folder is that of whichever answered first. A folder that
holds ranks of another host by the rank table is of another run, or of a file system that was shared unknown
to us. A rank without a host is a gap; a rank with a wrong one has the wrong machine taken out of service.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from pathlib import Path

from msgspec import Struct, field

from cluster_analysis.discovery.found import Found, public_text
from cluster_run import layout
from cluster_run.errors import InputError
from cluster_run.facts import fact
from cluster_run.host_names import HostNames
from cluster_run.ids import MAX_RANKS, DeviceId, HostId, Rank, ServerId
from cluster_run.layout import RANK_TABLE_NAME
from cluster_run.manifest import CollectedFile, Manifest, read_manifest
from cluster_run.problem import Problem
from cluster_run.ranktable import MARKS, RankPlace, RankTable, parse_host_mapping, parse_rank_table

_NOT_RANK_TABLES = (layout.MANIFEST_NAME, layout.TRUTH_NAME)
#: Failures of a host that its files, or the ranks that are missing, report one by one.
_REPORTED_BELOW = ("files-missing", "files-unstable", "left-out", "ranks-missing")


class Places(Struct, frozen=True):
    """Hosts and ranks as the run directory names them; all empty for a plain tree.

    `ranks` has devices by host, and without a host where the rank table has one server only; `stored` has
    each collected file by its path below the run directory; `shared` are hosts that see the same file system
    as another one, and so have the same files.
    """

    table: RankTable | None = None
    addresses: Mapping[HostId, str] = field(default_factory=dict)
    hosts: Mapping[Rank, HostId] = field(default_factory=dict)
    devices: Mapping[Rank, DeviceId] = field(default_factory=dict)
    ranks: Mapping[tuple[HostId | None, DeviceId], Rank] = field(default_factory=dict)
    stored: Mapping[str, CollectedFile] = field(default_factory=dict)
    shared: frozenset[HostId] = frozenset()
    problems: tuple[Problem, ...] = ()


def read_places(root: Path) -> Places:
    """Read rank table, mapping and manifest of `root`; what is broken becomes a problem."""
    problems: list[Problem] = []
    mapping = _read_mapping(root, problems)
    table = _read_rank_table(root, problems)
    manifest = _read_manifest(root, problems)
    if manifest:
        problems += _problems_of(manifest)
        for outcome in manifest.hosts:
            mapping.setdefault(outcome.server_id, outcome.host)
    if table and not mapping:
        mapping = _mapping_of_names(root, table)
    places = table.places if table else ()
    host_of = {place.rank: host for place in places if (host := _host_of(place, mapping)) is not None}
    listed = table.all_places if table else ()
    unmapped = {place.server_id for place in listed if place.server_id and _host_of(place, mapping) is None}
    if unmapped and mapping:
        problems.append(
            Problem(
                fact("hosts_not_mapped", n_hosts=len(unmapped)),
                file=layout.MAPPING_NAME,
                advice="spell_as_rank_table",
            )
        )
    return Places(
        table=table,
        addresses={host: str(server_id) for server_id, host in mapping.items()},
        hosts=host_of,
        devices={
            place.rank: place.device for place in places if place.rank in host_of or not place.server_id
        },
        ranks=_ranks_of_devices(table, mapping),
        stored={
            file.path: file
            for outcome in (manifest.hosts if manifest else ())
            for file in outcome.files
            if file.state == "stored"
        },
        shared=frozenset(
            HostId(outcome.same_files_as)
            for outcome in (manifest.hosts if manifest else ())
            if outcome.same_files_as
        ),
        problems=tuple(problems),
    )


def _read_mapping(root: Path, problems: list[Problem]) -> dict[str, HostId]:
    path = root / layout.MAPPING_NAME
    if not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8-sig")
        return {str(server_id): host for server_id, host in parse_host_mapping(text).items()}
    except (OSError, UnicodeDecodeError) as error:
        problems.append(_unread(error, path))
        return {}


def _host_of(place: RankPlace, mapping: Mapping[str, HostId]) -> HostId | None:
    """Return the host of a place by its server's name, else by its other name, as by that it was reached."""
    return mapping.get(place.server_id) or mapping.get(place.address)


def _ranks_of_devices(
    table: RankTable | None, mapping: Mapping[str, HostId]
) -> dict[tuple[HostId | None, DeviceId], Rank]:
    listed = table.all_places if table else ()
    known = [(_host_of(place, mapping), place) for place in listed]
    ranks: dict[tuple[HostId | None, DeviceId], Rank] = {}
    if table and len(table.server_ids) == 1:
        ranks.update({(None, place.device): place.rank for place in listed})
    ranks.update({(host, place.device): place.rank for host, place in known if host is not None})
    return ranks


def _mapping_of_names(root: Path, table: RankTable) -> dict[str, HostId]:
    """Return the server of each directory if no mapping was written but only one is possible.

    Where no directory is a host's, as in a plain tree, servers are numbered as they come.
    """
    tree = root / layout.PROFILER_TREE_NAME
    try:
        names = {path.name for path in tree.iterdir() if path.is_dir()}
    except FileNotFoundError:
        return {str(server): HostId(str(number)) for number, server in enumerate(table.server_ids, 1)}
    except OSError:  # The walk reports what cannot be read.
        return {}
    servers = [str(server) for server in table.server_ids]
    if len(names) == len(servers) == 1:
        return {servers[0]: HostId(names.pop())}
    return {server: HostId(server) for server in servers} if names and names <= set(servers) else {}


def _read_rank_table(root: Path, problems: list[Problem]) -> RankTable | None:
    """Return the rank table: the first `.json` file, `hccl.json` before all others, that looks like one."""
    candidates = sorted(
        (path for path in root.glob("*.json") if path.name not in _NOT_RANK_TABLES and path.is_file()),
        key=lambda path: (path.name != layout.RANK_TABLE_NAME, path.name),
    )
    for path in candidates:
        try:
            text = path.read_text(encoding="utf-8-sig")
            if path.name != layout.RANK_TABLE_NAME and not any(f'"{mark}"' in text for mark in MARKS):
                continue
            table = parse_rank_table(text, path.name)
            largest = max(max(place.rank, place.device) for place in table.all_places)
            if largest < MAX_RANKS:
                return table
            problems.append(Problem(fact("impossible_rank_or_device", named=largest), file=path.name))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(_unread(error, path))
        except InputError as error:
            problems.append(_unusable(error, f"{path.name}: ", path))
    return None


def _read_manifest(root: Path, problems: list[Problem]) -> Manifest | None:
    path = root / layout.MANIFEST_NAME
    if not path.is_file():
        if (root / layout.JOURNAL_NAME).is_file():
            why = fact("collecting_not_ended")
            problems.append(Problem(why, file=path.name, advice="go_on_collecting"))
        return None
    try:
        return read_manifest(path)
    except InputError as error:
        problems.append(_unusable(error, f"{path}: ", path))
        return None


def _unread(error: OSError | UnicodeDecodeError, path: Path) -> Problem:
    if isinstance(error, UnicodeDecodeError):
        return Problem(fact("not_utf8", byte=error.start), file=path.name, advice="replace_rank_table")
    return Problem(fact("unreadable", detail=str(error.strerror or error)), file=path.name)


def _unusable(error: InputError, prefix: str, path: Path) -> Problem:
    """Return the problem of a file that describes the run; its reader's words are quoted."""
    detail = error.message.removeprefix(prefix)
    why = fact("unusable_description", detail=detail, told=error.advice)
    return Problem(why, file=path.name, advice="as_told" if error.advice else None)


def _problems_of(manifest: Manifest) -> list[Problem]:
    hidden = HostNames([(str(outcome.server_id),) for outcome in manifest.hosts]).hidden
    problems = [
        Problem(
            fact(
                "not_collected" if outcome.state == "failed" else "not_collected_whole",
                detail=public_text(hidden(outcome.reason)),
                told=hidden(outcome.advice),
            ),
            host=outcome.host,
            advice="as_told" if outcome.advice else None,
        )
        for outcome in manifest.hosts
        if outcome.state == "failed" or (outcome.failure and outcome.failure not in _REPORTED_BELOW)
    ]
    problems += [
        Problem(
            fact("file_not_collected", state=file.state, detail=hidden(file.reason)),
            file=file.path.rpartition("/")[2],
            host=outcome.host,
        )
        for outcome in manifest.hosts
        for file in outcome.files
        if file.state in ("failed", "unstable")
    ]
    return problems


class Hosts(Struct, frozen=True):
    """Host of each rank, where it is known; the hosts' real names; what the rank table says of devices."""

    of_rank: Mapping[Rank, HostId]
    addresses: Mapping[HostId, str]
    devices: Mapping[Rank, DeviceId]
    problems: tuple[Problem, ...] = ()
    is_placed: bool = True


def hosts_of(captures: Mapping[Rank, Found], places: Places) -> Hosts:
    """Return the host of each rank; none if neither folders nor a table show it: see `topology.hosts`."""
    of_rank, addresses = dict(places.hosts), dict(places.addresses)
    if all(one.host is None for one in captures.values()):
        listed = {place.rank for place in places.table.all_places} if places.table else captures.keys()
        contradictions: Mapping[str, Set[Rank]] = {
            "ranks_not_in_table": captures.keys() - listed,
            "hosts_not_in_table": _moved(of_rank, captures),
        }
        for kind, ranks in contradictions.items():
            if ranks:
                why = fact(kind, ranks=tuple(sorted(ranks)))
                return Hosts({}, {}, {}, (Problem(why, file=RANK_TABLE_NAME),), is_placed=False)
        if not of_rank:
            return Hosts({}, {}, places.devices, is_placed=False)
    server_of = {place.rank: place.server_id for place in (places.table.places if places.table else ())}
    elsewhere: list[Rank] = []
    unknown: list[Rank] = []
    for rank, one in sorted(captures.items()):
        if one.host is None:
            continue
        if one.host in places.shared:
            host = places.hosts.get(rank) or _named(one, addresses)
            unknown += [] if host else [rank]
        elif _differs(server_of.get(rank), one.host, places):
            host = None
            elsewhere.append(rank)
        else:
            host = one.host
        of_rank.pop(rank, None)
        if host is not None:
            of_rank[rank] = host
    problems = []
    if elsewhere:
        problems.append(Problem(fact("other_hosts_than_table", ranks=tuple(elsewhere)), file=RANK_TABLE_NAME))
    if unknown:
        problems.append(Problem(fact("hosts_share_files", ranks=tuple(unknown))))
    devices = {} if elsewhere else places.devices
    return Hosts(dict(sorted(of_rank.items())), addresses, devices, tuple(problems))


def _moved(hosts: Mapping[Rank, HostId], captures: Mapping[Rank, Found]) -> set[Rank]:
    """Return the ranks of a host whose captures bear different names, one of them on another host, too.

    Names of containers or processes differ on one host, and `localhost` is one on all: neither contradicts.
    """
    names = {rank: one.host_name for rank, one in captures.items() if one.host_name and rank in hosts}
    pairs = {(hosts[rank], name) for rank, name in names.items()}
    n_names, n_hosts = Counter(host for host, _ in pairs), Counter(name for _, name in pairs)
    return {rank for rank, name in names.items() if n_names[hosts[rank]] > 1 < n_hosts[name]}


def _differs(server: ServerId | None, host: HostId, places: Places) -> bool:
    """Whether `server` is another one than `host`, by a rank table that knows both."""
    name = places.addresses.get(host)
    known = places.table.server_ids if places.table else ()
    return server is not None and name in known and server != name


def _named(found: Found, addresses: Mapping[HostId, str]) -> HostId | None:
    """Return the host whose real name the capture's own name begins with."""
    named = [host for host, name in addresses.items() if found.host_name in (name, name.partition(".")[0])]
    return named[0] if len(named) == 1 else None
