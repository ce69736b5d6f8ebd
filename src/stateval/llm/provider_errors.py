"""What the failures of an endpoint mean: try again, slow down, give up, or leave a parameter out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from stateval.errors import (
    ModelError,
    ModelUnavailable,
    PermanentModelError,
    TooManyCalls,
    TransientModelError,
)
from stateval.llm.endpoint import Endpoint
from stateval.llm.retrying import retry_after

_PASSING = frozenset({408, 409, 425, 429})
_OVERLOADED = 529
_TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window)|maximum context|too many tokens|prompt is too long|"
    r"token count.{0,60}exceeds|input is too long",
    re.I,
)
_WRONG_KEY = re.compile(r"api.?key.{0,20}(not valid|invalid|expired|not found)|invalid.{0,10}api.?key", re.I)
_MAY_BE_REFUSED = {
    "temperature": re.compile(r"\btemperature\b", re.I),
    "seed": re.compile(r"\bseed\b", re.I),
    "max_tokens": re.compile(r"\bmax_tokens\b|\bmax_output_tokens\b", re.I),
    "max_completion_tokens": re.compile(r"\bmax_completion_tokens\b", re.I),
    "response_format": re.compile(r"response_?format|json_?schema|json mode|structured.output", re.I),
    "output_config": re.compile(r"output_config|output.format|json_schema|structured.output", re.I),
    "response_json_schema": re.compile(r"response_?(json_?)?schema|json.?mode|response_?mime_?type", re.I),
    "tool_choice": re.compile(r"tool_choice|forced tool", re.I),
    "tools": re.compile(r"\btools?\b|function call", re.I),
}
_REFUSAL = re.compile(
    r"not (be )?(support(ed)?|allowed|permitted|available|recognized|accepted|compatible|enabled)\b|n't support|"
    r"unsupported|unknown|unrecognized|unexpected|extra|only the default|must be 1|requires|deprecated|cannot find",
    re.I,
)


class StatusError(PermanentModelError):
    """A status that trying again cannot mend. `parameter` is the one that the endpoint blames, if it says so."""

    def __init__(self, message: str, status: int, parameter: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.parameter = parameter


class NotReached(TransientModelError, ModelUnavailable):
    """Nobody listens at an endpoint that has not answered once: tried again, and then no sample can run."""


def sdk_error(error: Exception, sdk: ModuleType, model: str, endpoint: Endpoint, *, has_answered: bool) -> ModelError:
    """What an error of an SDK of OpenAI's kind means for a model at an endpoint that has answered before, or not."""
    if isinstance(error, sdk.APIStatusError):
        told = told_in(getattr(error, "body", None)) or str(error)[:500]  # LiteLLM's own errors lack some of these
        code, parameter = getattr(error, "code", None), getattr(error, "param", None)
        headers = getattr(getattr(error, "response", None), "headers", None)
        return status_error(error.status_code, told, model, endpoint, headers=headers, code=code, parameter=parameter)
    if isinstance(error, sdk.APITimeoutError):
        return not_in_time(model, endpoint)
    if isinstance(error, sdk.APIConnectionError):
        return connection_error(error.__cause__ or error, model, endpoint, has_answered=has_answered)
    return PermanentModelError(f"model `{model}` at {endpoint.base_url}: {type(error).__name__}: {error}")


def status_error(
    status: int,
    told: str,
    model: str,
    endpoint: Endpoint,
    *,
    headers: Mapping[str, str] | None = None,
    code: Any = None,
    parameter: Any = None,
) -> ModelError:
    """What an answer with an error status means; `told` is the endpoint's message, `code` its word for the error."""
    message = f"model `{model}` answered {status}: {told}"
    wait = retry_after(headers or {})
    if code in ("context_length_exceeded", "exceed_context_size_error") or _TOO_LONG.search(told):
        return PermanentModelError(f"{message} (the conversation is longer than the model's context)")
    refuses_tools = status >= 500 and "tools" in told and _REFUSAL.search(told)
    if code == "insufficient_quota" or refuses_tools or not (status in _PASSING or status >= 500):
        advice = _advice(401 if _WRONG_KEY.search(told) else status, endpoint)
        return StatusError(message + advice, status, parameter if isinstance(parameter, str) else None)
    if status in (429, _OVERLOADED) or (status == 503 and wait is not None):
        return TooManyCalls(message, wait)
    return TransientModelError(message, wait)


def connection_error(cause: BaseException, model: str, endpoint: Endpoint, *, has_answered: bool) -> ModelError:
    """What a connection that could not be made, or broke, means."""
    told = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
    message = f"the connection to model `{model}` at {endpoint.base_url} failed ({told})"
    if has_answered or "Connect" not in type(cause).__name__:
        return TransientModelError(message)
    return NotReached(f"{message}; look at {endpoint.url_from}")


def not_in_time(model: str, endpoint: Endpoint) -> TransientModelError:
    """The error of a try that took longer than its time."""
    return TransientModelError(f"model `{model}` at {endpoint.base_url} did not answer in time")


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


def told_in(body: object) -> str:
    """The message in the body of an error, in any of the forms in which endpoints write one."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        told = inner.get("message") if isinstance(inner, Mapping) else inner
        return str(told or body)
    return str(body)[:500] if body else ""


def _advice(status: int, endpoint: Endpoint) -> str:
    match status:
        case 401 | 403:
            return f" (look at {endpoint.key_from})"
        case 404:
            return f" (look at the model's name and at {endpoint.url_from})"
    return ""
