"""A scripted Letta API on loopback, for what no server that can be installed here does.

    with LettaApi(turns=[[said("Hello."), stop(), usage()]]) as api:
        LettaServer.of(base_url=api.base_url)

Each agent goes through the same `turns`, one a message: a list of chunks, or a dict that is the whole answer where no
stream was asked for. A chunk may be bytes, which are sent as they are. Agents are made by importing any file, and
deleted; `agents` are the ids of those that live, `asked` the bodies of all messages, `looked_at` counts how often the
state of each was asked for.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Chunk = dict[str, Any] | bytes


def said(text: str, number: int = 0) -> dict[str, Any]:
    """An assistant message."""
    date = "2026-01-01T00:00:00+00:00"
    return {"id": f"message-{number}", "message_type": "assistant_message", "content": text, "date": date}


def stop(reason: str = "end_turn") -> dict[str, Any]:
    """The end of a turn."""
    return {"message_type": "stop_reason", "stop_reason": reason}


def usage(tokens: int = 3) -> dict[str, Any]:
    """What a turn took."""
    return {"message_type": "usage_statistics", "prompt_tokens": tokens, "completion_tokens": 1, "step_count": 1}


class LettaApi:
    """The server; a context manager."""

    def __init__(self, turns: Sequence[Sequence[Chunk] | dict[str, Any]]) -> None:
        self.turns = turns
        self.agents: set[str] = set()
        self.asked: list[dict[str, Any]] = []
        self.heard: Counter[str] = Counter()
        self.looked_at: Counter[str] = Counter()
        self._numbers = itertools.count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def new_agent(self) -> str:
        """The id of one more agent."""
        agent_id = f"agent-00000000-0000-4000-8000-{next(self._numbers):012d}"
        self.agents.add(agent_id)
        return agent_id

    def next_turn(self, agent_id: str, body: dict[str, Any]) -> Sequence[Chunk] | dict[str, Any]:
        """What the agent answers now."""
        self.asked.append(body)
        number = self.heard[agent_id]
        self.heard[agent_id] += 1
        return self.turns[min(number, len(self.turns) - 1)]

    def _handler(api) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: Any) -> None:
                """Says nothing."""

            def do_GET(self) -> None:
                match self.path.partition("?")[0].strip("/").split("/"):
                    case ["v1", "agents"]:
                        self._send([])
                    case ["v1", "agents", agent_id]:
                        api.looked_at[agent_id] += 1
                        self._send({"id": agent_id, "name": "scripted"})
                    case _:
                        self._send([])

            def do_DELETE(self) -> None:
                api.agents.discard(self.path.strip("/").split("/")[-1])
                self._send({})

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers.get("content-length", 0)))
                match self.path.partition("?")[0].strip("/").split("/"):
                    case ["v1", "agents", "import"]:
                        self._send({"agent_ids": [api.new_agent()]})
                    case ["v1", "agents", agent_id, "messages", *_]:
                        self._answer(api.next_turn(agent_id, json.loads(content)))
                    case _:
                        self._send({"detail": "Not Found"}, 404)

            def _answer(self, turn: Sequence[Chunk] | dict[str, Any]) -> None:
                if isinstance(turn, dict):
                    return self._send(turn, int(turn.get("status", 200)))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for chunk in turn:
                    told = chunk if isinstance(chunk, bytes) else f"data: {json.dumps(chunk)}\n\n".encode()
                    self.wfile.write(told)
                self.close_connection = True
                return None

            def _send(self, value: Any, status: int = 200) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler
