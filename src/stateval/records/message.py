"""Messages of a trajectory, in the shape and with the attribute names that Letta's API gives them.

A trajectory is a list of turns; a turn is the list of messages that one message of the user led to, that message not
included. Keys that this release does not know are kept as they came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Discriminator, Field, Tag

from stateval.records.record import Record

Content = str | list[Any] | None


class ToolCall(Record):
    """A call of a tool. `arguments` is the text that the model wrote, which need not be valid JSON."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str
    arguments: str = "{}"
    tool_call_id: str = ""


class ToolReturn(Record):
    """What one call of a tool gave back, where several are reported in one message."""

    model_config = ConfigDict(frozen=True, extra="allow")

    tool_call_id: str = ""
    tool_return: Any = None
    status: str = "success"
    name: str | None = None


class MessageRecord(Record):
    """What every message has."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str = ""
    date: datetime | None = None
    message_type: str
    name: str | None = None
    otid: str | None = None
    run_id: str | None = None
    step_id: str | None = None
    sender_id: str | None = None
    is_err: bool | None = None
    seq_id: int | None = None


class SystemMessage(MessageRecord):
    message_type: Literal["system_message"] = "system_message"
    content: Content = None


class UserMessage(MessageRecord):
    message_type: Literal["user_message"] = "user_message"
    content: Content = None


class AssistantMessage(MessageRecord):
    """What the agent says to the user."""

    message_type: Literal["assistant_message"] = "assistant_message"
    content: Content = None


class ReasoningMessage(MessageRecord):
    message_type: Literal["reasoning_message"] = "reasoning_message"
    reasoning: str = ""


class HiddenReasoningMessage(MessageRecord):
    message_type: Literal["hidden_reasoning_message"] = "hidden_reasoning_message"
    state: str = "omitted"
    hidden_reasoning: str | None = None


class ToolCallMessage(MessageRecord):
    """One or several (parallel) calls. Letta's API repeats the first of `tool_calls` as `tool_call`."""

    message_type: Literal["tool_call_message"] = "tool_call_message"
    tool_call: ToolCall | None = None
    tool_calls: list[ToolCall] | ToolCall | None = None

    @property
    def calls(self) -> list[ToolCall]:
        """All calls of this message, whichever field they came in."""
        return _calls(self.tool_calls, self.tool_call)


class ToolReturnMessage(MessageRecord):
    message_type: Literal["tool_return_message"] = "tool_return_message"
    tool_call_id: str = ""
    tool_return: Any = None
    status: str = "success"
    stdout: list[str] | None = None
    stderr: list[str] | None = None
    tool_returns: list[ToolReturn] | None = None

    @property
    def returns(self) -> list[ToolReturn]:
        """All returns of this message, whichever field they came in."""
        if self.tool_returns:
            return list(self.tool_returns)
        single = {"tool_call_id": self.tool_call_id, "tool_return": self.tool_return, "status": self.status}
        return [ToolReturn(**single, name=self.name)]


class ApprovalRequestMessage(MessageRecord):
    message_type: Literal["approval_request_message"] = "approval_request_message"
    tool_call: ToolCall | None = None
    tool_calls: list[ToolCall] | ToolCall | None = None

    @property
    def calls(self) -> list[ToolCall]:
        return _calls(self.tool_calls, self.tool_call)


class ApprovalResponseMessage(MessageRecord):
    message_type: Literal["approval_response_message"] = "approval_response_message"


class SummaryMessage(MessageRecord):
    message_type: Literal["summary_message"] = "summary_message"
    summary: str = ""


class EventMessage(MessageRecord):
    message_type: Literal["event_message"] = "event_message"
    event_type: str = ""
    event_data: dict[str, Any] = Field(default_factory=dict)


class OtherMessage(MessageRecord):
    """A message of a type that this release does not know; all it holds is kept."""

    message_type: str = "unknown"


_NAMED: tuple[type[MessageRecord], ...] = (
    SystemMessage,
    UserMessage,
    AssistantMessage,
    ReasoningMessage,
    HiddenReasoningMessage,
    ToolCallMessage,
    ToolReturnMessage,
    ApprovalRequestMessage,
    ApprovalResponseMessage,
    SummaryMessage,
    EventMessage,
)
_TYPES = {str(message.model_fields["message_type"].default) for message in _NAMED}


def _tag(value: Any) -> str:
    found = value.get("message_type") if isinstance(value, dict) else getattr(value, "message_type", None)
    return found if found in _TYPES else "other"


Message = Annotated[
    Annotated[SystemMessage, Tag("system_message")]
    | Annotated[UserMessage, Tag("user_message")]
    | Annotated[AssistantMessage, Tag("assistant_message")]
    | Annotated[ReasoningMessage, Tag("reasoning_message")]
    | Annotated[HiddenReasoningMessage, Tag("hidden_reasoning_message")]
    | Annotated[ToolCallMessage, Tag("tool_call_message")]
    | Annotated[ToolReturnMessage, Tag("tool_return_message")]
    | Annotated[ApprovalRequestMessage, Tag("approval_request_message")]
    | Annotated[ApprovalResponseMessage, Tag("approval_response_message")]
    | Annotated[SummaryMessage, Tag("summary_message")]
    | Annotated[EventMessage, Tag("event_message")]
    | Annotated[OtherMessage, Tag("other")],
    Discriminator(_tag),
]

Trajectory = list[list[Message]]

_M = TypeVar("_M", bound=MessageRecord)


def text_of(content: Any) -> str:
    """The text in a message's content: a string, null, or parts of which only those with text count, in order.

    >>> text_of([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}])
    'ab'
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    return "".join(_text_of_part(part) for part in content)


def messages_of(trajectory: Sequence[Sequence[Any]], kind: type[_M]) -> Iterator[tuple[int, _M]]:
    """(turn, message) for every message of one kind, in order. Turns count from 0."""
    for number, turn in enumerate(trajectory):
        for message in turn:
            if isinstance(message, kind):
                yield number, message


def _text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type", "text") if isinstance(part, dict) else getattr(part, "type", "text")
    text = part.get("text") if isinstance(part, dict) else getattr(part, "text", None)
    return text if isinstance(text, str) and kind in ("text", "output_text", "input_text") else ""


def _calls(several: list[ToolCall] | ToolCall | None, single: ToolCall | None) -> list[ToolCall]:
    if isinstance(several, list) and several:
        return several
    if isinstance(several, ToolCall):
        return [several]
    return [single] if single is not None else []
