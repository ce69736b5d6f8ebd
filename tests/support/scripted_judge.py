"""A judge that a test scripts: it is handed what the judge was shown, and its opinion becomes the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.judge_prompts import Prompt, parsed
from tests.support.model_server import ModelServer, Reply, Request

Opinion = Callable[[Prompt, str], float | None]
"""From what the judge was shown, and the name of a criterion ("" where there are none), to a score or "cannot tell"."""


def answer_of(request: Request, opinion: Opinion) -> str:
    """The judge's answer to a request, under the schema that it sent."""
    shown = parsed(request.last)
    names = [name for name in request.schema["properties"] if name not in ("rationale", "score")]
    if not names:
        return json.dumps({"rationale": "because", "score": opinion(shown, "")})
    return json.dumps({name: {"rationale": f"{name} because", "score": opinion(shown, name)} for name in names})


def judge_server(opinion: Opinion | float = 1.0, *, model: str | None = None, **options: Any) -> ModelServer:
    """A server on which every model is this judge; `model` is the name that it answers under."""
    said: Opinion = opinion if callable(opinion) else lambda shown, name: opinion
    return ModelServer(lambda request: Reply(answer_of(request, said), model=model), **options)


def judge_environment(server: ModelServer, **further: str | None) -> Mapping[str, str | None]:
    """The environment in which `openai/...` is the scripted judge; nothing is kept in a cache."""
    return {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "sk-test-1234567890",
        "STATEVAL_JUDGE_CACHE": "off",
        **further,
    }
