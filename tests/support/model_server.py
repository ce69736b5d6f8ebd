"""A scripted model server: OpenAI's API over real HTTP on loopback, whose answers are functions of the request.

    with ModelServer(lambda request: "Paris") as server:
        model = open_model("any-name", base_url=server.base_url)

An answer function takes a `Request` and returns a text, a `Reply`, or an exception to raise (the connection is then
closed without an answer). A list of these answers is given out in turn, the last one for ever. The function is called
in the thread of the request, so it may look at `request.number` (counted from 0 over the whole server), at the
messages, at the tools, or block on an event of the test.

What a `Reply` can do:

* answer: `text`, `tool_calls` (pairs of name and arguments; arguments that are no text are written as JSON),
  `reasoning`, `refusal`, `finish_reason`, `usage` (counted in words where None), `model`;
* be slow: `delay` seconds before the first byte, `pause` seconds between streamed pieces;
* refuse: `status` with `error` (a message, or the whole error object), `headers` such as `{"retry-after": "2"}`;
* break: `body` sends these bytes instead; `cut_after` closes the connection after so many bytes of the body, while
  `content-length` promised all of it.

`rate_limited(2)` is a 429 with `retry-after: 2`, `refused(400, "...")` an error of that status.

The server answers `/v1/chat/completions` (with `stream` as server-sent events, and `stream_options.include_usage`),
`/v1/models` (the names of `models`, with a context of 128k tokens, as Letta Code wants it)
and `/v1/embeddings` (by the function `embedding`, text to vector; the default counts letters). It also speaks
Anthropic's API (`/v1/messages`, without streams) and Google's (`/<version>/models/<name>:generateContent` and
`:batchEmbedContents`) at `root`: the answers are the same, `request.messages`, `system` and `schema` read alike, while
`usage`, `finish_reason` and error objects are sent as given, in the API's own words. Every response says `connection:
close`. A request for JSON is not treated specially: the answer function sees it as `request.schema` and may return
JSON, or not.

`server.requests` holds every chat request in the order of arrival, `server.peak` the greatest number at once,
`server.failures` what answer functions raised by mistake; leaving the context raises the first of these.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.support.model_dialects import candidates, embeddings_of_google, message, messages_in, schema_in, system_in


@dataclass(frozen=True)
class Request:
    """A request as it came. `headers` have lower-case names; `at` is the monotonic time of arrival in seconds."""

    number: int
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at: float

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation, in the form of OpenAI's API."""
        return messages_in(self.path, self.body)

    @property
    def last(self) -> str:
        """The content of the last message."""
        return str(self.messages[-1].get("content") or "") if self.messages else ""

    @property
    def system(self) -> str:
        """The contents of the system messages, joined."""
        return system_in(self.path, self.body)

    @property
    def tools(self) -> list[str]:
        """The names of the tools on offer."""
        return [tool.get("function", tool)["name"] for tool in self.body.get("tools", ())]

    @property
    def schema(self) -> Any:
        """The JSON schema that the answer should follow, or None."""
        return schema_in(self.path, self.body)


@dataclass(frozen=True)
class Reply:
    """An answer; see the module for what each field does."""

    text: str = ""
    tool_calls: Sequence[tuple[str, Any]] = ()
    reasoning: str = ""
    refusal: str = ""
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    model: str | None = None
    delay: float = 0.0
    pause: float = 0.0
    status: int = 200
    error: str | Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    cut_after: int | None = None


Answer = str | Reply | Exception
Answers = Callable[[Request], Answer] | Sequence[Answer] | Answer


def rate_limited(retry_after: str | float = 0) -> Reply:
    """A 429 that asks to wait: seconds, or an HTTP date."""
    return refused(429, "rate limit reached", headers={"retry-after": str(retry_after)})


def refused(status: int, message: str, **fields: Any) -> Reply:
    """An error of this status; `param` and `code` become part of the error object, `headers` are sent."""
    headers = fields.pop("headers", {})
    return Reply(status=status, error={"message": message, "type": "error", **fields}, headers=headers)


def letters(text: str) -> list[float]:
    """The default embedding: how often each letter occurs."""
    counts = Counter(text.lower())
    return [float(counts[letter]) for letter in "abcdefghijklmnopqrstuvwxyz"]


