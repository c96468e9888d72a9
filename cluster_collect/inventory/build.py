"""From entries as written to the hosts to collect from: node sets expanded, defaults filled in, checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_collect.inventory.keys import Draft, Entry, directories_of, size_of
from cluster_collect.inventory.located import Located
from cluster_collect.inventory.nodesets import expand, is_ip6
from cluster_collect.spec import LOCAL_NAME, SSH_PORT, HostSpec
from cluster_run.errors import InputError, UsageError
from cluster_run.ids import MAX_HOSTS, HostId, ServerId

#: Addresses reach the commands of `~/.ssh/config` (`ProxyCommand … %h`), so nothing else may be in one.
#: The resolver takes a bare number for an address, 10 for 0.0.0.10.
_ADDRESS = re.compile(r"(?!\d+$)[\w.:%+-]+")
_SERVER_ID = re.compile(r"[^\s\x00-\x1f]+")
#: It stands in a command line on the host, for whatever login shell.
_USER = re.compile(r"[A-Za-z_][\w.-]*")
_MAX_PORT = 65535


@dataclass(frozen=True)
class Inventory:
    """The hosts to collect from, in inventory order, and what the inventory says about the run.

    `groups` holds server ids, `aliases` server ids by other names of hosts. `variables` are those of the
    environment that paths were filled in with.
    """

    name: str
    specs: tuple[HostSpec, ...]
    groups: Mapping[str, tuple[str, ...]]
    aliases: Mapping[str, str]
    rank_table: Path | None
    output: Path | None
    warnings: tuple[str, ...]
    variables: Mapping[str, str]


def build_inventory(draft: Draft, name: str, base: Path, environment: Mapping[str, str]) -> Inventory:
    """Return the inventory of a draft.

    Args:
        draft: the entries as written.
        name: what messages call the inventory.
        base: directory that the paths in it are relative to.
        environment: variables that may hold passwords.

    Raises:
        InputError: a host twice, no hosts, a value that cannot be meant.
            A password's variable is not set, or a key file is missing.
    """
    builder = _Builder(draft, base, environment)
    specs = tuple(builder.specs())
    if not specs:
        raise InputError(f"{name}: no hosts", "list them below 'hosts', give --hosts, or name a rank table")
    return Inventory(
        name=name,
        specs=specs,
        groups=builder.groups(specs),
        aliases=draft.aliases,
        rank_table=_path(draft.rank_table, base),
        output=_path(draft.output, base),
        warnings=draft.warnings,
        variables=builder.variables,
    )


class _Builder:
    def __init__(self, draft: Draft, base: Path, environment: Mapping[str, str]) -> None:
        self._draft = draft
        self._base = base.absolute()  # what runs below another directory finds it, too
        self._environment = environment
        self.variables: dict[str, str] = {}
        self._server_ids: dict[str, Located] = {}
        self._places: dict[tuple[object, ...], Located] = {}

    def specs(self) -> Iterator[HostSpec]:
        number = 0
        for written in self._draft.entries:
            entry = written.over(self._draft.defaults)
            for target, server_id in self._targets(entry):
                number += 1
                if number > MAX_HOSTS:
                    raise entry.where.wrong(f"more than {MAX_HOSTS} hosts")
                yield self._spec(entry, HostId(str(number)), target, server_id)

    def groups(self, specs: tuple[HostSpec, ...]) -> Mapping[str, tuple[str, ...]]:
        """Return the server ids of each group; a name is looked up among server ids and addresses."""
        by_name = by_names(specs, self._draft.aliases)
        groups = {}
        for group, where in self._draft.groups.items():
            names = _expand(where, where.text(f"group {group!r}"))
            for one in names:
                if one not in by_name:
                    raise where.wrong(f"group {group!r} names {one!r}, which is no host of the inventory")
            groups[group] = tuple(server_id for one in names for server_id in by_name[one])
        return groups

    def _targets(self, entry: Entry) -> list[tuple[str, str]]:
        """Return (address or local directory, server id) of each host that an entry stands for."""
        address, local = entry.text("address"), entry.text("local")
        if (address is None) == (local is None):
            what = "neither 'address' nor 'local'" if address is None else "both 'address' and 'local'"
            raise entry.where.wrong(f"a host with {what}", "one of them says where its data is")
        if address is not None:
            targets = _expand(entry.values["address"], address)
        else:
            targets = _expand(entry.values["local"], local or "") if "[" in (local or "") else (local or "",)
        server_id = entry.text("server_id")
        if server_id is None:
            if address is None:
                raise entry.where.wrong(
                    "'local' without 'server_id'", "server_id is the host's name in the rank table"
                )
            return [(target, target) for target in targets]
        server_ids = _expand(entry.values["server_id"], server_id)
        if len(server_ids) != len(targets):
            raise entry.values["server_id"].wrong(
                f"'server_id' stands for {len(server_ids)} hosts, the entry for {len(targets)}",
                "a node set of as many names, or leave it out",
            )
        return list(zip(targets, server_ids, strict=True))

    def _spec(self, entry: Entry, host: HostId, target: str, server_id: str) -> HostSpec:
        local = entry.text("local") is not None
        root = entry.text("profiler_root")
        if root is not None:
            self.variables |= {
                name: self._environment[name] for name in variables_in(root) if name in self._environment
            }
            root = with_placeholders(entry.values["profiler_root"], root, target, self._environment)
        if not local:
            self._check_connection(entry, target, root)
        if not _SERVER_ID.fullmatch(server_id):  # it must fit into a line of host_ips_mapping.txt
            where = entry.values.get("server_id", entry.where)
            raise where.wrong(
                f"not a server id: {server_id!r}", "a name without blanks, as in the rank table"
            )
        port = entry.number("port")
        is_taken = entry.text("server_id") is None and server_id in self._server_ids
        if is_taken and not any(place[:2] == (target, port) for place in self._places):
            server_id = f"{target}:{port or SSH_PORT}"  # another container behind the same address
        self._refuse_duplicate(entry, target, server_id)
        return HostSpec(
            host=host,
            server_id=ServerId(server_id),
            address="" if local else target,
            port=entry.number("port"),
            user=entry.text("user"),
            identity_file=None if local else self._identity_file(entry),
            known_hosts=_text_path(entry.text("known_hosts"), self._base),
            profiler_root=root or "",
            device_regex=entry.text("device_regex"),
            output_dir=entry.text("output_dir"),
            jump=entry.text("jump"),
            prepare=entry.text("prepare"),
            local=_text_path(target, self._base) if local else None,
            transport=LOCAL_NAME if local else entry.text("transport") or HostSpec.transport,
            bandwidth_bytes_per_s=size_of(entry.values["bandwidth"], "'bandwidth'")
            if "bandwidth" in entry.values
            else None,
            password=None if local else self._password(entry, target),
            passphrase=None if local else self._secret(entry, "passphrase_env", "the passphrase of the key"),
            certificate_file=_text_path(entry.text("certificate_file"), self._base),
            ssh_config=_text_path(entry.text("ssh_config"), self._base),
            follow_links=directories_of(entry.values["follow_links"], "'follow_links'")
            if "follow_links" in entry.values
            else (),
            become=entry.text("become"),
            become_user=self._become_user(entry),
        )

    def _refuse_duplicate(self, entry: Entry, target: str, server_id: str) -> None:
        place = (target, entry.number("port"), entry.text("profiler_root"), entry.text("device_regex"))
        first = self._server_ids.get(server_id)
        if first is not None:
            raise entry.where.wrong(f"host {server_id!r} is listed twice", f"the first one is {first.place}")
        first = self._places.get(place)
        if first is not None:
            what = f"host {server_id!r} reads the same directory of {target} as another one"
            raise entry.where.wrong(what, f"the other one is {first.place}")
        self._server_ids[server_id] = self._places[place] = entry.where

    def _check_connection(self, entry: Entry, address: str, root: str | None) -> None:
        where = entry.values["address"]
        is_name = ":" not in address or is_ip6(address)
        if not is_name or not _ADDRESS.fullmatch(address) or address.startswith("-"):
            raise where.wrong(
                f"not a host name or address: {address!r}", "a user goes into 'user', a port into 'port'"
            )
        if entry.text("transport") == LOCAL_NAME:
            raise entry.values["transport"].wrong("'transport: local' without 'local'", "name the directory")
        port = entry.number("port")
        if port is not None and not 0 < port <= _MAX_PORT:
            raise entry.values["port"].wrong(f"'port' is {port}", f"a port is 1 to {_MAX_PORT}")
        if root is None:
            raise entry.where.wrong(
                f"no 'profiler_root' for {address}",
                "say below 'defaults' (or with --profiler-root) where the data is",
            )

    def _become_user(self, entry: Entry) -> str | None:
        user = entry.text("become_user")
        if user is None:
            return None
        if entry.text("become") is None:
            raise entry.values["become_user"].wrong("'become_user' without 'become'", "add become: sudo")
        if not _USER.fullmatch(user):
            raise entry.values["become_user"].wrong(
                f"not the name of a user: {user!r}", "letters, digits, - . _"
            )
        return user

    def _identity_file(self, entry: Entry) -> str | None:
        path = _text_path(entry.text("identity_file"), self._base)
        if path is not None:
            path = path.removesuffix(".pub")  # the private key lies beside it, or an agent holds it
        if path is not None and not any(Path(path + end).is_file() for end in ("", ".pub")):
            where = entry.values["identity_file"]
            raise InputError(f"{where.place}: 'identity_file' {path} does not exist", "check the path")
        return path

    def _password(self, entry: Entry, address: str) -> str | None:
        given = self._secret(entry, "password_env", f"the password of {address}")
        return given or self._draft.passwords.get(address)

    def _secret(self, entry: Entry, key: str, what: str) -> str | None:
        variable = entry.text(key)
        if variable is None:
            return None
        secret = self._environment.get(variable)
        if not secret:
            where = entry.values[key]
            raise InputError(
                f"{where.place}: environment variable {variable} is not set; it holds {what}",
                f"read -rs {variable} && export {variable}",
            )
        return secret


def by_names(specs: Sequence[HostSpec], aliases: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the server ids of each name: a server id, an address, or what else a host is called."""
    found = {alias: [server_id] for alias, server_id in aliases.items()}
    for spec in specs:
        for name in {spec.server_id, spec.address} - {""}:
            if spec.server_id not in found.setdefault(name, []):
                found[name].append(spec.server_id)
    return found


def _expand(where: Located, text: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except UsageError as error:
        raise where.wrong(error.message, error.advice) from error


def _path(text: str | None, base: Path) -> Path | None:
    return None if text is None else base / Path(text).expanduser()


def _text_path(text: str | None, base: Path) -> str | None:
    return None if text is None else str(_path(text, base))


_PLACE = re.compile(r"%[%h]|\$(?:([A-Z_][A-Z0-9_]*)|\{([A-Z_][A-Z0-9_]*)\})")


def variables_in(text: str) -> set[str]:
    """Return the names of the variables in `text`."""
    return {match[1] or match[2] for match in _PLACE.finditer(text)} - {None}


def with_placeholders(where: Located, text: str, host: str, environment: Mapping[str, str]) -> str:
    """Return `text` with its places filled in.

    Raises:
        InputError: a variable is not set here.
    """

    def value(match: re.Match[str]) -> str:
        if match[0] in ("%%", "%h"):
            return "%" if match[0] == "%%" else host
        name = match[1] or match[2]
        if not environment.get(name):
            raise where.wrong(f"{text!r} names the environment variable {name}, which is not set")
        return environment[name]

    return _PLACE.sub(value, text)
