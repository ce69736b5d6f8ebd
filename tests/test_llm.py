"""The door to models: OpenAI-compatible endpoints over real HTTP, retries, limits, structured answers."""

from __future__ import annotations

import json
import string
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateval.deadline import deadline
from stateval.errors import (
    MissingKey,
    ModelUnavailable,
    PermanentModelError,
    TransientModelError,
    UsageError,
)
from stateval.llm import ChatMessage, ChatRequest, Generation, Retries, ToolDefinition, open_model
from stateval.llm.retrying import retry_after
from stateval.llm.schema import InvalidAnswer, read_answer, violation
from tests.support.model_server import ModelServer, Reply, rate_limited, refused

QUICK = Retries(tries=4, first_wait=0.001, longest_wait=0.002, jitter=0)
HELLO = ChatRequest((ChatMessage("user", "hello"),))
SCORE = {
    "type": "object",
    "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["score"],
    "additionalProperties": False,
}
TOOL = ToolDefinition("f", "does f", {"type": "object", "properties": {}})


def chat(server: ModelServer, request: ChatRequest = HELLO, **settings):
    async def run():
        model = open_model("scripted", base_url=server.base_url, retries=QUICK, **settings)
        try:
            return await model.chat(request)
        finally:
            await model.close()

    return anyio.run(run)


def structured(server: ModelServer, schema=SCORE, request: ChatRequest = HELLO):
    async def run():
        model = open_model("scripted", base_url=server.base_url, retries=QUICK)
        try:
            return await model.structured(request, schema)
        finally:
            await model.close()

    return anyio.run(run)


def test_a_call_carries_the_conversation_the_settings_and_the_usage():
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 7},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    with ModelServer(Reply("hi", reasoning="because", usage=usage, model="scripted-1")) as server:
        settings = Generation(temperature=0.5, max_tokens=9, seed=3)
        reply = chat(server, ChatRequest((ChatMessage("system", "be short"), *HELLO.messages), settings, (TOOL,)))
    assert (reply.text, reply.reasoning, reply.model, reply.finish_reason) == ("hi", "because", "scripted-1", "stop")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (10, 4)
    assert (reply.usage.cached_input_tokens, reply.usage.reasoning_tokens, reply.usage.cost) == (7, 2, None)
    body = server.requests[0].body
    assert (body["model"], body["temperature"], body["max_tokens"], body["seed"]) == ("scripted", 0.5, 9, 3)
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert body["tools"][0]["function"]["name"] == "f"


def test_endpoint_and_key_come_from_the_environment(monkeypatch):
    with ModelServer("hi") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-environment")
        assert anyio.run(open_model("openai/gpt-x").chat, HELLO).text == "hi"
    assert server.requests[0].headers["authorization"] == "Bearer key-of-the-environment"
    assert server.requests[0].body["model"] == "gpt-x"


def test_a_missing_key_is_said_before_any_call(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        open_model("openai/gpt-4o-mini")


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("opnai/gpt", {}, r"`openai/\.\.\.`"),
        ("gpt-4o", {}, "base_url"),
        ("", {}, "names no model"),
        ("embedded/smollm-135m", {}, "smollm2-135m"),
        ("embedded/smollm2-135m", {"base_url": "http://127.0.0.1:1"}, "in this process"),
        ("m", {"base_url": "127.0.0.1:8000"}, "http://"),
        ("m", {"base_url": "http://127.0.0.1:1", "max_concurrent": 0}, "at least 1"),
    ],
)
def test_wrong_names_and_settings(monkeypatch, name, settings, told):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError, match=told):
        open_model(name, **settings)


