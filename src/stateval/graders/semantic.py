"""Whether two texts mean the same, by the vectors that an embedding model makes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pydantic import Field

from stateval.errors import GradingError, ModelError, ModelUnavailable
from stateval.graders.inputs import shown, truth_of
from stateval.llm.opening import DEFAULT_EMBEDDING_MODEL, open_embedding_model
from stateval.loading.fingerprint import digest_of_module
from stateval.loading.options import Options
from stateval.records.digest import hash_of
from stateval.records.grade import GradeResult, Judging
from stateval.records.protocols import GradeRequest, Needs, Spent
from stateval.records.sample import Sample
from stateval.records.usage import Usage


class SemanticOptions(Options):
    """Which model makes the vectors, and how alike is enough."""

    model: str = Field(default=DEFAULT_EMBEDDING_MODEL, description="the embedding model, its provider in front")
    provider: str | None = Field(default=None, description="`openai`, `google` or `litellm`, where `model` has none")
    base_url: str | None = Field(default=None, description="the endpoint, where it is not the provider's own")
    api_key: str | None = Field(default=None, repr=False, description="the key; else the provider's variable")
    threshold: float | None = Field(
        default=None, gt=0, le=1, description="score 1 from this similarity on and 0 below; without it the similarity"
    )
    timeout: float = Field(default=120.0, gt=0, allow_inf_nan=False, description="seconds for one call")


class SemanticSimilarity:
    """How alike the submission and the ground truth are in meaning: the cosine of their embeddings, at least 0.

    Raises UsageError (unknown model, a provider without embeddings), MissingKey, MissingExtra. Nothing is called yet.
    """

    kind = "tool"
    name = "semantic_similarity"
    needs = Needs.NOTHING

    def __init__(self, options: SemanticOptions) -> None:
        self._options = options
        self._spent = Spent()
        self._model = open_embedding_model(
            options.model,
            provider=options.provider,
            base_url=options.base_url,
            api_key=options.api_key,
            timeout=options.timeout,
        )

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """The model, its endpoint, the threshold and the source of this module; neither the key nor the time-out."""
        return {
            "grader": self.name,
            "model": self._model.fingerprint,
            "threshold": self._options.threshold,
            "sha256": digest_of_module(__name__),
        }

    @property
    def models(self) -> tuple[str, ...]:
        """The embedding model as the suite names it."""
        return (self._options.model,)

    @property
    def unpriced_models(self) -> tuple[str, ...]:
        """The embedding model where no price of it is known."""
        return () if self._model.has_price else self.models

    @property
    def spent(self) -> Spent:
        """What its calls have taken."""
        return self._spent

    def check(self, sample: Sample) -> str | None:
        """What this sample lacks: a ground truth with words in it."""
        truths = [sample.ground_truth] if sample.turn_truths is None else list(sample.turn_truths)
        given = [truth for truth in truths if isinstance(truth, str)]
        if not given:
            return f"grader `{self.name}` needs a `ground_truth`"
        if not all(truth.strip() for truth in given):
            return f"grader `{self.name}`: the ground truth is empty, and an empty text means nothing"
        return None

    async def grade(self, request: GradeRequest) -> GradeResult:
        """The grade; an empty submission scores 0 and is not sent.

        Raises GradingError where there is no truth or the call fails; ModelUnavailable where the model cannot be had.
        """
        truth = truth_of(request)
        if not truth.strip():
            raise GradingError("the ground truth is empty, and an empty text means nothing")
        if not request.submission.strip():
            return GradeResult(
                score=0.0, rationale="the submission is empty", judging=self._judging(0, Usage(cost=0.0))
            )
        vectors, usage = await self._embedded([request.submission, truth])
        return self._graded(request.submission, truth, self._cosine(*vectors), usage)

    async def close(self) -> None:
        """Gives back connections."""
        await self._model.close()

    async def _embedded(self, texts: list[str]) -> tuple[list[list[float]], Usage]:
        used = Usage()
        try:
            vectors, used = await self._model.embed(texts)
        except ModelUnavailable:
            raise
        except ModelError as error:
            raise GradingError(str(error), cause_type=type(error).__name__) from error
        finally:
            self._spent = Spent(self._spent.calls + 1, 0, self._spent.usage + used)
        return vectors, used

    def _cosine(self, one: Sequence[float], other: Sequence[float]) -> float:
        """The cosine of the angle between two vectors, not below 0."""
        if len(one) != len(other):
            raise GradingError(f"model `{self._model.name}` made vectors of {len(one)} and of {len(other)} numbers")
        lengths = math.hypot(*one), math.hypot(*other)
        if not all(0 < length < math.inf for length in lengths):
            raise GradingError(f"model `{self._model.name}` made a vector without a direction, so there is no angle")
        unit = ([number / lengths[0] for number in one], [number / lengths[1] for number in other])
        return min(1.0, max(0.0, math.fsum(a * b for a, b in zip(*unit, strict=True))))

    def _graded(self, submission: str, truth: str, value: float, usage: Usage) -> GradeResult:
        compared = f"{shown(submission)} means {value:.3f} the same as {shown(truth)} (cosine by {self._options.model})"
        judging = self._judging(1, usage)
        if self._options.threshold is None:
            return GradeResult(score=value, rationale=compared, judging=judging)
        enough = value >= self._options.threshold - 1e-9
        rationale = f"{compared}, which is {'at least' if enough else 'below'} {self._options.threshold:g}"
        return GradeResult(score=float(enough), rationale=rationale, metadata={"similarity": value}, judging=judging)

    def _judging(self, calls: int, usage: Usage) -> Judging:
        return Judging(models=self.models, fingerprint=self._fingerprint_hash, calls=calls, usage=usage)

    @cached_property
    def _fingerprint_hash(self) -> str:
        return hash_of(self.fingerprint)
