"""Extractors that look at the tools an agent called and what they gave back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from stateval.extractors.assistant import Config
from stateval.extractors.json_answer import json_value
from stateval.loading.options import Options, read_options
from stateval.records.encoding import json_text
from stateval.records.marks import extractor
from stateval.records.message import (
    ApprovalRequestMessage,
    ToolCall,
    ToolCallMessage,
    ToolReturn,
    ToolReturnMessage,
    Trajectory,
    messages_of,
    text_of,
)


class OneToolOptions(Options):
    """The tool to look at."""

    tool_name: str = Field(description="the name of the tool")


class ToolsOptions(Options):
    """All tools, or one."""

    tool_name: str | None = Field(default=None, description="only calls of this tool")


@extractor
def tool_arguments(trajectory: Trajectory, config: Config) -> str:
    """The arguments of the first call of a tool, exactly as the model wrote them; `{}` where it was not called."""
    tool_name = read_options(OneToolOptions, config, "extractor `tool_arguments`").tool_name
    return next((call.arguments for _, call in _calls(trajectory) if call.name == tool_name), "{}")


@extractor
def tool_output(trajectory: Trajectory, config: Config) -> str:
    """What the first call of a tool gave back; empty where it was not called or nothing came back."""
    tool_name = read_options(OneToolOptions, config, "extractor `tool_output`").tool_name
    call = next((call for _, call in _calls(trajectory) if call.name == tool_name), None)
    if call is None:
        return ""
    for _, returned, name in _returns(trajectory):
        if (returned.tool_call_id == call.tool_call_id) if call.tool_call_id else (name == tool_name):
            return _text_of_return(returned.tool_return)
    return ""


@extractor
def tool_calls(trajectory: Trajectory, config: Config) -> str:
    """All tool calls as a JSON list of `{"name", "arguments", "call_id", "turn"}`; turns count from 0.

    Arguments are their JSON value; where they are not JSON, the text that the model wrote.
    """
    tool_name = read_options(ToolsOptions, config, "extractor `tool_calls`").tool_name
    calls = [
        {"name": call.name, "arguments": _value(call.arguments), "call_id": call.tool_call_id, "turn": turn}
        for turn, call in _calls(trajectory)
        if tool_name is None or call.name == tool_name
    ]
    return json_text(calls)


@extractor
def tool_returns(trajectory: Trajectory, config: Config) -> str:
    """What tools gave back, as a JSON list of `{"name", "content", "status", "call_id", "turn"}`."""
    tool_name = read_options(ToolsOptions, config, "extractor `tool_returns`").tool_name
    returns = [
        {
            "name": name,
            "content": _text_of_return(returned.tool_return),
            "status": returned.status,
            "call_id": returned.tool_call_id,
            "turn": turn,
        }
        for turn, returned, name in _returns(trajectory)
        if tool_name is None or name == tool_name
    ]
    return json_text(returns)


def _calls(trajectory: Trajectory) -> Iterator[tuple[int, ToolCall]]:
    """(turn, call), in order. A call for which approval was asked first counts once."""
    made = {call.tool_call_id for _, message in messages_of(trajectory, ToolCallMessage) for call in message.calls}
    for number, turn in enumerate(trajectory):
        for message in turn:
            if isinstance(message, ToolCallMessage):
                yield from ((number, call) for call in message.calls)
            elif isinstance(message, ApprovalRequestMessage):
                waiting = [call for call in message.calls if not call.tool_call_id or call.tool_call_id not in made]
                made.update(call.tool_call_id for call in waiting)
                yield from ((number, call) for call in waiting)


def _returns(trajectory: Trajectory) -> Iterator[tuple[int, ToolReturn, str]]:
    """(turn, return, name of the tool); the name is that of the call where the return does not say it."""
    names = {call.tool_call_id: call.name for _, call in _calls(trajectory) if call.tool_call_id}
    for turn, message in messages_of(trajectory, ToolReturnMessage):
        for returned in message.returns:
            yield turn, returned, returned.name or names.get(returned.tool_call_id) or message.name or ""


def _value(arguments: str) -> Any:
    try:
        return json_value(arguments)
    except ValueError:
        return arguments


def _text_of_return(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(part, dict) and "type" in part for part in value):
        return text_of(value)
    return json_text(value)
