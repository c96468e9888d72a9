"""What is left in English of a text, and which sentences a package says."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from types import ModuleType
from typing import Any

#: Two English words one after the other are a sentence; options, keys and what a command is given are none.
SENTENCE = re.compile(r"(?<![\w/.=-])[A-Za-z][a-z']+,? [a-z']{2,}(?![\w/.=-])")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
#: Names of things, which stay as they are.
_NAMES = re.compile(r"become: sudo|rank table|textfile collector|kubectl proxy|systemd timer")
#: A command to try, and the names that a host has where the root is not.
_COMMAND = re.compile(r"(?:cluster-\w+|ssh|pip|dask|systemctl|scontrol|chronyc) [^：，；。\n]*|中有 .*")
#: Errors that tell of other people's tricks, of mistakes in a program, or of how an option is written.
_STAY_ENGLISH = {
    *("HostileDataError", "ArgumentTypeError", "ValueError", "SFTPError"),
    *("AssertionError", "AttributeError", "ImportError", "KeyError", "TypeError"),
}
#: Calls that say something, beside errors; the first argument of some is a word for programs.
_SAYING = {
    "read_as": 0,
    "wrong": 0,
    "say": 0,
    "_say": 0,
    "Failure": 1,
    "Lost": 1,
    "Refusal": 1,
    "Answer": 1,
    "Swept": 2,
    "Drained": 2,
    "nothing_to_do": 1,
    "failed": 2,
    "say_on_stderr": 1,
    "Trouble": 0,
    "_report": 1,
}

#: Tables of reasons; other tables hold names, or words that have their Chinese beside them.
_REASONS = ("_ARGUMENTS_NOT_HONOURED", "_NOT_HONOURED", "_BY_NOBODY")

#: What a text may not call a thing, and what all texts call it: one name each, that of the vendor where it
#: has one.
INSTEAD = {
    r"采集数据|profiler 数据(?!库)": "性能数据",
    "挂起": "卡住：挂起是暂停",
    "嫌疑": "可疑",
    "(?<!节)点名": "指出",
    "用于对比的卡|对比卡(?! )": "对照卡",
    r"(?:本次运行|尚无|运行 \{run\}) ?的?发现(?!项)": "发现项",
    "再次调用|再次运行|以前的?调用|此前的?调用": "再次执行",
    "不认识|忘记": "没有登记，没有记录",
    "应答|回应|回答": "响应，返回",
    "我们": "本程序",
    "密码|口令短语": "口令，密钥口令",
    "录制": "采集",
    "归约(?!的块数)(?<!块归约)": "汇总，提取列",
    "无从得知": "无法得知",
    "设备小时": "卡时",
    "健康(?!状态)": "正常",
    "置信度": "可信度",
    "气泡": "空泡",
    "通讯": "通信",
    "结点": "节点",
    "链路类型": "链路方式",
    "缺省": "默认",
    "拷贝(?!.{0,3}batch|占)": "复制",
    r"\bpod\b|\bannotation\b": "Pod，注解",
    "采集工具": "profiler",
    "真实答案": "真值",
    "代价": "损失",
    "[以而就时] ?[0-9] (?:退出|结束)": "以退出码 … 退出",
}
#: What a word of English is in Chinese, wherever a text has it.
TERMS = {
    r"collect(?:s|ed)? (?:it|them|again|the)\b": "收集",
    r"\bprofiler data\b": "性能数据",
    r"\bhangs?\b": "卡住|无响应",
    r"\bsuspects?\b(?!\})": "可疑|怀疑|suspects",
    r"(?<![\w-])passphrase\b": "密钥口令",
    r"\bpassword": "口令",
    r"\b(?:sent again|retransmissions)\b": "重传",
    r"\bbubbles?\b": "空泡",
    r"\bstages?\b": "阶段|stage",
    r"\bidle[sd]?\b|\bidling\b": "空闲",
    r"\bkernels?\b": "算子|kernels|内核日志|从下发到开始",
    r"\bcollectives?\b": "集合通信|collective",
    r"\breplay": "重放",
    r"\bverdicts?\b(?!\})": "结论|判断",
    r"\bat least\b": "至少|最小",
    r"\bgroups? of (?:all|unknown)|\b(?:data|tensor|expert|context)-parallel group": "通信域",
}


def pairs_of_texts() -> Iterator[tuple[str, str]]:
    """Return what is said in both languages: messages, help, sentences, words of the page."""
    root = Path(__file__).parents[1]

    def pairs(table: dict[str, Any]) -> Iterator[tuple[str, str]]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from pairs(value)
            else:
                yield tuple(value) if isinstance(value, list) else (key, value)

    for path in (root / "cluster_run/said/chinese.json", *root.glob("cluster_words/*.json")):
        yield from pairs(json.loads(path.read_text("utf-8")))


def lines_of_documents() -> Iterator[str]:
    """Return the lines of the Chinese documents, without code and addresses."""
    root = Path(__file__).parents[1]
    for path in (root / "README.zh.md", *root.glob("docs/zh/*.md")):
        text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
        yield from re.sub(r"`[^`\n]*`|\]\([^)]*\)", "`", text).splitlines()


def english_in(text: str) -> list[str]:
    """Return the lines with an English sentence."""
    lines = (_COMMAND.sub("", _NAMES.sub("", line)) for line in text.splitlines())
    return [line for line in lines if SENTENCE.search(line)]


def placeholders(text: str) -> frozenset[str]:
    """Return the names of the values that a text tells; to choose a word by a number tells nothing."""
    parts = [(name, form or "") for _, name, form, _ in Formatter().parse(text) if name]
    return frozenset(name for name, form in parts if "|" not in form or "#" in form)


def sentences_of(package: ModuleType) -> Iterator[tuple[str, str]]:
    """Return where a package makes an error or a remark, or keeps a reason, and what that says, with 7 for a
    value.
    """
    (folder,) = package.__path__
    for path in sorted(Path(folder).rglob("*.py")):
        tree = ast.parse(path.read_text())
        for line, said in (*_in_calls(tree), *_reasons(tree)):
            parts = said.values if isinstance(said, ast.JoinedStr) else [said]
            for one in "".join(map(_shown, parts)).split("\n"):
                if SENTENCE.search(one):
                    yield f"{path.name}:{line}", one.strip()


def _in_calls(tree: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    named = _named_texts(tree)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if name in _STAY_ENGLISH or not (name.endswith("Error") or name in _SAYING):
            continue
        for given in call.args[_SAYING.get(name, 0) :]:
            for said in named.get(getattr(given, "id", ""), [given]):
                yield call.lineno, _with_why(said) if name == "read_as" and given is call.args[0] else said


def _with_why(said: ast.expr) -> ast.JoinedStr:
    """Return a text as `read_as` tells it: why it is so stands behind it."""
    return ast.JoinedStr([*getattr(said, "values", [said]), ast.Constant(": 7")])


def _reasons(tree: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    """Return the reasons that a module keeps in tables, returns, or gives by that name."""
    for one in ast.walk(tree):
        if isinstance(one, ast.keyword) and one.arg in ("reason", "advice"):
            yield one.value.lineno, one.value
        elif isinstance(one, ast.FunctionDef) and re.search("why|because", one.name):
            returned = (part.value for part in ast.walk(one) if isinstance(part, ast.Return) and part.value)
            yield from ((value.lineno, value) for value in returned)
    for assigned in tree.body:
        if isinstance(assigned, (ast.Assign, ast.AnnAssign)) and isinstance(assigned.value, ast.Dict):
            name = ast.unparse(assigned.targets[0] if isinstance(assigned, ast.Assign) else assigned.target)
            if name in _REASONS:
                yield from ((value.lineno, value) for value in assigned.value.values)


def _named_texts(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Return what a module calls by a name before it says it; a text that grows is none that is said."""
    named: dict[str, list[ast.expr]] = {}
    for one in ast.walk(tree):
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            named.setdefault(one.targets[0].id, []).append(one.value)
    growing = {getattr(one.target, "id", "") for one in ast.walk(tree) if isinstance(one, ast.AugAssign)}
    return {name: texts for name, texts in named.items() if name not in growing}


def _shown(part: ast.expr) -> str:
    """Return a piece of a sentence: a value as 7 or 7.5, `where(name)` as a place, what may lack as none."""
    if isinstance(part, ast.FormattedValue):
        if isinstance(part.value, ast.IfExp) and getattr(part.value.orelse, "value", ""):
            return _shown(part.value.body)
        name = getattr(getattr(part.value, "func", None), "id", "")
        if part.format_spec is not None and re.search(r"\.[1-9]f", ast.unparse(part.format_spec)):
            return "7.5"
        if name == "count":
            return f"7 {ast.literal_eval(part.value.args[1])}s"  # type: ignore[attr-defined]
        return "7: " if name == "where" else "" if isinstance(part.value, ast.IfExp) else "7"
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""
