"""A provider made into a model that can be asked: retries, the endpoint's limit, and checked answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stateval.errors import PermanentModelError, UsageError
from stateval.llm.chat import ChatMessage, ChatReply, ChatRequest, Provider, Schema
from stateval.llm.limits import place_at
from stateval.llm.retrying import Retries, with_retries
from stateval.llm.schema import InvalidAnswer, read_answer
from stateval.records.usage import Usage

_LONGEST_QUOTE = 200


class CallableModel:
    """The ChatModel on top of a Provider.

    Args:
        provider: makes single tries.
        max_concurrent: calls in flight at the provider's endpoint, over all models and callers in this process.
        retries: how often and how patiently transient errors are tried again.
        answers: how often one structured answer is asked for when it is not valid.
    """

    def __init__(
        self, provider: Provider, *, max_concurrent: int, retries: Retries | None = None, answers: int = 3
    ) -> None:
        if max_concurrent < 1:
            raise UsageError(f"`max_concurrent` of model `{provider.name}` is {max_concurrent}; it must be at least 1")
        self._provider = provider
        self._max_concurrent = max_concurrent
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

    async def structured(self, request: ChatRequest, schema: Schema) -> tuple[Any, ChatReply]:
        """The one valid value, and the last reply with the usage of all of them; see `ChatModel`."""
        used = Usage(cost=0.0)
        complaint = ""
        for _ in range(self._answers):
            reply = await self._call(request, schema)
            used += reply.usage
            self._refuse_cut_off(reply, request)
            try:
                return read_answer(reply.text, schema), replace(reply, usage=used)
            except InvalidAnswer as error:
                complaint = f"{error}: {_quote(reply.text)}"
                request = _asked_again(request, reply, error)
        raise PermanentModelError(
            f"model `{self.name}` gave no valid answer in {self._answers} tries; in the last one {complaint}"
        )

    async def close(self) -> None:
        """Gives back the provider's connections."""
        await self._provider.close()

    async def _call(self, request: ChatRequest, schema: Schema | None) -> ChatReply:
        async def one_try() -> ChatReply:
            async with place_at(self._provider.endpoint, self._max_concurrent):
                return await self._provider.complete(request, schema)

        return await with_retries(one_try, self._retries)

    def _refuse_cut_off(self, reply: ChatReply, request: ChatRequest) -> None:
        if reply.is_cut_off:
            bound = request.generation.max_tokens
            limit = f"`max_tokens` is {bound}" if bound else "it reached the longest answer that the endpoint allows"
            raise PermanentModelError(f"the answer of model `{self.name}` was cut off ({limit}): {_quote(reply.text)}")


def _asked_again(request: ChatRequest, reply: ChatReply, error: InvalidAnswer) -> ChatRequest:
    ask = f"That was no valid answer: {error}. Answer again with exactly one JSON object and nothing else."
    said = (ChatMessage("assistant", reply.text), ChatMessage("user", ask))
    return replace(request, messages=(*request.messages, *said))


def _quote(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "...")
