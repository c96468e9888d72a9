"""The result of cluster-collect for machines (`--json`).

Schema history:
    cluster-collect/1   first version
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cluster_collect.show.context import Surroundings
from cluster_collect.transfer.plan import HostLook
from cluster_run.errors import ClusterError, ExitCode
from cluster_run.manifest import HostOutcome
from cluster_run.version import VERSION

SCHEMA = "cluster-collect/1"
TOOL_NAME = "cluster-collect"


def collection_json(outcomes: Sequence[HostOutcome], around: Surroundings, code: ExitCode) -> str:
    """Return the result of a collection; files that are not simply stored are named one by one."""
    hosts = [
        {
            "host": outcome.host,
            "server_id": outcome.server_id,
            "state": outcome.state,
            "n_files": outcome.files.n_stored,
            "n_bytes": outcome.files.stored_bytes,
            "n_wire_bytes": outcome.wire_bytes,
            "seconds": round(outcome.seconds, 3),
            "clock_offset_ms": outcome.clock_offset_ms,
            "clock_uncertainty_ms": outcome.clock_uncertainty_ms,
            "same_files_as": outcome.same_files_as,
            "n_columns": outcome.files.n_columns,
            "raw_because": outcome.raw_because,
            "n_over_limits": outcome.n_over_limits,
            **_failure(outcome, around),
            "files": [
                {"source": file.source, "path": file.path, "state": file.state, "reason": file.reason}
                for file in outcome.files.not_stored
            ],
        }
        for outcome in outcomes
    ]
    totals = {
        "n_hosts": len(outcomes),
        "n_complete": sum(outcome.state == "complete" for outcome in outcomes),
        "n_files": sum(outcome.files.n_stored for outcome in outcomes),
        "n_bytes": sum(outcome.files.stored_bytes for outcome in outcomes),
        "seconds": round(around.seconds, 3),
    }
    return _document(
        "collect",
        code,
        around.warnings,
        {"run": str(around.run), "totals": totals, "absent_ranks": around.absent_ranks, "hosts": hosts},
    )


def plan_json(plans: Sequence[HostLook], around: Surroundings, code: ExitCode) -> str:
    """Return the result of a dry run, with every file."""
    hosts = [
        {
            "host": plan.outcome.host,
            "server_id": plan.outcome.server_id,
            "method": plan.method,
            "n_files": len(plan.files),
            "n_bytes": plan.n_bytes,
            **_failure(plan.outcome, around),
            "files": [
                {"source": file.source, "path": file.path, "n_bytes": file.size_bytes} for file in plan.files
            ],
            "skipped": [{"source": file.source, "reason": file.reason} for file in plan.outcome.files],
        }
        for plan in plans
    ]
    document = {"run": str(around.run), "are_reduced": around.are_reduced, "hosts": hosts}
    return _document("dry-run", code, around.warnings, document)


def check_json(checks: Sequence[HostLook], around: Surroundings, code: ExitCode) -> str:
    """Return the result of a check."""
    hosts = [
        {
            "host": check.outcome.host,
            "server_id": check.outcome.server_id,
            "login_seconds": check.login_s,
            "n_files": len(check.files),
            "n_bytes": check.n_bytes,
            "n_free_bytes": check.free_bytes,
            "clock_offset_ms": check.outcome.clock_offset_ms,
            "clock_uncertainty_ms": check.outcome.clock_uncertainty_ms,
            "method": check.method,
            "tools": dict(check.tools),
            **_failure(check.outcome, around),
        }
        for check in checks
    ]
    return _document("check", code, around.warnings, {"hosts": hosts})


def error_json(mode: str, error: ClusterError) -> str:
    """Return the result when there is none: what was wrong, and what to do."""
    return _document(
        mode, error.exit_code, (), {"error": {"message": error.message, "advice": error.advice}, "hosts": []}
    )


def _failure(host: HostOutcome, around: Surroundings) -> Mapping[str, str]:
    return {
        "failure": host.failure,
        "reason": host.reason,
        "advice": host.advice,
        "command": around.command_to_try(host.host, host.failure),
    }


def _document(mode: str, code: ExitCode, warnings: Sequence[str], body: Mapping[str, Any]) -> str:
    document = {
        "schema": SCHEMA,
        "tool": {"name": TOOL_NAME, "version": VERSION},
        "mode": mode,
        "exit_code": int(code),
        "warnings": list(warnings),
        **body,
    }
    # File names that are not UTF-8 hold lone surrogates; escaped, they stay valid JSON.
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
