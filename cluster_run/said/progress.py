"""Chinese of the progress and the result of a collection."""

from __future__ import annotations

from collections.abc import Mapping

#: Single words of a table or a bar. They are names as well, so that nothing looks for them within a text.
WORDS: Mapping[str, str] = {
    # Of a host that is not in a capture.
    "unreachable": "无法到达",
    "refused": "未发送",
    "held": "被占用",
    "other": "他人的请求",
    "busy": "忙",
    "late": "太晚",
    "silent": "无应答",
    "stray": "步不一致",
    "no_step": "步未知",
    "unfinished": "未结束",
    "unparsed": "未解析",
    "other_steps": "其他步",
    "other_iterations": "其他迭代",
    "collecting": "采集中",
    "checking": "检查中",
    "listing": "列出文件中",
    "host": "主机",
    "state": "状态",
    "files": "文件",
    "size": "大小",
    "time": "用时",
    "skipped": "略过",
    "method": "方式",
    "login": "登录",
    "free": "可用",
    "clock": "时钟",
    "tools": "工具",
    "complete": "完成",
    "partial": "部分完成",
    "failed": "失败",
    "unstable": "仍在写入",
}
PROGRESS: Mapping[str, str] = {
    # While it runs.
    "to fetch: {n} file{s}, {size} from {hosts} host{s}": "待采集：{hosts} 台主机的 {n} 个文件，{size}",
    "to fetch: {what}": "待采集：{what}",
    "{n} file{s}, {size} to fetch": "待采集 {n} 个文件，{size}",
    "complete, {n} file{s}, {size} in {time}": "完成，{n} 个文件，{size}，用时 {time}",
    "{why}; trying again in {time}": "{why}；{time} 后重试",
    "stored {path} ({size})": "已保存 {path}（{size}）",
    "local copy": "本地复制",
    "logged in within {time}": "登录用时 {time}",
    "new host key of {name} accepted: {key}": "已接受 {name} 的新主机密钥：{key}",
    "sees the files of host {host}: fetched once": "与主机 {host} 共用文件：只采集一次",
    "{why}: copying file by file": "{why}：改为逐个文件复制",
    "files as they are: {why}": "按原样采集文件：{why}",
    "{n} of {m} host{s} done": "{m} 台主机中已完成 {n} 台",
    "{n} of {m} host{s} done, {rest}": "{m} 台主机中已完成 {n} 台，{rest}",
    "{n} of {m} file{s}, {rest}": "文件 {n}/{m}，{rest}",
    "about {time} left, {rest}": "约剩 {time}，{rest}",
    "about {time} left": "约剩 {time}",
    "{size} of {all}, {rest}": "{size}/{all}，{rest}",
    "waiting for {names}": "等待 {names}",
    "{n}/{m} hosts": "{n}/{m} 台主机",
    "{n}/{m} files": "{n}/{m} 个文件",
    "{time} left": "剩余 {time}",
    "collecting: {rest}": "采集中：{rest}",
    "checking: {rest}": "检查中：{rest}",
    "listing: {rest}": "列出文件中：{rest}",
    "failed: {why}": "失败：{why}",
    "partial: {why}": "部分完成：{why}",
    # The table.
    "{names} ({n} host{s})": "{names}（{n} 台主机）",
    "the host": "该主机",
    # Below it.
    "{n} of {m} host{s} complete: {files} file{s}, {size} in {time}, in {run}": (
        "{m} 台主机中 {n} 台完成：{files} 个文件，{size}，用时 {time}，位于 {run}"
    ),
    "call it again with --output {run}: it fetches only what is missing": (
        "以 --output {run} 再次调用：只采集缺少的部分"
    ),
    "{names}: the same file system as host {host}, fetched once": (
        "{names}：与主机 {host} 是同一文件系统，只采集一次"
    ),
    "try: {command}": "可尝试：{command}",
    "and {n} more, see manifest.json": "另有 {n} 个，见 manifest.json",
    "next: {command}": "下一步：{command}",
    "warning: {what}": "警告：{what}",
    "suspects: {ranks}": "嫌疑卡：{ranks}",
    "suspects: {ranks}; peers to compare with: {peers}": "嫌疑卡：{ranks}；用于对比的卡：{peers}",
    "missing: {what}": "缺少：{what}",
    "missing: no capture of rank {ranks}": "缺少：没有卡 {ranks} 的采集",
    "add the host to the inventory, or set its server_id to the name in the rank table": (
        "请将主机加入主机清单，或将其 server_id 设为 rank table 中的名称"
    ),
    "ranks are told by names like profiler_info_13.json; --what GLOB takes files by their paths": (
        "卡号取自 profiler_info_13.json 这样的文件名；--what GLOB 按路径选取文件"
    ),
    "not enough room here: {size} free": "本机空间不足：可用 {size}",
    "not enough room here if all come whole: {size} free": "若全部完整采集，本机空间不足：可用 {size}",
    "choose another --output, collect less with --what, or make room": (
        "请另选 --output，用 --what 减少采集内容，或腾出空间"
    ),
    "would fetch {n} file{s}, {size} into {run}": "将采集 {n} 个文件，{size}，写入 {run}",
    "would fetch {n} file{s}, {size} into {run} ({free} free)": (
        "将采集 {n} 个文件，{size}，写入 {run}（可用 {free}）"
    ),
    "nothing was copied": "未复制任何内容",
    "sizes are those on the hosts, columns take a few percent of them": (
        "大小为主机上的大小，列只占其百分之几"
    ),
    "{n} of {m} host{s} ready": "{m} 台主机中 {n} 台就绪",
    "{n} of {m} host{s} ready, {free} free here": "{m} 台主机中 {n} 台就绪，本机可用 {free}",
    "its clock is more than {n} s off": "其时钟偏差超过 {n} s",
    "time stamps of its ranks cannot be compared with others; synchronise it (chronyc tracking)": (
        "其各卡的时间戳无法与其他主机比较；请同步时钟（chronyc tracking）"
    ),
    "sent its files as they are, not as columns: {why}": "按原样发送文件，而非列：{why}",
    "what was fetched is analysed the same; timelines, which are read on their hosts alone, are not known": (
        "已采集的内容照常分析；只在主机上读取的时间线未知"
    ),
    "had no time or memory to read {n} timeline{s}": "没有时间或内存读取 {n} 个时间线",
    "call it again with a larger --columns-deadline or --columns-memory; --what full fetches them whole": (
        "请加大 --columns-deadline 或 --columns-memory 后再次调用；--what full 会完整采集"
    ),
    "had no time or memory to read {n} file{s}, which came whole": (
        "没有时间或内存读取 {n} 个文件，已完整采集"
    ),
    "they are analysed the same; a larger --columns-deadline or --columns-memory lets them come as columns": (
        "照常分析；加大 --columns-deadline 或 --columns-memory 可按列采集"
    ),
    "{run} is no run directory and holds other files ({names}): what is collected is put beside them; an "
    "empty directory, or a new one, keeps them apart": "{run} 不是运行目录，其中有其他文件（{names}）："
    "采集内容会放在旁边；用空目录或新目录可避免混淆",
    "{place}: {key} is not honoured: {why}": "{place}：{key} 不起作用：{why}",
    # The end before the end.
    "interrupted by {signal}": "被 {signal} 中断",
    "{n} of {m} hosts done, what was collected is kept": "{m} 台主机中已完成 {n} 台，已采集的内容会保留",
    "go on with: {command}": "继续：{command}",
    "interrupted twice: ending at once": "两次中断：立即结束",
}
