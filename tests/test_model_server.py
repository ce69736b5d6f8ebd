"""The scripted model server, seen through the real SDK and through a plain socket."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http.client import IncompleteRead

import openai
import pytest

from tests.support.model_server import ModelServer, Reply, rate_limited, refused


def ask(server: ModelServer, **parameters):
    with openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client:
        answer = client.chat.completions.create(
            model="scripted", messages=[{"role": "user", "content": "hello there"}], **parameters
        )
        return list(answer) if parameters.get("stream") else answer


def post(server: ModelServer):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    request = urllib.request.Request(f"{server.base_url}/chat/completions", body)
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.headers, response.read()


def test_an_answer_is_a_function_of_the_request():
    with ModelServer(lambda request: request.last.upper()) as server:
        completion = ask(server)
    assert completion.choices[0].message.content == "HELLO THERE"
    assert completion.usage.total_tokens == 4
    assert server.requests[0].headers["authorization"] == "Bearer k"


def test_answers_in_turn_and_the_last_for_ever():
    with ModelServer(["one", "two"]) as server:
        assert [ask(server).choices[0].message.content for _ in range(3)] == ["one", "two", "two"]


def test_tool_calls_and_reasoning():
    with ModelServer(Reply(tool_calls=[("f", {"a": 1}), ("g", "{broken")], reasoning="hm")) as server:
        choice = ask(server).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert [(c.function.name, c.function.arguments) for c in choice.message.tool_calls] == [
        ("f", '{"a": 1}'),
        ("g", "{broken"),
    ]
    assert choice.message.reasoning_content == "hm"


def test_a_stream_holds_the_same_answer():
    with ModelServer(Reply("one two three", tool_calls=[("f", {})])) as server:
        chunks = ask(server, stream=True, stream_options={"include_usage": True})
    pieces = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(piece.content or "" for piece in pieces) == "one two three"
    assert [c.function.name for piece in pieces for c in piece.tool_calls or ()] == ["f"]
    assert chunks[-1].usage.completion_tokens == 3


@pytest.mark.parametrize("retry_after", [7, "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_rate_limits_and_refusals(retry_after):
    with ModelServer([rate_limited(retry_after), refused(400, "no", param="seed")]) as server:
        with pytest.raises(openai.RateLimitError) as limited:
            ask(server)
        with pytest.raises(openai.BadRequestError) as bad:
            ask(server)
    assert limited.value.response.headers["retry-after"] == str(retry_after)
    assert bad.value.param == "seed"


def test_a_body_can_be_cut_off_or_be_no_json_and_a_connection_can_break():
    with ModelServer([Reply("long enough", cut_after=20), Reply(body=b"<html>"), ConnectionError()]) as server:
        with pytest.raises(IncompleteRead):
            post(server)
        headers, body = post(server)
        assert body == b"<html>"
        assert headers["connection"] == "close"
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            post(server)


def test_models_and_embeddings():
    with ModelServer(models=["a", "b"]) as server, openai.OpenAI(base_url=server.base_url, api_key="k") as client:
        assert [model.id for model in client.models.list()] == ["a", "b"]
        data = client.embeddings.create(model="a", input=["abba", "c"], encoding_format="float").data
    assert [item.embedding[:3] for item in data] == [[2.0, 2.0, 0.0], [0.0, 0.0, 1.0]]


def test_a_mistake_in_an_answer_function_fails_the_test():
    server = ModelServer(lambda request: str(1 // 0))
    with pytest.raises(ZeroDivisionError), server, pytest.raises(openai.InternalServerError):
        ask(server)
