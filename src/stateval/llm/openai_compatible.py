"""Provider for every endpoint that speaks OpenAI's chat completions: OpenAI itself, vLLM, llama.cpp, Ollama, ...

The SDK carries the request and nothing else: its own retries are off, and bodies are written and answers read here,
since endpoints differ in what they leave out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stateval.llm.chat import ChatReply, ChatRequest, Schema
from stateval.llm.connections import Connections, within
from stateval.llm.endpoint import Endpoint, Service
from stateval.llm.openai_wire import parameters_of, reply_of, vectors_of
from stateval.llm.provider_errors import sdk_error
from stateval.llm.refusals import refused_at, without_refused
from stateval.records.usage import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI = Service(
    "https://api.openai.com/v1",
    "OPENAI_BASE_URL",
    ("OPENAI_API_KEY",),
    "name another OpenAI-compatible endpoint with `OPENAI_BASE_URL` or `base_url`",
)
_NO_KEY = "no-key-needed"


class OpenAICompatible:
    """One model at one endpoint, for chat and for embeddings.

    Args:
        model: the model's name at the endpoint.
        name: how the user calls it.
        endpoint: where it is.
    """

    def __init__(self, model: str, name: str, endpoint: Endpoint) -> None:
        self.name = name
        self.model = model
        self.endpoint = self.api_url = endpoint.base_url
        self.fingerprint = {"provider": "openai_compatible", "model": model, "endpoint": endpoint.base_url}
        self._place = endpoint
        self._has_answered = False
        self._connections: Connections[AsyncOpenAI] = Connections(self._connect, lambda client: client.close())

    @property
    def native_tools(self) -> bool:
        """True until the endpoint has refused `tools`."""
        return "tools" not in refused_at(self.endpoint, self.model)

    async def complete(self, request: ChatRequest, schema: Schema | None) -> ChatReply:
        """One try, repeated only to leave out a parameter that the endpoint has just refused."""

        async def send(body: Mapping[str, Any]) -> ChatReply:
            return reply_of(await self._post("/chat/completions", body, request.timeout), self.name)

        return await without_refused(
            self.endpoint, self.model, lambda refused: parameters_of(self.model, request, schema, refused), send
        )

    async def embed(self, texts: Sequence[str], timeout: float) -> tuple[list[list[float]], Usage]:
        """The vectors of texts: one try."""
        body = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        return vectors_of(await self._post("/embeddings", body, timeout), self.name, len(texts))

    async def close(self) -> None:
        """Closes the connections of the running event loop."""
        await self._connections.close()

    async def _post(self, path: str, body: Mapping[str, Any], timeout: float) -> bytes:
        import openai

        try:
            with self._connections.client() as client, within(timeout, self.name, self._place):
                content = await client.post(path, body=body, cast_to=bytes, options={"timeout": timeout})
        except openai.OpenAIError as error:
            raise sdk_error(error, openai, self.name, self._place, has_answered=self._has_answered) from error
        self._has_answered = True
        return content

    def _connect(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        return AsyncOpenAI(base_url=self.endpoint, api_key=self._place.api_key or _NO_KEY, max_retries=0)
