"""Requests and answers in the form of Google's SDK."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stateval.errors import TransientModelError
from stateval.llm.chat import ChatReply, ChatRequest, Schema
from stateval.llm.openai_wire import asking_for_json
from stateval.records.usage import Usage

if TYPE_CHECKING:
    from google.genai.types import Content, EmbedContentResponse, GenerateContentConfig, GenerateContentResponse

_FINISH_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
_REFUSALS = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "LANGUAGE"})


def parameters_of(request: ChatRequest, schema: Schema | None, refused: Set[str]) -> dict[str, Any]:
    """The request, the settings of the SDK without those that the model refuses, and these once more by our names."""
    if schema is not None and "response_json_schema" in refused:
        request, schema = asking_for_json(request, schema), None
    settings = request.generation.model_dump(exclude_none=True)
    sent = {key: value for key, value in settings.items() if key not in refused}
    if schema is not None:
        sent["response_json_schema"] = dict(schema)
    return sent | {"request": request, "config": _config(request, sent)}


def contents_of(request: ChatRequest) -> list[Content]:
    """The conversation without system messages."""
    from google.genai.types import Content, Part

    return [
        Content(role="model" if m.role == "assistant" else "user", parts=[Part(text=m.content)])
        for m in request.messages
        if m.role != "system"
    ]


def reply_of(answer: GenerateContentResponse, model: str) -> ChatReply:
    """The reply in an answer. Raises TransientModelError where it holds neither text nor a reason for that."""
    usage, ran = _usage(answer), answer.model_version or model
    blocked = answer.prompt_feedback.block_reason if answer.prompt_feedback else None
    if blocked is not None:
        told = (answer.prompt_feedback and answer.prompt_feedback.block_reason_message) or ""
        return ChatReply(
            "", ran, usage=usage, finish_reason="content_filter", refusal=told or _held_back(blocked.value)
        )
    if not answer.candidates:
        raise TransientModelError(f"model `{model}` answered without a candidate")
    candidate = answer.candidates[0]
    reason = candidate.finish_reason.value if candidate.finish_reason else "STOP"
    parts = (candidate.content.parts if candidate.content else None) or []
    reply = ChatReply(
        text="".join(part.text or "" for part in parts if not part.thought),
        model=ran,
        usage=usage,
        finish_reason=_FINISH_REASONS.get(reason, reason.lower()),
        reasoning="".join(part.text or "" for part in parts if part.thought),
    )
    if reason in _REFUSALS:
        told = candidate.finish_message or _held_back(reason)
        return replace(reply, text="", finish_reason="content_filter", refusal=told)
    return reply


def vector_of(answer: EmbedContentResponse, model: str) -> list[float]:
    """The one vector in an answer. Raises TransientModelError where there is another number of them."""
    vectors = [list(embedding.values or ()) for embedding in answer.embeddings or ()]
    if len(vectors) != 1:
        raise TransientModelError(f"model `{model}` answered with {len(vectors)} embeddings for one text")
    return vectors[0]


def retry_delay(details: Any) -> float | None:
    """The seconds that a `google.rpc.RetryInfo` in the body of an error asks to wait."""
    error = details.get("error", details) if isinstance(details, Mapping) else {}
    told = error.get("details") if isinstance(error, Mapping) else None
    for part in told if isinstance(told, list) else ():
        delay = part.get("retryDelay") if isinstance(part, Mapping) else None
        if isinstance(delay, str) and re.fullmatch(r"\d+(\.\d+)?s", delay):
            return float(delay[:-1])
    return None


def _config(request: ChatRequest, sent: Mapping[str, Any]) -> GenerateContentConfig:
    from google.genai.types import GenerateContentConfig

    system = [m.content for m in request.messages if m.role == "system"]
    schema = sent.get("response_json_schema")
    return GenerateContentConfig(
        system_instruction="\n\n".join(system) or None,
        temperature=sent.get("temperature"),
        max_output_tokens=sent.get("max_tokens"),
        seed=sent.get("seed"),
        response_mime_type=None if schema is None else "application/json",
        response_json_schema=schema,
    )


def _held_back(reason: str) -> str:
    return f"the endpoint held the answer back ({reason})"


def _usage(answer: GenerateContentResponse) -> Usage:
    """The API counts thoughts beside the answer; the records count them among it."""
    counted = answer.usage_metadata
    if counted is None:
        return Usage()
    thoughts = counted.thoughts_token_count or 0
    return Usage(
        prompt_tokens=counted.prompt_token_count or 0,
        completion_tokens=(counted.candidates_token_count or 0) + thoughts,
        cached_input_tokens=counted.cached_content_token_count or 0,
        reasoning_tokens=thoughts,
    )