@pytest.mark.parametrize(
    "failure",
    [
        refused(500, "oops"),
        refused(503, "loading"),
        rate_limited(0),
        Reply(body=b"<html>proxy</html>"),
        Reply(body=b'{"choices": []}'),
        Reply("some text", cut_after=30),
        ConnectionError(),
    ],
    ids=["500", "503", "429", "no-json", "no-choice", "cut-off", "closed"],
)
def test_what_may_pass_is_tried_again(failure):
    with ModelServer([failure, failure, "fine"]) as server:
        assert chat(server).text == "fine"
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422], ids="{}-fault-73".format)
def test_what_cannot_pass_is_not_tried_again(status):
    with ModelServer(refused(status, "no")) as server, pytest.raises(PermanentModelError, match=f"{status}: no"):
        chat(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        refused(400, "This model's maximum context length is 8 tokens", code="context_length_exceeded"),
        refused(500, "the request exceeds the available context size"),
        refused(429, "You exceeded your current quota", code="insufficient_quota"),
    ],
    ids=["overflow-fault-73", "overflow-as-500-fault-73", "quota"],
)
def test_permanent_whatever_the_status_says(reply):
    with ModelServer(reply) as server, pytest.raises(PermanentModelError):
        chat(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize("retries", [QUICK], ids=["429-for-ever-fault-70"])
def test_tries_are_bounded_and_nothing_retries_inside(retries):
    with ModelServer(rate_limited(0)) as server, pytest.raises(TransientModelError):
        chat(server)
    assert len(server.requests) == retries.tries


def test_the_servers_wish_to_wait_is_honoured():
    with ModelServer([rate_limited("0.3"), "fine"]) as server:
        assert chat(server).text == "fine"
    assert server.requests[1].at - server.requests[0].at >= 0.3


def test_a_wish_to_wait_too_long_ends_the_call():
    with ModelServer(rate_limited(3600)) as server, pytest.raises(TransientModelError) as failed:
        chat(server)
    assert failed.value.retry_after == 3600
    assert len(server.requests) == 1


def test_retry_after_in_all_its_spellings():
    now = datetime(2026, 12, 1, tzinfo=UTC)
    assert retry_after({"retry-after": "2"}, now) == 2
    assert retry_after({"retry-after": "2", "retry-after-ms": "1500"}, now) == 1.5
    assert retry_after({"retry-after": format_datetime(now + timedelta(seconds=9), usegmt=True)}, now) == 9
    assert retry_after({"retry-after": format_datetime(now - timedelta(seconds=9), usegmt=True)}, now) == 0
    for nothing in ({}, {"retry-after": "soon"}, {"retry-after": "-1"}, {"retry-after": "inf"}):
        assert retry_after(nothing, now) is None


def test_nobody_at_the_endpoint_means_that_no_sample_can_run():
    with ModelServer() as server:
        pass
    with pytest.raises(ModelUnavailable, match="connection"):
        chat(server)


def test_an_endpoint_that_goes_away_later_is_one_samples_error():
    async def run():
        model = open_model("scripted", base_url=server.base_url, retries=QUICK)
        with server:
            await model.chat(HELLO)
        with pytest.raises(TransientModelError) as failed:
            await model.chat(HELLO)
        assert not isinstance(failed.value, ModelUnavailable)
        await model.close()

    server = ModelServer("hi")
    anyio.run(run)


@pytest.mark.parametrize("models", [8], ids=["8-callers-fault-71"])
def test_one_limit_per_endpoint_whoever_calls(models):
    both = threading.Barrier(2, timeout=20)

    def answer(request):
        both.wait()
        return "ok"

    async def run():
        callers = [open_model(f"m{n}", base_url=server.base_url, max_concurrent=2) for n in range(models)]
        async with anyio.create_task_group() as group:
            for caller in callers:
                for _ in range(4):
                    group.start_soon(caller.chat, HELLO)
        for caller in callers:
            await caller.close()

    with ModelServer(answer) as server:
        anyio.run(run)
    assert len(server.requests) == models * 4
    assert server.peak == 2


def test_waiting_for_a_place_does_not_count_against_a_deadline():
    async def one(model):
        with deadline(2):
            await model.chat(HELLO)

    async def run():
        model = open_model("scripted", base_url=server.base_url, max_concurrent=1)
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(one, model)
        await model.close()

    with ModelServer(Reply("slow", delay=0.7)) as server:
        anyio.run(run)
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("parameter", "told"),
    [
        ("temperature", refused(400, "Unsupported value: only the default (1) is supported", param="temperature")),
        ("seed", refused(422, "seed: Extra inputs are not permitted")),
    ],
    ids=["temperature-fault-37", "seed"],
)
def test_a_refused_parameter_is_left_out_from_then_on(parameter, told):
    def answer(request):
        return told if parameter in request.body else "ok"

    async def run():
        model = open_model("scripted", base_url=server.base_url, retries=QUICK)
        for _ in range(2):
            reply = await model.chat(ChatRequest(HELLO.messages, Generation(seed=1)))
        await model.close()
        return reply.text

    with ModelServer(answer) as server:
        assert anyio.run(run) == "ok"
    assert [parameter in request.body for request in server.requests] == [True, False, False]


def test_max_tokens_by_its_newer_name():
    def answer(request):
        return refused(400, "Use 'max_completion_tokens'", param="max_tokens") if "max_tokens" in request.body else "ok"

    with ModelServer(answer) as server:
        assert chat(server, ChatRequest(HELLO.messages, Generation(max_tokens=5))).text == "ok"
    assert server.requests[1].body["max_completion_tokens"] == 5


