"""Which symbolic links to directories hide profiler data, and which only show it a second time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from posixpath import basename

from cluster_collect.entries import Link, is_capture


class Links:
    """The links of one host. `files` are the paths of its listing, those behind followed links included."""

    def __init__(self, links: Sequence[Link], real_root: bytes, files: Iterable[bytes]) -> None:
        self._links = {link.path: link for link in links}
        self._root = real_root.rstrip(b"/") + b"/"
        followed = tuple(link.path + b"/" for link in links if link.is_followed)
        plain = [path for path in files if not path.startswith(followed)]
        self._shown_twice = {link.path for link in links if self._is_listed_anyhow(link, plain)}
        self._behind_those = tuple(path + b"/" for path in self._shown_twice)

    def know(self, path: bytes) -> bool:
        """Whether a path is such a link itself."""
        return path in self._links

    def hide(self, path: bytes) -> bool:
        """Whether a file lies behind a link to what is listed under its own name too."""
        return path.startswith(self._behind_those)

    def lost_behind(self, path: bytes) -> str:
        """Say what is lost behind the link `path`; empty when it is none, or hides nothing."""
        link = self._links.get(path)
        if link is None or link.is_followed or path in self._shown_twice:
            return ""
        parts = path.split(b"/")
        target = os.fsdecode(link.target)
        if link.is_dangling:
            leads = f"leads to {target}, which is not there" if target else "leads nowhere"
            return f"a symbolic link that {leads}" if any(is_capture(part) for part in parts) else ""
        if link.holds_data or any(is_capture(part) for part in parts[:-1]):
            return f"a symbolic link to {target}, which holds profiler data: not followed"
        return ""

    def _is_listed_anyhow(self, link: Link, plain: Sequence[bytes]) -> bool:
        """Whether what a link leads to lies below the root, and would be taken there just as well."""
        if not (link.target + b"/").startswith(self._root):
            return False
        inside = (link.target + b"/")[len(self._root) :]
        if is_capture(basename(link.path)) and not any(is_capture(part) for part in inside.split(b"/")):
            return False
        return any(path.startswith(inside) for path in plain)
