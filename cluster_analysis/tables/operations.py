"""The operations of communication: what each word in an operator's name means to all that judge it.

An operator without such a word is `unknown`: a collective of its group, matched and replayed like others, but
otherwise unknown. Names of kernels that also compute are in `fused`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Operation:
    """Properties of an operation.

    `moves`: gradients are added up, weights fetched, and of tokens every rank sends others to each. `ends`: a
    message is between two ranks; of collectives that end `together` no rank leaves before all have arrived.
    `is_send`, `is_receive`: it does this alone.
    """

    moves: Literal["gradients", "weights", "tokens"] | None = None
    ends: Literal["together", "message"] | None = None
    is_send: bool = False
    is_receive: bool = False

    @property
    def is_message(self) -> bool:
        """Whether it is between two ranks; files put some of these under `collective`."""
        return self.ends == "message"


OPERATIONS: Mapping[str, Operation] = {
    "allreduce": Operation("gradients", "together"),
    "reducescatter": Operation("gradients", "together"),
    "reduce": Operation("gradients"),
    "allgather": Operation("weights", "together"),
    "allgatherv": Operation("weights", "together"),
    "gather": Operation("weights"),
    "alltoall": Operation("tokens", "together"),
    "alltoallv": Operation("tokens", "together"),
    "alltoallvc": Operation("tokens", "together"),
    "barrier": Operation(ends="together"),
    "broadcast": Operation(),
    "scatter": Operation(),
    "send": Operation(ends="message", is_send=True),
    "receive": Operation(ends="message", is_receive=True),
    "batchsendrecv": Operation(ends="message"),
    "invalid": Operation(),
}
#: Other words for them.
SYNONYMS: Mapping[str, str] = {"recv": "receive", "sendrecv": "batchsendrecv"}
MESSAGES = tuple(name for name, one in OPERATIONS.items() if one.is_message)
COMMON_END = tuple(name for name, one in OPERATIONS.items() if one.ends == "together")


def record_of(op_type: str) -> Operation:
    """Return what is true of a kind of operator; of an unknown one nothing."""
    return OPERATIONS.get(op_type, _UNKNOWN)


_UNKNOWN = Operation()
