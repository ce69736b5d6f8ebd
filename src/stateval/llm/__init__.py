"""One door to every model: a chat call, a structured answer, retries, and one limit on the calls at each endpoint."""

from __future__ import annotations

from stateval.llm.chat import (
    ChatMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    EmbeddingModel,
    Generation,
    Provider,
    ToolDefinition,
)
from stateval.llm.opening import DEFAULT_EMBEDDING_MODEL, DEFAULT_MODEL, open_embedding_model, open_model
from stateval.llm.retrying import Retries
from stateval.llm.schema import InvalidAnswer

__all__ = [
    "DEFAULT_EMBEDDING_MODEL",
    "DEFAULT_MODEL",
    "ChatMessage",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "EmbeddingModel",
    "Generation",
    "InvalidAnswer",
    "Provider",
    "Retries",
    "ToolDefinition",
    "open_embedding_model",
    "open_model",
]
