"""A provider made into a model that can be asked: retries, the endpoint's limit, and checked answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stateval.errors import ModelError, PermanentModelError, UsageError
from stateval.llm.chat import ChatMessage, ChatReply, ChatRequest, Provider, Schema
from stateval.llm.limits import place_at
from stateval.llm.prices import cost_of, is_priced
from stateval.llm.retrying import Retries, with_retries
from stateval.llm.schema import InvalidAnswer, read_answer
from stateval.records.usage import Usage

_LONGEST_QUOTE = 200


class CallableModel:
    """The ChatModel on top of a Provider.

    Args:
        provider: makes single tries.
        max_concurrent: calls in flight at the provider's endpoint, over all models and callers in this process.
        per_minute: calls that may begin in a minute there; None for no bound.
        retries: how often and how patiently transient errors are tried again.
        answers: how often one structured answer is asked for when it is not valid.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        max_concurrent: int,
        per_minute: float | None = None,
        retries: Retries | None = None,
        answers: int = 3,
    ) -> None:
        if max_concurrent < 1:
            raise UsageError(f"`max_concurrent` of model `{provider.name}` is {max_concurrent}; it must be at least 1")
        if per_minute is not None and not (math.isfinite(per_minute) and per_minute > 0):
            raise UsageError(f"`requests_per_minute` of model `{provider.name}` is {per_minute}; it must be above 0")
        self._provider = provider
        self._max_concurrent = max_concurrent
        self._per_minute = per_minute
        self._retries = retries or Retries()
        self._answers = answers

    @property
    def name(self) -> str:
        """How users call the model."""
        return self._provider.name

    @property
    def native_tools(self) -> bool:
        """Whether `tools` of a request are understood."""
        return self._provider.native_tools

    @property
    def fingerprint(self) -> Any:
        """What the answers depend on apart from the request."""
        return self._provider.fingerprint

    async def chat(self, request: ChatRequest) -> ChatReply:
        """The model's answer; see `ChatModel`."""
        return await self._call(request, None)

    @property
    def has_price(self) -> bool:
        """Whether the cost of its calls is known."""
        return is_priced(self._provider.api_url, self._provider.model)

    async def structured(
        self, request: ChatRequest, schema: Schema, *, accept: Callable[[Any], Any] | None = None
    ) -> tuple[Any, ChatReply]:
        """The one valid value, and the last reply with the usage of all of them; see `ChatModel`.

        What was used is also in the `usage` of the PermanentModelError where no valid answer came.
        """
        used = Usage(cost=0.0)
        complaint = ""
        asked = request
        for _ in range(self._answers):
            try:
                reply = await self._call(asked, schema)
            except ModelError as error:
                error.usage = used
                raise
            used += reply.usage
            try:
                return _read(reply, request, schema, accept), replace(reply, usage=used)
            except InvalidAnswer as error:
                complaint = f"{error}: {_quote(reply.text or reply.refusal)}"
                asked = _asked_again(request, reply, error)
        failure = PermanentModelError(
            f"model `{self.name}` gave no valid answer in {self._answers} tries; in the last one {complaint}"
        )
        failure.usage = used
        raise failure

    async def close(self) -> None:
        """Gives back the provider's connections."""
        await self._provider.close()

    async def _call(self, request: ChatRequest, schema: Schema | None) -> ChatReply:
        provider = self._provider

        async def one_try() -> ChatReply:
            async with place_at(provider.endpoint, self._max_concurrent, per_minute=self._per_minute):
                return await provider.complete(request, schema)

        reply = await with_retries(one_try, self._retries)
        return replace(reply, usage=self._priced(reply))

    def _priced(self, reply: ChatReply) -> Usage:
        """What the call took; a price that the endpoint itself has said stands."""
        if reply.usage.cost is not None:
            return reply.usage
        url = self._provider.api_url
        cost = cost_of(url, reply.model, reply.usage)
        if cost is None:  # the endpoint may answer under a name that price lists do not have
            cost = cost_of(url, self._provider.model, reply.usage)
        return reply.usage.model_copy(update={"cost": cost})


def _read(reply: ChatReply, request: ChatRequest, schema: Schema, accept: Callable[[Any], Any] | None) -> Any:
    """The valid value in a reply. Raises InvalidAnswer, which says first what is wrong with the reply as a whole."""
    if reply.refusal and not reply.text:
        raise InvalidAnswer("it declined to answer")
    try:
        return read_answer(reply.text, schema, accept)
    except InvalidAnswer as error:
        if reply.is_cut_off:
            bound = request.generation.max_tokens
            limit = f"`max_tokens` is {bound}" if bound else "it reached the longest answer that the endpoint allows"
            raise InvalidAnswer(f"it was cut off ({limit})") from error
        raise


def _asked_again(request: ChatRequest, reply: ChatReply, error: InvalidAnswer) -> ChatRequest:
    """The same question once more, after the answer that was none; only the last such answer is shown."""
    shorter = " Be much shorter this time." if reply.is_cut_off else ""
    ask = f"That was no valid answer: {error}. Answer again with exactly one JSON object and nothing else.{shorter}"
    given = reply.text if reply.text.strip() else reply.refusal or "(nothing)"
    said = (ChatMessage("assistant", given), ChatMessage("user", ask))
    return replace(request, messages=(*request.messages, *said))


def _quote(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "...")
