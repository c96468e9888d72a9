"""What SQLite, the decoder of JSON, the system and our readers say of damaged files, in Chinese."""

from __future__ import annotations

import re

#: Their words as a pattern, and what they mean. What no pattern knows stays as it was said.
_CHINESE: tuple[tuple[str, str], ...] = (
    # SQLite.
    (r"file is not a database", "文件不是数据库"),
    (r"database disk image is malformed", "数据库内容已损坏"),
    (r"malformed database schema \((.*)\)(?: - .*)?", r"数据库结构已损坏（\1）"),
    (r"disk I/O error", "磁盘读写错误"),
    (r"unable to open database file", "无法打开数据库文件"),
    (r"database is locked", "数据库被锁定"),
    (r"integer overflow", "整数溢出"),
    (r"no such table: (.*)", r"没有表 \1"),
    (r"no such column: (.*)", r"没有列 \1"),
    (r"Could not decode to UTF-8 column '(.*?)'.*", r"列 \1 不是 UTF-8"),
    # JSON.
    (r"Input data was truncated", "数据被截断"),
    (r"JSON is malformed: (.*)", r"JSON 格式有误：\1"),
    (r"invalid character(.*)", r"无效字符\1"),
    (r"trailing characters(.*)", r"末尾有多余字符\1"),
    (r"object keys must be strings(.*)", r"对象的键必须是字符串\1"),
    (r"invalid (?:escape character in string|utf-8)(.*)", r"字符串编码无效\1"),
    (r"Expected `(.*?)`, got `(.*?)`(?: - at `(.*)`)?", r"应为 \1，实为 \2 \3"),
    (r"Object missing required field `(.*?)`(?: - at `(.*)`)?", r"缺少字段 \1 \2"),
    (r"Number out of range(.*)", r"数值超出范围\1"),
    # The system.
    (r"No such file or directory", "没有该文件或目录"),
    (r"Permission denied", "权限不足"),
    (r"Is a directory", "是目录"),
    (r"Not a directory", "不是目录"),
    (r"Input/output error", "输入输出错误"),
    (r"Too many levels of symbolic links", "符号链接层数过多"),
    (r"File name too long", "文件名过长"),
    (r"Stale file handle", "文件句柄已失效"),
    # Our readers.
    (r"not read within --columns-deadline", "未在 --columns-deadline 内读完"),
    (r"more memory than --columns-memory", "所需内存超过 --columns-memory"),
    (r"its reader was killed by signal (\d+)", r"读取进程被信号 \1 终止"),
    (r"its reader failed", "读取进程失败"),
    (r"times of many days", "时间长达多日"),
    (r"columns: made without (.*), by another version", r"列由其他版本生成，缺少 \1"),
)
_PATTERNS = tuple((re.compile(pattern), meaning) for pattern, meaning in _CHINESE)


def in_chinese(detail: str) -> str:
    """Return what a detail says in Chinese; as it is where nobody knows it."""
    for pattern, meaning in _PATTERNS:
        found = pattern.fullmatch(detail)
        if found is not None:
            return found.expand(meaning).strip()
    return detail
