"""The rows of a profiler database that the analysis asks for, as SQL; other tables are taken whole.

| table | rows |
| --- | --- |
| PYTORCH_API | copies before a step, and the data loader: one of some hundred calls |
| COMMUNICATION_TASK_INFO | copies between ranks, and what sends and receives do |
| TASK | kernels, such copies, copies of memory; whatever has no time, which is counted; the last to end |
| STRING_IDS | texts that a row that is kept refers to |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_IS_COPY = "SELECT id FROM STRING_IDS WHERE value IN ('Memcpy', 'Reduce_Inline', 'Reduce Inline')"
_CALLS = (
    "name IN (SELECT id FROM STRING_IDS WHERE value LIKE 'aten::copy\\_' ESCAPE '\\' "
    "OR value LIKE 'enumerate(DataLoader)%')"
)
_COPIES = f"taskType IN ({_IS_COPY})"
_MESSAGES = (
    "opId IN (SELECT opId FROM COMMUNICATION_OP WHERE opName IN (SELECT id FROM STRING_IDS "
    "WHERE value LIKE '%send%' OR value LIKE '%recv%' OR value LIKE '%receive%'))"
)
_TASKS = (
    "(NOT (typeof(startNs) = 'integer' AND typeof(endNs) = 'integer' AND endNs >= startNs) "  # noqa: S608 - fixed names
    "OR globalTaskId IN (SELECT globalTaskId FROM COMPUTE_TASK_INFO) "
    f"OR globalTaskId IN (SELECT globalTaskId FROM COMMUNICATION_TASK_INFO WHERE {_COPIES}) "
    "OR taskType IN (SELECT id FROM STRING_IDS WHERE value LIKE 'MEMCPY%') "
    "OR endNs = (SELECT MAX(endNs) FROM TASK WHERE typeof(endNs) = 'integer'))"
)
#: Columns that have to be there, by table; all in lower case.
_NEEDED: dict[str, Mapping[str, tuple[str, ...]]] = {
    "pytorch_api": {"pytorch_api": ("name",), "string_ids": ("id", "value")},
    "communication_task_info": {
        "communication_task_info": ("tasktype", "opid"),
        "communication_op": ("opid", "opname"),
        "string_ids": ("id", "value"),
    },
    "task": {
        "task": ("startns", "endns", "globaltaskid", "tasktype"),
        "compute_task_info": ("globaltaskid",),
        "communication_task_info": ("globaltaskid", "tasktype"),
        "string_ids": ("id", "value"),
    },
    "string_ids": {"string_ids": ("id", "value")},
}
_CONDITIONS = {
    "pytorch_api": _CALLS,
    "communication_task_info": f"({_COPIES} OR {_MESSAGES})",
    "task": _TASKS,
}
#: Columns that hold numbers of texts.
_TEXTS = {
    "cann_api": ("name",),
    "communication_op": ("opname", "groupname"),
    "communication_task_info": ("tasktype",),
    "compute_task_info": ("name", "optype", "tasktype", "inputshapes", "outputshapes", "opstate"),
    "memory_record": ("component",),
    "pytorch_api": ("name",),
    "task": ("tasktype",),
}


def condition_of(table: str, columns: Mapping[str, frozenset[str]]) -> str:
    """Return which rows of a table are asked for, as SQL; empty for all of them.

    Args:
        table: its name in lower case.
        columns: those of each table of the database; all in lower case.
    """
    needed = _NEEDED.get(table)
    if needed is None or any(
        not set(names) <= columns.get(one, frozenset()) for one, names in needed.items()
    ):
        return ""
    if table != "string_ids":
        return _CONDITIONS[table]
    return f"(typeof(id) <> 'integer' OR id IN ({' UNION '.join(_references(columns)) or 'NULL'}))"


def _references(columns: Mapping[str, frozenset[str]]) -> Iterator[str]:
    for table, names in _TEXTS.items():
        condition = condition_of(table, columns)
        where = f" WHERE {condition}" if condition else ""
        for name in names:
            if name in columns.get(table, ()):
                yield f"SELECT {name} FROM {table}{where}"  # noqa: S608 - fixed names
