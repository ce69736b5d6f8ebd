"""Provider for whatever LiteLLM knows (extra `litellm`): `litellm/groq/llama-3.3-70b-versatile`, ...

LiteLLM takes seconds to import, so that happens with the first call. Its own retries are off.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import anyio.to_thread

from stateval.deadline import paused
from stateval.errors import MissingExtra, MissingKey
from stateval.llm.chat import ChatReply, ChatRequest, Schema
from stateval.llm.connections import within
from stateval.llm.endpoint import Endpoint
from stateval.llm.openai_wire import parameters_of, reply_of, vectors_of
from stateval.llm.provider_errors import connection_error, sdk_error
from stateval.llm.refusals import without_refused
from stateval.records.encoding import dump_json
from stateval.records.usage import Usage

_KNOWN = {
    "anthropic": ("https://api.anthropic.com", ("ANTHROPIC_API_KEY",)),
    "cohere": ("https://api.cohere.com", ("COHERE_API_KEY", "CO_API_KEY")),
    "deepseek": ("https://api.deepseek.com", ("DEEPSEEK_API_KEY",)),
    "fireworks_ai": ("https://api.fireworks.ai", ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY", "FIREWORKSAI_API_KEY")),
    "gemini": ("https://generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "groq": ("https://api.groq.com", ("GROQ_API_KEY",)),
    "mistral": ("https://api.mistral.ai", ("MISTRAL_API_KEY",)),
    "openai": ("https://api.openai.com", ("OPENAI_API_KEY",)),
    "openrouter": ("https://openrouter.ai", ("OPENROUTER_API_KEY", "OR_API_KEY")),
    "together_ai": ("https://api.together.xyz", ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_TOKEN")),
    "xai": ("https://api.x.ai", ("XAI_API_KEY",)),
}


class LiteLLMRouter:
    """One model, for chat and for embeddings. Raises MissingExtra, MissingKey (where it is known which one is wanted).

    Args:
        model: the name as LiteLLM has it, with its provider in front.
        name: how the user calls it.
        base_url: an endpoint other than that provider's own.
        api_key: the key for it; else the variable that LiteLLM reads.
    """

    native_tools = False

    def __init__(self, model: str, name: str, base_url: str | None, api_key: str | None) -> None:
        if importlib.util.find_spec("litellm") is None:
            raise MissingExtra("Models through LiteLLM", "litellm")
        provider, _, rest = model.partition("/")
        url, variables = _KNOWN.get(provider, (None, ()))
        self.name = name
        self.model = rest if url else model
        self.api_url = None if base_url else url
        self.endpoint = base_url or url or f"litellm/{provider}"
        self.fingerprint = {"provider": "litellm", "model": model, "endpoint": self.endpoint}
        self._called = model
        self._sent = {"api_base": base_url, "api_key": api_key}
        self._has_answered = False
        self._litellm: ModuleType | None = None
        variable = next((known for known in variables if os.environ.get(known)), next(iter(variables), None))
        if variable and not (api_key or base_url or os.environ.get(variable)):
            raise MissingKey(name, variable, "name another endpoint with `base_url`")
        key_from = f"`{variable}` or `api_key`" if variable and not api_key else "`api_key`"
        self._place = Endpoint(self.endpoint, base_url is None, key_from=key_from)

    async def complete(self, request: ChatRequest, schema: Schema | None) -> ChatReply:
        """One try, repeated only to leave out a parameter that the model has just refused."""

        async def send(parameters: Mapping[str, Any]) -> ChatReply:
            content = await self._call(lambda litellm: litellm.acompletion, parameters, request.timeout)
            return reply_of(content, self.name)

        return await without_refused(
            self.endpoint, self._called, lambda refused: parameters_of(self._called, request, schema, refused), send
        )

    async def embed(self, texts: Sequence[str], timeout: float) -> tuple[list[list[float]], Usage]:
        """The vectors of texts: one try."""
        parameters = {"model": self._called, "input": list(texts)}
        content = await self._call(lambda litellm: litellm.aembedding, parameters, timeout)
        return vectors_of(content, self.name, len(texts))

    async def close(self) -> None:
        """LiteLLM keeps its connections itself, for the whole process."""

    async def _call(
        self,
        function: Callable[[ModuleType], Callable[..., Awaitable[Any]]],
        parameters: Mapping[str, Any],
        timeout: float,
    ) -> bytes:
        import openai

        litellm = self._litellm = self._litellm or await _imported()
        settings = {"timeout": timeout, "num_retries": 0, "max_retries": 0, **self._sent}
        try:
            with within(timeout, self.name, self._place):
                answer = await function(litellm)(**parameters, **settings)
        except litellm.ContentPolicyViolationError as error:
            return _refused(str(error))
        except openai.OpenAIError as error:  # LiteLLM's errors are all of this kind
            cause, reached = _not_connected(error), self._has_answered
            if cause is not None:
                raise connection_error(cause, self.name, self._place, has_answered=reached) from error
            raise sdk_error(error, openai, self.name, self._place, has_answered=reached) from error
        self._has_answered = True
        return dump_json(answer.model_dump(mode="json"))


def _not_connected(error: BaseException | None) -> BaseException | None:
    """The failed connection behind an error, which LiteLLM shows as an answer with status 500."""
    while error is not None and type(error).__name__ not in ("ConnectError", "ClientConnectorError"):
        error = error.__cause__ or error.__context__
    return error


def _refused(told: str) -> bytes:
    choice = {"message": {"refusal": told}, "finish_reason": "content_filter"}
    return dump_json({"choices": [choice]})


async def _imported() -> ModuleType:
    with paused():
        return await anyio.to_thread.run_sync(_import)


def _import() -> ModuleType:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it fetches a price list while it is imported
    import litellm

    litellm.suppress_debug_info = True
    return litellm
