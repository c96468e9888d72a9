"""A fact: what is known, as a kind and named values. Reports make sentences of it, in any language.

The kinds stand here: what a finding, a note or a problem can say. Each has a sentence in `sentences`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cluster_run.kinds import NoteFact

#: Knowledge from other runs: states of a device or host in them.
FleetFact = Literal[
    "fleet_slow", "fleet_intermittent", "fleet_repaired", "fleet_replaced", "fleet_healthy", "fleet_unknown"
]
#: Facts that make a finding's summary.
FindingFact = Literal[
    # A rank or a host compared with its peers.
    "rank_computing",
    "rank_free",
    "rank_preparing",
    "host_computing",
    "host_free",
    "host_preparing",
    "computing_or_idle",
    "all_kernels",
    "matrix_kernels",
    "vector_kernels",
    "some_kernels",
    "clock_below_peers",
    "moment_or_fault",
    # Parts of the network, by the times of links.
    "link_one_way",
    "link_both_ways",
    "nic",
    "nic_sending",
    "nic_receiving",
    "rail",
    "port",
    "port_sending",
    "port_receiving",
    "host_pair",
    "host_pair_one_way",
    "uplink",
    "uplink_sending",
    "uplink_receiving",
    "may_be_nic",
    "may_be_port",
    "may_be_uplink",
    "may_be_built",
    "only_two_links",
    "in_some_steps",
    # The same by the times of operators, where no link was recorded.
    "operators_between_two",
    "operators_of_rank",
    "operators_across_host",
    "operators_between_hosts",
    "operators_of_group",
    "no_matrix",
    # Single operators that took far too long.
    "operators_took_long",
    "operators_took_long_between",
    "packets_lost",
    "sent_again",
    "card_counted",
    "port_below_peers",
    "stood_still_together",
    "host_link_stopped",
    "absent_members",
    "at_a_place",
    # Pauses.
    "rank_pauses",
    "rank_pauses_regularly",
    "ranks_pause_by_turns",
    "job_pauses_once",
    "job_pauses_regularly",
    # The workload's own.
    "stages_uneven",
    "replicas_uneven",
    "experts_uneven",
    "late_first_operator",
    "loader_not_timed",
    "loader_takes_most",
    "loader_takes_little",
    "head_split",
    "idle_split",
    "exposed",
    "exposed_of_some_ranks",
    "devices_idle",
    "inputs_late",
    "hosts_alike",
    "host_alone_late",
    "host_alone_idle",
    "host_alone_slow",
    "small_operators",
    # Limits of the cost.
    "cost_is_bound",
    "cost_not_replayable",
    "cost_not_explained",
    "cost_at_least",
    "late_even_so",
    "hidden",
    "could_be_covered",
    FleetFact,
]
#: Why something could not be used.
ReasonKind = Literal[
    # Files.
    "unreadable",
    "unlistable",
    "unforeseen_content",
    "not_read_on_host",
    "empty",
    "blank",
    "truncated",
    "truncated_first_line",
    "truncated_last_line",
    "last_cell_in_doubt",
    "says_nothing_from",
    "filled_with_nul",
    "not_utf8",
    "utf16",
    "not_json",
    "not_json_at",
    "not_csv",
    "not_database",
    "cannot_be_opened",
    "write_ahead_log",
    "not_of_form",
    "not_of_form_in",
    "of_part",
    "two_columns_of_one_name",
    "no_column",
    "not_by_commas",
    "no_expected_column",
    "none_of_columns",
    "no_step_in_it",
    "not_a_whole_timeline",
    "header_not_hccl",
    "header_not_step_trace",
    "other_number_of_columns",
    "other_number_of_steps",
    "impossible_rank",
    "impossible_rank_or_device",
    "left_out",
    "keys_left_out",
    "rows_lack",
    # Data missing from a rank's files.
    "no_step_times_of_rank",
    "no_link_in_it",
    "no_operator_of_links",
    "no_communication_data",
    "matrix_not_there",
    "others_have_it",
    "silent_steps",
    # Captures.
    "other_size",
    "other_hash",
    "gone_since",
    "device_of_several_hosts",
    "several_files_of_one_id",
    "several_captures_of_rank",
    "not_parsed",
    "still_parsed",
    "nothing_in_it",
    "rank_not_known",
    "rank_or_device_not_known",
    "names_disagree",
    "two_frameworks",
    "raw_only",
    "exported_by_old_cann",
    "several_devices",
    "rows_of_one_step",
    "ranks_counted",
    "missing_ranks",
    "hosts_not_mapped",
    "hosts_share_files",
    "other_hosts_than_table",
    "ranks_not_in_table",
    "hosts_not_in_table",
    "unusable_description",
    "not_collected",
    "not_collected_whole",
    "collecting_not_ended",
    "file_not_collected",
    "given_up",
    "reading_failed",
    "step_not_analysed",
    "leads_nowhere",
    "archive",
    "made_by_msprof_analyze",
    "nsight_report",
    "pytorch_trace",
    "xla_trace",
    "msmonitor_record",
    "file_of_no_capture",
    # Statements of the captures about the job.
    "group_disagreement",
    "no_member",
    "groups_of_one_id",
    "size_not_known",
    "two_of_one_local_rank",
    "several_jobs",
    "links_not_mapped",
    "no_common_step",
]
#: Advice on a problem.
AdviceKind = Literal[
    "parse_again",
    "parse_again_on_host",
    "parse_on_host",
    "wait_for_parser",
    "collect_from_host",
    "collect_or_parse",
    "go_on_collecting",
    "collect_again",
    "collect_or_parse_again",
    "collect_whole",
    "report_step",
    "collect_hosts_again",
    "collect_them_too",
    "collect_group",
    "profile_at_level1",
    "export_again",
    "export_with_msprof",
    "give_whole_directory",
    "give_rank_table",
    "put_rank_table",
    "put_rank_table_in_run",
    "replace_rank_table",
    "remove_other_sessions",
    "remove_other_jobs",
    "copy_profiler_info",
    "copy_device_info",
    "sort_by_rank",
    "one_directory_a_device",
    "analyse_apart",
    "spell_as_rank_table",
    "check_one_job",
    "name_groups_apart",
    "let_user_read",
    "restore_target",
    "others_analysed",
    "report_file",
    "report_names",
    "record_same_steps",
    "unpack",
    "give_captures",
    "only_ascend",
    "profile_with_torch_npu",
    "put_into_capture",
    "as_told",
]
#: Why two runs cannot be compared.
RefusalKind = Literal[
    "laid_out_differently", "other_number_of_ranks", "first_without_steps", "second_without_steps"
]

FactKind = FindingFact | Literal["rule_holds"] | NoteFact | ReasonKind | RefusalKind
#: A number, a name, or several of them. The unit of a number is in its name (`_us`, `_bytes`, `_share`).
Value = bool | int | float | str | None | tuple["Value", ...]


@dataclass(frozen=True)
class Fact:
    """One thing that is known. `values` are in the order in which they were given; equal facts are one."""

    kind: str
    values: tuple[tuple[str, Value], ...] = ()

    def __getitem__(self, name: str) -> Value:
        """Return the value called `name`.

        Raises:
            KeyError: the fact has no such value.
        """
        return dict(self.values)[name]

    def plain(self) -> dict[str, object]:
        """Return the fact as an object of JSON."""
        return {"kind": self.kind, **{name: _plain(value) for name, value in self.values}}


def fact(kind: FactKind, **values: Value) -> Fact:
    """Return a fact."""
    return Fact(kind, tuple(values.items()))


def fact_of(plain: Mapping[str, object]) -> Fact:
    """Return the fact that `Fact.plain` wrote.

    Raises:
        KeyError: it has no kind.
        TypeError: a value is no number, name or list of them.
    """
    values = {name: _value(value) for name, value in plain.items() if name != "kind"}
    return Fact(str(plain["kind"]), tuple(values.items()))


def _plain(value: Value) -> object:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _value(plain: object) -> Value:
    if isinstance(plain, list):
        return tuple(map(_value, plain))
    if plain is None or isinstance(plain, bool | int | float | str):
        return plain
    raise TypeError(f"no value of a fact: {plain!r}")