def test_a_structured_answer_asks_for_the_schema():
    with ModelServer('{"score": 0.5}') as server:
        value, reply = structured(server)
    assert value == {"score": 0.5}
    assert reply.usage.completion_tokens == 2
    assert server.requests[0].schema == SCORE
    assert server.requests[0].body["response_format"]["json_schema"]["strict"] is True


@pytest.mark.parametrize("message", ["response_format is not supported", "Unknown parameter: 'response_format'"])
def test_an_endpoint_without_schemas_is_asked_in_words(message):
    def answer(request):
        if request.schema is not None:
            return refused(400, message)
        return '{"score": 1}' if '"maximum"' in request.last else "what?"

    async def run():
        model = open_model("scripted", base_url=server.base_url, retries=QUICK)
        values = [(await model.structured(HELLO, SCORE))[0] for _ in range(2)]
        await model.close()
        return values

    with ModelServer(answer) as server:
        assert anyio.run(run) == [{"score": 1}, {"score": 1}]
    assert len(server.requests) == 3


def test_an_invalid_answer_is_asked_for_again_and_all_usage_counts():
    with ModelServer(["no idea", '{"score": 9}', '{"score": 0.25}']) as server:
        value, reply = structured(server)
    assert value == {"score": 0.25}
    assert reply.usage.completion_tokens == 6
    assert "above 1" in server.requests[2].last


def test_a_model_that_never_answers_validly_is_an_error():
    with ModelServer('{"score": "high"}') as server, pytest.raises(PermanentModelError, match="not of type number"):
        structured(server)
    assert len(server.requests) == 3


def test_a_cut_off_answer_is_an_error_that_says_so():
    with ModelServer(Reply('{"score": 0.', finish_reason="length")) as server:
        with pytest.raises(PermanentModelError, match=r"cut off \(`max_tokens` is 3\)"):
            structured(server, request=ChatRequest(HELLO.messages, Generation(max_tokens=3)))
        assert chat(server).is_cut_off
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 1}',
        '```json\n{"score":1}\n```',
        'Sure! {"score": 1} Hope it helps {}',
        '{"score": 1} I repeat: {"score": 1}',
        '{"score": 7} no: {"score": 1}',
        '{{"score": 1}',
        '\ufeff{"score": 1}',
    ],
    ids="{}-fault-25".format,
)
def test_one_valid_value_in_a_text(text):
    assert read_answer(text, SCORE) == {"score": 1}


@pytest.mark.parametrize(
    "text",
    ["", "1", "{", '{"score": 1} {"score": 0}', '{"score": NaN}', '{"score": true}', '{"score": 1, "x": 2}', "[1]"],
    ids="{}-fault-29".format,
)
def test_no_value_or_several(text):
    with pytest.raises(InvalidAnswer):
        read_answer(text, SCORE)


words = st.text(string.printable + "{}[]\"'\\é😀", max_size=60)
values = st.fixed_dictionaries({"score": st.floats(0, 1), "why": words})
WHY = {
    "type": "object",
    "properties": {"score": {"type": "number"}, "why": {"type": "string"}},
    "required": ["score", "why"],
}


@given(values, st.text("abc ,.!?\n`}]:", max_size=30), st.text("abc ,.!?\n`}]:", max_size=30))
def test_a_value_is_found_between_any_words(value, before, after):
    assert read_answer(before + json.dumps(value) + after, WHY) == value


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    with suppress(InvalidAnswer):
        assert violation(read_answer(text, WHY), WHY) is None


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": ["string", "null"]}, None, 1),
        ({"type": "integer"}, 2.0, 2.5),
        ({"type": "integer"}, 1, True),
        ({"enum": ["a", 1]}, 1, True),
        ({"const": "x"}, "x", "y"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "x", 1),
        ({"type": "array", "items": {"type": "string", "maxLength": 2}, "maxItems": 2}, ["ab"], ["abc"]),
        ({"type": "array", "minItems": 1}, [1], []),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5, 1),
        ({"minLength": 2}, "ab", "a"),
        ({"additionalProperties": {"type": "string"}}, {"a": "b"}, {"a": 1}),
        ({"$defs": {"t": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/t"}}}, {"a": "b"}, {"a": 1}),
    ],
)
def test_the_words_of_a_schema(schema, good, bad):
    assert violation(good, schema) is None
    assert violation(bad, schema)


def test_a_schema_that_is_not_understood_is_refused():
    with pytest.raises(UsageError, match="pattern"):
        violation("a", {"type": "string", "pattern": "b"})
