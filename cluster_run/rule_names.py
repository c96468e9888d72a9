"""The names of the rules of the advice."""

from __future__ import annotations

from typing import Literal

#: Rules of the advice; `rule_holds` is the fact that one does.
RuleName = Literal[
    "ai_cpu",
    "format_changes",
    "compiled_at_run_time",
    "changing_shapes",
    "bound_operators",
    "byte_alignment",
    "clock",
    "memory_beside_peers",
    "memory_full",
    "input_queue",
    "sent_again",
    "queue_empty",
    "next_empty",
    "cpu_busy",
    "late_launches",
    "other_environment",
    "blocking_launch",
    "log_level",
]
