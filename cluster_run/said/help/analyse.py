"""Chinese of the help of cluster-analyse, and of options that all commands have."""

from __future__ import annotations

from collections.abc import Mapping

ANALYSE: Mapping[str, str] = {
    "positional arguments": "位置参数",
    "options": "选项",
    "show this help message and exit": "显示本帮助并退出",
    "show program's version number and exit": "显示版本号并退出",
    "print completions for this shell, and end": "打印该 shell 的补全脚本并退出",
    "Say what slowed a training job, and what it cost.\n"
    "\n"
    "examples:\n"
    "  cluster-analyse run1\n"
    "  cluster-analyse run1 --baseline run0 --fail-on regression:5\n"
    "  cluster-analyse run1 --steps 12-14 --json --no-output\n"
    "\n"
    "without the raw data, from outputs of earlier calls:\n"
    "  cluster-analyse report OUT       the findings again; --page FILE writes the page\n"
    "  cluster-analyse trend DIR...     step, loss and findings by run; --page FILE draws them\n": (
        "说明是什么拖慢了训练作业，以及代价有多大。\n"
        "\n"
        "示例：\n"
        "  cluster-analyse run1\n"
        "  cluster-analyse run1 --baseline run0 --fail-on regression:5\n"
        "  cluster-analyse run1 --steps 12-14 --json --no-output\n"
        "\n"
        "不需要原始数据，只用以前调用的输出：\n"
        "  cluster-analyse report OUT       再次给出发现项；--page FILE 写出页面\n"
        "  cluster-analyse trend DIR...     各次运行的步耗时、损失与发现项；--page FILE 写出页面\n"
    ),
    "exit codes:\n"
    "  0    done, evidence complete\n"
    "  1    could not do it\n"
    "  2    wrong usage\n"
    "  3    done, but hosts, ranks or files are missing or unreadable; the result says which\n"
    "  4    done, and there is a finding at or above --fail-on\n"
    "  130  interrupted\n": (
        "退出码：\n"
        "  0    完成，证据完整\n"
        "  1    无法完成\n"
        "  2    用法错误\n"
        "  3    完成，但有主机、卡或文件缺失或不可读；结果中会指明\n"
        "  4    完成，且有达到 --fail-on 的发现项\n"
        "  130  被中断\n"
    ),
    "what to analyse": "分析什么",
    "what to write": "写出什么",
    "how to work": "如何运行",
    "run directory, any tree of profiler data, or a .tar, .tar.gz, .tar.zst or .zip of it": (
        "运行目录、任意采集数据目录树，或其 .tar、.tar.gz、.tar.zst、.zip 归档"
    ),
    "these steps only": "只分析这些步",
    "these ranks only": "只分析这些卡",
    "this part, where there are several jobs or windows (default: the newest of the largest)": (
        "有多个作业或窗口时选择其中之一（默认：卡数最多的之中最新的）"
    ),
    "each part, with a report of its own and a page of all": ("逐个分析每一部分，各有报告，并有一个汇总页面"),
    "compare with this older run": "与这次较早的运行对比",
    "a database of cluster-fleet: what other runs know of these devices counts, and is quoted "
    "(default: $CLUSTER_FLEET)": (
        "cluster-fleet 的数据库：其他运行对这些设备的记录会计入判断并被引用（默认：$CLUSTER_FLEET）"
    ),
    "default: RUN/cluster_analysis_output": "默认：RUN/cluster_analysis_output",
    "of the result on stdout": "标准输出上结果的形式",
    "short for --format json": "--format json 的简写",
    "language of the result on stdout, not of JSON (default: that of LC_ALL or LANG)": (
        "标准输出上结果的语言，JSON 除外（默认取自 LC_ALL 或 LANG）"
    ),
    "write report.html": "写出 report.html",
    "write the files for MindStudio Insight (default: yes, but not with --json, nor for more than "
    "512 MB of profiler data, as they are as large as that)": (
        "写出 MindStudio Insight 的文件（默认写出；但使用 --json 时，或采集数据超过 512 MB 时不写，"
        "因其与数据一样大）"
    ),
    "write trace.json.gz for Perfetto": "写出供 Perfetto 使用的 trace.json.gz",
    "open report.html in a browser": "在浏览器中打开 report.html",
    "real host addresses in reports, not only mapped ids": "报告中显示真实主机地址，而不只是映射编号",
    "write no file: the result on stdout is all there is": "不写任何文件：只有标准输出上的结果",
    "exit with 4 when there is such a finding: warning or critical; unknown: when nothing could be "
    "told; regression[:PERCENT]: when the step is longer than the baseline's, or a new finding "
    "costs more than that; several with commas (default: never)": (
        "有下列情况时以 4 退出：warning 或 critical 为该级别的发现项；unknown 为无法判断；"
        "regression[:PERCENT] 为每步比基线长，或某个新发现项的损失超过该百分比；"
        "多个条件用逗号分隔（默认：从不）"
    ),
    "auto, threads, processes, dask (with a dashboard), slurm, tcp://HOST:PORT or tls://HOST:PORT "
    "(default: auto, by size)": (
        "auto、threads、processes、dask（带仪表盘）、slurm、tcp://HOST:PORT 或 tls://HOST:PORT（默认 "
        "auto，按数据量选择）"
    ),
    "threads, processes or Slurm jobs": "线程、进程或 Slurm 作业数",
    "tables above this go to files, like 4GiB (default: 16 MiB)": (
        "超过此大小的表写入文件，例如 4GiB（默认：16 MiB）"
    ),
    "where those files go (default: TMPDIR)": "这些文件的位置（默认：TMPDIR）",
    "certificates for tls://: the authority's": "tls:// 的证书：签发机构的证书",
    "… this client's": "…本客户端的证书",
    "… and its key": "…及其密钥",
    "say more on stderr, and how well the replay fits": "在标准错误上输出更多信息，以及重放的吻合程度",
    "say nothing on stderr but errors": "标准错误上只输出错误",
    "without raw data": "不需要原始数据",
    "the findings of an earlier call again": "再次给出以前调用的发现项",
    "step, loss and findings by run": "各次运行的步耗时、损失与发现项",
    "Tells the findings of an output again, from findings.json and tables/. Writes nothing but the "
    "page that --page or --open asks for.": (
        "根据 findings.json 和 tables/ 再次给出一个输出的发现项。除 --page 或 --open "
        "要求的页面外不写任何内容。"
    ),
    "an output, or the run that holds it": "一个输出，或含有它的运行目录",
    "write the page, too": "同时写出页面",
    "open the page in a browser": "在浏览器中打开页面",
    "language of the result on stdout": "标准输出上结果的语言",
    "One row a run: when it was recorded, the mean step, what is lost of it, the findings. Each "
    "DIR is an output, a run that holds one, or a directory of such runs.": (
        "每次运行一行：录制时间、平均步耗时、其中的损失、发现项。每个 DIR "
        "是一个输出、含有输出的运行目录，或含有多个此类运行的目录。"
    ),
    "a list of rows for programs": "供程序使用的行列表",
    "write a page with a bar a run, too": "同时写出页面，每次运行一根柱子",
}
