"""How the scripted model server reads requests of, and answers in, the APIs of Anthropic and Google."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.model_server import Reply, Request


def messages_in(path: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conversation of a request, as OpenAI's API writes it."""
    if _is_google(path):
        roles = {"model": "assistant"}
        return [
            {"role": roles.get(c["role"], c["role"]), "content": _joined(c["parts"])} for c in body.get("contents", ())
        ]
    messages = [dict(m) for m in body.get("messages", ())]
    for m in messages:
        if isinstance(m.get("content"), list) and path == "/v1/messages":
            m["content"] = "".join(str(b.get("text") or b.get("content") or "") for b in m["content"])
    return messages


def system_in(path: str, body: Mapping[str, Any]) -> str:
    """The system messages of a request, joined."""
    if _is_google(path):
        return _joined((body.get("systemInstruction") or {}).get("parts", ()))
    if path == "/v1/messages":
        return "\n".join(block["text"] for block in body.get("system", ()))
    return "\n".join(str(m.get("content")) for m in messages_in(path, body) if m["role"] == "system")


def schema_in(path: str, body: Mapping[str, Any]) -> Any:
    """The JSON schema that the answer should follow, or None."""
    if _is_google(path):
        return (body.get("generationConfig") or {}).get("responseJsonSchema")
    if path == "/v1/messages":
        if (body.get("tool_choice") or {}).get("type") == "tool":
            return body["tools"][0]["input_schema"]
        return ((body.get("output_config") or {}).get("format") or {}).get("schema")
    return (body.get("response_format") or {}).get("json_schema", {}).get("schema")


def message(request: Request, reply: Reply) -> dict[str, Any]:
    """An answer of Anthropic's API."""
    content: list[dict[str, Any]] = []
    if reply.reasoning:
        content.append({"type": "thinking", "thinking": reply.reasoning, "signature": ""})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for number, (name, given) in enumerate(reply.tool_calls):
        given = json.loads(given) if isinstance(given, str) else given
        content.append({"type": "tool_use", "id": f"toolu_{request.number}_{number}", "name": name, "input": given})
    reason = "refusal" if reply.refusal else "tool_use" if reply.tool_calls else "end_turn"
    return {
        "id": f"msg_{request.number}",
        "type": "message",
        "role": "assistant",
        "model": reply.model or request.body.get("model"),
        "content": content,
        "stop_reason": reply.finish_reason or reason,
        "stop_sequence": None,
        "stop_details": {"type": "refusal", "category": None, "explanation": reply.refusal} if reply.refusal else None,
        "usage": reply.usage or {"input_tokens": _words_of(request), "output_tokens": len(reply.text.split())},
    }


def candidates(request: Request, reply: Reply) -> dict[str, Any]:
    """An answer of Google's API."""
    parts: list[dict[str, Any]] = [{"text": reply.reasoning, "thought": True}] if reply.reasoning else []
    if reply.text:
        parts.append({"text": reply.text})
    reason = reply.finish_reason or ("SAFETY" if reply.refusal else "STOP")
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}
    if reply.refusal:
        candidate["finishMessage"] = reply.refusal
    prompt, answer = _words_of(request), len(reply.text.split())
    counted = {"promptTokenCount": prompt, "candidatesTokenCount": answer, "totalTokenCount": prompt + answer}
    name = request.path.rpartition("/")[2].partition(":")[0]
    return {"candidates": [candidate], "usageMetadata": reply.usage or counted, "modelVersion": reply.model or name}


def embeddings_of_google(body: Mapping[str, Any], embedding: Callable[[str], list[float]]) -> dict[str, Any]:
    """Vectors as Google's API gives them."""
    texts = [_joined(asked["content"]["parts"]) for asked in body["requests"]]
    return {"embeddings": [{"values": embedding(text)} for text in texts]}


def _is_google(path: str) -> bool:
    return "/models/" in path


def _joined(parts: Any) -> str:
    return "".join(str(part.get("text") or "") for part in parts)


def _words_of(request: Request) -> int:
    return sum(len(str(m.get("content") or "").split()) for m in request.messages) + len(request.system.split())
