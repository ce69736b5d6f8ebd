"""Provider for Anthropic's Messages API (extra `anthropic`), and for endpoints that speak it.

The SDK carries the request and nothing else. A structured answer is asked for by `output_config`; where the model
refuses that, by a tool that it must call; where it refuses that too, in words. The API has no seed, so none is sent.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stateval.errors import MissingExtra
from stateval.llm.anthropic_wire import body_of, reply_of
from stateval.llm.chat import ChatReply, ChatRequest, Schema
from stateval.llm.connections import Connections, within
from stateval.llm.endpoint import Endpoint, Service
from stateval.llm.provider_errors import sdk_error
from stateval.llm.refusals import refused_at, without_refused

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

ANTHROPIC = Service(
    "https://api.anthropic.com",
    "ANTHROPIC_BASE_URL",
    ("ANTHROPIC_API_KEY",),
    "name another endpoint with `ANTHROPIC_BASE_URL` or `base_url`",
)
_NO_KEY = "no-key-needed"


class AnthropicMessages:
    """One model. Raises MissingExtra.

    Args:
        model: the model's name at the endpoint.
        name: how the user calls it.
        endpoint: where it is.
    """

    def __init__(self, model: str, name: str, endpoint: Endpoint) -> None:
        if importlib.util.find_spec("anthropic") is None:
            raise MissingExtra("Models of Anthropic", "anthropic")
        self.name = name
        self.model = model
        self.endpoint = self.api_url = endpoint.base_url
        self.fingerprint = {"provider": "anthropic", "model": model, "endpoint": endpoint.base_url}
        self._place = endpoint
        self._has_answered = False
        self._connections: Connections[AsyncAnthropic] = Connections(self._connect, lambda client: client.close())

    @property
    def native_tools(self) -> bool:
        """True until the endpoint has refused `tools`."""
        return "tools" not in refused_at(self.endpoint, self.model)

    async def complete(self, request: ChatRequest, schema: Schema | None) -> ChatReply:
        """One try, repeated only to leave out a parameter that the model has just refused."""

        async def send(body: Mapping[str, Any]) -> ChatReply:
            return reply_of(await self._post(body, request.timeout), self.name)

        return await without_refused(
            self.endpoint, self.model, lambda refused: body_of(self.model, request, schema, refused), send
        )

    async def close(self) -> None:
        """Closes the connections of the running event loop."""
        await self._connections.close()

    async def _post(self, body: Mapping[str, Any], timeout: float) -> bytes:
        import anthropic

        try:
            with self._connections.client() as client, within(timeout, self.name, self._place):
                content = await client.post("/v1/messages", body=body, cast_to=bytes, options={"timeout": timeout})
        except anthropic.AnthropicError as error:
            raise sdk_error(error, anthropic, self.name, self._place, has_answered=self._has_answered) from error
        self._has_answered = True
        return content

    def _connect(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(base_url=self.endpoint, api_key=self._place.api_key or _NO_KEY, max_retries=0)
