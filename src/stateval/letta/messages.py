"""Messages and states as `letta_client` has them, for users' functions that were written for its classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from pydantic import TypeAdapter

from stateval.records.message import Message, MessageRecord, Trajectory
from stateval.records.state import AgentState

_WRITTEN_FOR = frozenset({"letta_client", "letta_evals"})
_message: TypeAdapter[MessageRecord] = TypeAdapter(Message)


def wants_letta_classes(imports: Collection[str]) -> bool:
    """Whether a file that imports these packages may look at the classes of `letta_client`, which is installed."""
    return not _WRITTEN_FOR.isdisjoint(imports) and find_spec("letta_client") is not None


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


@cache
def _classes() -> Mapping[str, Any]:
    from letta_client.types import ToolReturnMessage, agents

    kinds = (
        agents.SystemMessage,
        agents.UserMessage,
        agents.ReasoningMessage,
        agents.HiddenReasoningMessage,
        agents.ToolCallMessage,
        ToolReturnMessage,
        agents.AssistantMessage,
        agents.ApprovalRequestMessage,
        agents.ApprovalResponseMessage,
        agents.SummaryMessage,
        agents.EventMessage,
    )
    return {_type_of(kind): kind for kind in kinds}


def _type_of(kind: Any) -> str:
    """`AssistantMessage` has the type `assistant_message`."""
    name = kind.__name__
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
