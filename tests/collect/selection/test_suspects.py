"""Which ranks a person opens first, told from findings.json alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_collect.selection.suspects import MAX_SUSPECTS, read_suspects
from cluster_run.errors import InputError


def finding(*ranks: int, peers: tuple[int, ...] = (), severity: str = "warning", **more: Any) -> object:
    return {"severity": severity, "ranks": ranks, "links": [], "peers": peers, **more}


def written(path: Path, *findings: object) -> Path:
    path.write_text(json.dumps({"schema": "cluster-findings/1", "findings": findings}))
    return path


def test_they_are_the_ranks_of_warnings_and_their_peers(tmp_path: Path) -> None:
    path = written(tmp_path / "f.json", finding(13, peers=(12, 14)), finding(7, severity="info"))
    suspects = read_suspects(path)
    assert (suspects.named, suspects.peers, suspects.ranks) == ((13,), (12, 14), {12, 13, 14})


def test_both_ends_of_a_link_are_suspects_and_no_suspect_is_a_peer(tmp_path: Path) -> None:
    link = {"src": 3, "dst": 11, "transport": "RDMA"}
    path = written(tmp_path / "f.json", finding(links=[link], peers=(2, 4)), finding(4))
    suspects = read_suspects(path)
    assert (suspects.named, suspects.peers) == ((3, 4, 11), (2,))


def test_they_are_a_handful_and_those_of_the_costliest_findings(tmp_path: Path) -> None:
    host = finding(*range(8, 16), peers=(0, 1))
    others = [finding(rank, peers=(rank + 100, rank + 200)) for rank in range(40, 60)]
    suspects = read_suspects(written(tmp_path / "f.json", host, *others))
    assert suspects.named == (8, 9, 40)
    assert len(suspects.ranks) <= MAX_SUSPECTS


def test_older_findings_without_peers_and_none_at_all_are_read(tmp_path: Path) -> None:
    assert read_suspects(written(tmp_path / "f.json")).ranks == frozenset()
    old = {"severity": "critical", "ranks": [1], "links": []}
    assert read_suspects(written(tmp_path / "g.json", old)).ranks == {1}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"findings": 3}', '{"findings": [{"severity": "info"}, 1]}', "[" * 9999]
)
def test_what_is_no_findings_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "f.json").write_text(text)
    with pytest.raises(InputError, match=r"f\.json: not readable findings"):
        read_suspects(tmp_path / "f.json")
    with pytest.raises(InputError, match="there are no findings yet"):
        read_suspects(tmp_path / "none.json")
