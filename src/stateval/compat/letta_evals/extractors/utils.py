"""What extractors of users look for in a trajectory, whichever classes its messages are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stateval.records.message import text_of

__all__ = [
    "flatten_content",
    "get_assistant_messages",
    "get_last_turn_messages",
    "get_messages_by_type",
    "get_tool_calls",
]

Turns = Sequence[Sequence[Any]]


def flatten_content(content: Any) -> str:
    """The text in a message's content: a string, null, or parts of which those with text count."""
    return text_of(content)


def get_assistant_messages(trajectory: Turns) -> list[Any]:
    """What the agent said to the user, in order."""
    return [message for turn in trajectory for message in turn if _type_of(message) == "assistant_message"]


def get_messages_by_type(trajectory: Turns, message_type: Any) -> list[Any]:
    """All messages of a class, or of a type by its name (`"tool_call_message"`)."""
    return [message for turn in trajectory for message in turn if _is_of(message, message_type)]


def get_last_turn_messages(trajectory: Turns, message_type: Any = "assistant_message") -> list[Any]:
    """The messages of a class or type in the last turn; the agent's own unless said otherwise."""
    return [message for message in trajectory[-1] if _is_of(message, message_type)] if trajectory else []


def get_tool_calls(trajectory: Turns) -> list[tuple[Any, Any]]:
    """(call, return) for every message with a call of a tool that something was returned for in the same turn.

    It is the return of that call or, where no return names it, the next one.
    """
    pairs = []
    for turn in trajectory:
        for place, message in enumerate(turn):
            if _type_of(message) == "tool_call_message":
                later = [item for item in turn[place + 1 :] if _type_of(item) == "tool_return_message"]
                own = [item for item in later if item.tool_call_id == _id_of(message)]
                pairs += [(message, item) for item in (own or later)[:1]]
    return pairs


def _is_of(message: Any, wanted: Any) -> bool:
    return _type_of(message) == wanted if isinstance(wanted, str) else isinstance(message, wanted)


def _type_of(message: Any) -> str:
    return str(getattr(message, "message_type", ""))


def _id_of(message: Any) -> str | None:
    call = message.tool_call
    if call is None and message.tool_calls:
        call = message.tool_calls[0] if isinstance(message.tool_calls, list) else message.tool_calls
    return getattr(call, "tool_call_id", None)
