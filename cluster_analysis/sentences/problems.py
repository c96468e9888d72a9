"""Problems: data that could not be used, and why, in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from cluster_analysis.sentences.left_out import PARTS, REASONS, ROWS
from cluster_analysis.sentences.phrase import Phrase, Template, fill, joined
from cluster_run.facts import Fact, ReasonKind
from cluster_run.problem import Problem
from cluster_run.said.chinese import SEMICOLON

WHY: Mapping[ReasonKind, Template] = {
    "unreadable": ("cannot be read: {detail}", "无法读取：{detail:said}"),
    "leads_nowhere": (
        "cannot be listed: it is a link that leads nowhere",
        "无法列出目录：符号链接指向不存在的位置",
    ),
    "archive": ("it is an archive: what is in it is not read", "是压缩包：其中的内容未读取"),
    "made_by_msprof_analyze": (
        "it is what msprof-analyze made of a job, not a capture",
        "是 msprof-analyze 对作业的分析结果，不是采集数据",
    ),
    "nsight_report": ("it is a report of NVIDIA Nsight", "是 NVIDIA Nsight 的报告"),
    "pytorch_trace": ("it is a trace of PyTorch's own profiler", "是 PyTorch 自带 profiler 的 trace"),
    "xla_trace": ("it is a trace of XLA", "是 XLA 的 trace"),
    "msmonitor_record": ("it is what msMonitor recorded, without steps", "是 msMonitor 的记录，没有各步"),
    "file_of_no_capture": (
        "it is a file of a capture, and lies in none",
        "是采集中的文件，但不在任何采集目录中",
    ),
    "unlistable": ("cannot be listed: {detail}", "无法列出目录：{detail:said}"),
    "unforeseen_content": (
        "holds what it should not: {error}: {detail}",
        "内容异常：{error}：{detail:said}",
    ),
    "not_read_on_host": (
        "its host, where it is read, could not read it: {detail}",
        "该文件在其主机上读取，但主机未能读取：{detail:said}",
    ),
    "empty": ("empty (0 bytes)", "空文件（0 字节）"),
    "blank": ("nothing but blanks ({n_bytes} bytes)", "只有空白字符（{n_bytes} 字节）"),
    "truncated": ("truncated at byte {byte}", "在第 {byte} 字节处截断"),
    "truncated_first_line": (
        "truncated at byte {byte}: its first line has no end",
        "在第 {byte} 字节处截断：第一行不完整",
    ),
    "truncated_last_line": (
        "truncated at byte {byte}: the last line has no end, and was left out",
        "在第 {byte} 字节处截断：最后一行不完整，已忽略",
    ),
    "last_cell_in_doubt": (
        "the last line has no end: its last cell ({column}) may be cut off, and was left out; "
        "lines after it may be missing",
        "最后一行没有行结束符：其最后一个单元格（{column}）可能被截断，已忽略；其后可能还缺少行",
    ),
    "says_nothing_from": (
        "it says nothing of {step} and what followed",
        "缺少 {step} 及其后的内容",
    ),
    "filled_with_nul": (
        "filled with NUL from byte {byte} of {n_bytes}",
        "从第 {byte} 字节起（共 {n_bytes} 字节）全为 NUL",
    ),
    "not_utf8": ("not UTF-8 at byte {byte}", "第 {byte} 字节不是 UTF-8"),
    "utf16": ("UTF-16, and not UTF-8", "编码为 UTF-16，而非 UTF-8"),
    "not_json": ("not JSON: {detail}", "不是 JSON：{detail:said}"),
    "not_json_at": (
        "not JSON at byte {byte} of {n_bytes}: {detail}",
        "第 {byte} 字节（共 {n_bytes} 字节）不是 JSON：{detail:said}",
    ),
    "not_csv": ("not a readable CSV file: {detail}", "不是可读的 CSV 文件：{detail:said}"),
    "not_database": ("not a readable database: {detail}", "不是可读的数据库：{detail:said}"),
    "cannot_be_opened": ("cannot be opened: {detail}", "无法打开：{detail:said}"),
    "write_ahead_log": (
        "a write-ahead log of {n_bytes} bytes lies beside it: its changes are not read",
        "旁边有 {n_bytes} 字节的预写日志（WAL）：其中的修改未读取",
    ),
    "not_of_form": ("not of the expected form: {detail}", "格式不符：{detail:said}"),
    "not_of_form_in": (
        "not of the expected form in {place}, which begins at byte {byte}: {detail}",
        "{place}（始于第 {byte} 字节）格式不符：{detail:said}",
    ),
    "of_part": ("its part {part} cannot be used", "其中的 {part} 无法使用"),
    "two_columns_of_one_name": ("it has two columns of one name", "有两列同名"),
    "no_column": ("it has no column {columns:names}", "没有列 {columns:names}"),
    "not_by_commas": (
        "its cells are not separated by commas: another program has saved it",
        "单元格不是以逗号分隔：文件被其他程序另存过",
    ),
    "no_expected_column": (
        "none of the expected columns is in its header: {header}",
        "表头中没有任何所需的列：{header}",
    ),
    "none_of_columns": ("it has none of the columns {columns:names}", "以下各列均不存在：{columns:names}"),
    "no_step_in_it": ("it has a header and no step", "只有表头，没有任何步"),
    "not_a_whole_timeline": (
        "slices {slices:names} are not a whole timeline",
        "切片 {slices:names} 不是完整的时间线",
    ),
    "header_not_hccl": (
        "its header is not that of hccl_raw (step_num, communication_cost, …)",
        "表头不是 hccl_raw 的表头（step_num, communication_cost, …）",
    ),
    "header_not_step_trace": (
        "its header is not that of a step trace (step_num, …, total, …, iteration_interval, …)",
        "表头不是 step trace 的表头（step_num, …, total, …, iteration_interval, …）",
    ),
    "other_number_of_columns": (
        "it has {n_columns} columns instead of {wanted:or}",
        "有 {n_columns} 列，应为 {wanted:or} 列",
    ),
    "other_number_of_steps": (
        "it has {n_steps} steps where the step trace has {n_traced}",
        "有 {n_steps} 步，而 step trace 有 {n_traced} 步",
    ),
    "impossible_rank": ("it names rank {named}, which no job has", "其中的卡 {named} 在任何作业中都不存在"),
    "impossible_rank_or_device": (
        "it names rank or device {named}, which no job has",
        "其中的卡或设备 {named} 在任何作业中都不存在",
    ),
    "left_out": ("left out: {n_parts} {what} {why}", "已忽略 {n_parts} {what}：{why}"),
    "keys_left_out": ("left out: {keys}, which {n_keys:is|are} {what}", "已忽略 {keys}：{what}"),
    "rows_lack": (
        "{n_lacking} of {n_rows} {rows} {n_lacking:lacks its|lack their} {columns}",
        "{n_rows} 个{rows}中有 {n_lacking} 个缺少{columns}",
    ),
    "no_step_times_of_rank": ("no step times", "没有步耗时"),
    "no_link_in_it": (
        "it holds no link, though the rank communicated",
        "其中没有链路，而该卡有通信",
    ),
    "no_communication_data": (
        "no communication data: {files:and} not there",
        "没有通信数据：缺少 {files:and}",
    ),
    "matrix_not_there": (
        "it is not there, so that links cannot be told apart",
        "文件不存在，无法区分各条链路",
    ),
    "silent_steps": (
        "no operator of {steps:step|steps} {steps:ranges}, which communicated for {communication_us:ms}",
        "没有第 {steps:ranges} 步的算子，而这些步的通信时间为 {communication_us:ms}",
    ),
    "other_size": (
        "{n_bytes} bytes, but {n_bytes_collected} when it was collected",
        "现为 {n_bytes} 字节，采集时为 {n_bytes_collected} 字节",
    ),
    "other_hash": (
        "it is not what was collected: its SHA-256 differs",
        "与采集时不一致：SHA-256 不同",
    ),
    "gone_since": (
        "it was collected, and is not there any more",
        "采集时存在，现已不在",
    ),
    "device_of_several_hosts": (
        "nothing says which rank device {device} is, and several hosts have one",
        "多台主机都有设备 {device}，无从得知它是哪张卡",
    ),
    "several_files_of_one_id": (
        "the newest of {n_files} such files of one id; {others:names} not read",
        "同一编号有 {n_files} 个这样的文件，取最新的；未读取 {others:names}",
    ),
    "several_captures_of_rank": (
        "{n_captures} captures of this rank; {used} is used, {others:names} {others:is|are} not",
        "该卡有 {n_captures} 个采集；使用 {used}，未使用 {others:names}",
    ),
    "not_parsed": (
        "it has no ASCEND_PROFILER_OUTPUT: the capture was not parsed",
        "没有 ASCEND_PROFILER_OUTPUT：采集数据未解析",
    ),
    "still_parsed": (
        "it has no analyse.done, which others of this run have: it is being parsed, or parsing it was cut "
        "off",
        "没有 analyse.done，而本次运行的其他采集有：正在解析，或解析中断",
    ),
    "nothing_in_it": ("nothing that can be analysed is in it", "其中没有可分析的内容"),
    "rank_not_known": (
        "its rank is not known: none of its files names it",
        "不知道是哪张卡：没有文件注明",
    ),
    "rank_or_device_not_known": (
        "neither its rank nor its device is known",
        "既不知道是哪张卡，也不知道是哪个设备",
    ),
    "names_disagree": (
        "its names disagree: {said:say_rank}; rank {used} is used",
        "名称不一致：{said:say_rank}；采用卡 {used}",
    ),
    "several_databases": (
        "{n_databases} profiler databases are in it, and one capture is of one rank: rank {used} is read",
        "其中有 {n_databases} 个 profiler 数据库，而一个采集只属于一张卡：读取卡 {used}",
    ),
    "two_frameworks": (
        "captures of two frameworks: {n_kept} {n_kept:rank|ranks} of {kept} {n_kept:is|are} analysed, "
        "{n_other} "
        "{n_other:rank|ranks} of {other} {n_other:is|are} another job",
        "有两种框架的采集：分析 {kept} 的 {n_kept} 张卡，{other} 的 {n_other} 张卡属于另一作业",
    ),
    "raw_only": (
        "it holds raw data only: the capture was not exported",
        "只有原始数据：采集数据未导出",
    ),
    "exported_by_old_cann": (
        "it was exported by a CANN of 2023 or older, whose files are not read (device_*/timeline)",
        "由 2023 年或更早的 CANN 导出，其文件（device_*/timeline）不支持读取",
    ),
    "several_devices": (
        "it holds {n_devices} devices, and its files do not tell them apart",
        "其中有 {n_devices} 个设备，文件中无法区分",
    ),
    "ranks_counted": (
        "no capture knows its rank (rank_id is not set); the {n_devices:one device is|# devices are} "
        "counted by host "
        "and device number",
        "所有采集都不知道自己是哪张卡（未设置 rank_id）；{n_devices} 个设备按主机和设备号编号",
    ),
    "no_common_step": (
        "no step was recorded by all ranks: they are not compared",
        "没有所有卡都记录的步：无法比较",
    ),
    "missing_ranks": (
        "no profiler data of {n_missing} of {n_ranks} ranks: {ranks:all_ranges}",
        "{n_ranks} 张卡中有 {n_missing} 张没有采集数据：{ranks:all_ranges}",
    ),
    "other_hosts_than_table": (
        "{ranks:rank|ranks} {ranks:all_ranges} {ranks:lies|lie} with other hosts than it says: no host is "
        "named for them, and no device is taken from it",
        "卡 {ranks:all_ranges} 的数据所在主机与其所述不同：不给出这些卡的主机，也不采用其中的设备号",
    ),
    "hosts_share_files": (
        "hosts see one file system, and nothing says on which of them {ranks:rank|ranks} "
        "{ranks:all_ranges} ran",
        "多台主机共用一个文件系统，无法得知卡 {ranks:all_ranges} 在哪台主机上运行",
    ),
    "hosts_not_mapped": (
        "{n_hosts} {n_hosts:host|hosts} of the rank table {n_hosts:is|are} not in it",
        "rank table 中有 {n_hosts} 台主机不在其中",
    ),
    "unusable_description": ("{detail}", "无法使用：{detail:said}"),
    "collecting_not_ended": (
        "it is not there, as collecting did not end: files of any host may be missing",
        "文件不存在，因为收集没有结束：各主机的文件都可能不全",
    ),
    "not_collected": ("not collected: {detail}", "未采集：{detail:said}"),
    "not_collected_whole": ("not collected whole: {detail}", "未完整采集：{detail:said}"),
    "file_not_collected": (
        "{state:term} when it was collected: {detail}",
        "采集时{state:term}：{detail:said}",
    ),
    "given_up": ("given up: {detail}", "已放弃：{detail:said}"),
    "reading_failed": ("cannot be read: {error}: {detail}", "无法读取：{error}：{detail:said}"),
    "step_not_analysed": (
        "step {step} could not be analysed: {detail}",
        "第 {step} 步无法分析：{detail:said}",
    ),
    "group_disagreement": (
        "{others:rank|ranks} {others:ranges} {others:names|name} other members of group {group} than most; "
        "{ranks:all_ranges} is used",
        "卡 {others:ranges} 所列通信域 {group} 的成员与多数不同；采用 {ranks:all_ranges}",
    ),
    "groups_of_one_id": (
        "groups of unlike members have the id of {group}: operators of {ranks:all_ranges} and of "
        "{others:rank|ranks} {others:ranges} cannot be told apart",
        "成员不同的多个通信域与 {group} 的标识相同：{ranks:all_ranges} 与卡 {others:ranges} 的算子无法区分",
    ),
    "size_not_known": (
        "nothing says how many ranks the job has: its groups reach at least rank {last} and divide it "
        "into blocks of "
        "{block}, so {n_ranks} are expected",
        "没有文件说明作业有多少张卡：通信域至少到卡 {last}，并以 {block} 张卡为一块，因此预期为 {n_ranks} 张",
    ),
    "two_of_one_local_rank": (
        "ranks {ranks:and} are both local rank {local_rank} of group {group}, so it is more than one "
        "group; its "
        "operators are not matched over ranks",
        "卡 {ranks:and} 都是通信域 {group} 的本地序号 {local_rank}，说明它不止一个通信域；其算子不做跨卡匹配",
    ),
    "several_jobs": (
        "{ranks:rank|ranks} {ranks:all_ranges} {ranks:declares|declare} another job ({n_sizes} different "
        "sizes)",
        "卡 {ranks:all_ranges} 声明的是另一作业（共 {n_sizes} 种规模）",
    ),
    "links_not_mapped": (
        "{n_links} {n_links:link|links} of group {group} could not be mapped to global ranks: its members, "
        "{n_members} or more, are not known",
        "通信域 {group} 的 {n_links} 条链路无法对应到全局卡号：其成员（至少 {n_members} 个）未知",
    ),
}


def reason(problem: Problem) -> Phrase:
    """Return why something could not be used."""
    return joined(map(_why, (problem.why, *problem.also)), SEMICOLON)


def _why(fact: Fact) -> Phrase:
    values: dict[str, object] = dict(fact.values)
    if fact.kind == "left_out":
        values["what"] = fill(PARTS[str(fact["part"])], values)
        values["why"] = fill(REASONS[str(fact["reason"])], values)
    elif fact.kind == "keys_left_out":
        values["keys"] = fill(_KEYS[int(fact["n_keys"]) > 1], {**values, "n_more": int(fact["n_keys"]) - 1})  # type: ignore[arg-type]
        values["what"] = fill(_NO_KEYS[str(fact["what"])], values)
    elif fact.kind == "rows_lack":
        values["columns"], values["rows"] = (fill(one, values) for one in ROWS[str(fact["rows"])])
    template = WHY[fact.kind]  # type: ignore[index]
    phrase = fill(template, values)
    return Phrase(phrase.en.rstrip(), phrase.zh.removesuffix("："))


_KEYS: tuple[Template, Template] = (
    ("{first}", "{first}"),
    ("{first} and {n_more} more", "{first} 等 {n_keys} 项"),
)
_NO_KEYS: Mapping[str, Template] = {
    "no_step": ("no step", "不是步"),
    "twice": ("there a second time", "重复出现"),
    "no_level": ("neither p2p nor collective", "既不是 p2p 也不是 collective"),
}
