"""Requests and answers in the form of OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from stateval.errors import PermanentModelError, TransientModelError
from stateval.llm.chat import ChatMessage, ChatReply, ChatRequest, Schema
from stateval.records.encoding import dump_json, json_text, load_json
from stateval.records.message import ToolCall, text_of
from stateval.records.usage import Usage


def parameters_of(model: str, request: ChatRequest, schema: Schema | None, refused: Set[str]) -> dict[str, Any]:
    """The body of a request, without the parameters that the endpoint refuses."""
    if schema is not None and "response_format" in refused:
        request = asking_for_json(request, schema)
    parameters: dict[str, Any] = {"model": model, "messages": [message_body(m) for m in request.messages]}
    settings = request.generation.model_dump(exclude_none=True)
    if "max_tokens" in settings and "max_tokens" in refused:
        settings["max_completion_tokens"] = settings["max_tokens"]
    parameters |= settings
    if request.tools:
        parameters["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in request.tools
        ]
        parameters["tool_choice"] = "auto" if request.may_call_tools else "none"
    if schema is not None:
        parameters["response_format"] = response_format(schema)
    left_out = {*refused, "tool_choice"} if "tools" in refused else refused
    return {key: value for key, value in parameters.items() if key not in left_out}


def message_body(message: ChatMessage) -> dict[str, Any]:
    """One message in the wire's form."""
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        body["content"] = message.content or None
        body["tool_calls"] = [
            {"id": c.tool_call_id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.tool_calls
        ]
    if message.tool_call_id is not None:
        body["tool_call_id"] = message.tool_call_id
    return body


def response_format(schema: Schema) -> dict[str, Any]:
    """The request for JSON that follows a schema; `strict` where the schema is one that strict mode accepts."""
    described = {"name": "answer", "schema": dict(schema), "strict": _is_strict(schema)}
    return {"type": "json_schema", "json_schema": described}


def reply_of(content: bytes, model: str) -> ChatReply:
    """The reply in the body of a response with status 200.

    Raises TransientModelError for a body that is no chat completion (cut off, a proxy's page, an error inside).
    """
    try:
        body = load_json(content)
        choice = body["choices"][0]
        message = choice["message"]
        finish_reason = str(choice.get("finish_reason") or "stop")
        refusal = _refusal(message, finish_reason)
        return ChatReply(
            text="" if refusal else text_of(message.get("content")),
            model=str(body.get("model") or model),
            tool_calls=tuple(_tool_call(call) for call in message.get("tool_calls") or ()),
            usage=usage_of(body.get("usage") or {}),
            finish_reason=finish_reason,
            reasoning=str(message.get("reasoning_content") or message.get("reasoning") or ""),
            refusal=refusal,
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _no_completion(content, model) from error


def vectors_of(content: bytes, model: str, texts: int) -> tuple[list[list[float]], Usage]:
    """The vectors of so many texts, in the order of these. Raises TransientModelError where the body holds others."""
    try:
        body = load_json(content)
        rows = sorted(body["data"], key=lambda row: row.get("index") or 0)
        vectors = [[float(number) for number in row["embedding"]] for row in rows]
        usage = usage_of(body.get("usage") or {})
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _no_completion(content, model, "list of embeddings") from error
    if len(vectors) != texts:
        raise TransientModelError(f"model `{model}` answered with {len(vectors)} embeddings for {texts} texts")
    return vectors, usage


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Token counts as records; the cost is unknown."""
    prompt = usage.get("prompt_tokens_details") or {}
    completion = usage.get("completion_tokens_details") or {}
    return Usage(
        prompt_tokens=usage.get("prompt_tokens") or 0,
        completion_tokens=usage.get("completion_tokens") or 0,
        cached_input_tokens=prompt.get("cached_tokens") or 0,
        reasoning_tokens=completion.get("reasoning_tokens") or 0,
    )


def asking_for_json(request: ChatRequest, schema: Schema) -> ChatRequest:
    """The request with the schema in words, for models that are given it in no other way."""
    text = dump_json(dict(schema)).decode("utf-8")
    ask = f"Answer with one JSON object and nothing else. It must follow this JSON schema:\n{text}"
    return replace(request, messages=(*request.messages, ChatMessage("user", ask)))


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    arguments = function.get("arguments")
    return ToolCall(
        name=function["name"],
        arguments="{}" if arguments is None else json_text(arguments),
        tool_call_id=str(call.get("id") or ""),
    )


def _refusal(message: Mapping[str, Any], finish_reason: str) -> str:
    if finish_reason == "content_filter":
        return str(message.get("refusal") or "the endpoint's content filter held the answer back")
    return str(message.get("refusal") or "")


def _no_completion(
    content: bytes, model: str, wanted: str = "chat completion"
) -> PermanentModelError | TransientModelError:
    try:
        error = load_json(content)["error"]
        told, code = str(error.get("message") or error), error.get("code")
    except (ValueError, LookupError, TypeError, AttributeError):
        told, code = content[:200].decode("utf-8", "replace"), None
    if isinstance(code, int) and 400 <= code < 500 and code not in (408, 409, 429):
        return PermanentModelError(f"model `{model}` answered with an error: {told}")
    return TransientModelError(f"model `{model}` answered with something that is no {wanted}: {told!r}")


def _is_strict(schema: Any) -> bool:
    """Strict mode wants every object closed and every property required."""
    if isinstance(schema, list):
        return all(_is_strict(item) for item in schema)
    if not isinstance(schema, Mapping):
        return True
    if "properties" in schema and (
        schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(schema["properties"])
    ):
        return False
    return all(_is_strict(value) for value in schema.values())
