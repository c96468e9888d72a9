"""Every form of an inventory file: how it is known, and what reads it. The first that fits is taken."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cluster_collect.inventory.account import is_account, read_account, refuse_public
from cluster_collect.inventory.ansible import is_ansible, read_ansible
from cluster_collect.inventory.ansible_forms import is_ini, is_listing, read_ini, read_listing
from cluster_collect.inventory.hostlist import is_host_list, read_host_lines
from cluster_collect.inventory.keys import Draft, Entry
from cluster_collect.inventory.located import Located, parse_json, parse_yaml
from cluster_collect.inventory.native import read_native
from cluster_run.ranktable import MARKS


class InventoryFile:
    """One file: its text, and as JSON or YAML where a form asks for that.

    Args:
        path: where it is.
        text: what it holds.
        status: whose it is, and who may read it.
    """

    def __init__(self, path: Path, text: str, status: os.stat_result) -> None:
        self.path = path
        self.name = str(path)
        self.text = text
        self.status = status
        self.is_json = text.lstrip().startswith("{")

    @cached_property
    def document(self) -> Located:
        """The document.

        Raises:
            UsageError: it is neither JSON nor YAML; with file and line.
        """
        return parse_json(self.text, self.name) if self.is_json else parse_yaml(self.text, self.name)


@dataclass(frozen=True)
class Form:
    """One form: whether a file has it, and the file as a draft."""

    fits: Callable[[InventoryFile], bool]
    read: Callable[[InventoryFile], Draft]


def _is_rank_table(file: InventoryFile) -> bool:
    value = file.document.value
    return isinstance(value, Mapping) and not set(MARKS).isdisjoint(value)


def _of_account(file: InventoryFile) -> Draft:
    refuse_public(file.name, file.status.st_mode, file.status.st_uid, os.geteuid())
    return read_account(file.document)


FORMS = (
    # Known by their text: they are no documents.
    Form(
        lambda file: not file.is_json and is_ini(file.text),
        lambda file: read_ansible(read_ini(file.text, file.name)),
    ),
    Form(
        lambda file: is_host_list(file.text),
        lambda file: Draft(read_host_lines(file.text, file.name), Entry(Located(None, file.name, 0))),
    ),
    # Known by their keys.
    Form(
        _is_rank_table,
        lambda file: Draft((), Entry(file.document), rank_table=str(file.path.absolute())),
    ),
    Form(lambda file: is_listing(file.document), lambda file: read_ansible(read_listing(file.document))),
    Form(lambda file: is_account(file.document), _of_account),
    Form(lambda file: is_ansible(file.document), lambda file: read_ansible(file.document)),
    # All others: ours, which names what is wrong.
    Form(lambda _: True, lambda file: read_native(file.document)),
)
