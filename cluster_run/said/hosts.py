"""Chinese of why a host is not complete, and of what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

HOSTS: Mapping[str, str] = {
    # Reaching it.
    "no connection within {seconds} s": "{seconds} s 内未能连接",
    "is the host up, and its SSH port open from here?": "主机是否在运行，其 SSH 端口从本机能否访问？",
    "is the host up, and its SSH port right?": "主机是否在运行，SSH 端口是否正确？",
    "the name does not resolve: {why}": "名称无法解析：{why}",
    "check the address": "请检查地址",
    "timed out": "超时",
    "the connection was lost: {why}": "连接中断：{why}",
    "it was closed": "连接已关闭",
    "no agreement with the SSH server: {why}": "与 SSH 服务器没有共同的算法：{why}",
    "try transport: {name}": "可尝试 transport: {name}",
    "not reachable through its jump host: {why}": "无法经跳板机到达：{why}",
    "does the jump host reach it, and is it allowed to forward (AllowTcpForwarding)?": (
        "跳板机能否到达该主机，是否允许转发（AllowTcpForwarding）？"
    ),
    "it ended the login before anything could be asked: {why}": "登录后即被断开，无法执行任何请求：{why}",
    "look at the log of its sshd: a ChrootDirectory that others can write to, a missing shell, limits": (
        "请查看其 sshd 日志：ChrootDirectory 可被他人写入、缺少 shell、资源限制"
    ),
    # Keys and logins.
    "the login was refused": "登录被拒绝",
    "check user, key and password; it is not tried again, accounts get locked": (
        "请检查用户、密钥和口令；不会重试，以免账户被锁定"
    ),
    "name the right key with identity_file": "请用 identity_file 指定正确的密钥",
    "the host key cannot be verified: {why}": "主机密钥无法校验：{why}",
    "the key of {name} has changed{which}: reinstalled, or somebody is in between": (
        "{name} 的密钥已变更{which}：主机重装过，或有人在中间"
    ),
    "compare it with what the host says: {command}; {then}": "请与主机上的比较：{command}；{then}",
    "the key of {name} is revoked{which}": "{name} 的密钥已吊销{which}",
    "ask who runs the host": "请询问主机管理员",
    "the key of {name} is not known{which}": "{name} 的密钥未知{which}",
    "log in once with ssh and compare the fingerprint, or call it with --accept-new-host-keys": (
        "请先用 ssh 登录一次并核对指纹，或加上 --accept-new-host-keys"
    ),
    "the key of {name} cannot be verified": "{name} 的密钥无法校验",
    "the key of {name} cannot be verified: {why}": "{name} 的密钥无法校验：{why}",
    "see what ssh says to it, and {path}": "请查看 ssh 的输出，以及 {path}",
    "the private key {path} is open to others (mode {mode})": "私钥 {path} 可被他人访问（权限 {mode}）",
    "chmod 600 {path}; ssh refuses it too": "chmod 600 {path}；ssh 同样会拒绝它",
    "the private key of this user cannot be opened: {why}": "当前用户的私钥无法打开：{why}",
    "the private key {path} cannot be opened: {why}": "私钥 {path} 无法打开：{why}",
    "add it to the agent (ssh-add), or give --ask-passphrase or passphrase_env": (
        "请将其加入 agent（ssh-add），或使用 --ask-passphrase 或 passphrase_env"
    ),
    "the SSH settings of this host cannot be used: {why}": "该主机的 SSH 设置无法使用：{why}",
    "check identity_file and ssh_config": "请检查 identity_file 和 ssh_config",
    "check identity_file": "请检查 identity_file",
    "check ssh_config": "请检查 ssh_config",
    "{path}: cannot be read: {why}": "{path}：无法读取：{why}",
    "if it is right, forget the old one: {command}": "如果一致，请删除旧的：{command}",
    "a second call goes on": "再次调用即可继续",
    # Commands on it.
    "the host runs no commands for us": "主机不允许执行命令",
    "the host runs no commands for us: {why}": "主机不允许执行命令：{why}",
    "the host runs no commands for us ({why})": "主机不允许执行命令（{why}）",
    "{why}, and it offers no SFTP": "{why}，也不提供 SFTP",
    "the host offers neither a shell nor SFTP": "主机既不提供 shell，也不提供 SFTP",
    "ask its administrator for one of them": "请管理员开放其中之一",
    "its SFTP is spoiled ({why}): start-up files like .bashrc must print nothing without a terminal": (
        "其 SFTP 被干扰（{why}）：.bashrc 等启动文件在没有终端时不得输出内容"
    ),
    "with become: sudo the host needs a shell, and GNU find and tar": (
        "使用 become: sudo 时，主机需要 shell 以及 GNU find 和 tar"
    ),
    "SFTP reads files as the login user only: leave become out for that": (
        "SFTP 只能以登录用户读取文件：如需使用请去掉 become"
    ),
    "sudo asks for a password": "sudo 要求输入口令",
    "sudo asks for a terminal": "sudo 要求终端",
    "sudo does not allow it to the login user": "sudo 不允许登录用户这样做",
    "sudo does not know that user": "sudo 不认识该用户",
    "sudo is not installed": "未安装 sudo",
    "sudo refuses it": "sudo 拒绝",
    "{why}: nothing can be run as {user}": "{why}：无法以 {user} 身份执行命令",
    "sudo is given no password: give the login user a rule LOGIN ALL=({user}) NOPASSWD: ALL": (
        "不会向 sudo 提供口令：请为登录用户添加规则 LOGIN ALL=({user}) NOPASSWD: ALL"
    ),
    "{command} cannot be started here: {why}": "{command} 无法在本机启动：{why}",
    "transport: srun needs Slurm's commands here": "transport: srun 需要本机有 Slurm 命令",
    "salloc gave us no place on it: {why}": "salloc 未能在该主机上分配资源：{why}",
    "what jobs here must say goes into SALLOC_PARTITION, SALLOC_ACCOUNT and the like": (
        "作业必需的参数请写入 SALLOC_PARTITION、SALLOC_ACCOUNT 等变量"
    ),
    "Slurm gave us no place on it within {seconds} s": "Slurm 在 {seconds} s 内未能在该主机上分配资源",
    "is it busy with another job? --connect-deadline SECONDS waits longer": (
        "是否被其他作业占用？--connect-deadline SECONDS 可延长等待"
    ),
    # Time.
    "no answer for {seconds} s while {what}": "{what}时 {seconds} s 没有响应",
    "logging in to {name}": "登录 {name}",
    "waiting for its files": "等待其文件",
    "waiting for its columns": "等待其列",
    "hashing its files": "计算其文件的哈希",
    "look whether the host hangs; call it again to go on": "请查看主机是否挂起；再次调用即可继续",
    "not finished within the {seconds} s of a host": "未在单台主机的时限 {seconds} s 内完成",
    "not finished within the {seconds} s of all hosts": "未在全部主机的时限 {seconds} s 内完成",
    "what came is kept: call it again to go on": "已采集的内容会保留：再次调用即可继续",
    "what came is kept: call it again to go on, or give it longer with --host-deadline SECONDS "
    "(0: without end)": "已采集的内容会保留：再次调用即可继续，"
    "或用 --host-deadline SECONDS 延长时限（0：不限）",
    "what came is kept: call it again to go on, or give it longer with --deadline SECONDS": (
        "已采集的内容会保留：再次调用即可继续，或用 --deadline SECONDS 延长时限"
    ),
    "it sees the files of host {host}, which was not finished in time": (
        "它与主机 {host} 共用文件，而后者未按时完成"
    ),
    "still being collected when this was written": "写入时仍在采集",
    "call it again to go on": "再次调用即可继续",
    # Its files.
    "{path}: missing, or not readable for this user: {why}": "{path}：不存在，或该用户无权读取：{why}",
    "there is no such directory; {path} holds {names}": "没有该目录；{path} 中有 {names}",
    "there is no such directory; {path} is there": "没有该目录；{path} 存在",
    "this user may not read it": "该用户无权读取",
    "there is no such directory": "没有该目录",
    "let the login user read it, or set become: sudo": "请授予登录用户读取权限，或设置 become: sudo",
    "let the login user read it, or set become: sudo for this host": (
        "请授予登录用户读取权限，或为该主机设置 become: sudo"
    ),
    "check profiler_root of this host": "请检查该主机的 profiler_root",
    "check the permissions below the profiler root": "请检查 profiler_root 下的权限",
    "no profiler data below {path}": "{path} 下没有采集数据",
    "no profiler data below {path}; there is {names}": "{path} 下没有采集数据；其中有 {names}",
    "no profiler data below {path}: that is the inside of the capture {name}": (
        "{path} 下没有采集数据：该目录位于采集 {name} 内部"
    ),
    "check profiler_root, device_regex, output_dir, and --what, --exclude, --since and --capture": (
        "请检查 profiler_root、device_regex、output_dir，以及 --what、--exclude、--since 和 --capture"
    ),
    "use its parent as profiler_root: {path}": "请以其上级目录作为 profiler_root：{path}",
    "see manifest.json for all": "完整列表见 manifest.json",
    "name the directories that links may lead to: --set follow_links=/data2,/data3": (
        "请指明链接可指向的目录：--set follow_links=/data2,/data3"
    ),
    "holds {n} of its {m} ranks: {ranks} missing": "应有 {m} 张卡，实有 {n} 张：缺少 {ranks}",
    "{n} that it holds are those of {name} in the rank table: are the two swapped?": (
        "其中 {n} 张在 rank table 中属于 {name}：两台主机是否写反？"
    ),
    "a symbolic link: not followed": "符号链接：未跟随",
    "a symbolic link to {path}, which is not there": "指向 {path} 的符号链接，目标不存在",
    "a symbolic link to {path}, which holds profiler data": "指向 {path} 的符号链接，其中有采集数据",
    "not followed": "未跟随",
    "not everything could be listed: {why}": "部分目录无法列出：{why}",
    "prepare could not be run: {why}": "prepare 无法执行：{why}",
    "prepare exited with {n}": "prepare 以 {n} 退出",
    "prepare was ended": "prepare 被终止",
    "its output cannot be kept: {why}": "其输出无法保存：{why}",
    "find or tar on the host is not GNU's": "主机上的 find 或 tar 不是 GNU 版本",
    "the host prints without end before it answers": "主机在应答前不停输出",
    "the host did not run our program": "主机没有执行本程序",
    "the host is to be read file by file": "该主机需逐个文件读取",
    "the reader did not start on the host": "读取程序未能在主机上启动",
    "the reader did not start: {why}": "读取程序未能启动：{why}",
    "the reader ended early (status {status}): {why}": "读取程序提前结束（状态 {status}）：{why}",
    "the connection broke while the host listed its files": "主机列出文件时连接中断",
    "the connection broke in the middle of the transfer": "传输过程中连接中断",
    "the shell on the host ended while it waited for its turn": "主机上的 shell 在等待时结束",
    "it runs no commands for us, and srun has no other way to its files": (
        "主机不允许执行命令，而 srun 没有其他方式读取其文件"
    ),
    "the command has no pipes": "命令没有管道",
    "listing its profiler data": "列出采集数据",
    "running its prepare command": "执行 prepare 命令",
    "{n} file{s} missing: {which}": "缺少 {n} 个文件：{which}",
    "{n} file{s} still being written, the first is {name}": "{n} 个文件仍在写入，第一个是 {name}",
    "call it again when the job has ended": "请在作业结束后再次调用",
    "not fetched": "未采集",
    "still being written: it changed while it was read": "仍在写入：读取时发生了变化",
    "did these ranks write a profile? look at profiler_root of this host, and at the rank table": (
        "这些卡是否写出了采集数据？请检查该主机的 profiler_root 和 rank table"
    ),
    "its output is in the run directory, in {path}": "其输出在运行目录的 {path} 中",
    "the archive ended early (status {status}): {why}": "归档提前结束（状态 {status}）：{why}",
    "log in and look at tar, the compressor, and the host's memory": (
        "请登录并检查 tar、压缩程序以及主机内存"
    ),
    "it cannot be verified: the host runs no sha256sum for us": "无法校验：主机不提供 sha256sum",
    "call it without --verify": "请去掉 --verify",
    "an unforeseen {error}": "意外的 {error}",
    "please report this as a mistake of ours; the other hosts go on": (
        "这是本程序的缺陷，请反馈；其他主机继续采集"
    ),
    # This machine.
    "{path}: no space left on this machine": "{path}：本机磁盘空间不足",
    "make room and call it again: it goes on from there": "请腾出空间后再次调用：将从中断处继续",
    "{path}: cannot be written: {why}": "{path}：无法写入：{why}",
    "{path}: less than {n} MiB left": "{path}：剩余空间不足 {n} MiB",
    "{size} do not fit: {path} has room for {room} more{which}": "{size} 放不下：{path} 只剩 {room}{which}",
    "cannot be stored under its name: {why}": "无法以其名称保存：{why}",
    "a symbolic link or a file is in its way in the run directory": "运行目录中已有同名的符号链接或文件",
    "larger than this machine's file system allows": "超过本机文件系统允许的大小",
    "{path}: not written to disk: {why}": "{path}：未写入磁盘：{why}",
    "it says what is already there": "其中记录了已有的内容",
    "{path}: in use by {owner}": "{path}：正被 {owner} 使用",
    "another collection": "另一次采集",
    "wait for it, or choose another --output": "请等待其结束，或另选 --output",
    "move it away, or choose another --output": "请将其移走，或另选 --output",
    "choose another --output, or keep the order of the inventory": "请另选 --output，或保持主机清单的顺序",
    "{run}: host {host} is {other} there and {name} in this inventory": (
        "{run}：其中主机 {host} 是 {other}，而主机清单中是 {name}"
    ),
    "{run}: the journal cannot be written": "{run}：日志无法写入",
}