class ModelServer:
    """The server; a context manager. `base_url` is `root` with `/v1` at its end, as OpenAI's clients want it."""

    def __init__(
        self,
        answers: Answers = "ok",
        *,
        models: Sequence[str] = ("scripted",),
        embedding: Callable[[str], list[float]] = letters,
    ) -> None:
        self.models = tuple(models)
        self.embedding = embedding
        self.requests: list[Request] = []
        self.failures: list[Exception] = []
        self.peak = 0
        self.answers = answers
        self._in_flight = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.root = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.base_url = f"{self.root}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self.failures and error is None:
            raise self.failures[0]

    def received(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Request:
        """Records a chat request that has begun."""
        with self._lock:
            request = Request(len(self.requests), path, headers, body, time.monotonic())
            self.requests.append(request)
            self._in_flight += 1
            self.peak = max(self.peak, self._in_flight)
        return request

    def finished(self) -> None:
        """A chat request has been answered."""
        with self._lock:
            self._in_flight -= 1

    def answer(self, request: Request) -> Reply | Exception:
        """What to answer. A mistake in an answer function is recorded and becomes a 500."""
        try:
            answer = self._scripted(request)
        except Exception as error:
            self.failures.append(error)
            return refused(500, f"the test's answer function raised {error!r}")
        return Reply(answer) if isinstance(answer, str) else answer

    def _scripted(self, request: Request) -> Answer:
        if callable(self.answers):
            return self.answers(request)
        if isinstance(self.answers, str | Reply | Exception):
            return self.answers
        return self.answers[min(request.number, len(self.answers) - 1)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    owner: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *arguments: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            owner = self.server.owner
            described = [
                {"id": m, "object": "model", "owned_by": "tests", "max_model_len": 131072} for m in owner.models
            ]
            self._send(200, _json({"object": "list", "data": described}))
        else:
            self._send(404, _json({"error": {"message": f"no such path: {self.path}"}}))

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(content)
        match self.path:
            case "/v1/chat/completions" | "/v1/messages":
                self._chat(body)
            case "/v1/embeddings":
                self._embed(body)
            case path if path.endswith(":generateContent"):
                self._chat(body)
            case path if path.endswith(":batchEmbedContents"):
                self._send(200, _json(embeddings_of_google(body, self.server.owner.embedding)))
            case _:
                self._send(404, _json({"error": {"message": f"no such path: {self.path}"}}))

    def _chat(self, body: dict[str, Any]) -> None:
        owner = self.server.owner
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = owner.received(self.path, headers, body)
        try:
            reply = owner.answer(request)
            if isinstance(reply, Exception):
                self.close_connection = True
                return
            time.sleep(reply.delay)
            self._reply(request, reply)
        finally:
            owner.finished()

    def _reply(self, request: Request, reply: Reply) -> None:
        if reply.body is not None:
            self._send(reply.status, reply.body, reply.headers, reply.cut_after)
        elif reply.status != 200 or reply.error is not None:
            error = reply.error if isinstance(reply.error, Mapping) else {"message": reply.error or "error"}
            self._send(reply.status, _json({"type": "error", "error": error}), reply.headers, reply.cut_after)
        elif request.body.get("stream"):
            self._stream(request, reply)
        else:
            self._send(200, _json(_answered(request, reply)), reply.headers, reply.cut_after)

    def _stream(self, request: Request, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        sent = 0
        for event in _events(request, reply):
            content = b"data: " + event + b"\n\n"
            if reply.cut_after is not None and sent + len(content) > reply.cut_after:
                self.wfile.write(content[: reply.cut_after - sent])
                break
            self.wfile.write(content)
            self.wfile.flush()
            sent += len(content)
            time.sleep(reply.pause)
        self.close_connection = True

    def _embed(self, body: dict[str, Any]) -> None:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = [self.server.owner.embedding(text) for text in texts]
        data = [{"object": "embedding", "index": number, "embedding": v} for number, v in enumerate(vectors)]
        usage = {
            "prompt_tokens": sum(len(t.split()) for t in texts),
            "total_tokens": sum(len(t.split()) for t in texts),
        }
        self._send(200, _json({"object": "list", "data": data, "model": body.get("model"), "usage": usage}))

    def _send(
        self, status: int, content: bytes, headers: Mapping[str, str] | None = None, cut_after: int | None = None
    ) -> None:
        self.send_response(status)
        given = {"content-type": "application/json", **(headers or {})}
        for name, value in {**given, "content-length": str(len(content)), "connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content if cut_after is None else content[:cut_after])
        self.close_connection = True


def _json(value: Any) -> bytes:
    return json.dumps(value).encode("ascii")


def _answered(request: Request, reply: Reply) -> dict[str, Any]:
    if request.path == "/v1/messages":
        return message(request, reply)
    return candidates(request, reply) if request.path.endswith(":generateContent") else _completion(request, reply)


def _completion(request: Request, reply: Reply) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": reply.text or (None if reply.tool_calls else "")}
    if reply.reasoning:
        said["reasoning_content"] = reply.reasoning
    if reply.refusal:
        said |= {"content": None, "refusal": reply.refusal}
    if reply.tool_calls:
        said["tool_calls"] = _calls(request, reply)
    choice = {"index": 0, "message": said, "finish_reason": _finish_reason(reply)}
    return {**_head(request, reply, "chat.completion"), "choices": [choice], "usage": _usage(request, reply)}


def _events(request: Request, reply: Reply) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _json({**_head(request, reply, "chat.completion.chunk"), "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    if reply.reasoning:
        yield chunk({"reasoning_content": reply.reasoning})
    words = reply.text.split(" ") if reply.text else []
    for number, word in enumerate(words):
        yield chunk({"content": word if number == 0 else f" {word}"})
    for number, call in enumerate(_calls(request, reply)):
        yield chunk({"tool_calls": [{"index": number, **call}]})
    yield chunk({}, _finish_reason(reply))
    if (request.body.get("stream_options") or {}).get("include_usage"):
        head = _head(request, reply, "chat.completion.chunk")
        yield _json({**head, "choices": [], "usage": _usage(request, reply)})
    yield b"[DONE]"


def _head(request: Request, reply: Reply, kind: str) -> dict[str, Any]:
    model = reply.model or request.body.get("model")
    return {"id": f"chatcmpl-{request.number}", "object": kind, "created": 1, "model": model}


def _calls(request: Request, reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{request.number}_{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(reply.tool_calls)
    ]


def _finish_reason(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _usage(request: Request, reply: Reply) -> dict[str, Any]:
    if reply.usage is not None:
        return dict(reply.usage)
    prompt = sum(len(str(message.get("content") or "").split()) for message in request.messages)
    answer = len(reply.text.split())
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
