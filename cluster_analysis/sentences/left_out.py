"""Parts of files that are left out, and why, in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_analysis.sentences.phrase import Template

PARTS: Mapping[str, Template] = {
    "cell": ("{n_parts:cell|cells}", "个单元格"),
    "duration": ("{n_parts:duration|durations}", "个时长"),
    "entry": ("{n_parts:entry|entries}", "个条目"),
    "event": ("{n_parts:event|events}", "个事件"),
    "line": ("{n_parts:line|lines}", "行"),
    "link": ("{n_parts:link|links}", "条链路"),
    "link_end": ("{n_parts:link end|link ends}", "个链路端点"),
    "name": ("{n_parts:name|names}", "个名称"),
    "operator": ("{n_parts:operator|operators}", "个算子"),
    "packet_size": ("{n_parts:packet size|packet sizes}", "个通信包大小"),
    "row": ("{n_parts:row|rows}", "行"),
    "start_time": ("{n_parts:start time stamp|start time stamps}", "个开始时间戳"),
    "step": ("{n_parts:step|steps}", "步"),
    "task": ("{n_parts:task|tasks}", "个任务"),
    "value": ("{n_parts:value|values}", "个数值"),
}
REASONS: Mapping[str, Template] = {
    "no_number": ("without a number", "不是数字"),
    "no_number_in_column": ("of column {column} without a number", "列 {column} 中不是数字"),
    "below_0": ("below 0", "小于 0"),
    "no_time": ("without a time", "没有时间"),
    "no_start": ("without a start", "没有开始时间"),
    "in_no_step": ("that began in none of the steps of STEP_TIME", "开始时间不在 STEP_TIME 的任何步内"),
    "no_step_number": ("without a step number", "没有步号"),
    "no_step_number_but": ("without a step number ({text})", "没有步号（{text}）"),
    "not_source_destination": (
        "of step {step} not named source-destination",
        "第 {step} 步中的名称不是“源-目的”形式",
    ),
    "other_number_of_cells": ("with another number of cells than the header", "单元格数与表头不同"),
    "not_readable": ("that cannot be read", "无法读取"),
    "not_sum_of_parts": ("that is not the sum of its parts", "总和与各部分不符"),
    "step_repeated": ("of steps that it has more than once", "所属的步重复出现"),
    "shared_name": ("that several operators share, in what was carried", "多个算子同名，其通信量无法区分"),
    "no_rank": ("without a rank", "没有卡号"),
    "no_such_rank": ("between ranks that no job has", "两端的卡在任何作业中都不存在"),
}
#: Of rows that lack what they are judged by: what they lack, and what they are.
ROWS: Mapping[str, tuple[Template, Template]] = {
    "operators": (("start or length", "开始时间或时长"), ("operators", "算子")),
    "links": (("size or time", "大小或时间"), ("links", "链路")),
}
