"""One judge asked one question: from the answers that are kept, or from the model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from stateval.errors import GradingError, ModelError, ModelUnavailable
from stateval.graders.judging.prompt import Prompts, Question, Shown
from stateval.graders.judging.settings import JudgeModel
from stateval.llm.chat import ChatModel, ChatReply, ChatRequest
from stateval.records.encoding import dump_json, load_json, plain
from stateval.records.protocols import Spent
from stateval.records.usage import Usage
from stateval.redaction import Redaction

if TYPE_CHECKING:
    from stateval.llm.cache import AnswerCache

_TOO_LONG = re.compile(r"longer than the model's context")
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Answer:
    """A valid answer, the name of the model that gave it, and what it took; nothing where it was known already."""

    value: Any
    model: str
    usage: Usage
    is_cached: bool = False


class Ledger:
    """What calls have taken."""

    def __init__(self) -> None:
        self.spent = Spent()

    def add(self, usage: Usage | None, *, cached: bool = False) -> None:
        """One more call. No usage is known where nothing was answered at all."""
        known = self.spent
        total = known.usage if usage is None else known.usage + usage
        self.spent = Spent(known.calls + 1, known.cached + cached, total)


class Asking:
    """A judge, and the questions it is asked. `cache` None keeps nothing; `redaction` scrubs what is kept."""

    def __init__(
        self,
        judge: JudgeModel,
        model: ChatModel,
        prompts: Prompts,
        ledger: Ledger,
        *,
        cache: AnswerCache | None,
        redaction: Redaction,
    ) -> None:
        self.name = judge.name
        self._judge = judge
        self._generation = judge.generation
        self._model = model
        self._prompts = prompts
        self._ledger = ledger
        self._cache = cache
        self._redaction = redaction
        told = [model.fingerprint, self._generation.model_dump(), prompts.system, prompts.modules]
        self._constant = {
            number: blake2b(dump_json(plain([*told, question.criteria, question.instruction, question.schema])))
            for number, question in enumerate(prompts.questions)
        }

    def key(self, content: bytes, number: int, run: int, vote: int) -> bytes:
        """By what an answer is kept: all that was asked, of a content by its digest, and whose turn it was."""
        key = self._constant[number].copy()
        key.update(content)
        key.update(b"%d %d" % (run, vote))
        return key.digest()[:_KEY_BYTES]

    def known(self, key: bytes, number: int) -> Answer | None:
        """The answer that is kept. One that cannot be read, or is not valid, is as good as none."""
        stored = self._cache.get(key) if self._cache else None
        if stored is None:
            return None
        try:
            kept = load_json(stored)
            value = self._prompts.questions[number].read(kept["value"])
            answer = Answer(value, str(kept["model"]), Usage(cost=0.0), is_cached=True)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        self._ledger.add(None, cached=True)
        return answer

    async def ask(self, key: bytes, number: int, shown: Shown) -> Answer:
        """The model's answer, which is then kept. Raises GradingError; ModelUnavailable as it is."""
        question = self._prompts.questions[number]
        messages = self._prompts.messages(shown, question)
        request = ChatRequest(messages, self._generation, timeout=self._judge.timeout, fixed=1)
        value, reply = await self._structured(request, question)
        self._ledger.add(reply.usage)
        if self._cache:
            kept = {"value": value, "model": reply.model, "usage": reply.usage.to_dict()}
            await self._cache.put(key, self._redaction.scrub_json(dump_json(kept)))
        return Answer(value, reply.model, reply.usage)

    async def _structured(self, request: ChatRequest, question: Question) -> tuple[Any, ChatReply]:
        try:
            return await self._model.structured(request, question.schema, accept=question.read)
        except ModelError as error:
            self._ledger.add(getattr(error, "usage", None))
            if isinstance(error, ModelUnavailable):
                raise
            raise GradingError(self._told(error, request), cause_type=type(error).__name__) from error

    def _told(self, error: ModelError, request: ChatRequest) -> str:
        length = sum(len(message.content) for message in request.messages)
        if not _TOO_LONG.search(str(error)):
            return f"judge `{self.name}`: {error} (it was shown {length:,} characters)"
        return (
            f"what judge `{self.name}` was to read, {length:,} characters, is too long for it: {error}. Fewer criteria "
            "do not help; choose an extractor that takes out less, or a model with a longer context"
        )


def digest_of(shown: Shown) -> bytes:
    """The digest of what is shown, before any fence."""
    digest = blake2b(b"%d " % len(shown.rubric), digest_size=_KEY_BYTES)
    for text, data in _all(shown):
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(b"%s %d " % ((data or "").encode("ascii"), len(encoded)))
        digest.update(encoded)
    return digest.digest()


def _all(shown: Shown) -> Iterable[tuple[str, str | None]]:
    yield from shown.rubric
    yield from shown.appended
