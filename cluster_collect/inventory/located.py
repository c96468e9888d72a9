"""YAML with line numbers: every value knows where it was written, so that an error can say it.

Nothing is constructed but mappings, lists, text and booleans. A number stays the text that was written, for
YAML reads `010` as 8, `1.10` as 1.1 and `22:22` as 1342. Messages never contain a piece of the file: it may
hold a password that should not be there.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import yaml

from cluster_run.errors import ClusterError, InputError, UsageError

#: More values than any inventory has; stops aliases that multiply (`&a [*b, *b]`).
MAX_VALUES = 500_000
_MAX_DEPTH = 50
#: Types of YAML whose values are taken as they are written.
_WRITTEN = ("str", "int", "float", "timestamp", "value")


@dataclass(frozen=True)
class Foreign:
    """A scalar of a type of its own, such as a vault. No key of ours takes one."""

    tag: str


Scalar = str | bool | Foreign | None

_YES, _NO = ("yes", "true", "on"), ("no", "false", "off")
#: What keyboards and word processors make of the marks that YAML wants.
_FULL_WIDTH = re.compile("[\uff1a\uff0c\u201c\u201d\u2018\u2019\u00a0\u3000\uff3b\uff3d]")
_NUMBER = re.compile(r"\d{1,18}")


def unquoted(word: str) -> str | bool:
    """Return what a word without quotes means: text, but for a yes or a no."""
    return word.lower() in _YES if word.lower() in (*_YES, *_NO) else word


def not_utf8(file: str, error: UnicodeDecodeError) -> InputError:
    """Return the error of a file of hosts in another encoding; it shows no piece of it."""
    line = error.object.count(b"\n", 0, error.start) + 1
    return InputError(f"{file}:{line}: not UTF-8", "save it as UTF-8")


@dataclass(frozen=True)
class Located:
    """A value and the line it stands on: that of its key in a mapping, its own in a list."""

    value: Scalar | tuple[Located, ...] | Mapping[str, Located]
    file: str
    line: int

    def wrong(self, what: str, advice: str = "") -> ClusterError:
        """Return the error that says `what` is wrong here; on a command line it is wrong usage."""
        kind = UsageError if self.file.startswith("--") else InputError
        return kind(f"{self.place}: {what}", advice)

    @property
    def place(self) -> str:
        """`hosts.yaml:12`; without a number on the command line, which has no lines."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def mapping(self, name: str) -> Mapping[str, Located]:
        """Return the value as a mapping; `name` is what the message calls it."""
        if isinstance(self.value, Mapping):
            return self.value
        advice = _typed_otherwise("it", self.value) if isinstance(self.value, str) else ""
        raise self.wrong(f"{name} is {self.kind}, a mapping (key: value) is wanted", advice)

    def items(self, name: str) -> tuple[Located, ...]:
        """Return the value as a list."""
        if isinstance(self.value, tuple):
            return self.value
        raise self.wrong(f"{name} is {self.kind}, a list is wanted", "begin each entry with '- '")

    def text(self, name: str, advice: str = "") -> str:
        """Return the value as text; `advice` says what to write in place of anything else."""
        if isinstance(self.value, str) and self.value.strip():
            return self.value
        raise self.wrong(f"{name} is {self.kind}, text is wanted", advice)

    def number(self, name: str, advice: str = "") -> int:
        """Return the value as a whole number."""
        if isinstance(self.value, str) and _NUMBER.fullmatch(self.value):
            return int(self.value)
        raise self.wrong(f"{name} is {self.kind}, a whole number is wanted", advice)

    @property
    def kind(self) -> str:
        """What the value is, in words."""
        if self.value is None or (isinstance(self.value, str) and not self.value.strip()):
            return "empty"
        if isinstance(self.value, Mapping):
            return "a mapping"
        if isinstance(self.value, Foreign):
            return f"a {self.value.tag}"
        return {tuple: "a list", bool: "yes/no"}.get(type(self.value), "text")


def unknown_key(
    where: Located, key: str, known: Iterable[str], of: str, meant: str | None = None
) -> ClusterError:
    """Return the error for an unknown key.

    Its advice is the key that was probably `meant`, else the nearest known key.
    """
    known = list(known)
    near = [meant] if meant else difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.5)
    advice = f"did you mean {near[0]!r}?" if near else "known keys: " + ", ".join(known)
    return where.wrong(f"unknown key {key!r} {of}", advice)


