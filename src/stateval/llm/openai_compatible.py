"""Provider for every endpoint that speaks OpenAI's chat completions: OpenAI itself, vLLM, llama.cpp, Ollama, ...

The SDK carries the request and nothing else: its own retries are off, and answers are read here, since endpoints
differ in what they leave out. What an endpoint turns out to refuse (`temperature`, `seed`, `response_format`, ...) is
learnt once per model and left out from then on.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from anyio.lowlevel import current_token

from stateval.errors import MissingKey, ModelError, UsageError
from stateval.llm.chat import ChatReply, ChatRequest, Schema
from stateval.llm.openai_errors import model_error, refused_parameter
from stateval.llm.openai_wire import parameters_of, reply_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

logger = logging.getLogger(__name__)

_DEFAULT = "https://api.openai.com/v1"
_NO_KEY = "no-key-needed"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go. The key is kept out of `repr`."""

    base_url: str
    is_default: bool
    api_key: str | None = field(default=None, repr=False)

    def require_key(self, model: str) -> None:
        """Raises MissingKey where OpenAI's own endpoint would be called without one."""
        if self.is_default and not self.api_key:
            advice = "name another OpenAI-compatible endpoint with `OPENAI_BASE_URL` or `base_url`"
            raise MissingKey(model, "OPENAI_API_KEY", advice)


def endpoint_of(base_url: str | None, api_key: str | None) -> Endpoint:
    """The endpoint by argument, else by `OPENAI_BASE_URL` and `OPENAI_API_KEY`, else OpenAI's. Raises UsageError."""
    url = (base_url or os.environ.get("OPENAI_BASE_URL") or _DEFAULT).rstrip("/")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise UsageError(f"`base_url` is {url!r}; it must look like `http://127.0.0.1:8000/v1`")
    return Endpoint(url, url == _DEFAULT, api_key or os.environ.get("OPENAI_API_KEY") or None)


class OpenAICompatible:
    """One model at one endpoint.

    Args:
        model: the model's name at the endpoint.
        name: how the user calls it.
        endpoint: where it is.
    """

    def __init__(self, model: str, name: str, endpoint: Endpoint) -> None:
        self.name = name
        self.endpoint = endpoint.base_url
        self.fingerprint = {"provider": "openai_compatible", "model": model, "endpoint": endpoint.base_url}
        self._model = model
        self._api_key = endpoint.api_key
        self._refused: set[str] = set()
        self._has_answered = False
        self._client: AsyncOpenAI | None = None
        self._loop: Any = None

    @property
    def native_tools(self) -> bool:
        """True until the endpoint has refused `tools`."""
        return "tools" not in self._refused

    async def complete(self, request: ChatRequest, schema: Schema | None) -> ChatReply:
        """One try, repeated only to leave out a parameter that the endpoint has just refused."""
        while True:
            parameters = parameters_of(self._model, request, schema, self._refused)
            try:
                return await self._send(parameters, request.timeout)
            except ModelError as error:
                refused = refused_parameter(error, parameters)
                if refused is None or refused in self._refused:
                    raise
                self._learn(refused, error)
                if refused == "tools":
                    raise

    async def close(self) -> None:
        """Closes the connections of the running event loop."""
        client, self._client = self._client, None
        if client is not None and self._loop == current_token():
            await client.close()

    async def _send(self, parameters: dict[str, Any], timeout: float) -> ChatReply:
        import openai

        try:
            raw = await self._connection().chat.completions.with_raw_response.create(**parameters, timeout=timeout)
            reply = reply_of(raw.content, self.name)
        except openai.OpenAIError as error:
            raise model_error(error, self.name, self.endpoint, has_answered=self._has_answered) from error
        self._has_answered = True
        return reply

    def _learn(self, refused: str, error: ModelError) -> None:
        self._refused.add(refused)
        logger.warning("model `%s` refuses `%s` and goes on without it (%s)", self.name, refused, error)

    def _connection(self) -> AsyncOpenAI:
        """The client of the running event loop: connections do not outlive the loop that opened them."""
        from openai import AsyncOpenAI

        if self._client is None or self._loop != current_token():
            self._loop = current_token()
            self._client = AsyncOpenAI(base_url=self.endpoint, api_key=self._api_key or _NO_KEY, max_retries=0)
        return self._client
