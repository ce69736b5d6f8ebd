"""Requests and answers in the form of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from stateval.errors import TransientModelError
from stateval.llm.chat import ChatMessage, ChatReply, ChatRequest, Schema
from stateval.llm.openai_wire import asking_for_json
from stateval.records.encoding import dump_json, json_text, load_json
from stateval.records.message import ToolCall
from stateval.records.usage import Usage

_LONGEST_ANSWER = 8192  # the API wants a bound in every request
_ANSWER = "answer"
_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
_NOT_IN_SCHEMAS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "maxItems")


def body_of(model: str, request: ChatRequest, schema: Schema | None, refused: Set[str]) -> dict[str, Any]:
    """The body of a request, without the parameters that the model refuses."""
    if schema is not None and {"output_config", "tool_choice"} <= refused:
        request, schema = asking_for_json(request, schema), None
    body: dict[str, Any] = {"model": model, "max_tokens": request.generation.max_tokens or _LONGEST_ANSWER}
    system = [{"type": "text", "text": m.content} for m in request.messages if m.role == "system" and m.content]
    if system:
        body["system"] = system
    body["messages"] = _messages(request)
    if request.generation.temperature is not None and "temperature" not in refused:
        body["temperature"] = request.generation.temperature
    if request.tools and "tools" not in refused:
        body["tools"] = [
            {"name": t.name, "description": t.description, "input_schema": dict(t.parameters)} for t in request.tools
        ]
        body["tool_choice"] = {"type": "auto" if request.may_call_tools else "none"}
    if schema is not None:
        body |= _structured(schema, refused)
    return body


def reply_of(content: bytes, model: str) -> ChatReply:
    """The reply in the body of a response with status 200. Raises TransientModelError for any other body."""
    try:
        body = load_json(content)
        blocks = [block for block in body["content"] if isinstance(block, Mapping)]
        reason = str(body.get("stop_reason") or "end_turn")
        text, calls = _text(blocks), tuple(_tool_calls(blocks))
        forced = next((b for b in blocks if b.get("type") == "tool_use" and b.get("name") == _ANSWER), None)
        if forced is not None:
            text, calls = json_text(forced["input"]), ()
            reason = "end_turn" if reason == "tool_use" else reason
        refusal = _refusal(body, text) if reason == "refusal" else ""
        return ChatReply(
            text="" if refusal else text,
            model=str(body.get("model") or model),
            tool_calls=calls,
            usage=_usage(body.get("usage") or {}),
            finish_reason=_FINISH_REASONS.get(reason, reason),
            reasoning="".join(str(b.get("thinking") or "") for b in blocks if b.get("type") == "thinking"),
            refusal=refusal,
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        told = content[:200].decode("utf-8", "replace")
        raise TransientModelError(f"model `{model}` answered with something that is no message: {told!r}") from error


def _messages(request: ChatRequest) -> list[dict[str, Any]]:
    """The conversation without system messages; results of tools that follow each other are one user message."""
    messages: list[dict[str, Any]] = []
    for message in request.messages:
        if message.role == "system":
            continue
        role, blocks = ("assistant" if message.role == "assistant" else "user"), list(_blocks(message))
        if message.role == "tool" and messages and messages[-1]["role"] == "user":
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})
    return messages


def _blocks(message: ChatMessage) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}
        return
    if message.content:
        yield {"type": "text", "text": message.content}
    for call in message.tool_calls:
        yield {"type": "tool_use", "id": call.tool_call_id, "name": call.name, "input": _arguments(call.arguments)}


def _arguments(text: str) -> dict[str, Any]:
    try:
        given = load_json(text)
    except ValueError:
        given = None
    return given if isinstance(given, dict) else {"arguments": text}


def _structured(schema: Schema, refused: Set[str]) -> dict[str, Any]:
    if "output_config" not in refused:
        return {"output_config": {"format": {"type": "json_schema", "schema": _plain_schema(dict(schema))}}}
    tool = {"name": _ANSWER, "description": "Gives the answer.", "input_schema": dict(schema)}
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": _ANSWER}}


def _plain_schema(schema: Any) -> Any:
    """The schema as the API takes it: objects closed, and bounds in the description; they are checked here anyway."""
    if isinstance(schema, list):
        return [_plain_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain = {
        key: {name: _plain_schema(part) for name, part in value.items()}
        if key in ("properties", "$defs")
        else _plain_schema(value)
        for key, value in schema.items()
        if key not in _NOT_IN_SCHEMAS
    }
    bounds = {key: schema[key] for key in _NOT_IN_SCHEMAS if key in schema}
    if bounds:
        told = dump_json(bounds).decode("utf-8")
        plain["description"] = f"{schema['description']} {told}" if "description" in schema else told
    if schema.get("type") == "object":
        plain.setdefault("additionalProperties", False)
    return plain


def _text(blocks: list[Mapping[str, Any]]) -> str:
    return "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")


def _tool_calls(blocks: list[Mapping[str, Any]]) -> Iterator[ToolCall]:
    for block in blocks:
        if block.get("type") == "tool_use":
            yield ToolCall(
                name=block["name"],
                arguments=json_text(block.get("input") or {}),
                tool_call_id=str(block.get("id") or ""),
            )


def _refusal(body: Mapping[str, Any], text: str) -> str:
    details = body.get("stop_details") or {}
    return text or str(details.get("explanation") or "") or "the model declined to answer"


def _usage(usage: Mapping[str, Any]) -> Usage:
    """The API counts tokens of the cache beside the others; the records count them among the others."""
    read, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    details = usage.get("output_tokens_details") or {}
    return Usage(
        prompt_tokens=(usage.get("input_tokens") or 0) + read + written,
        completion_tokens=usage.get("output_tokens") or 0,
        cached_input_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=details.get("thinking_tokens") or 0,
    )