def parse_yaml(text: str, file: str) -> Located:
    """Parse a YAML document.

    Raises:
        InputError: not YAML, several documents, a key twice, or too large.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{file}:{mark.line + 1}" if mark else file
        raise InputError(
            f"{place}: not readable as YAML: {_reason(error)}", _yaml_advice(error, text)
        ) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{file}: not readable as YAML: {type(error).__name__}") from None
    if node is None:
        return Located(None, file, 1)
    return _Reader(file).read(node, node.start_mark.line + 1)


def parse_json(text: str, file: str) -> Located:
    """Parse a JSON document; all values stand on line 1, for JSON's reader tells no lines.

    Raises:
        InputError: not JSON, or a key twice.
    """
    try:
        document = json.loads(
            text,
            object_pairs_hook=lambda pairs: _unique(pairs, file),
            parse_int=str,
            parse_float=str,
            parse_constant=str,
        )
    except json.JSONDecodeError as error:
        raise InputError(f"{file}:{error.lineno}: not readable as JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{file}: not readable as JSON: nested too deeply") from None
    return _located(document, file)


class _Reader:
    """Turns YAML nodes into located values, with a budget."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._n_values = 0

    def read(self, node: yaml.Node, line: int, depth: int = 0) -> Located:
        self._n_values += 1
        if self._n_values > MAX_VALUES or depth > _MAX_DEPTH:
            raise InputError(f"{self._file}:{line}: too large or nested too deeply for an inventory")
        if isinstance(node, yaml.MappingNode):
            return Located(self._mapping(node, depth), self._file, line)
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.read(item, item.start_mark.line + 1, depth + 1) for item in node.value)
            return Located(items, self._file, line)
        return Located(self._scalar(node), self._file, line)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> Mapping[str, Located]:
        found: dict[str, Located] = {}
        merged: list[Located] = []
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise InputError(f"{self._file}:{line}: a key must be a word")
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged.append(self.read(value_node, line, depth + 1))
                continue
            if key_node.value in found:
                raise InputError(
                    f"{self._file}:{line}: key {key_node.value!r} appears twice",
                    f"the first one is in line {found[key_node.value].line}",
                )
            found[key_node.value] = self.read(value_node, line, depth + 1)
        for one in merged:
            for mapping in one.value if isinstance(one.value, tuple) else (one,):
                found = {**mapping.mapping("<<"), **found}
        return found

    def _scalar(self, node: yaml.Node) -> Scalar:
        short = node.tag.removeprefix("tag:yaml.org,2002:")
        if short == "null":
            return None
        if short == "bool":
            return unquoted(node.value)
        return str(node.value) if short in _WRITTEN else Foreign(short)


def _reason(error: yaml.MarkedYAMLError) -> str:
    # `problem` is a fixed sentence for most errors and quotes a name for a few; never a whole line.
    return (error.problem or "syntax").split("'", 1)[0].strip() or "syntax"


def _typed_otherwise(what: str, text: str) -> str:
    found = _FULL_WIDTH.search(text)
    return f"{what} holds {found[0]!r}: type colons, commas, quotes and blanks as in English" if found else ""


def _yaml_advice(error: yaml.MarkedYAMLError, text: str) -> str:
    if error.problem_mark is not None:  # which stands behind the key that has no colon
        n_lines = error.problem_mark.line + 1
        for number, line in list(enumerate(text.splitlines()[:n_lines], 1))[-2:]:
            if advice := _typed_otherwise(f"line {number}", line):
                return advice
    if "\\t" in (error.problem or ""):
        return "indent with spaces, not tabs"
    return "check the indentation, and put text with : # [ ] { } in quotes"


def _unique(pairs: list[tuple[str, object]], file: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise InputError(f"{file}: key {key!r} appears twice")
        found[key] = value
    return found


def _located(value: object, file: str) -> Located:
    if isinstance(value, dict):
        return Located({key: _located(item, file) for key, item in value.items()}, file, 1)
    if isinstance(value, list):
        return Located(tuple(_located(item, file) for item in value), file, 1)
    assert value is None or isinstance(value, (str, bool))
    return Located(value, file, 1)
