"""Messages and states as `letta_client` has them, for users' functions that were written for its classes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from pydantic import TypeAdapter

from stateval.records import message as records
from stateval.records.message import Message, MessageRecord, Trajectory
from stateval.records.state import AgentState

_WRITTEN_FOR = frozenset({"letta_client", "letta_evals"})
_message: TypeAdapter[MessageRecord] = TypeAdapter(Message)

MESSAGE_NAMES = (
    "SystemMessage",
    "UserMessage",
    "ReasoningMessage",
    "HiddenReasoningMessage",
    "ToolCallMessage",
    "ToolReturnMessage",
    "AssistantMessage",
    "ApprovalRequestMessage",
    "ApprovalResponseMessage",
    "SummaryMessage",
    "EventMessage",
)
"""The classes of messages, which are called the same here and in `letta_client`."""


def wants_letta_classes(imports: Collection[str]) -> bool:
    """Whether a file that imports these packages may look at the classes of `letta_client`, which is installed."""
    return not _WRITTEN_FOR.isdisjoint(imports) and _is_installed()


@functools.cache
def classes_by_name() -> Mapping[str, Any]:
    """What users' functions are handed: the classes of messages, their union, and `AgentState`.

    They are those of `letta_client`, which is imported here; where it is not installed they are ours.
    """
    if not _is_installed():
        ours = {name: getattr(records, name) for name in MESSAGE_NAMES}
        return {**ours, "LettaMessageUnion": Message, "AgentState": AgentState}
    from letta_client.types import AgentState as LettaState

    theirs = {kind.__name__: kind for kind in _classes().values()}
    union = functools.reduce(operator.or_, theirs.values())
    return {**theirs, "LettaMessageUnion": union, "AgentState": LettaState}


def letta_trajectory(trajectory: Trajectory) -> list[list[Any]]:
    """New messages of `letta_client` with all fields of ours; one of a type that it lacks stays a copy of ours."""
    return [[_letta_message(message) for message in turn] for turn in trajectory]


def letta_state(state: AgentState | None) -> Any:
    """A new `letta_client.types.AgentState`, whose `memory` has the blocks too; None for None."""
    if state is None:
        return None
    from letta_client.types import AgentState as LettaState

    fields = state.model_dump()
    fields["memory"] = {**_mapping(fields.get("memory")), "blocks": fields["blocks"]}
    return LettaState.construct(**fields)


def records_of(trajectory: Sequence[Sequence[Any]]) -> Trajectory:
    """Our records of messages, whichever classes these are of. Raises ValueError for what is no message."""
    return [[_record(message) for message in turn] for turn in trajectory]


def _letta_message(message: MessageRecord) -> Any:
    kind = _classes().get(message.message_type)
    if kind is None:
        return message.model_copy(deep=True)
    return kind.construct(**message.model_dump(exclude_none=True))


def _record(message: Any) -> Any:
    if isinstance(message, MessageRecord):
        return message
    fields = message.model_dump() if hasattr(message, "model_dump") else message
    return _message.validate_python({name: value for name, value in fields.items() if value is not None})


@functools.cache
def _classes() -> Mapping[str, Any]:
    from letta_client import types

    of_name = {name: getattr(types.agents, name, None) or getattr(types, name) for name in MESSAGE_NAMES}
    return {getattr(records, name).model_fields["message_type"].default: kind for name, kind in of_name.items()}


def _is_installed() -> bool:
    return find_spec("letta_client") is not None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
