"""What a call costs, by the price list that genai-prices (extra `prices`) brings along. Nothing is fetched.

A price is known only where the endpoint is a provider's own and the name is of a model on its list, in any of the ways
in which the provider writes it (with a date, `latest`). The list's looser rules, by which `claude-sonnet-4-5-anything`
is `claude-sonnet-4-5`, are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stateval.records.usage import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider

EMBEDDED_URL = "embedded:"
"""The `api_url` of models that run in this process, which cost nothing."""

_VERSION = re.compile(r"[-@](latest|\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{3,4})")


def is_priced(api_url: str | None, model: str) -> bool:
    """Whether the price of this model at this provider's URL is known."""
    return api_url == EMBEDDED_URL or _model_at(api_url, model) is not None


def cost_of(api_url: str | None, model: str, usage: Usage) -> float | None:
    """US dollars for this usage at today's price, or None where the price is not known."""
    if api_url == EMBEDDED_URL:
        return 0.0
    priced = _model_at(api_url, model)
    if priced is None:
        return None
    from genai_prices import Usage as Counted

    counted = Counted(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        return float(priced.get_prices(datetime.now(UTC)).calc_price(counted)["total_price"])
    except ValueError:  # counts that contradict each other: more tokens from the cache than in all
        return None


@lru_cache(maxsize=1024)
def _model_at(api_url: str | None, name: str) -> ModelInfo | None:
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    if api_url is None:
        return None
    name = name.lower()
    at_url = (provider for provider in get_snapshot().providers if _is_at(provider, api_url))
    listed = (model for provider in at_url for model in provider.models if model.is_match(name))
    return next((model for model in listed if _is_of(model, name)), None)


def _is_at(provider: Provider, api_url: str) -> bool:
    """Whether the URL is this provider's, its host name up to the end."""
    found = re.match(provider.api_pattern, api_url)
    if found is None or not api_url.startswith("https://"):
        return False
    return found[0].endswith("/") or api_url[found.end() : found.end() + 1] in ("", "/", ":")


def _is_of(model: ModelInfo, name: str) -> bool:
    """Whether the name is one that the list has for this model, or one of these with a version."""
    names = [model.id, *_names_in(model.match)]
    return any(name.startswith(known) and _is_version(name[len(known) :]) for known in names)


def _is_version(rest: str) -> bool:
    return not rest or _VERSION.fullmatch(rest) is not None


def _names_in(rule: Any) -> Iterator[str]:
    """The names and beginnings of names in a rule of the list."""
    for part in (*getattr(rule, "or_", ()), *getattr(rule, "and_", ())):
        yield from _names_in(part)
    for word in ("equals", "starts_with"):
        if hasattr(rule, word):
            yield getattr(rule, word).lower()
