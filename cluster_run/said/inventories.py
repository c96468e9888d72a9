"""Chinese of mistakes in inventories and host lists, and of what to do about them."""

from __future__ import annotations

from collections.abc import Mapping

#: What a value is. They are names as well, so that nothing looks for them within a text.
KINDS: Mapping[str, str] = {
    "the inventory": "主机清单",
    "a host": "主机",
    "a mapping": "键值对",
    "a list": "列表",
    "a number": "数字",
    "a decimal number": "小数",
    "yes/no": "是/否",
    "text": "文本",
    "empty": "空值",
}
INVENTORIES: Mapping[str, str] = {
    # The file.
    "{path}: the inventory does not exist": "{path}：主机清单不存在",
    "examples are in inventories/": "示例见 inventories/",
    "name where it is now: --inventory FILE": "请指明它现在的位置：--inventory FILE",
    "the inventory cannot be read: {why}": "主机清单无法读取：{why}",
    "the list of hosts cannot be read: {why}": "主机列表无法读取：{why}",
    "the rank table cannot be read: {why}": "rank table 无法读取：{why}",
    "larger than {n} MiB; not an inventory": "大于 {n} MiB，不是主机清单",
    "not UTF-8": "不是 UTF-8",
    "save it as UTF-8": "请另存为 UTF-8",
    "not readable as YAML: {why}": "不是有效的 YAML：{why}",
    "not readable as JSON: {why}": "不是有效的 JSON：{why}",
    "nested too deeply": "嵌套过深",
    "mapping values are not allowed here": "此处不允许出现键值对",
    "could not find expected": "缺少应有的符号",
    "expected <block end>, but found": "缩进有误，或多出内容",
    "expected the node content, but found": "缺少内容",
    "expected": "语法错误",
    "did not find expected": "缺少应有的内容",
    "found undefined alias": "引用了未定义的别名",
    "found duplicate anchor": "锚点重复",
    "found character": "出现了不允许的字符",
    "found unexpected end of stream": "文件意外结束",
    "syntax": "语法错误",
    "indent with spaces, not tabs": "请用空格缩进，不要用制表符",
    "check the indentation, and put text with : # [ ] {{ }} in quotes": (
        "请检查缩进，并将含有 : # [ ] {{ }} 的文本加引号"
    ),
    "too large or nested too deeply for an inventory": "作为主机清单过大或嵌套过深",
    "a key must be a word": "键必须是单词",
    "key {key} appears twice": "键 {key} 重复出现",
    "the first one is in line {n}": "第一处在第 {n} 行",
    "not readable as {kind}": "不能读作 {kind}",
    "{path}: holds passwords and belongs to another user (uid {uid})": (
        "{path}：含有口令，且属于其他用户（uid {uid}）"
    ),
    "{path}: holds passwords and is open to others (mode {mode})": (
        "{path}：含有口令，且可被他人访问（权限 {mode}）"
    ),
    "copy it, and chmod 600 the copy": "请复制一份，并对副本执行 chmod 600",
    # Keys and values.
    "unknown key {key} {where}": "{where}有未知的键 {key}",
    "of a host": "主机中",
    "in defaults": "defaults 中",
    "of the inventory": "主机清单中",
    "known keys: {names}": "可用的键：{names}",
    "did you mean {name}?": "是否想写 {name}？",
    "{key} belongs below defaults or a host": "{key} 应写在 defaults 或某台主机下",
    "a password does not belong into an inventory: password_env names the environment variable": (
        "口令不应写入主机清单：请用 password_env 指定环境变量"
    ),
    "{kind_of} is {kind}, a mapping (key: value) is wanted": "{kind_of} 是{kind}，应为键值对（key: value）",
    "{kind_of} is {kind}, a list is wanted": "{kind_of} 是{kind}，应为列表",
    "{kind_of} is {kind}, text is wanted": "{kind_of} 是{kind}，应为文本",
    "{kind_of} is {kind}, a whole number is wanted": "{kind_of} 是{kind}，应为整数",
    "begin each entry with '- '": "每一项请以 '- ' 开头",
    "{name} is empty": "{name} 为空",
    "put it in quotes": "请加引号",
    "remove the quotes": "请去掉引号",
    "{name} holds a line break or another control character": "{name} 含有换行或其他控制字符",
    "{name} is not a size": "{name} 不是大小",
    "write it like 50M or 1.5G": "请写成 50M 或 1.5G 的形式",
    "{name}: {path} is no absolute path": "{name}：{path} 不是绝对路径",
    "write it like /data2,/data3": "请写成 /data2,/data3 的形式",
    "sudo is the one way there is": "只支持 sudo",
    "'port' is {value}": "'port' 为 {value}",
    "'transport' is {value}": "'transport' 为 {value}",
    "'become' is {value}": "'become' 为 {value}",
    "asyncssh or paramiko or srun": "asyncssh、paramiko 或 srun",
    "key 'version' is missing": "缺少键 'version'",
    "begin the inventory with 'version: {n}'": "主机清单请以 'version: {n}' 开头",
    "version {found} found, {wanted} wanted": "版本为 {found}，应为 {wanted}",
    "a newer program wrote this?": "是否由更新的程序写出？",
    # Hosts.
    "no hosts": "没有主机",
    "list them below 'hosts', give --hosts, or name a rank table": (
        "请写在 'hosts' 下，或使用 --hosts，或指定 rank table"
    ),
    "give --inventory FILE or --hosts NODESET": "请使用 --inventory FILE 或 --hosts NODESET",
    "more than {n} hosts": "主机超过 {n} 台",
    "group {group} names {name}, which is no host of the inventory": (
        "组 {group} 中的 {name} 不是主机清单中的主机"
    ),
    "a host with {what}": "主机{what}",
    "neither 'address' nor 'local'": "既没有 'address' 也没有 'local'",
    "both 'address' and 'local'": "同时有 'address' 和 'local'",
    "one of them says where its data is": "其中之一说明数据的位置",
    "'local' without 'server_id'": "有 'local' 而没有 'server_id'",
    "server_id is the host's name in the rank table": "server_id 是主机在 rank table 中的名称",
    "'server_id' stands for {n} hosts, the entry for {m}": "'server_id' 表示 {n} 台主机，而该项表示 {m} 台",
    "a node set of as many names, or leave it out": "请写同样多的名称，或省略",
    "not a server id: {name}": "不是有效的 server_id：{name}",
    "a name without blanks, as in the rank table": "应为不含空格的名称，与 rank table 一致",
    "host {name} is listed twice": "主机 {name} 重复列出",
    "the first one is {place}": "第一处在 {place}",
    "host {name} reads the same directory of {address} as another one": (
        "主机 {name} 与另一台读取 {address} 的同一目录"
    ),
    "the other one is {place}": "另一处在 {place}",
    "not a host name or address: {name}": "不是主机名或地址：{name}",
    "a user goes into 'user', a port into 'port'": "用户写入 'user'，端口写入 'port'",
    "'transport: local' without 'local'": "有 'transport: local' 而没有 'local'",
    "name the directory": "请指明目录",
    "a port is 1 to {n}": "端口为 1 到 {n}",
    "no 'profiler_root' for {name}": "{name} 没有 'profiler_root'",
    "say below 'defaults' (or with --profiler-root) where the data is": (
        "请在 'defaults' 下（或用 --profiler-root）说明数据的位置"
    ),
    "'become_user' without 'become'": "有 'become_user' 而没有 'become'",
    "add become: sudo": "请加上 become: sudo",
    "not the name of a user: {name}": "不是用户名：{name}",
    "letters, digits, - . _": "只能含字母、数字、- . _",
    "{where}: 'identity_file' {path} does not exist": "{where}：'identity_file' {path} 不存在",
    "check the path": "请检查路径",
    "environment variable {name} is not set; it holds {what}": "环境变量 {name} 未设置；它应含有{what}",
    "the password of {name}": "{name} 的口令",
    "the passphrase of the key": "密钥的口令短语",
    "Ansible writes node[01:04]": "Ansible 的写法是 node[01:04]",
    "write the value itself, or set {name} for the host": "请直接写出值，或为该主机设置 {name}",
    "{name} stands for more than {n} hosts": "{name} 表示超过 {n} 台主机",
    "a host's variables stand behind it": "主机的变量应写在其后",
    "not a host and its variables: {why}": "不是主机及其变量：{why}",
    "close the quotes": "请补上引号",
    "{key} names the environment variable {name}, which is not set": "{key} 引用的环境变量 {name} 未设置",
    "--what GLOB and --capture take captures by their paths": "--what GLOB 和 --capture 按路径选取采集",
    "not readable findings: {why}": "发现项无法读取：{why}",
    # Node sets and limits.
    "not a list of hosts: {text}: {why}": "不是主机列表：{text}：{why}",
    "not a list of hosts: {text}": "不是主机列表：{text}",
    "write it like {example}": "请写成 {example} 的形式",
    "patterns and @groups work in --limit only": "通配符和 @组 只能用于 --limit",
    "a pattern (*, ?) or @group takes no brackets": "通配符（*、?）或 @组 不能带方括号",
    "too many hosts: {text} stands for more than {n}": "主机过多：{text} 表示超过 {n} 台",
    "a number too long? {advice}": "数字是否过长？{advice}",
    "--limit: {name} is no host of {inventory}": "--limit：{name} 不是 {inventory} 中的主机",
    "name hosts by address, server id or @group": "请用地址、server_id 或 @组 指明主机",
    "--limit {text} leaves no host of {inventory}": "--limit {text} 没有选中 {inventory} 中的任何主机",
    "--limit: unknown group @{name}": "--limit：未知的组 @{name}",
    "groups of the inventory: {names}": "主机清单中的组：{names}",
    # A run instead of an inventory.
    "{run}: its manifest does not say how its hosts were named": "{run}：其 manifest 未说明主机从何而来",
    "give the inventory that it was collected with: --inventory FILE": (
        "请给出采集时使用的主机清单：--inventory FILE"
    ),
    "{run}: no run directory, for it has no {name}": "{run}：不是运行目录，其中没有 {name}",
    "name the --output of a cluster-collect that came to its end": (
        "请指定一次已完成的 cluster-collect 的 --output"
    ),
    "{names} of {run} is no host of {inventory}": "{run} 的 {names} 不是 {inventory} 中的主机",
    "{path}: there are no findings yet": "{path}：还没有发现项",
    "cluster-analyse makes them of the run directory": "请对运行目录执行 cluster-analyse",
    "{path} names no rank to look at: nothing was fetched": "{path} 没有指出任何卡：未采集任何内容",
    "{option} needs a terminal": "{option} 需要终端",
    "without one, name an environment variable instead": "没有终端时，请改用环境变量",
    "{option}: nothing was typed": "{option}：没有输入",
    # The rank table beside the inventory.
    "{names} of {table} ({n} rank{s}) is no host of {inventory}": (
        "{table} 中的 {names}（{n} 张卡）不在 {inventory} 中"
    ),
    "these ranks will be missing; add the host, or set its server_id to the name there": (
        "将缺少这些卡；请补充主机，或将其 server_id 设为 rank table 中的名称"
    ),
    "{inventory}: {names} is not in {table}: the rank table says nothing about its ranks; set server_id to "
    "the name in the rank table": "{inventory}：{names} 不在 {table} 中：无从得知其卡号；"
    "请将 server_id 设为 rank table 中的名称",
}
