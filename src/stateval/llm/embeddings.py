"""Models that make vectors of texts: a provider's embedding made into an EmbeddingModel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from stateval.llm.limits import place_at
from stateval.llm.prices import cost_of, is_priced
from stateval.llm.retrying import Retries, with_retries
from stateval.records.usage import Usage


class EmbeddingProvider(Protocol):
    """One way to reach an embedding model. It makes one try."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def endpoint(self) -> str: ...

    @property
    def fingerprint(self) -> Any: ...

    @property
    def api_url(self) -> str | None: ...

    async def embed(self, texts: Sequence[str], timeout: float) -> tuple[list[list[float]], Usage]:
        """One vector a text. Raises TransientModelError, PermanentModelError or ModelUnavailable."""

    async def close(self) -> None: ...


class CallableEmbeddings:
    """The EmbeddingModel on top of a provider.

    Args:
        provider: makes single tries.
        max_concurrent: calls in flight at the provider's endpoint, those of chat models there included.
        retries: how transient errors are tried again.
        timeout: seconds for one try.
    """

    def __init__(
        self, provider: EmbeddingProvider, *, max_concurrent: int, retries: Retries | None, timeout: float
    ) -> None:
        self._provider = provider
        self._max_concurrent = max_concurrent
        self._retries = retries or Retries()
        self._timeout = timeout

    @property
    def name(self) -> str:
        """How users call the model."""
        return self._provider.name

    @property
    def fingerprint(self) -> Any:
        """What the vectors depend on apart from the texts."""
        return self._provider.fingerprint

    @property
    def has_price(self) -> bool:
        """Whether the cost of its calls is known."""
        return is_priced(self._provider.api_url, self._provider.model)

    async def embed(self, texts: Sequence[str]) -> tuple[list[list[float]], Usage]:
        """One vector a text; see `EmbeddingModel`."""
        provider = self._provider

        async def one_try() -> tuple[list[list[float]], Usage]:
            async with place_at(provider.endpoint, self._max_concurrent):
                return await provider.embed(texts, self._timeout)

        vectors, usage = await with_retries(one_try, self._retries)
        cost = cost_of(provider.api_url, provider.model, usage) if usage.prompt_tokens else None
        return vectors, usage.model_copy(update={"cost": cost})

    async def close(self) -> None:
        """Gives back the provider's connections."""
        await self._provider.close()
