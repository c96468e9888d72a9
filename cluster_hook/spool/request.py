"""The request that the epilog drops: `key=value` fields, each ended by NUL, the last one `end=`."""

from __future__ import annotations

from pathlib import Path

from cluster_hook.job import ReportedJob
from cluster_hook.slurm.nodelist import expand_node_list
from cluster_run.errors import InputError, read_as

#: Far more than a node list and a comment need; a larger file is not a request.
MAX_REQUEST_BYTES = 256 * 1024


def parse_request_file(content: bytes, name: str) -> ReportedJob:
    """Parse the content of a request: a job to follow, whose user is known. `name` is the file's.

    Raises:
        InputError: not a whole request.
    """
    text = content.decode("utf-8", "surrogateescape")
    pairs = [field.partition("=")[::2] for field in text.split("\0")[:-1]]
    fields = dict(pairs)
    if len(fields) != len(pairs) or not pairs or pairs[-1] != ("end", ""):
        raise InputError(f"{name}: not a whole request")
    with read_as(f"{name}: not a request"):
        uid, job, work_dir = int(fields["uid"]), fields["job"], fields["work_dir"]
        nodes = expand_node_list(fields["nodes"])
    if not job.isdecimal() or uid < 0 or not work_dir.startswith("/"):
        raise InputError(f"{name}: not a request: job {job!r}, user {uid}, work directory {work_dir!r}")
    return ReportedJob(
        job=job,
        name=fields.get("name", ""),
        user=fields.get("user", ""),
        state=exit_words(fields.get("exit", "")),
        nodes=nodes,
        work_dir=Path(work_dir),
        comment=fields.get("comment", ""),
        array_job=fields.get("array_job", ""),
        array_task=fields.get("array_task", ""),
        began_s=_seconds(fields.get("began", "")),
        ended_s=_seconds(fields.get("ended", "")),
        uid=uid,
    )


def _seconds(text: str) -> float | None:
    # Not all versions of Slurm tell the epilog.
    return float(text) if text.isascii() and text.isdigit() and 0 < len(text) < 15 else None


def exit_words(code: str) -> str:
    """Return Slurm's `<exit>:<signal>` in words: the epilog does not get the job's state.

    Nothing for `0:0`, which Slurm also says of a job that was cancelled.
    """
    status, _, signal = code.partition(":")
    if signal not in ("", "0"):
        return f"signal {signal}"
    return f"exit {status}" if status not in ("", "0") else ""
