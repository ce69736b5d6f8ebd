"""Prices of calls: by the provider's own list, and none rather than a wrong one."""

from __future__ import annotations

import socket
import sys

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.llm import ChatMessage, ChatRequest, open_model
from stateval.llm.prices import EMBEDDED_URL, _model_at, cost_of, is_priced
from stateval.records.usage import Usage
from tests.support.model_server import ModelServer

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"
GOOGLE = "https://generativelanguage.googleapis.com"


def rates(url: str, model: str) -> dict[str, float]:
    """Dollars for a million tokens as the list has them, the lowest tier."""
    listed = _model_at(url, model).prices
    listed = listed if not isinstance(listed, list) else listed[0].prices
    return {key: float(getattr(value, "base", value)) for key, value in vars(listed).items() if value is not None}


@pytest.mark.parametrize(
    ("url", "model", "usage", "parts"),
    [
        (OPENAI, "gpt-4o-mini", (1000, 200, 0, 0), {"input_mtok": 1000, "output_mtok": 200}),
        (
            OPENAI,
            "gpt-4o-mini",
            (1000, 200, 400, 0),
            {"input_mtok": 600, "cache_read_mtok": 400, "output_mtok": 200},
        ),
        (
            ANTHROPIC,
            "claude-sonnet-4-5",
            (1000, 200, 300, 500),
            {"input_mtok": 200, "cache_read_mtok": 300, "cache_write_mtok": 500, "output_mtok": 200},
        ),
        (
            GOOGLE,
            "gemini-2.5-pro",
            (1000, 200, 400, 0),
            {"input_mtok": 600, "cache_read_mtok": 400, "output_mtok": 200},
        ),
        (OPENAI, "text-embedding-3-small", (1000, 0, 0, 0), {"input_mtok": 1000}),
    ],
    ids=["plain", "cached", "written", "google", "embedding"],
)
def test_the_cost_is_tokens_times_rates(url, model, usage, parts):
    known = rates(url, model)
    by_hand = sum(count * known[rate] for rate, count in parts.items()) / 1e6
    prompt, completion, cached, written = usage
    counted = Usage(
        prompt_tokens=prompt, completion_tokens=completion, cached_input_tokens=cached, cache_write_tokens=written
    )
    assert cost_of(url, model, counted) == pytest.approx(by_hand, rel=1e-12)
    assert by_hand > 0


def test_a_number_that_can_be_looked_up():
    """gpt-4o-mini has cost 0.15 and 0.60 dollars for a million tokens since 2024, and half of 0.15 from the cache."""
    usage = Usage(prompt_tokens=1_000_000, completion_tokens=1_000_000, cached_input_tokens=500_000)
    assert cost_of(OPENAI, "gpt-4o-mini", usage) == pytest.approx(0.075 + 0.0375 + 0.60)


def test_long_prompts_cost_more_where_the_provider_says_so():
    short, long = (Usage(prompt_tokens=count) for count in (200_000, 200_001))
    assert cost_of(GOOGLE, "gemini-2.5-pro", long) > 1.9 * cost_of(GOOGLE, "gemini-2.5-pro", short)


@pytest.mark.parametrize(
    ("url", "model"),
    [
        (OPENAI, "gpt-4o-mini-2024-07-18"),
        (OPENAI, "GPT-4o-mini"),
        (ANTHROPIC, "claude-sonnet-4-5-20250929"),
        (ANTHROPIC, "claude-3-5-haiku-latest"),
        (GOOGLE, "gemini-2.5-flash-lite-preview-09-2025"),
        ("https://api.groq.com/openai/v1", "llama-3.3-70b-versatile"),
        ("https://openrouter.ai/api/v1", "openai/gpt-4o-mini"),
    ],
)
def test_names_that_are_of_a_listed_model(url, model):
    assert is_priced(url, model)


@pytest.mark.parametrize(
    ("url", "model"),
    [
        (OPENAI, "gpt-4o-minj"),
        (OPENAI, "gpt-4o-mini-of-mine"),
        (OPENAI, "ft:gpt-4o-mini:acme::x"),
        (OPENAI, "claude-sonnet-4-5"),
        (OPENAI, ""),
        (ANTHROPIC, "claude-sonnet-4-5-of-mine"),
        (ANTHROPIC, "claude-sonnet-4-52"),
        (GOOGLE, "gemini-2.5-pro-of-mine"),
        ("https://api.openai.com.example.org/v1", "gpt-4o-mini"),
        ("http://api.openai.com/v1", "gpt-4o-mini"),
        ("http://127.0.0.1:8000/v1", "gpt-4o-mini"),
        ("", "gpt-4o-mini"),
        (None, "gpt-4o-mini"),
    ],
)
def test_no_price_rather_than_a_wrong_one(url, model):
    assert not is_priced(url, model)
    assert cost_of(url, model, Usage(prompt_tokens=10)) is None


def test_models_in_this_process_cost_nothing():
    assert is_priced(EMBEDDED_URL, "smollm2-135m")
    assert cost_of(EMBEDDED_URL, "smollm2-135m", Usage(prompt_tokens=10)) == 0.0
    assert open_model("embedded/smollm2-135m").has_price


def test_counts_that_contradict_each_other_have_no_price():
    assert cost_of(OPENAI, "gpt-4o-mini", Usage(prompt_tokens=1, cached_input_tokens=5)) is None


tokens = st.integers(0, 10**6)


@given(tokens, tokens, tokens)
def test_more_tokens_never_cost_less(prompt, completion, cached):
    cached = min(prompt, cached)
    usage = Usage(prompt_tokens=prompt, completion_tokens=completion, cached_input_tokens=cached)
    cost = cost_of(OPENAI, "gpt-4o-mini", usage)
    assert 0 <= cost <= cost_of(OPENAI, "gpt-4o-mini", usage.model_copy(update={"completion_tokens": completion + 1}))
    assert cost <= cost_of(OPENAI, "gpt-4o-mini", usage.model_copy(update={"cached_input_tokens": 0}))


def test_nothing_is_fetched(monkeypatch):
    def refuse(*arguments, **settings):
        raise AssertionError("prices are looked up in a file")

    _model_at.cache_clear()
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert cost_of(OPENAI, "gpt-4o", Usage(prompt_tokens=10)) > 0


def test_without_the_extra_no_price_is_known(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "genai_prices"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    _model_at.cache_clear()
    try:
        assert not is_priced(OPENAI, "gpt-4o-mini")
        assert cost_of(OPENAI, "gpt-4o-mini", Usage(prompt_tokens=10)) is None
    finally:
        _model_at.cache_clear()


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("openai/gpt-4o-mini", True),
        ("openai/gpt-unheard-of", False),
        ("anthropic/claude-sonnet-4-5", True),
        ("google/gemini-2.5-pro", True),
        ("litellm/groq/llama-3.3-70b-versatile", True),
        ("litellm/bedrock/of-mine", False),
    ],
)
def test_a_model_says_beforehand_whether_it_has_a_price(monkeypatch, name, known):
    for variable in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    assert open_model(name, api_key="k").has_price is known


def test_an_endpoint_of_ones_own_has_no_price():
    request = ChatRequest((ChatMessage("user", "hello"),))
    with ModelServer("hi") as server:
        model = open_model("gpt-4o-mini", base_url=server.base_url)
        assert anyio.run(model.chat, request).usage.cost is None
    assert not model.has_price
