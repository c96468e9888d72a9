"""Problems: data that could not be used, why, and what to do about it, in both languages."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from cluster_run.facts import Fact
from cluster_run.problem import Problem
from cluster_run.said.chinese import SEMICOLON
from cluster_words.phrase import Phrase, fill, joined
from cluster_words.texts import Template, texts

_SAID = texts("problems")
WHY: Mapping[str, Template] = _SAID["why"]
#: Parts of files that are left out, and why.
PARTS: Mapping[str, Template] = _SAID["parts"]
REASONS: Mapping[str, Template] = _SAID["left_out"]
ADVICE: Mapping[str, Template] = _SAID["advice"]
#: Reasons by the advice on them, where the problem brings none; all others are files that hold too little.
_ADVISED = {
    "report_file": ("unforeseen_content", "reading_failed"),
    "report_names": (
        "no_column", "no_expected_column", "none_of_columns", "other_number_of_columns", "header_not_hccl",
        "header_not_step_trace",
    ),
    "report_step": ("step_not_analysed",),
    "one_directory_a_device": ("several_devices", "rows_of_one_step"),
    "collect_whole": ("not_read_on_host",),
    "collect_again": (
        "other_size", "other_hash", "gone_since", "not_collected", "not_collected_whole",
        "file_not_collected", "given_up",
    ),
    "parse_again_on_host": ("no_step_times_of_rank", "silent_steps"),
    "collect_them_too": ("missing_ranks",),
    "collect_group": ("links_not_mapped",),
    "replace_rank_table": ("unusable_description", "ranks_not_in_table", "hosts_not_in_table"),
    "put_rank_table": ("hosts_share_files",),
    "put_rank_table_in_run": ("other_hosts_than_table",),
}  # fmt: skip
_USUAL = {why: advised for advised, reasons in _ADVISED.items() for why in reasons}
#: The system's messages on files that the user may not read: they are there, and complete.
_NOT_PERMITTED = os.strerror(errno.EACCES)


def reason(problem: Problem) -> Phrase:
    """Return why something could not be used."""
    return joined(map(_why, (problem.why, *problem.also)), SEMICOLON)


def _why(fact: Fact) -> Phrase:
    values: dict[str, object] = dict(fact.values)
    if fact.kind == "left_out":
        values["what"] = fill(PARTS[str(fact["part"])], values)
        values["why"] = fill(REASONS[str(fact["reason"])], values)
    elif fact.kind == "keys_left_out":
        values["n_more"] = int(fact["n_keys"]) - 1  # type: ignore[arg-type]
        values["what"] = fill(_SAID["no_keys"][fact["what"]], values)
    elif fact.kind == "rows_lack":
        values["columns"], values["rows"] = (
            fill(_SAID[table][fact["rows"]], values) for table in ("columns", "rows")
        )
    phrase = fill(WHY[fact.kind], values)
    return Phrase(phrase.en.rstrip(), phrase.zh.removesuffix("："))


def advice(problem: Problem) -> Phrase:
    """Return what to do about it."""
    return fill(ADVICE[problem.advice or _usual(problem.why)], dict(problem.why.values))


def _usual(why: Fact) -> str:
    values = dict(why.values)
    if why.kind in ("unreadable", "unlistable") and values.get("detail") == _NOT_PERMITTED:
        return "let_user_read"
    # A column that a readable file lacks throughout has another name in it: no other copy will have it.
    if why.kind == "rows_lack" and values.get("n_lacking") == values.get("n_rows"):
        return "report_names"
    if why.kind == "keys_left_out" and values.get("what") in ("no_step", "no_level"):
        return "report_names"
    return _USUAL.get(why.kind, "collect_or_parse_again")
