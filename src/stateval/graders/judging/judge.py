"""The grader `model_judge`: models that read a submission beside a rubric and score it with their reasons."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import anyio

from stateval.errors import GradingError, ModelUnavailable, StageError
from stateval.graders.judging import answers, scoring
from stateval.graders.judging.asking import Answer, Asking, Ledger, digest_of
from stateval.graders.judging.prompt import Prompts, Shown
from stateval.graders.judging.scoring import Ballot, graded
from stateval.graders.judging.settings import JudgeModel, JudgeSettings, require_different
from stateval.graders.judging.template import Template
from stateval.loading.fingerprint import digest_of_module
from stateval.records.digest import hash_of
from stateval.records.grade import GradeResult, Judging
from stateval.records.protocols import GradeRequest, Needs, Spent
from stateval.records.sample import Sample
from stateval.records.usage import Usage
from stateval.redaction import Redaction, secrets_of_environment

_KEPT_PROMPTS = 1024


class Call(NamedTuple):
    """One question put to one judge in one vote, and the key under which its answer is kept."""

    member: int
    vote: int
    number: int
    key: bytes


class ModelJudge:
    """One or several models as a grader.

    Args:
        settings: the rubric or the criteria, and how they are scored.
        judges: the models that are asked.
        cache: whether answers are kept, and known ones used, across runs (see `stateval.llm.cache`).

    Raises UsageError, MissingKey, MissingExtra. Nothing is called yet.
    """

    kind = "model_judge"
    needs = Needs.NOTHING

    def __init__(
        self, settings: JudgeSettings, judges: Sequence[JudgeModel] = (JudgeModel(),), *, cache: bool = True
    ) -> None:
        settings.require_valid()
        require_different(judges)
        if cache:
            from stateval.llm.cache import check_cache_settings

            check_cache_settings()
        self._settings = settings
        self._judges = tuple(judges)
        self._cache = cache
        self._models = [judge.open() for judge in judges]
        self._owns_models = True
        self._arrange(reverse=False)

    @property
    def settings(self) -> JudgeSettings:
        """What is judged."""
        return self._settings

    @property
    def judges(self) -> tuple[JudgeModel, ...]:
        """Who judges."""
        return self._judges

    @property
    def models(self) -> tuple[str, ...]:
        """The judges as the suite names them."""
        return tuple(judge.name for judge in self._judges)

    @property
    def unpriced_models(self) -> tuple[str, ...]:
        """Those of which no price is known."""
        pairs = zip(self._judges, self._models, strict=True)
        return tuple(judge.name for judge, model in pairs if not model.has_price)

    @property
    def spent(self) -> Spent:
        """What all calls have taken so far, those of failed grades included."""
        return self._ledger.spent

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """Rubric, settings, models, and the source of what makes prompts and reads answers; no keys, no time-outs."""
        pairs = zip(self._judges, self._models, strict=True)
        reading = {
            module.__name__.rpartition(".")[2]: digest_of_module(module.__name__) for module in (answers, scoring)
        }
        return {
            "grader": self.kind,
            **self._settings.fingerprint,
            "reversed": self._is_reversed,
            "judges": [[model.fingerprint, judge.generation.model_dump()] for judge, model in pairs],
            "sha256": {**self._prompts.modules, **reading},
        }

    def check(self, sample: Sample) -> str | None:
        """What this sample lacks: a truth, or a value of a placeholder; which names it may not use."""
        has_truth = sample.ground_truth is not None or sample.turn_truths is not None
        return self._prompts.problem(sample, has_truth=has_truth)

    async def grade(self, request: GradeRequest) -> GradeResult:
        """The grade.

        Raises GradingError where the sample lacks something, or any vote failed; ModelUnavailable where a model cannot
        be had at all.
        """
        problem = self._prompts.problem(request.sample, has_truth=request.ground_truth is not None)
        if problem:
            raise GradingError(problem)
        shown = self._prompts.shown(request)
        given = await self._answers(shown, request.run)
        return graded(
            self._settings, self._ballots(given), self._judging(given, self._prompts.template(request.sample))
        )

    def reordered(self) -> ModelJudge | None:
        """The same judge, shown the criteria and what follows a rubric in the opposite order.

        None where the rubric itself says where everything stands. Its models are those of this one, which closes them.
        """
        if not self._prompts.can_be_reversed():
            return None
        other = copy.copy(self)
        other.__dict__.pop("fingerprint", None)
        other._owns_models = False
        other._arrange(reverse=not self._is_reversed)
        return other

    async def close(self) -> None:
        """Gives back connections."""
        if self._owns_models:
            for model in self._models:
                await model.close()

    def _arrange(self, *, reverse: bool) -> None:
        self._is_reversed = reverse
        self._prompts = Prompts(self._settings, reverse=reverse)
        self._ledger = Ledger()
        self._prompt_hash = lru_cache(_KEPT_PROMPTS)(self._hash_of_prompt)
        self.__dict__.pop("_askings", None)
        self.__dict__.pop("_fingerprint_hash", None)

    @cached_property
    def _askings(self) -> list[Asking]:
        from stateval.llm.cache import answer_cache

        keys = {judge.api_key for judge in self._judges if judge.api_key}
        redaction = Redaction(secrets_of_environment() | keys)
        cache = answer_cache() if self._cache else None
        pairs = zip(self._judges, self._models, strict=True)
        return [
            Asking(judge, model, self._prompts, self._ledger, cache=cache, redaction=redaction)
            for judge, model in pairs
        ]

    @cached_property
    def _fingerprint_hash(self) -> str:
        return hash_of(self.fingerprint)

    def _hash_of_prompt(self, rubric: Template | None) -> str:
        return hash_of(self._prompts.told(rubric))

    async def _answers(self, shown: Shown, run: int) -> dict[Call, Answer]:
        """The answers, by judge, vote and question in order; all that are not known are asked for at once."""
        content = digest_of(shown)
        calls = [
            Call(member, vote, number, asking.key(content, number, run, vote))
            for member, asking in enumerate(self._askings)
            for vote in range(1, self._settings.votes + 1)
            for number in range(len(self._prompts.questions))
        ]
        known = {call: self._askings[call.member].known(call.key, call.number) for call in calls}
        unknown = [call for call, answer in known.items() if answer is None]
        asked = await self._ask_all(unknown, shown) if unknown else {}
        return {call: answer or asked[call] for call, answer in known.items()}

    async def _ask_all(self, calls: Sequence[Call], shown: Shown) -> dict[Call, Answer]:
        """Asks everything at once and waits for all of it, then raises the first error in order."""
        if len(calls) == 1:
            return {calls[0]: await self._ask(calls[0], shown)}
        answered: dict[Call, Answer] = {}
        failed: dict[Call, StageError | ModelUnavailable] = {}

        async def ask(call: Call) -> None:
            try:
                answered[call] = await self._ask(call, shown)
            except (StageError, ModelUnavailable) as error:
                failed[call] = error

        async with anyio.create_task_group() as tasks:
            for call in calls:
                tasks.start_soon(ask, call)
        errors = [failed[call] for call in calls if call in failed]
        if errors:
            raise next((error for error in errors if isinstance(error, ModelUnavailable)), errors[0])
        return answered

    async def _ask(self, call: Call, shown: Shown) -> Answer:
        return await self._askings[call.member].ask(call.key, call.number, shown)

    def _ballots(self, given: Mapping[Call, Answer]) -> list[Ballot]:
        verdicts: dict[tuple[int, int], dict[str, answers.Verdict]] = {}
        for call, answer in given.items():
            said = self._prompts.questions[call.number].verdicts(answer.value)
            verdicts.setdefault((call.member, call.vote), {}).update(said)
        return [Ballot(member, self.models[member], vote, said) for (member, vote), said in verdicts.items()]

    def _judging(self, given: Mapping[Call, Answer], rubric: Template | None) -> Judging:
        fresh = [answer.usage for answer in given.values() if not answer.is_cached]
        return Judging(
            models=self.models,
            answered=tuple(sorted({answer.model for answer in given.values()})),
            prompt=self._prompt_hash(rubric),
            fingerprint=self._fingerprint_hash,
            calls=len(given),
            cached=len(given) - len(fresh),
            usage=sum(fresh, Usage(cost=0.0)),
        )
