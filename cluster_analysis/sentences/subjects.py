"""How ranks, hosts, links and numbers are written, and the subject of a finding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from cluster_run.findings import Finding, Place
from cluster_run.ids import HostId
from cluster_words.headings import say
from cluster_words.phrase import Phrase, joined, short_ranges
from cluster_words.terms import KINDS

if TYPE_CHECKING:  # the hook words verdicts without Arrow
    from cluster_analysis.result import AnalysisResult

#: Control characters of a name would move the cursor or break a table.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Return `text` on one line, without characters that steer a terminal or reverse its writing."""
    return _CONTROL.sub(" ", text)


def format_number(value: float) -> str:
    """Format a measured number with four significant digits and grouped thousands."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def format_ranks(ranks: Iterable[int]) -> str:
    """Return `rank 15` or `ranks 8-15`."""
    ordered = sorted(set(ranks))
    noun = "rank" if len(ordered) == 1 else "ranks"
    return f"{noun} {short_ranges(ordered)}" if ordered else ""


def format_link_ends(finding: Finding) -> str:
    """Return `3 → 11`, `3 ↔ 11` where both directions are named, `3 → 11 (+2)` for three pairs."""
    first = finding.links[0]
    pairs = {frozenset((link.src, link.dst)) for link in finding.links}
    both = any((link.src, link.dst) == (first.dst, first.src) for link in finding.links)
    more = f" (+{len(pairs) - 1})" if len(pairs) > 1 else ""
    return f"{first.src} {'↔' if both else '→'} {first.dst}{more}"


def host_name(host: HostId, result: AnalysisResult) -> str:
    """Return the address of a host where it may be shown, else its mapped number."""
    address = result.addresses.get(host)
    return f"host {plain(host)} ({plain(address)})" if address else f"host {plain(host)}"


def host_phrase(host: HostId, result: AnalysisResult) -> Phrase:
    """Return `host 3`, with its address where that may be shown."""
    name = host_name(host, result).removeprefix("host ")
    return say("map.host", host=Phrase(name, name.replace(" (", "（").replace(")", "）")))


def named(finding: Finding, result: AnalysisResult) -> Phrase:
    """Return who a finding is about: hosts, links or ranks, at most three of them by name."""
    if finding.record.subject in ("host", "host_pair", "nic", "uplink") and finding.hosts:
        return _hosts(finding.hosts, result)
    if finding.links:
        transports = sorted({plain(link.transport) for link in finding.links})
        links = f"{format_link_ends(finding)} ({', '.join(transports)})"
        return Phrase(links, links)
    if finding.ranks:
        return Phrase(format_ranks(finding.ranks), say("ranks", ranks=short_ranges(finding.ranks)).zh)
    return _hosts(finding.hosts, result)


def subject(finding: Finding) -> Phrase:
    """Return what a finding blames, to follow "lost to": `slow rank 5`, `the slow link 2 → 10`."""
    hosts = _host_numbers(finding.hosts)
    named_hosts = say("whom.host", hosts=hosts, n_hosts=len(finding.hosts))
    numbers = short_ranges(finding.ranks)
    who = Phrase(numbers, numbers)
    if finding.record.subject == "nic":
        who = Phrase(format_ranks(finding.ranks), say("ranks", ranks=numbers).zh)
        if len(finding.hosts) == 1 and finding.ranks:
            who = say("where.ranks", ranks=Phrase(who.en, numbers), hosts=hosts)
        elif not finding.ranks and hosts.en:
            who = named_hosts
        return say(f"subject.{_name(finding)}", who=who)
    if finding.record.subject in ("host", "uplink"):
        who = named_hosts
    elif finding.record.subject == "host_pair":
        who = hosts
    elif finding.links:
        ends = format_link_ends(finding)
        who = Phrase(ends, ends)
    elif finding.record.subject == "link":
        who = Phrase(f"among {format_ranks(finding.ranks)}", numbers)
    return say(f"subject.{_name(finding)}", who=who)


def kind_name(finding: Finding) -> Phrase:
    """Return what kind of trouble a finding is, in two words."""
    return Phrase(*KINDS[_name(finding)])


def _name(finding: Finding) -> str:
    """Return the key of what a finding is called: its kind, where two sorts of it are not called alike."""
    if finding.kind == "slow_nic" and is_port(finding):
        return "slow_port"
    if finding.kind == "slow_nic" and len(finding.hosts) > 1:
        return "slow_rail"
    if any(one.kind == "ranks_pause_by_turns" for one in finding.facts):
        return "scattered_pauses"
    return finding.kind


def is_port(finding: Finding) -> bool:
    """Return whether a slow network card is in fact the port to other devices of its host."""
    return bool(finding.links) and all(link.transport.upper() != "RDMA" for link in finding.links)


def whom(finding: Finding) -> Phrase:
    """Return what a finding is about, without saying that it is slow: `rank 9`, `the link 2 → 10`."""
    name, subject = _name(finding), str(finding.record.subject)
    if name in ("slow_port", "slow_rail", "scattered_pauses"):
        subject = name
    if subject == "job" or (subject == "link" and not finding.links):
        subject = "host" if finding.hosts and not finding.separable else "rank"
    hosts, n_hosts = _host_numbers(finding.hosts), len(finding.hosts)
    link = format_link_ends(finding) if finding.links else ""
    return say(f"whom.{subject}", ranks=finding.ranks, hosts=hosts, n_hosts=n_hosts, link=link)


def locator(result: AnalysisResult) -> Callable[[Place], Phrase]:
    """Return a function that tells a place, with its host's address where that may be shown."""
    return lambda place: place_phrase(place, result.addresses.get(place.host or HostId(""), ""))


def place_phrase(place: Place, address: str = "") -> Phrase:
    """Return `rank 13 = host 2 / device 5`, with an `address` `rank 13 = node002 / device 5`."""
    rank = say("rank", rank=place.rank)
    parts = []
    if place.host is not None:
        parts.append(Phrase(address, address) if address else say("map.host", host=place.host))
    if place.device is not None:
        parts.append(say("device", device=place.device))
    return say("locator", rank=rank, place=joined(parts, (" / ", " / "))) if parts else rank


def _hosts(hosts: Sequence[HostId], result: AnalysisResult) -> Phrase:
    english = _listed([host_name(host, result) for host in hosts])
    return Phrase(english, "、".join(host_phrase(host, result).zh for host in hosts))


def _host_numbers(hosts: Sequence[HostId]) -> Phrase:
    """Return `2`, `2 and 4`, or `2, 4, 5 and 3 more`."""
    names = [plain(host) for host in hosts]
    if len(names) == 2:
        return Phrase(" and ".join(names), " 与 ".join(names))
    more = f" 等 {len(names)} 台" if len(names) > 3 else ""
    return Phrase(_listed(names), "、".join(names[:3]) + more)


def _listed(names: Sequence[str], limit: int = 3) -> str:
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown
