"""Ansible inventories in INI, and what `ansible-inventory --list` prints, brought into the YAML form."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from cluster_collect.inventory.located import Located, unquoted

_SECTION = re.compile(r"\[([^\]:\s]+)(?::(hosts|vars|children))?\]")
_Groups = dict[str, dict[str, dict[str, Located]]]


def is_ini(text: str) -> bool:
    """Tell an inventory in INI: sections, or hosts with variables of Ansible."""
    lines = [line.strip() for line in text.splitlines()]
    return any(_SECTION.fullmatch(line) for line in lines) or any(
        re.search(r"\sansible_\w+\s*=", line) for line in lines if not line.startswith(("#", ";"))
    )


def read_ini(text: str, file: str) -> Located:
    """Return the groups of an inventory in INI.

    Raises:
        InputError: a line that cannot be meant, with its number.
    """
    groups: _Groups = {}
    group, kind = "ungrouped", "hosts"
    for number, line in enumerate(text.splitlines(), 1):
        where = Located(None, file, number)
        content = line.strip()
        if not content or content.startswith(("#", ";")):
            continue
        section = _SECTION.fullmatch(content)
        if section is not None:
            group, kind = section[1], section[2] or "hosts"
            groups.setdefault(group, {})
            continue
        try:
            name, *words = [content] if kind == "vars" else shlex.split(content, comments=True)
        except ValueError:
            raise where.wrong(f"not a host and its variables: {content!r}", "close the quotes") from None
        members = groups.setdefault(group, {}).setdefault(kind, {})
        if kind == "vars":
            members.update(_variables([content], where))
        else:
            members[name] = Located(_variables(words, where) or None, file, number)
    return _document(groups, file)


def _variables(words: list[str], where: Located) -> dict[str, Located]:
    variables = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise where.wrong(f"not NAME=VALUE: {word!r}", "a host's variables stand behind it")
        variables[key.strip()] = Located(unquoted(value.strip().strip("'\"")), where.file, where.line)
    return variables


def is_listing(document: Located) -> bool:
    """Tell what `ansible-inventory --list` prints."""
    return isinstance(document.value, Mapping) and "_meta" in document.value


def read_listing(document: Located) -> Located:
    """Return the groups of what `ansible-inventory --list` printed; each variable is a host's own there."""
    top = document.mapping("the inventory")
    meta = top["_meta"].mapping("'_meta'")
    of_hosts = meta["hostvars"].mapping("'hostvars'") if "hostvars" in meta else {}
    groups: _Groups = {}
    for name, content in top.items():
        if name == "_meta":
            continue
        fields = content.mapping(f"group {name!r}")
        group = groups.setdefault(name, {})
        for member in fields["hosts"].items("'hosts'") if "hosts" in fields else ():
            host = member.text("a host")
            group.setdefault("hosts", {})[host] = of_hosts.get(host, Located(None, member.file, member.line))
        for child in fields["children"].items("'children'") if "children" in fields else ():
            group.setdefault("children", {})[child.text("a group")] = Located(None, child.file, child.line)
    return _document(groups, document.file)


def _document(groups: _Groups, file: str) -> Located:
    """Return groups as YAML nests them: the content of a child stands where its name does."""

    def content(name: str, above: tuple[str, ...]) -> Located:
        if name in above or name not in groups:
            return Located(None, file, 1)
        parts = dict(groups[name])
        if "children" in parts:
            parts["children"] = {child: content(child, (*above, name)) for child in parts["children"]}
        return Located({kind: Located(members, file, 1) for kind, members in parts.items()}, file, 1)

    return Located({name: content(name, ()) for name in groups}, file, 1)
