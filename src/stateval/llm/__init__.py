"""One door to every model: a chat call, a structured answer, retries, and one limit on the calls at each endpoint."""

from __future__ import annotations

from stateval.llm.chat import (
    ChatMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    Generation,
    Provider,
    ToolDefinition,
)
from stateval.llm.opening import DEFAULT_MODEL, open_model
from stateval.llm.retrying import Retries

__all__ = [
    "DEFAULT_MODEL",
    "ChatMessage",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Generation",
    "Provider",
    "Retries",
    "ToolDefinition",
    "open_model",
]
