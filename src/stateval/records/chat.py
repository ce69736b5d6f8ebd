"""Messages in OpenAI's chat form, and whatever else an agent may answer, as messages of a trajectory."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from pydantic import TypeAdapter, ValidationError

from stateval.records.encoding import json_text, plain
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
    messages, dicts with a `message_type` as Letta's; a list may mix these. Any other value that has a meaning in JSON
    is one assistant message that holds its JSON text. Messages without an id get `message-<number>`, counted from
    `first_number`, so that equal conversations have equal ids.

    Raises ValueError where there is no reply (None), a message has the wrong shape, or something in it is neither data
    nor text (a generator, a coroutine, a function, an object of the agent's).
    """
    if reply is None:
        raise ValueError("the agent returned None; return a string, a message or a list of messages (empty: silence)")
    named: list[MessageRecord] = []
    for message in _messages(reply):
        missing: dict[str, Any] = {
            "id": message.id or f"message-{first_number + len(named)}",
            "date": message.date or date,
        }
        named.append(message.model_copy(update=missing | _checked_parts(message)))
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
        yield AssistantMessage(content=json_text(reply, unknown=_refuse))


def _checked_parts(message: MessageRecord) -> dict[str, Any]:
    """The fields that may hold anything, as JSON has them."""
    found = ((name, getattr(message, name, None)) for name in ("content", "tool_return"))
    return {
        name: plain(value, unknown=_refuse) for name, value in found if value is not None and not isinstance(value, str)
    }


def _refuse(value: Any) -> NoReturn:
    """Raises ValueError: the text of such a value is an address in memory, which must not be graded as an answer."""
    kind = type(value).__name__
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        named = "a generator" if inspect.isgenerator(value) else "an async generator"
        raise ValueError(f"the agent returned {named}; join the pieces into a string and return that")
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise ValueError(f"the agent returned a {kind} that nobody waited for; `await` it and return what it gives")
    if inspect.isroutine(value) or isinstance(value, type):
        raise ValueError(
            f"the agent returned `{getattr(value, '__name__', kind)}` itself; call it and return the result"
        )
    raise ValueError(
        f"the agent returned an object of the type `{kind}`, which is neither text nor data; "
        "return a string, a message or a list of messages"
    )


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
        raise ValueError(f"a tool call has no name: {json_text(dict(fields), unknown=_refuse)}")
    arguments = function.get("arguments")
    return ToolCall(
        name=function["name"],
        arguments="{}" if arguments is None else json_text(arguments, unknown=_refuse),
        tool_call_id=str(fields.get("id") or fields.get("tool_call_id") or ""),
    )


def _content(content: Any) -> str | list[Any] | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray):
        return [
            part if isinstance(part, str) else dict(_mapping(part)) or json_text(part, unknown=_refuse)
            for part in content
        ]
    return json_text(content, unknown=_refuse)
