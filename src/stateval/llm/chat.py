"""What is said to a model and what comes back, the same for every provider.

`Provider` is what a newcomer writes to add one: it makes a single try and says whether trying again may help.
`ChatModel` is what everybody else calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from stateval.records.message import ToolCall
from stateval.records.usage import Usage

Role = Literal["system", "user", "assistant", "tool"]
Schema = Mapping[str, Any]
"""A JSON Schema; `stateval.llm.schema` says which words of it are understood."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation with a model; `tool_call_id` belongs to the role `tool`."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that a model may call; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Schema


class Generation(BaseModel):
    """How a model writes. `max_tokens` None leaves the bound to the provider; `temperature` None to the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float | None = Field(default=0.0, ge=0, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call.

    `timeout` is in seconds for one try. With `may_call_tools` False tools are shown but not called. `fixed` says how
    many of the first messages are the same in many calls, so that a provider may keep what it made of them.
    """

    messages: tuple[ChatMessage, ...]
    generation: Generation = field(default_factory=Generation)
    tools: tuple[ToolDefinition, ...] = ()
    may_call_tools: bool = True
    timeout: float = 300.0
    fixed: int = 0


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What a model answered. `finish_reason` is `length` where it was cut off; `model` is the one that ran.

    `refusal` is what the model said where it declined to answer; `text` is empty then.
    """

    text: str
    model: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = "stop"
    reasoning: str = ""
    refusal: str = ""

    @property
    def is_cut_off(self) -> bool:
        """Whether the answer ended because it became too long."""
        return self.finish_reason == "length"


class Provider(Protocol):
    """One way to reach models. It makes one try: retries, limits and the checking of answers are not its business."""

    @property
    def name(self) -> str:
        """How users call the model, for instance `embedded/smollm2-135m`."""

    @property
    def model(self) -> str:
        """The model's name at its endpoint."""

    @property
    def endpoint(self) -> str:
        """What shares one limit on calls in flight."""

    @property
    def native_tools(self) -> bool:
        """Whether `tools` of a request are understood. May turn False when the endpoint refuses them."""

    @property
    def fingerprint(self) -> Any:
        """What the model's answers depend on apart from the request: provider, model, endpoint, file hash."""

    @property
    def api_url(self) -> str | None:
        """Where the provider's prices are known by; None where a price would be a guess (an endpoint of one's own)."""

    async def complete(self, request: ChatRequest, schema: Schema | None) -> ChatReply:
        """One try; with a `schema` the text ought to be JSON that follows it.

        Raises TransientModelError, PermanentModelError or ModelUnavailable.
        """

    async def close(self) -> None:
        """Gives back connections."""


class ChatModel(Protocol):
    """A model that can be asked, with retries and within its endpoint's limit."""

    @property
    def name(self) -> str: ...

    @property
    def native_tools(self) -> bool: ...

    @property
    def fingerprint(self) -> Any: ...

    @property
    def has_price(self) -> bool:
        """Whether the cost of its calls is known."""

    async def chat(self, request: ChatRequest) -> ChatReply:
        """The model's answer. Raises TransientModelError (tries used up), PermanentModelError, ModelUnavailable."""

    async def structured(
        self, request: ChatRequest, schema: Schema, *, accept: Callable[[Any], Any] | None = None
    ) -> tuple[Any, ChatReply]:
        """The one valid value in the answer, and the last reply with the usage of all of them.

        Valid is what follows the schema; with `accept` what that takes: it is called with each JSON value in the text
        and returns what the value means, or raises InvalidAnswer. An answer without a valid value, or with several that
        differ, one that was cut off, refused or is empty is asked for again, a bounded number of times. Raises what
        `chat` raises; PermanentModelError where no valid answer came.
        """

    async def close(self) -> None:
        """Gives back connections."""


class EmbeddingModel(Protocol):
    """A model that makes vectors of texts, with retries and within its endpoint's limit."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> Any: ...

    @property
    def has_price(self) -> bool: ...

    async def embed(self, texts: Sequence[str]) -> tuple[list[list[float]], Usage]:
        """One vector a text, all of one length. Raises what `ChatModel.chat` raises."""

    async def close(self) -> None:
        """Gives back connections."""
