"""Advice on problems, in both languages."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from cluster_analysis.sentences.phrase import Phrase, Template, fill
from cluster_run.facts import AdviceKind, Fact, ReasonKind
from cluster_run.problem import Problem

ADVICE: Mapping[AdviceKind, Template] = {
    "parse_again": ("parse the capture again", "请重新解析该采集数据"),
    "parse_again_on_host": ("parse the capture again on its host", "请在其主机上重新解析该采集数据"),
    "parse_on_host": (
        "parse it on its host (torch_npu.profiler.profiler.analyse, mindspore.profiler.analyse)",
        "请在其主机上解析（torch_npu.profiler.profiler.analyse、mindspore.profiler.analyse）",
    ),
    "wait_for_parser": (
        "wait until its parser has ended, then collect it again; or parse it again on its host",
        "请等待解析结束后重新收集；或在其主机上重新解析",
    ),
    "collect_from_host": ("collect it from its host", "请从其主机采集"),
    "collect_or_parse": (
        "collect it from its host; where it is not there either, parse the capture again",
        "请从其主机采集；若主机上也没有，请重新解析该采集数据",
    ),
    "go_on_collecting": (
        "call cluster-collect again with the same --output: it goes on from there",
        "请以相同的 --output 再次运行 cluster-collect：它会接着收集",
    ),
    "collect_again": ("collect it again", "请重新采集"),
    "collect_or_parse_again": (
        "collect it again; where it is the same on its host, parse the capture again there",
        "请重新采集；若主机上的文件也是如此，请在该主机上重新解析",
    ),
    "collect_whole": (
        "collect it whole: cluster-collect --like <this run> --what full",
        "请完整采集：cluster-collect --like <该运行目录> --what full",
    ),
    "report_step": (
        "the other steps were analysed; please report this",
        "其余的步已分析；请反馈此问题",
    ),
    "collect_hosts_again": (
        "collect their hosts again, or look why they wrote none",
        "请重新采集这些主机，或查明为何没有写出数据",
    ),
    "collect_them_too": ("collect them too; what they did is not known", "请一并采集；它们的情况未知"),
    "collect_group": (
        "collect profiler_metadata.json, or all ranks of the group",
        "请采集 profiler_metadata.json，或该通信域的全部卡",
    ),
    "profile_at_level1": (
        "profile at Level1 or higher, and parse the capture again",
        "请以 Level1 或更高级别采集，并重新解析",
    ),
    "export_again": ("export it again", "请重新导出"),
    "export_with_msprof": (
        "run: msprof --export=on --output=<this directory>",
        "请运行：msprof --export=on --output=<该目录>",
    ),
    "give_whole_directory": (
        "give the directory that holds the captures of all ranks",
        "请给出包含所有卡采集数据的目录",
    ),
    "give_rank_table": (
        "put the rank table (hccl.json) beside the captures",
        "请将 rank table（hccl.json）放在采集数据旁",
    ),
    "put_rank_table": (
        "put the rank table (hccl.json) into the run directory",
        "请将 rank table（hccl.json）放入运行目录",
    ),
    "replace_rank_table": (
        "replace it by the job's own, or remove it: then folders and captures tell what they can",
        "请换成该作业自己的文件，或删除它：这时由目录与采集给出能得知的内容",
    ),
    "put_rank_table_in_run": (
        "put the rank table (hccl.json) and host_ips_mapping.txt into the run directory",
        "请将 rank table（hccl.json）和 host_ips_mapping.txt 放入运行目录",
    ),
    "remove_other_sessions": ("remove those of other sessions", "请移走其他采集的文件"),
    "remove_other_jobs": (
        "remove those that are not of this job; processes without RANK_ID all say rank 0",
        "请移走不属于本作业的采集；没有 RANK_ID 的进程都自称卡 0",
    ),
    "copy_profiler_info": (
        "copy profiler_info_<rank>.json of that rank beside ASCEND_PROFILER_OUTPUT",
        "请将该卡的 profiler_info_<rank>.json 复制到 ASCEND_PROFILER_OUTPUT 旁",
    ),
    "copy_device_info": ("copy device_<N>/info.json.<N> into it", "请将 device_<N>/info.json.<N> 复制进去"),
    "sort_by_rank": ("put what is of another rank where it belongs", "请将属于其他卡的文件放到相应位置"),
    "one_directory_a_rank": (
        "give each rank a directory with its own ASCEND_PROFILER_OUTPUT",
        "请为每张卡使用单独的、带 ASCEND_PROFILER_OUTPUT 的目录",
    ),
    "one_directory_a_device": (
        "profile each device into a directory of its own: one process a device",
        "请将每个设备采集到单独的目录：每个进程一个设备",
    ),
    "analyse_apart": ("analyse the jobs apart", "请分别分析这些作业"),
    "spell_as_rank_table": (
        "spell server_id in the inventory as the rank table does",
        "请使清单（inventory）中的 server_id 与 rank table 写法一致",
    ),
    "name_groups_apart": (
        "give each group a name of its own",
        "请为每个通信域指定不同的名称",
    ),
    "check_one_job": ("check that the captures belong to one job", "请确认这些采集属于同一作业"),
    "let_user_read": (
        "let the user who analyses read it: chmod -R a+rX",
        "请给分析的用户读权限：chmod -R a+rX",
    ),
    "restore_target": ("put what it leads to back, or remove it", "请恢复其指向的内容，或将其删除"),
    "others_analysed": ("the other ranks were analysed", "其余的卡已分析"),
    "report_file": (
        "the other ranks were analysed; please report this file",
        "其余的卡已分析；请反馈此文件",
    ),
    "report_names": (
        "this version of the profiler may call it otherwise: please report it, with the beginning of this "
        "file (names that are read: docs/formats.md)",
        "该版本的 profiler 可能使用了其他名称：请反馈，并附上此文件的开头（读取的名称见 docs/formats.md）",
    ),
    "record_same_steps": (
        "record the same steps on all ranks, or analyse each rank alone",
        "请在所有卡上采集相同的步，或分别分析每张卡",
    ),
    "unpack": ("unpack it, and analyse again", "请解压后重新分析"),
    "give_captures": (
        "give the directory of the ranks' own *_ascend_pt or *_ascend_ms directories",
        "请给出各卡自身的 *_ascend_pt 或 *_ascend_ms 目录所在的目录",
    ),
    "only_ascend": ("only captures of Ascend profilers are read", "只读取 Ascend profiler 的采集数据"),
    "profile_with_torch_npu": (
        "profile with torch_npu.profiler, which writes *_ascend_pt directories",
        "请使用 torch_npu.profiler 采集，它会写出 *_ascend_pt 目录",
    ),
    "put_into_capture": (
        "put the files of each rank into DIR/ASCEND_PROFILER_OUTPUT, unpacked, and its "
        "profiler_info_RANK.json into DIR",
        "请将每张卡的文件解压后放入 DIR/ASCEND_PROFILER_OUTPUT，并将其 profiler_info_RANK.json 放入 DIR",
    ),
    "as_told": ("{told}", "{told}"),
}


#: Advice where the problem brings none; all others are files that hold too little.
_USUAL: Mapping[ReasonKind, AdviceKind] = {
    "unforeseen_content": "report_file",
    "reading_failed": "report_file",
    "no_column": "report_names",
    "no_expected_column": "report_names",
    "none_of_columns": "report_names",
    "other_number_of_columns": "report_names",
    "header_not_hccl": "report_names",
    "header_not_step_trace": "report_names",
    "step_not_analysed": "report_step",
    "several_devices": "one_directory_a_device",
    "not_read_on_host": "collect_whole",
    "other_size": "collect_again",
    "other_hash": "collect_again",
    "gone_since": "collect_again",
    "not_collected": "collect_again",
    "not_collected_whole": "collect_again",
    "file_not_collected": "collect_again",
    "given_up": "collect_again",
    "no_step_times_of_rank": "parse_again_on_host",
    "silent_steps": "parse_again_on_host",
    "missing_ranks": "collect_them_too",
    "links_not_mapped": "collect_group",
    "unusable_description": "replace_rank_table",
    "hosts_share_files": "put_rank_table",
    "other_hosts_than_table": "put_rank_table_in_run",
}


#: The system's messages on files that the user may not read: they are there, and complete.
_NOT_PERMITTED = os.strerror(errno.EACCES)


def advice(problem: Problem) -> Phrase:
    """Return what to do about it."""
    return fill(ADVICE[problem.advice or _usual(problem.why)], dict(problem.why.values))


def _usual(why: Fact) -> AdviceKind:
    values = dict(why.values)
    if why.kind in ("unreadable", "unlistable") and values.get("detail") == _NOT_PERMITTED:
        return "let_user_read"
    # What a file that reads well lacks throughout is called otherwise in it: no other copy will have it.
    if why.kind == "rows_lack" and values.get("n_lacking") == values.get("n_rows"):
        return "report_names"
    if why.kind == "keys_left_out" and values.get("what") in ("no_step", "no_level"):
        return "report_names"
    usual: AdviceKind = _USUAL.get(why.kind, "collect_or_parse_again")  # type: ignore[call-overload]
    return usual
