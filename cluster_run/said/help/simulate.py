"""Chinese of the help of cluster-simulate."""

from __future__ import annotations

from collections.abc import Mapping

SIMULATE: Mapping[str, str] = {
    "Write a run directory of a simulated training job with known faults.": (
        "写出一个带有已知故障的模拟训练作业的运行目录。"
    ),
    "A scenario is KIND:SEVERITY@PLACE,KEY=VALUE,...; severity, place and keys may be left out.\n"
    "Without a place the simulator draws one. Several scenarios make a job with several faults.\n"
    "\n"
    "  slow_rank:1.25@5            rank 5 computes 1.25 times as long\n"
    "  slow_rank:1.05@5,cause=dispatch   rank 5 idles 5 % of a step more (cause=input: starts late "
    "by that)\n"
    "  slow_rank:1.3@5,op=vector   only its vector operators (or op=cube)\n"
    "  slow_rank:1.3@5,pattern=intermittent,duty=0.3   in 3 of 10 steps (pattern=trend: grows; "
    "transient: one)\n"
    "  slow_host:1.05@2            host 2 (counted from 1) idles 5 % of a step more; "
    "cause=dispatch|input|compute\n"
    "  slow_link:2@7-11            the link between ranks 7 and 11 takes twice as long; dir=one: "
    "only 7 to 11\n"
    "  slow_nic:3@5                all RDMA of rank 5; dir=tx|rx: one way; via=hccs: its links "
    "inside the host\n"
    "  slow_host_pair:2@1-2        all RDMA between hosts 1 and 2\n"
    "  slow_uplink:2@1             all RDMA of host 1 (of hosts 1 and 3: @1+3)\n"
    "  retransmission:4000@7-11    one operator over that link lasts 4000 ms more, once\n"
    "  periodic_pause:80@5,every=2 rank 5 pauses 80 ms every 2 steps (@all: every rank)\n"
    "  stage_imbalance:1.4         the last stage has 1.4 times the work\n"
    "  data_imbalance:0.2          micro-batches differ by sigma 0.2\n"
    "  expert_imbalance:0.2        experts' loads differ by sigma 0.2 (needs --ep)\n"
    "  small_packets:400           gradients are reduced in 400 pieces\n"
    "  input_bound:80              every rank waits about 80 ms for its data at each step\n"
    "  host_bound:0.35             every rank idles 0.35 of its computing time between operators\n"
    "\n"
    "OUT becomes a run directory like those of cluster-collect: rank table, host mapping, manifest "
    "and\n"
    "cluster_profiler/<host>/profiler/…. The truth, with what each fault really costs, is written "
    "beside it,\n"
    "as OUT.truth.json: inside, it could be taken for a rank table, and the analysis must not see "
    "it.\n": (
        "scenario 的形式为 KIND:SEVERITY@PLACE,KEY=VALUE,...；严重程度、位置和键可省略。\n"
        "没有位置时由模拟器抽取。多个 scenario 产生有多个故障的作业。\n"
        "\n"
        "  slow_rank:1.25@5            卡 5 的计算时间为 1.25 倍\n"
        "  slow_rank:1.05@5,cause=dispatch   卡 5 每步多空闲 5 %（cause=input：晚这么多开始）\n"
        "  slow_rank:1.3@5,op=vector   仅向量算子（或 op=cube）\n"
        "  slow_rank:1.3@5,pattern=intermittent,duty=0.3   10 步中的 3 步（pattern=trend：逐步加重；"
        "transient：一步）\n"
        "  slow_host:1.05@2            主机 2（从 1 计）每步多空闲 5 %；cause=dispatch|input|compute\n"
        "  slow_link:2@7-11            卡 7 与卡 11 之间的链路耗时加倍；dir=one：只从 7 到 11\n"
        "  slow_nic:3@5                卡 5 的所有 RDMA；dir=tx|rx：单向；via=hccs：主机内的链路\n"
        "  slow_host_pair:2@1-2        主机 1 与 2 之间的所有 RDMA\n"
        "  slow_uplink:2@1             主机 1 的所有 RDMA（主机 1 和 3：@1+3）\n"
        "  retransmission:4000@7-11    经该链路的一个算子长了 4000 ms，一次\n"
        "  periodic_pause:80@5,every=2 卡 5 每 2 步停顿 80 ms（@all：所有卡）\n"
        "  stage_imbalance:1.4         最后一个流水线阶段的工作量为 1.4 倍\n"
        "  data_imbalance:0.2          micro-batch 相差 sigma 0.2\n"
        "  expert_imbalance:0.2        专家负载相差 sigma 0.2（需要 --ep）\n"
        "  small_packets:400           梯度分 400 块归约\n"
        "  input_bound:80              每步所有卡等待数据约 80 ms\n"
        "  host_bound:0.35             所有卡在算子之间空闲其计算时间的 0.35\n"
        "\n"
        "OUT 会成为与 cluster-collect 相同的运行目录：rank table、主机映射、manifest 和\n"
        "cluster_profiler/<host>/profiler/…。真实答案（每个故障的真实损失）写在其旁边的 "
        "OUT.truth.json：\n"
        "放在目录内会被当作 rank table，而且分析不应看到它。\n"
    ),
    "the job": "作业",
    "what varies though nothing is broken": "没有故障时也会变化的",
    "run directory to write; must not exist yet": "要写出的运行目录；必须尚不存在",
    "a fault, see below; repeatable": "一个故障，见下文；可重复",
    "same seed, same captures (default %(default)s)": "相同的种子得到相同的采集（默认 %(default)s）",
    "N-th run on the same machines (default %(default)s)": ("同一批机器上的第 N 次运行（默认 %(default)s）"),
    "PyTorch or MindSpore": "PyTorch 或 MindSpore",
    "form of the files": "文件的形式",
    "when the files are dated, in seconds since 1970 (default: now); for the same manifest.json each time": (
        "文件的日期，自 1970 年起的秒数（默认：现在）；用于每次得到相同的 manifest.json"
    ),
    "print the truth as JSON, the same as in the file beside the run": (
        "将真实答案以 JSON 打印，与运行目录旁的文件相同"
    ),
    "tensor-parallel ranks (default %(default)s)": "张量并行的卡数（默认 %(default)s）",
    "pipeline stages (default %(default)s)": "流水线阶段数（默认 %(default)s）",
    "data-parallel replicas (default %(default)s)": "数据并行副本数（默认 %(default)s）",
    "context-parallel ranks (default %(default)s)": "上下文并行的卡数（默认 %(default)s）",
    "expert-parallel ranks; must divide --dp (default %(default)s)": (
        "专家并行的卡数；须整除 --dp（默认 %(default)s）"
    ),
    "model chunks a stage (interleaved pipeline) (default %(default)s)": (
        "每个阶段的模型块数（交错流水线）（默认 %(default)s）"
    ),
    "micro-batches a step (default %(default)s)": "每步的 micro-batch 数（默认 %(default)s）",
    "profiled steps (default %(default)s)": "采集的步数（默认 %(default)s）",
    "ranks of one host (default %(default)s)": "每台主机的卡数（默认 %(default)s）",
    "compute segments of a forward pass (default %(default)s)": "一次前向的计算段数（默认 %(default)s）",
    "forward pass of one micro-batch through a stage (default %(default)s)": (
        "一个 micro-batch 通过一个阶段的前向时间（默认 %(default)s）"
    ),
    "pieces in which gradients are reduced (default %(default)s)": "梯度归约的块数（默认 %(default)s）",
    "how stages send": "阶段如何发送",
    "how gradients move": "梯度如何传输",
    "how profilers fill them": "profiler 如何填写",
    "which files there are": "有哪些文件",
    "captures do not say their groups": "采集不含通信域",
    "family of the noise": "噪声的类型",
    "work of each stage, 1 is normal": "每个阶段的工作量，1 为正常",
    "spread of micro-batches (default %(default)s)": "micro-batch 的离散程度（默认 %(default)s）",
    "spread of experts' loads (default %(default)s)": "专家负载的离散程度（默认 %(default)s）",
    "share of operators that files lack (0; ar1: 0.05)": "文件缺少的算子占比（0；ar1：0.05）",
    "ranks without files, like 3,8-15": "没有文件的卡，例如 3,8-15",
    "steps that the files lack": "文件缺少的步",
}
