"""What the failures of an OpenAI-compatible endpoint mean: try again, give up, or leave a parameter out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stateval.errors import ModelError, ModelUnavailable, PermanentModelError, TransientModelError
from stateval.llm.retrying import retry_after

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAIError

_PASSING = frozenset({408, 409, 425, 429})
_TOO_LONG = re.compile(r"context.{0,20}(length|size|window)|maximum context|too many tokens|prompt is too long", re.I)
_MAY_BE_REFUSED = {
    "temperature": re.compile(r"\btemperature\b", re.I),
    "seed": re.compile(r"\bseed\b", re.I),
    "max_tokens": re.compile(r"\bmax_tokens\b", re.I),
    "response_format": re.compile(r"response_format|json_schema|structured output", re.I),
    "tools": re.compile(r"\btools?\b|function call", re.I),
}
_REFUSAL = re.compile(
    r"not (be )?(support(ed)?|allowed|permitted|available|recognized|accepted)\b|n't support|unsupported|unknown|"
    r"unrecognized|unexpected|extra|only the default|must be 1|requires",
    re.I,
)


class StatusError(PermanentModelError):
    """A status that trying again cannot mend. `parameter` is the one that the endpoint blames, if it says so."""

    def __init__(self, message: str, status: int, parameter: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.parameter = parameter


def model_error(error: OpenAIError, model: str, endpoint: str, *, has_answered: bool) -> ModelError:
    """What an error of the SDK means for a model at an endpoint that has answered before, or has not."""
    import openai

    match error:
        case openai.APIStatusError():
            return _status_error(error, model)
        case openai.APITimeoutError():
            return TransientModelError(f"model `{model}` at {endpoint} did not answer in time")
        case openai.APIConnectionError():
            cause = error.__cause__ or error
            told = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
            message = f"the connection to model `{model}` at {endpoint} failed ({told})"
            if has_answered or "Connect" not in type(cause).__name__:
                return TransientModelError(message)
            return NotReached(message)
    return PermanentModelError(f"model `{model}` at {endpoint}: {type(error).__name__}: {error}")


class NotReached(TransientModelError, ModelUnavailable):
    """Nobody listens at an endpoint that has not answered once: tried again, and then no sample can run."""


def refused_parameter(error: ModelError, sent: Mapping[str, Any]) -> str | None:
    """The parameter of the request that the endpoint does not know or allow, where the error says so."""
    if not isinstance(error, StatusError) or error.status not in (400, 404, 422, 500, 501):
        return None
    if error.parameter:
        name = error.parameter.partition(".")[0]
        return name if name in _MAY_BE_REFUSED and name in sent else None
    text = str(error)
    if not _REFUSAL.search(text):
        return None
    return next((name for name, word in _MAY_BE_REFUSED.items() if name in sent and word.search(text)), None)


def _status_error(error: APIStatusError, model: str) -> ModelError:
    told = f"model `{model}` answered {error.status_code}: {_told(error)}"
    status = error.status_code
    if error.code in ("context_length_exceeded", "exceed_context_size_error") or _TOO_LONG.search(told):
        return PermanentModelError(f"{told} (the conversation is longer than the model's context)")
    refuses_tools = status >= 500 and "tools" in told and _REFUSAL.search(told)
    if error.code == "insufficient_quota" or refuses_tools or not (status in _PASSING or status >= 500):
        return StatusError(told + _advice(status), status, error.param if isinstance(error.param, str) else None)
    return TransientModelError(told, retry_after(error.response.headers))


def _told(error: APIStatusError) -> str:
    body = error.body
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        told = inner.get("message") if isinstance(inner, Mapping) else inner
        return str(told or body)
    return str(body or error.message)[:500]


def _advice(status: int) -> str:
    match status:
        case 401 | 403:
            return " (look at `OPENAI_API_KEY` or `api_key`)"
        case 404:
            return " (look at the model's name and at `base_url`)"
    return ""
