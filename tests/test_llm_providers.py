"""Every provider over real HTTP: what is sent, what comes back, and what each failure means."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import dataclass

import anyio
import pytest

from stateval.errors import (
    MissingExtra,
    MissingKey,
    ModelUnavailable,
    PermanentModelError,
    TooManyCalls,
    TransientModelError,
    UsageError,
)
from stateval.llm import (
    ChatMessage,
    ChatRequest,
    Generation,
    Retries,
    ToolDefinition,
    open_embedding_model,
    open_model,
)
from stateval.records.message import ToolCall
from tests.support.model_server import ModelServer, Reply, rate_limited, refused

QUICK = Retries(tries=3, first_wait=0.001, longest_wait=0.002, jitter=0)
HELLO = ChatRequest((ChatMessage("system", "be short"), ChatMessage("user", "hello")))
SCORE = {
    "type": "object",
    "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["score"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Spoken:
    """How one provider is opened here, and what its API calls things."""

    name: str
    provider: str
    variable: str
    too_long: str
    usage: dict
    cut_off: str
    temperature: str = "temperature"
    at_root: bool = True

    def open(self, server: ModelServer, **settings):
        url = server.root if self.at_root else server.base_url
        return open_model(self.name, provider=self.provider, base_url=url, retries=QUICK, **settings)

    def knows(self, request, parameter: str) -> bool:
        """Whether the request has this parameter."""
        return parameter in request.body or parameter in (request.body.get("generationConfig") or {})


OPENAI_USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 6,
    "prompt_tokens_details": {"cached_tokens": 7},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
SPOKEN = {
    "openai": Spoken(
        "gpt-x",
        "openai",
        "OPENAI_API_KEY",
        "This model's maximum context length is 8 tokens",
        OPENAI_USAGE,
        "length",
        at_root=False,
    ),
    "anthropic": Spoken(
        "claude-x",
        "anthropic",
        "ANTHROPIC_API_KEY",
        "prompt is too long: 208310 tokens > 200000 maximum",
        {
            "input_tokens": 3,
            "cache_read_input_tokens": 7,
            "output_tokens": 6,
            "output_tokens_details": {"thinking_tokens": 2},
        },
        "max_tokens",
    ),
    "google": Spoken(
        "gemini-x",
        "google",
        "GEMINI_API_KEY",
        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        {
            "promptTokenCount": 10,
            "cachedContentTokenCount": 7,
            "candidatesTokenCount": 4,
            "thoughtsTokenCount": 2,
        },
        "MAX_TOKENS",
    ),
    "litellm": Spoken(
        "openai/gpt-x",
        "litellm",
        "OPENAI_API_KEY",
        "This model's maximum context length is 8 tokens",
        OPENAI_USAGE,
        "length",
        at_root=False,
    ),
}


@pytest.fixture(params=SPOKEN.values(), ids=SPOKEN)
def spoken(request, monkeypatch) -> Spoken:
    """One provider after the other, with its key in the environment."""
    monkeypatch.setenv(request.param.variable, "key-of-the-environment")
    return request.param


def ask(spoken: Spoken, server: ModelServer, request: ChatRequest = HELLO, schema=None, **settings):
    async def run():
        model = spoken.open(server, **settings)
        try:
            return await (model.chat(request) if schema is None else model.structured(request, schema))
        finally:
            await model.close()

    return anyio.run(run)


def test_a_call_carries_the_conversation_the_settings_and_the_usage(spoken):
    talk = (*HELLO.messages, ChatMessage("assistant", "yes?"), ChatMessage("user", "go on"))
    with ModelServer(Reply("hi", usage=spoken.usage, model="ran-1")) as server:
        reply = ask(spoken, server, ChatRequest(talk, Generation(temperature=0.5, max_tokens=9)))
    assert (reply.text, reply.model, reply.finish_reason, reply.refusal) == ("hi", "ran-1", "stop", "")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (10, 6)
    assert (reply.usage.cached_input_tokens, reply.usage.reasoning_tokens, reply.usage.cost) == (7, 2, None)
    (request,) = server.requests
    said = [(m["role"], m["content"]) for m in request.messages if m["role"] != "system"]
    assert said == [("user", "hello"), ("assistant", "yes?"), ("user", "go on")]
    assert request.system == "be short"
    assert "key-of-the-environment" in str(request.headers)
    settings = {**request.body, **(request.body.get("generationConfig") or {})}
    assert settings["temperature"] == 0.5
    assert settings.get("maxOutputTokens", settings.get("max_tokens")) == 9


def test_a_structured_answer_is_asked_for_by_the_providers_own_means(spoken):
    with ModelServer('{"score": 0.5}') as server:
        value, _ = ask(spoken, server, schema=SCORE)
    assert value == {"score": 0.5}
    assert server.requests[0].schema["properties"]["score"]["type"] == "number"
    assert len(server.requests) == 1


def test_an_answer_that_is_cut_off_says_so(spoken):
    with ModelServer(Reply("and then", finish_reason=spoken.cut_off)) as server:
        assert ask(spoken, server).is_cut_off


def test_a_refusal_is_no_text(spoken):
    with ModelServer(Reply(refusal="I will not")) as server:
        reply = ask(spoken, server)
    assert reply.text == ""
    assert ("SAFETY" if spoken.provider == "google" else "I will not") in reply.refusal


def test_a_content_filter_is_a_refusal():
    with ModelServer(Reply("half an ans", finish_reason="content_filter")) as server:
        reply = ask(SPOKEN["openai"], server)
    assert reply.text == ""
    assert "content filter" in reply.refusal


@pytest.mark.parametrize(
    "body",
    [
        b'{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}}',
        b'{"candidates": [{"finishReason": "RECITATION", "content": {"parts": [{"text": "half"}]}}]}',
    ],
    ids=["prompt", "answer"],
)
def test_what_google_holds_back_is_a_refusal(body):
    with ModelServer(Reply(body=body)) as server:
        reply = ask(SPOKEN["google"], server)
    assert reply.text == ""
    assert "held the answer back" in reply.refusal


def test_a_busy_endpoint_is_waited_for(spoken):
    with ModelServer([rate_limited("0.3"), "fine"]) as server:
        assert ask(spoken, server).text == "fine"
    assert server.requests[1].at - server.requests[0].at >= 0.3


def test_an_overloaded_anthropic_wants_fewer_calls():
    with ModelServer(refused(529, "Overloaded")) as server, pytest.raises(TooManyCalls):
        ask(SPOKEN["anthropic"], server)
    assert len(server.requests) == QUICK.tries


def test_the_wait_that_google_writes_into_the_body():
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.3s"}
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": [info]}
    with ModelServer([Reply(status=429, error=error), "fine"]) as server:
        assert ask(SPOKEN["google"], server).text == "fine"
    assert server.requests[1].at - server.requests[0].at >= 0.3


@pytest.mark.parametrize("status", [400, 404, 422])
def test_what_cannot_pass_is_asked_once(spoken, status):
    with ModelServer(refused(status, "no")) as server, pytest.raises(PermanentModelError, match=rf"{status}.*no"):
        ask(spoken, server)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [500, 503])
def test_what_may_pass_is_tried_again_by_nobody_else(spoken, status):
    with ModelServer(refused(status, "oops")) as server, pytest.raises(TransientModelError, match="oops"):
        ask(spoken, server)
    assert len(server.requests) == QUICK.tries


def test_a_wrong_key_names_its_variable_and_never_the_key(spoken):
    with ModelServer(refused(401, "who are you?")) as server:
        with pytest.raises(PermanentModelError, match=f"look at `{spoken.variable}` or `api_key`") as failed:
            ask(spoken, server)
        with pytest.raises(PermanentModelError, match=r"look at `api_key`\)"):
            ask(spoken, server, api_key="key-of-the-argument")
    assert "key-of-the" not in str(failed.value)
    assert len(server.requests) == 2


def test_a_wrong_key_of_google_comes_as_a_bad_request():
    message = "API key not valid. Please pass a valid API key."
    with ModelServer(refused(400, message)) as server, pytest.raises(PermanentModelError, match="GEMINI_API_KEY"):
        ask(SPOKEN["google"], server)


def test_a_conversation_too_long_for_the_model(spoken):
    told = "longer than the model's context"
    with ModelServer(refused(400, spoken.too_long)) as server, pytest.raises(PermanentModelError, match=told):
        ask(spoken, server)
    assert len(server.requests) == 1


def test_an_answer_that_comes_too_late(spoken):
    late = ChatRequest(HELLO.messages, timeout=0.2)
    with ModelServer([Reply("late", delay=3), "fine"]) as server:
        assert ask(spoken, server, late).text == "fine"
    assert len(server.requests) == 2


def test_nobody_listens(spoken):
    with ModelServer() as server:
        pass
    with pytest.raises(ModelUnavailable, match=r"connection.*look at `base_url`"):
        ask(spoken, server)


def test_a_connection_that_breaks_is_tried_again(spoken):
    with ModelServer([Reply("some text", cut_after=30), ConnectionError(), "fine"]) as server:
        assert ask(spoken, server).text == "fine"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "body", [b"<html>proxy</html>", b"{}", b"[]", b'{"content": 1, "choices": [], "candidates": []}']
)
def test_a_body_that_is_no_answer_is_asked_for_again(spoken, body):
    with ModelServer([Reply(body=body), "fine"]) as server:
        assert ask(spoken, server).text == "fine"
    assert len(server.requests) == 2


def test_a_cancelled_call_leaves_a_model_that_works(spoken):
    async def run():
        model = spoken.open(server)
        with anyio.move_on_after(0.3) as scope:
            await model.chat(HELLO)
        assert scope.cancelled_caught
        reply = await model.chat(HELLO)
        await model.close()
        return reply.text

    with ModelServer([Reply("slow", delay=3), "fine"]) as server:
        assert anyio.run(run) == "fine"


def test_one_model_in_several_event_loops_unclosed(spoken):
    with ModelServer("fine") as server:
        model = spoken.open(server)
        assert [anyio.run(model.chat, HELLO).text for _ in range(2)] == ["fine", "fine"]


@pytest.mark.parametrize("wanted", [(), ("temperature",), ("max_tokens", "temperature", "response_format")], ids=len)
def test_many_first_calls_at_once_learn_what_is_refused_and_none_fails(wanted, caplog):
    """With two calls in flight, the second was once an error: what it had been sent with was known by then."""

    def answer(request):
        blamed = next((name for name in wanted if name in request.body), None)
        return refused(400, f"Unsupported parameter: '{blamed}'", param=blamed) if blamed else '{"score": 1}'

    async def run():
        models = [SPOKEN["openai"].open(server) for _ in range(5)]
        values = []

        async def one(model):
            values.append((await model.structured(ChatRequest(HELLO.messages, Generation(max_tokens=50)), SCORE))[0])

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(one, models[number % 5])
        before = len(server.requests)
        await one(SPOKEN["openai"].open(server))
        for model in models:
            await model.close()
        return values, len(server.requests) - before

    with ModelServer(answer) as server, caplog.at_level(logging.WARNING, "stateval"):
        values, needed = anyio.run(run)
    assert values == [{"score": 1}] * 51
    assert needed == 1
    assert sorted(r.args[1] for r in caplog.records if "refuses" in r.message) == sorted(wanted)


@pytest.mark.parametrize(
    ("told", "parameter"),
    [
        ("temperature: Extra inputs are not permitted", "temperature"),
        ("`temperature` is deprecated for this model.", "temperature"),
        ("output_config: Extra inputs are not permitted", "output_config"),
        ("This model does not support structured outputs", "output_config"),
    ],
)
def test_what_anthropics_models_refuse(told, parameter):
    def answer(request):
        if parameter in request.body:
            return refused(400, told, type="invalid_request_error")
        forced = request.body.get("tool_choice")
        return Reply(tool_calls=[("answer", {"score": 1})]) if forced else '{"score": 1}'

    with ModelServer(answer) as server:
        value, reply = ask(SPOKEN["anthropic"], server, schema=SCORE)
    assert value == {"score": 1}
    assert reply.finish_reason == "stop"
    assert [parameter in request.body for request in server.requests] == [True, False]
    assert server.requests[1].schema["required"] == ["score"]


def test_an_anthropic_model_without_any_means_is_asked_in_words():
    def answer(request):
        for parameter in ("output_config", "tool_choice"):
            if parameter in request.body:
                return refused(400, f"{parameter}: Extra inputs are not permitted")
        return '{"score": 1}' if "JSON schema" in request.last else "what?"

    with ModelServer(answer) as server:
        assert ask(SPOKEN["anthropic"], server, schema=SCORE)[0] == {"score": 1}


def test_what_googles_models_refuse():
    def answer(request):
        if "responseJsonSchema" in request.body["generationConfig"]:
            return refused(400, 'Invalid JSON payload received. Unknown name "responseJsonSchema"')
        return '{"score": 1}' if "JSON schema" in request.last else "what?"

    with ModelServer(answer) as server:
        assert ask(SPOKEN["google"], server, schema=SCORE)[0] == {"score": 1}
    assert len(server.requests) == 2


def test_what_litellm_knows_to_be_refused_is_left_out():
    with ModelServer('{"score": 1}') as server:
        spoken = Spoken("openai/o1", "litellm", "OPENAI_API_KEY", "", {}, "", at_root=False)
        value, _ = ask(spoken, server, schema=SCORE, api_key="k")
    assert value == {"score": 1}
    assert "temperature" not in server.requests[0].body


def test_tools_of_anthropic_go_there_and_back():
    tool = ToolDefinition("look", "looks", {"type": "object", "properties": {"at": {"type": "string"}}})
    calls = tuple(
        ToolCall(name="look", arguments=given, tool_call_id=f"toolu_{number}")
        for number, given in ((1, '{"at": "a"}'), (2, "no json"))
    )
    talk = (
        ChatMessage("user", "look"),
        ChatMessage("assistant", "I look", calls),
        ChatMessage("tool", "an apple", tool_call_id="toolu_1"),
        ChatMessage("tool", "nothing", tool_call_id="toolu_2"),
    )
    with ModelServer(Reply(tool_calls=[("look", {"at": "b"})], reasoning="hm")) as server:
        reply = ask(SPOKEN["anthropic"], server, ChatRequest(talk, tools=(tool,)))
    assert (reply.finish_reason, reply.reasoning) == ("tool_calls", "hm")
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [("look", '{"at":"b"}')]
    body = server.requests[0].body
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]
    assert [b["tool_use_id"] for b in body["messages"][2]["content"]] == ["toolu_1", "toolu_2"]
    assert body["messages"][1]["content"][2]["input"] == {"arguments": "no json"}
    assert server.requests[0].tools == ["look"]


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai/gpt-4o-mini", "OPENAI_API_KEY"),
        ("anthropic/claude-x", "ANTHROPIC_API_KEY"),
        ("google/gemini-x", "GEMINI_API_KEY"),
        ("gemini/gemini-x", "GEMINI_API_KEY"),
        ("litellm/groq/llama", "GROQ_API_KEY"),
    ],
)
def test_a_missing_key_is_said_when_the_model_is_opened(monkeypatch, name, variable):
    for known in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_API_KEY", variable):
        monkeypatch.delenv(known, raising=False)
    with pytest.raises(MissingKey, match=variable):
        open_model(name)
    monkeypatch.setenv(variable, "key")
    assert open_model(name).name == name


def test_the_other_variable_of_google(monkeypatch):
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", "the-other")
    with ModelServer(refused(403, "no")) as server, pytest.raises(PermanentModelError, match="GOOGLE_API_KEY"):
        ask(SPOKEN["google"], server)
    assert server.requests[0].headers["x-goog-api-key"] == "the-other"


@pytest.mark.parametrize(
    ("provider", "module"), [("anthropic", "anthropic"), ("google", "google.genai"), ("litellm", "litellm")]
)
def test_a_missing_extra_is_said_when_the_model_is_opened(monkeypatch, provider, module):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == module else found(name))
    with pytest.raises(MissingExtra, match=rf"stateval\[{provider}\]"):
        open_model("m", provider=provider, api_key="k")


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("antropic/claude", {}, r"did you mean `anthropic/\.\.\.`"),
        ("m", {"provider": "antropic"}, "did you mean `anthropic`"),
        ("anthropic/", {}, "names no model"),
        (" ", {"provider": "google"}, "names no model"),
        ("m", {"provider": "anthropic", "base_url": "nonsense"}, "`base_url` is 'nonsense'"),
        ("m", {"provider": "openai", "base_url": "http://[::1"}, "`base_url` is"),
        ("openai/m", {"api_key": "k", "requests_per_minute": 0}, "requests_per_minute"),
    ],
)
def test_wrong_names_and_settings(monkeypatch, name, settings, told):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError, match=told):
        open_model(name, **settings)


def test_a_wrong_variable_is_named(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "localhost:1")
    with pytest.raises(UsageError, match="`ANTHROPIC_BASE_URL` is 'localhost:1'"):
        open_model("anthropic/claude-x")
    with ModelServer() as server:
        pass
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    with pytest.raises(ModelUnavailable, match="look at `OPENAI_BASE_URL`"):
        anyio.run(open_model("openai/m", retries=QUICK).chat, HELLO)


@pytest.mark.parametrize("known", ["openai", "google", "litellm"])
def test_embeddings(monkeypatch, known):
    spoken = SPOKEN[known]
    monkeypatch.setenv(spoken.variable, "key")

    async def run():
        url = server.root if spoken.at_root else server.base_url
        model = open_embedding_model(spoken.name, provider=spoken.provider, base_url=url, retries=QUICK)
        try:
            return await model.embed(["ab", "b"])
        finally:
            await model.close()

    with ModelServer() as server:
        vectors, usage = anyio.run(run)
    assert [vector[:3] for vector in vectors] == [[1, 1, 0], [0, 1, 0]]
    assert usage.cost is None


@pytest.mark.parametrize("name", ["anthropic/claude-x", "embedded/smollm2-135m"])
def test_a_provider_without_embeddings(name):
    with pytest.raises(UsageError, match=r"`openai`.*`google` and `litellm`"):
        open_embedding_model(name)


@pytest.mark.parametrize("code", ["import stateval", "import stateval.llm, stateval.graders, stateval.api"])
def test_no_sdk_is_imported_before_it_is_used(code):
    sdks = ("openai", "anthropic", "google.genai", "litellm", "genai_prices", "aiohttp", "httpx")
    check = f"{code}; import sys; print([name for name in {sdks!r} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
