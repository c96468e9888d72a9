"""The account file of the r1.x script: `{"rank_size": 16, "cluster": {"<ip>": {"user": …, "passwd": …}}}`.

It holds passwords, so it is read only when nobody else can read it.
"""

from __future__ import annotations

from cluster_collect.inventory.keys import Draft, Entry
from cluster_collect.inventory.located import Located, unknown_key
from cluster_run.errors import InputError

_FIELDS = ("user", "passwd")


def is_account(document: Located) -> bool:
    """Tell an account file from an inventory."""
    return isinstance(document.value, dict) and isinstance(
        getattr(document.value.get("cluster"), "value", None), dict
    )


def refuse_public(file: str, mode: int, owner: int, reader: int) -> None:
    """Refuse a file with passwords that others can read, or that somebody else owns.

    Raises:
        InputError: with the command that makes it private.
    """
    if owner != reader:
        raise InputError(
            f"{file}: holds passwords and belongs to another user (uid {owner})",
            "copy it, and chmod 600 the copy",
        )
    if mode & 0o077:
        raise InputError(
            f"{file}: holds passwords and is open to others (mode {mode & 0o777:04o})", f"chmod 600 {file}"
        )


def read_account(document: Located) -> Draft:
    """Read an account file; the order of its hosts is the order of their numbers.

    Raises:
        InputError: a host without user, or an unknown key. No message holds a password.
    """
    hosts = document.mapping("the account file")["cluster"].mapping("'cluster'")
    entries = []
    passwords = {}
    for address, account in hosts.items():
        fields = account.mapping(f"the account of {address}")
        for name, value in fields.items():
            if name not in _FIELDS:
                raise unknown_key(value, name, _FIELDS, f"in the account of {address}")
        if "passwd" in fields:
            passwords[address] = fields["passwd"].text(f"the passwd of {address}")
        values = {"address": Located(address, account.file, account.line)}
        if "user" in fields:
            fields["user"].text(f"the user of {address}", "write it like trainer")
            values["user"] = fields["user"]
        entries.append(Entry(account, values))
    warning = f"{document.file}: passwords in a file; SSH keys need none"
    return Draft(
        tuple(entries), Entry(document), passwords=passwords, warnings=(warning,) if passwords else ()
    )
