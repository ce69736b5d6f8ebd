"""Provider for Google's Gemini API (extra `google`), for chat and for embeddings.

The SDK carries the request; its own retries are off. A structured answer is asked for by `response_json_schema`, and in
words where the model refuses that. Tools are not passed on.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from stateval.errors import MissingExtra, ModelError, TransientModelError
from stateval.llm.chat import ChatReply, ChatRequest, Schema
from stateval.llm.connections import Connections, within
from stateval.llm.endpoint import Endpoint, Service
from stateval.llm.google_wire import contents_of, parameters_of, reply_of, retry_delay, vector_of
from stateval.llm.provider_errors import connection_error, not_in_time, status_error
from stateval.llm.refusals import without_refused
from stateval.records.usage import Usage

if TYPE_CHECKING:
    import httpx
    from google.genai import Client
    from google.genai.errors import APIError

_Answer = TypeVar("_Answer")

GOOGLE = Service(
    "https://generativelanguage.googleapis.com",
    None,
    ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "name another endpoint with `base_url`",
)
_NO_KEY = "no-key-needed"


@dataclass(frozen=True, slots=True)
class _Connected:
    client: Client
    http: httpx.AsyncClient


class GoogleGenAI:
    """One model. Raises MissingExtra.

    Args:
        model: the model's name at the endpoint.
        name: how the user calls it.
        endpoint: where it is.
    """

    native_tools = False

    def __init__(self, model: str, name: str, endpoint: Endpoint) -> None:
        if not _is_installed():
            raise MissingExtra("Models of Google", "google")
        self.name = name
        self.model = model
        self.endpoint = self.api_url = endpoint.base_url
        self.fingerprint = {"provider": "google", "model": model, "endpoint": endpoint.base_url}
        self._place = endpoint
        self._has_answered = False
        self._connections: Connections[_Connected] = Connections(self._connect, lambda lane: lane.http.aclose())

    async def complete(self, request: ChatRequest, schema: Schema | None) -> ChatReply:
        """One try, repeated only to leave out a parameter that the model has just refused."""

        async def send(parameters: Mapping[str, Any]) -> ChatReply:
            contents, config = contents_of(parameters["request"]), parameters["config"]
            answer = await self._call(
                lambda client: client.aio.models.generate_content(model=self.model, contents=contents, config=config),
                request.timeout,
            )
            return reply_of(answer, self.name)

        return await without_refused(
            self.endpoint, self.model, lambda refused: parameters_of(request, schema, refused), send
        )

    async def embed(self, texts: Sequence[str], timeout: float) -> tuple[list[list[float]], Usage]:
        """The vectors of texts: one try. Several texts in one call would become one vector with some of the models."""
        vectors = [await self._embed(text, timeout) for text in texts]
        return vectors, Usage()  # the API does not count the tokens of embeddings, so no cost is known

    async def close(self) -> None:
        """Closes the connections of the running event loop."""
        await self._connections.close()

    async def _embed(self, text: str, timeout: float) -> list[float]:
        answer = await self._call(
            lambda client: client.aio.models.embed_content(model=self.model, contents=text), timeout
        )
        return vector_of(answer, self.name)

    async def _call(self, ask: Callable[[Client], Awaitable[_Answer]], timeout: float) -> _Answer:
        import httpx
        from google.genai import errors

        try:
            with self._connections.client() as lane, within(timeout, self.name, self._place):
                answer = await ask(lane.client)
        except errors.APIError as error:
            raise self._api_error(error) from error
        except httpx.TimeoutException as error:
            raise not_in_time(self.name, self._place) from error
        except ValueError as error:  # the SDK reads the body before it hands it on
            raise TransientModelError(
                f"model `{self.name}` answered with something that is no answer: {error}"
            ) from error
        except httpx.HTTPError as error:
            raise connection_error(error, self.name, self._place, has_answered=self._has_answered) from error
        self._has_answered = True
        return answer

    def _api_error(self, error: APIError) -> ModelError:
        headers = dict(getattr(error.response, "headers", None) or {})
        if (delay := retry_delay(error.details)) is not None:
            headers.setdefault("retry-after", str(delay))
        return status_error(error.code, error.message or str(error), self.name, self._place, headers=headers)

    def _connect(self) -> _Connected:
        import httpx
        from google.genai import Client, types

        http = httpx.AsyncClient(timeout=None, follow_redirects=True)
        client = Client(
            api_key=self._place.api_key or _NO_KEY,
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=self.endpoint,
                httpx_async_client=http,
                retry_options=types.HttpRetryOptions(attempts=1),
            ),
        )
        return _Connected(client, http)


def _is_installed() -> bool:
    try:
        return importlib.util.find_spec("google.genai") is not None
    except ModuleNotFoundError:
        return False
