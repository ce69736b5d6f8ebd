"""Messages in OpenAI's chat form, and whatever else an agent may answer, as messages of a trajectory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from stateval.records.encoding import json_text
from stateval.records.message import (
    AssistantMessage,
    Message,
    MessageRecord,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolCallMessage,
    ToolReturnMessage,
    UserMessage,
)

_message: TypeAdapter[MessageRecord] = TypeAdapter(Message)


def messages_from_reply(reply: Any, *, first_number: int = 0, date: datetime | None = None) -> list[MessageRecord]:
    """The messages that an agent's reply stands for.

    A string is one assistant message. Records are taken as they are; dicts with a `role` are read as OpenAI chat
    messages, dicts with a `message_type` as Letta's; a list may mix these. Any other value is one assistant message
    that holds its JSON text. Messages without an id get `message-<number>`, counted from `first_number`, so that
    equal conversations have equal ids.

    Raises ValueError where there is no reply (None) or a message has the wrong shape.
    """
    if reply is None:
        raise ValueError("the agent returned None; return a string, a message or a list of messages (empty: silence)")
    named: list[MessageRecord] = []
    for message in _messages(reply):
        missing = {"id": message.id or f"message-{first_number + len(named)}", "date": message.date or date}
        named.append(message.model_copy(update=missing))
    return named


def _messages(reply: Any) -> Iterator[MessageRecord]:
    if isinstance(reply, str):
        yield AssistantMessage(content=reply)
    elif isinstance(reply, MessageRecord):
        yield reply
    elif isinstance(reply, list | tuple) and all(_is_message(item) for item in reply):
        for item in reply:
            yield from _messages(item)
    elif _is_message(reply):
        yield from _from_mapping(_mapping(reply))
    else:
        yield AssistantMessage(content=json_text(reply))


def _is_message(value: Any) -> bool:
    if isinstance(value, MessageRecord):
        return True
    mapping = _mapping(value)
    return bool(mapping) and ("role" in mapping or "message_type" in mapping)


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) and not isinstance(value, type) else {}


def _from_mapping(message: Mapping[str, Any]) -> Iterator[MessageRecord]:
    if "message_type" in message:
        try:
            yield _message.validate_python(dict(message))
        except ValidationError as error:
            raise ValueError(f"a message of type {message['message_type']!r} has the wrong shape: {error}") from error
        return
    match message["role"]:
        case "assistant":
            yield from _from_assistant(message)
        case "tool" | "function":
            yield ToolReturnMessage(
                tool_call_id=str(message.get("tool_call_id") or ""),
                tool_return=_content(message.get("content")) or "",
                status="error" if message.get("is_error") or message.get("status") == "error" else "success",
                name=message.get("name"),
            )
        case "user":
            yield UserMessage(content=_content(message.get("content")))
        case "system" | "developer":
            yield SystemMessage(content=_content(message.get("content")))
        case role:
            raise ValueError(f"unknown role {role!r}; a message's role is assistant, tool, user or system")


def _from_assistant(message: Mapping[str, Any]) -> Iterator[MessageRecord]:
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str) and reasoning:
        yield ReasoningMessage(reasoning=reasoning)
    calls = [_call(call) for call in message.get("tool_calls") or ()]
    if not calls and message.get("function_call"):
        calls = [_call({"function": message["function_call"]})]
    content = _content(message.get("content"))
    if content or not calls:
        yield AssistantMessage(content=content)
    if calls:
        yield ToolCallMessage(tool_call=calls[0], tool_calls=calls)


def _call(call: Any) -> ToolCall:
    fields = _mapping(call)
    function = _mapping(fields.get("function") or fields)
    if not isinstance(function.get("name"), str):
        raise ValueError(f"a tool call has no name: {json_text(dict(fields))}")
    arguments = function.get("arguments")
    return ToolCall(
        name=function["name"],
        arguments="{}" if arguments is None else json_text(arguments),
        tool_call_id=str(fields.get("id") or fields.get("tool_call_id") or ""),
    )


def _content(content: Any) -> str | list[Any] | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray):
        return [part if isinstance(part, str) else dict(_mapping(part)) or json_text(part) for part in content]
    return json_text(content)
