"""Ansible inventories in YAML: hosts, groups, ranges (`node[01:04]`) and the connection variables.

These variables are read: `ansible_host`, `ansible_port`, `ansible_user`, `ansible_ssh_private_key_file`,
`ansible_connection: local`, `ansible_become` with its user, and `-J` in `ansible_ssh_common_args`.
Keys of this project are written with a prefix, for example `cluster_collect_profiler_root`. Other variables
concern Ansible.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping

from cluster_collect.inventory.keys import Draft, Entry, check_entry
from cluster_collect.inventory.located import Located
from cluster_collect.wording import KEYS_ARE_CHECKED
from cluster_run.ids import MAX_HOSTS

PREFIX = "cluster_collect_"

_VARIABLES = {
    "ansible_host": "address",
    "ansible_ssh_host": "address",
    "ansible_port": "port",
    "ansible_ssh_port": "port",
    "ansible_user": "user",
    "ansible_ssh_user": "user",
    "ansible_ssh_private_key_file": "identity_file",
    "ansible_private_key_file": "identity_file",
}
_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
_JUMP = re.compile(r"(?:-J\s*|-o\s*[\"']?ProxyJump[= ])([^\s\"']+)")
_ARGUMENTS_NOT_HONOURED = {
    "ProxyCommand": "write it into ~/.ssh/config, or name a jump host",
    "StrictHostKeyChecking": KEYS_ARE_CHECKED,
}
_NEVER_READ = "no password is read from an inventory"
_TO_BECOME = "sudo is called as `sudo -n -H -u USER`"
_NOT_HONOURED = {
    "ansible_become_password": f"{_NEVER_READ}, and sudo is given none",
    "ansible_become_pass": f"{_NEVER_READ}, and sudo is given none",
    "ansible_become_flags": _TO_BECOME,
    "ansible_become_exe": _TO_BECOME,
    "ansible_host_key_checking": KEYS_ARE_CHECKED,
    "ansible_ssh_host_key_checking": KEYS_ARE_CHECKED,
    "ansible_password": f"{_NEVER_READ}: password_env names an environment variable",
    "ansible_ssh_pass": f"{_NEVER_READ}: password_env names an environment variable",
}
_YES = ("true", "yes", "on", "1", "y", "t")
_NO = ("false", "no", "off", "0", "n", "f", "none", "")
_GROUP_KEYS = {"hosts", "children", "vars"}
_RANGE = re.compile(r"\[(\w+):(\w+)(?::(\d+))?\]")


def is_ansible(document: Located) -> bool:
    """Tell an Ansible inventory: a mapping of groups, each with hosts, children or vars."""
    top = document.value
    if not isinstance(top, Mapping) or not top or "version" in top:
        return False
    return all(
        group.value is None or (isinstance(group.value, Mapping) and set(group.value) <= _GROUP_KEYS)
        for group in top.values()
    )


def read_ansible(document: Located) -> Draft:
    """Read an Ansible inventory.

    Raises:
        InputError: a range that cannot be meant, a template in a variable that is read, or an unknown
            `cluster_collect_` key.
    """
    reader = _Reader()
    top = document.mapping("the inventory")
    for name, group in top.items():
        # To Ansible `all` is above every group, wherever they are written.
        inherited = {} if name == "all" or "all" not in top else _variables_of(top["all"])
        reader.read_group(name, group, inherited, ())
    entries = tuple(_entry(name, where, reader.variables[name]) for name, where in reader.hosts.items())
    groups = {
        name: Located(",".join(members), document.file, reader.lines[name])
        for name, members in reader.groups.items()
        if members
    }
    aliases = {
        name: entry.text("server_id") or name for name, entry in zip(reader.hosts, entries, strict=True)
    }
    warnings = dict.fromkeys(text for of_host in reader.variables.values() for text in _not_honoured(of_host))
    return Draft(entries, Entry(document), groups, aliases, warnings=tuple(warnings))


def _not_honoured(variables: Mapping[str, Located]) -> Iterator[str]:
    """Yield a warning for each connection setting of a host that would matter and is not read."""
    for key, value in variables.items():
        text = str(value.value)
        if key in _ARGUMENTS:
            for option, why in _ARGUMENTS_NOT_HONOURED.items():
                if option.lower() in text.lower():
                    yield f"{value.place}: {option} in {key} is not honoured: {why}"
        elif key in _NOT_HONOURED and text.lower() not in ("false", "no", ""):
            yield f"{value.place}: {key} is not honoured: {_NOT_HONOURED[key]}"


def _variables_of(group: Located) -> Mapping[str, Located]:
    return {} if group.value is None else _optional(group.mapping("group 'all'"), "vars")


class _Reader:
    """Collects hosts in the order they are written, with the variables of all their groups."""

    def __init__(self) -> None:
        self.hosts: dict[str, Located] = {}
        self.variables: dict[str, dict[str, Located]] = {}
        self.groups: dict[str, dict[str, None]] = {}
        self.lines: dict[str, int] = {}
        self._of_host: dict[str, dict[str, Located]] = {}

    def read_group(
        self, name: str, group: Located, inherited: Mapping[str, Located], parents: tuple[str, ...]
    ) -> None:
        if group.value is None:
            return
        fields = group.mapping(f"group {name!r}")
        variables = {**inherited, **_optional(fields, "vars")}
        self.groups.setdefault(name, {})
        self.lines.setdefault(name, group.line)
        for pattern, where in _optional(fields, "hosts").items():
            own = where.mapping(f"host {pattern!r}") if where.value is not None else {}
            for host in expand_range(pattern, where):
                self._add(host, where, variables, own, (*parents, name))
        for child, content in _optional(fields, "children").items():
            self.read_group(child, content, variables, (*parents, name))

    def _add(
        self,
        host: str,
        where: Located,
        of_groups: Mapping[str, Located],
        own: Mapping[str, Located],
        groups: tuple[str, ...],
    ) -> None:
        self.hosts.setdefault(host, where)
        if len(self.hosts) > MAX_HOSTS:
            raise where.wrong(f"more than {MAX_HOSTS} hosts")
        self._of_host.setdefault(host, {}).update(own)
        # A host's own variable wins over its groups', wherever in the file it stands.
        known = self.variables.setdefault(host, {})
        known.update(of_groups)
        known.update(self._of_host[host])
        for group in groups:
            self.groups[group][host] = None


def expand_range(pattern: str, where: Located) -> Iterator[str]:
    """Yield the hosts of `node[01:04]`, `rack[a:c]` or `node[1:9:2]`; any other name as it is."""
    match = _RANGE.search(pattern)
    if match is None:
        yield pattern
        return
    first, last, step = match[1], match[2], int(match[3] or 1)
    letters = string.ascii_lowercase if first.islower() else string.ascii_uppercase
    if first.isdecimal() and last.isdecimal() and len(last) < 10 and step:
        width = len(first) if first.startswith("0") else 0
        numbers = range(int(first), int(last) + 1, step)
        if len(numbers) > MAX_HOSTS:
            raise where.wrong(f"{pattern!r} stands for more than {MAX_HOSTS} hosts")
        names = [str(number).zfill(width) for number in numbers]
    elif len(first) == len(last) == 1 and first in letters and last in letters and step:
        names = list(letters[letters.index(first) : letters.index(last) + 1 : step])
    else:
        names = []
    if not names:
        raise where.wrong(f"not a range: {pattern!r}", "Ansible writes node[01:04]")
    for name in names:
        yield from expand_range(pattern[: match.start()] + name + pattern[match.end() :], where)


def _entry(name: str, where: Located, variables: Mapping[str, Located]) -> Entry:
    values: dict[str, Located] = {}
    written = {}
    for key, value in variables.items():
        own = key.removeprefix(PREFIX) if key.startswith(PREFIX) else _VARIABLES.get(key)
        if own is not None:
            values[own], written[own] = _plain(key, value), key
        elif key in _ARGUMENTS and (jump := _JUMP.search(_text(key, value, "-J bastion.example"))):
            values["jump"] = Located(jump[1], value.file, value.line)
    values |= _become(variables)
    local = getattr(variables.get("ansible_connection"), "value", None) == "local"
    if local and "local" not in values and "profiler_root" in values:
        values["local"] = values["profiler_root"]
    if "local" in values:
        values.pop("address", None)
    else:
        values.setdefault("address", Located(name, where.file, where.line))
    values.setdefault("server_id", values.get("address", Located(name, where.file, where.line)))
    return check_entry(where, values, f"of host {name}", written)


def _become(variables: Mapping[str, Located]) -> dict[str, Located]:
    """Return the keys of a host that Ansible would call sudo for."""
    asked = variables.get("ansible_become")
    answer = "" if asked is None else str(_plain("ansible_become", asked).value).lower()
    if asked is None or answer in _NO:
        return {}
    if answer not in _YES:
        raise asked.wrong(f"ansible_become is {asked.kind}, yes or no is wanted")
    how = variables.get("ansible_become_method", Located("sudo", asked.file, asked.line))
    method = _text("ansible_become_method", how, "sudo").rpartition(".")[2]
    values = {"become": Located(method, how.file, how.line)}
    if "ansible_become_user" in variables:
        values["become_user"] = _plain("ansible_become_user", variables["ansible_become_user"])
    return values


def _plain(name: str, value: Located) -> Located:
    if isinstance(value.value, str) and "{{" in value.value:
        raise value.wrong(f"{name} is a template", f"write the value itself, or set {PREFIX}… for the host")
    return value


def _text(name: str, value: Located, like: str) -> str:
    return _plain(name, value).text(name, f"write it like {like}")


def _optional(fields: Mapping[str, Located], key: str) -> Mapping[str, Located]:
    found = fields.get(key)
    return found.mapping(repr(key)) if found is not None and found.value is not None else {}
