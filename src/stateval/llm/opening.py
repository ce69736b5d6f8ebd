"""From the name of a model to the model: which provider it belongs to."""

from __future__ import annotations

import difflib

from stateval.errors import UsageError
from stateval.llm.calling import CallableModel
from stateval.llm.chat import ChatModel
from stateval.llm.retrying import Retries

DEFAULT_MODEL = "embedded/smollm2-135m"
_PROVIDERS = ("embedded", "openai")
_CALLS_IN_FLIGHT = 32


def open_model(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    max_concurrent: int | None = None,
    retries: Retries | None = None,
) -> ChatModel:
    """The model of this name. Nothing is fetched, loaded or called yet.

    Args:
        name: `embedded/<name>` of the catalogue, `openai/<model>`, or with an endpoint just the model's name there,
            slashes included.
        base_url: an OpenAI-compatible endpoint; else `OPENAI_BASE_URL`, else OpenAI's own.
        api_key: the key for it; else `OPENAI_API_KEY`. An endpoint that is named needs none.
        max_concurrent: calls in flight at the endpoint (32; an embedded model takes one at a time).
        retries: how transient errors are tried again.

    Raises UsageError (unknown name, missing key), MissingExtra (embedded models are not installed).
    """
    provider, _, model = name.partition("/")
    if provider == "embedded":
        if base_url:
            raise UsageError(f"model `{name}` runs in this process; `base_url` is for models at an endpoint")
        return _embedded(model, retries)
    if not name.strip() or (provider == "openai" and not model):
        raise UsageError(f"{name!r} names no model; write for instance `{DEFAULT_MODEL}` or `openai/gpt-4o-mini`")
    return _openai_compatible(name, base_url, api_key, max_concurrent, retries)


def _embedded(model: str, retries: Retries | None) -> ChatModel:
    from stateval.llm.embedded import EmbeddedProvider

    return CallableModel(EmbeddedProvider(model), max_concurrent=1, retries=retries)


def _openai_compatible(
    name: str, base_url: str | None, api_key: str | None, max_concurrent: int | None, retries: Retries | None
) -> ChatModel:
    from stateval.llm.openai_compatible import OpenAICompatible, endpoint_of

    endpoint = endpoint_of(base_url, api_key)
    if endpoint.is_default and not name.startswith("openai/"):
        raise UsageError(_unknown(name))
    model = name.removeprefix("openai/")
    endpoint.require_key(name)
    most = _CALLS_IN_FLIGHT if max_concurrent is None else max_concurrent
    return CallableModel(OpenAICompatible(model, name, endpoint), max_concurrent=most, retries=retries)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name.partition("/")[0], _PROVIDERS, n=1)
    meant = f" (did you mean `{near[0]}/...`?)" if near and "/" in name else ""
    return (
        f"no provider is known for model `{name}`{meant}; write `embedded/<name>` (`stateval models list` shows them) "
        "or `openai/<model>`, or set `base_url` for a model at an OpenAI-compatible endpoint"
    )
