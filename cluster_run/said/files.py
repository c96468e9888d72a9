"""Chinese of what SQLite, the decoder of JSON, the system and our readers say of files."""

from __future__ import annotations

from collections.abc import Mapping

FILES: Mapping[str, str] = {
    # SQLite.
    "file is not a database": "文件不是数据库",
    "database disk image is malformed": "数据库内容已损坏",
    "malformed database schema ({name})": "数据库结构已损坏（{name}）",
    "malformed database schema ({name}) - {more}": "数据库结构已损坏（{name}）",
    "disk I/O error": "磁盘读写错误",
    "unable to open database file": "无法打开数据库文件",
    "database is locked": "数据库被锁定",
    "integer overflow": "整数溢出",
    "no such table: {name}": "没有表 {name}",
    "no such column: {name}": "没有列 {name}",
    "Could not decode to UTF-8 column '{name}'{more}": "列 {name} 不是 UTF-8",
    # JSON.
    "Input data was truncated": "数据被截断",
    "JSON is malformed: {what}": "JSON 格式有误：{what}",
    "invalid character{where}": "无效字符{where}",
    "trailing characters{where}": "末尾有多余字符{where}",
    "object keys must be strings{where}": "对象的键必须是字符串{where}",
    "invalid escape character in string{where}": "字符串编码无效{where}",
    "invalid utf-8{where}": "字符串编码无效{where}",
    "Expected `{wanted}`, got `{found}`": "应为 {wanted}，实为 {found}",
    "Expected `{wanted}`, got `{found}` - at `{where}`": "应为 {wanted}，实为 {found} {where}",
    "Object missing required field `{name}`": "缺少字段 {name}",
    "Object missing required field `{name}` - at `{where}`": "缺少字段 {name} {where}",
    "Number out of range{where}": "数值超出范围{where}",
    # The system.
    "No such file or directory": "没有该文件或目录",
    "Permission denied": "权限不足",
    "Is a directory": "是目录",
    "Not a directory": "不是目录",
    "Input/output error": "输入输出错误",
    "Too many levels of symbolic links": "符号链接层数过多",
    "File name too long": "文件名过长",
    "Stale file handle": "文件句柄已失效",
    "No space left on device": "磁盘空间不足",
    "Read-only file system": "文件系统只读",
    "Connection refused": "连接被拒绝",
    "Connection reset by peer": "连接被对方重置",
    "Connection timed out": "连接超时",
    "No route to host": "没有到该主机的路由",
    "Network is unreachable": "网络不可达",
    "Name or service not known": "未知的名称或服务",
    "Temporary failure in name resolution": "域名解析暂时失败",
    "No address associated with hostname": "主机名没有对应的地址",
    # Our readers.
    "not read within --columns-deadline": "未在 --columns-deadline 内读完",
    "more memory than --columns-memory": "所需内存超过 --columns-memory",
    "its reader was killed by signal {number}": "读取进程被信号 {number} 终止",
    "its reader failed": "读取进程失败",
    "times of many days": "时间长达多日",
    "columns: made without {names}, by another version": "列由其他版本生成，缺少 {names}",
}
