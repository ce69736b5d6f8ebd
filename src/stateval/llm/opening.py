"""From the name of a model to the model: which provider it belongs to."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from typing import Protocol

from stateval.errors import UsageError
from stateval.llm.calling import CallableModel
from stateval.llm.chat import ChatModel, EmbeddingModel, Provider
from stateval.llm.embeddings import CallableEmbeddings, EmbeddingProvider
from stateval.llm.retrying import Retries

DEFAULT_MODEL = "embedded/smollm2-135m"
DEFAULT_EMBEDDING_MODEL = "openai/text-embedding-3-small"
_PROVIDERS = ("embedded", "openai", "anthropic", "google", "gemini", "litellm")
_EMBEDDING_PROVIDERS = ("openai", "google", "gemini", "litellm")
_CALLS_IN_FLIGHT = 128


def open_model(
    name: str,
    *,
    provider: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    max_concurrent: int | None = None,
    requests_per_minute: float | None = None,
    retries: Retries | None = None,
) -> ChatModel:
    """The model of this name. Nothing is fetched, loaded or called yet.

    Args:
        name: `embedded/<name>` of the catalogue, `openai/<model>`, `anthropic/<model>`, `google/<model>`,
            `litellm/<whatever LiteLLM knows>`; with `provider`, or with an endpoint and none of these in front, just
            the model's name there, slashes included.
        provider: one of these words.
        base_url: an endpoint of that provider's kind (OpenAI's where none is named); else `OPENAI_BASE_URL` or
            `ANTHROPIC_BASE_URL`, else the provider's own.
        api_key: the key for it; else `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY` or `GOOGLE_API_KEY`. An
            endpoint that is named needs none.
        max_concurrent: calls in flight at the endpoint (128; an embedded model takes one at a time).
        requests_per_minute: calls that may begin there in a minute; None for no bound.
        retries: how transient errors are tried again.

    Raises UsageError (unknown name or provider), MissingKey, MissingExtra.
    """
    named = _named(name, provider, base_url)
    if named.provider == "embedded":
        if base_url:
            raise UsageError(f"model `{name}` runs in this process; `base_url` is for models at an endpoint")
        return CallableModel(_embedded(named), max_concurrent=1, per_minute=requests_per_minute, retries=retries)
    return CallableModel(
        _at_endpoint(named, base_url, api_key),
        max_concurrent=_CALLS_IN_FLIGHT if max_concurrent is None else max_concurrent,
        per_minute=requests_per_minute,
        retries=retries,
    )


def open_embedding_model(
    name: str = DEFAULT_EMBEDDING_MODEL,
    *,
    provider: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    retries: Retries | None = None,
    timeout: float = 120.0,
) -> EmbeddingModel:
    """The embedding model of this name; the arguments are those of `open_model`, `timeout` seconds for one try.

    Raises UsageError (unknown name, a provider without embeddings), MissingKey, MissingExtra.
    """
    named = _named(name, provider, base_url)
    if named.provider not in _EMBEDDING_PROVIDERS:
        raise UsageError(
            f"model `{name}`: provider `{named.provider}` has no embeddings here; those of `openai` (and of every "
            "endpoint that speaks its API), `google` and `litellm` can be used"
        )
    return CallableEmbeddings(
        _embeddings_at(named, base_url, api_key), max_concurrent=_CALLS_IN_FLIGHT, retries=retries, timeout=timeout
    )


class _Both(Provider, EmbeddingProvider, Protocol):
    """A provider of chats and of embeddings."""


@dataclass(frozen=True, slots=True)
class _Named:
    """How the user calls a model, its provider, and its name there."""

    name: str
    provider: str
    model: str


def _named(name: str, provider: str | None, base_url: str | None) -> _Named:
    if provider is not None:
        if provider not in _PROVIDERS:
            raise UsageError(f"no provider is called {provider!r}{_meant(provider, '')}; there are {_listed()}")
        if not name.strip():
            raise UsageError(_no_model(name))
        return _Named(name, provider, name)
    prefix, slash, model = name.partition("/")
    if not name.strip() or (prefix in _PROVIDERS and not model):
        raise UsageError(_no_model(name))
    if slash and prefix in _PROVIDERS:
        return _Named(name, prefix, model)
    if base_url or os.environ.get("OPENAI_BASE_URL"):
        return _Named(name, "openai", name)
    raise UsageError(_unknown(name))


def _embedded(named: _Named) -> Provider:
    from stateval.llm.embedded import EmbeddedProvider

    return EmbeddedProvider(named.model)


def _at_endpoint(named: _Named, base_url: str | None, api_key: str | None) -> Provider:
    if named.provider == "anthropic":
        from stateval.llm.anthropic_messages import ANTHROPIC, AnthropicMessages
        from stateval.llm.endpoint import endpoint_of

        endpoint = endpoint_of(ANTHROPIC, base_url, api_key)
        anthropic = AnthropicMessages(named.model, named.name, endpoint)
        endpoint.require_key(named.name)
        return anthropic
    return _embeddings_at(named, base_url, api_key)


def _embeddings_at(named: _Named, base_url: str | None, api_key: str | None) -> _Both:
    """The provider, of those that make both chats and embeddings."""
    from stateval.llm.endpoint import endpoint_of

    match named.provider:
        case "google" | "gemini":
            from stateval.llm.google_genai import GOOGLE, GoogleGenAI

            endpoint = endpoint_of(GOOGLE, base_url, api_key)
            google = GoogleGenAI(named.model, named.name, endpoint)
            endpoint.require_key(named.name)
            return google
        case "litellm":
            from stateval.llm.litellm_router import LiteLLMRouter

            return LiteLLMRouter(named.model, named.name, base_url, api_key)
    from stateval.llm.openai_compatible import OPENAI, OpenAICompatible

    endpoint = endpoint_of(OPENAI, base_url, api_key)
    endpoint.require_key(named.name)
    return OpenAICompatible(named.model, named.name, endpoint)


def _no_model(name: str) -> str:
    return f"{name!r} names no model; write for instance `{DEFAULT_MODEL}` or `openai/gpt-4o-mini`"


def _unknown(name: str) -> str:
    meant = _meant(name.partition("/")[0], "/...") if "/" in name else ""
    return (
        f"no provider is known for model `{name}`{meant}; write `embedded/<name>` (`stateval models list` shows them), "
        "`openai/<model>`, `anthropic/<model>`, `google/<model>` or `litellm/<model>`, or set `base_url` for a model "
        "at an OpenAI-compatible endpoint"
    )


def _meant(word: str, rest: str) -> str:
    near = difflib.get_close_matches(word, _PROVIDERS, n=1)
    return f" (did you mean `{near[0]}{rest}`?)" if near else ""


def _listed() -> str:
    return ", ".join(f"`{word}`" for word in _PROVIDERS)
