"""What a grader says of a submission, and what a sample is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from stateval.records.encoding import plain
from stateval.records.record import Record
from stateval.records.usage import Usage


def _number(value: Any) -> Any:
    if isinstance(value, str | bytes):
        raise ValueError("a score is a number, not text")
    return float(value) if isinstance(value, bool) else value


Score = Annotated[float, BeforeValidator(_number), Field(ge=0.0, le=1.0, allow_inf_nan=False)]
"""A finite number in [0, 1]; True and False are 1 and 0."""

Metadata = Annotated[dict[str, Any], BeforeValidator(lambda value: plain(value) if isinstance(value, dict) else value)]


class PerTurnGrade(Record):
    """The grade of one user turn, counted from 0."""

    turn: int
    score: Score
    rationale: str | None = None
    submission: str = ""
    metadata: Metadata = Field(default_factory=dict)


class Judging(Record):
    """What a grade by models came from, and what it took.

    `models` are the judges as the suite names them, `answered` the names that their endpoints gave, each once, sorted.
    `prompt` is a hash of all that the judge was told but the sample's own data (its own rubric included), `fingerprint`
    one of the grader: models, prompt and settings. `calls` counts answers, of which `cached` were known already and
    cost nothing; `usage` is that of the others.
    """

    models: tuple[str, ...]
    answered: tuple[str, ...] = ()
    prompt: str = ""
    fingerprint: str = ""
    calls: int = 0
    cached: int = 0
    usage: Usage = Usage()

    @classmethod
    def of_all(cls, parts: Sequence[Judging]) -> Judging | None:
        """The whole of several, of which the first says which judge it was; None where there are none."""
        if not parts:
            return None
        return parts[0].model_copy(
            update={
                "answered": tuple(sorted({name for part in parts for name in part.answered})),
                "calls": sum(part.calls for part in parts),
                "cached": sum(part.cached for part in parts),
                "usage": sum((part.usage for part in parts), Usage(cost=0.0)),
            }
        )


class GradeResult(Record):
    """One grader's judgement of one submission; `judging` is there where models gave it.

    Raises pydantic's ValidationError (a ValueError) for a score that is not a finite number in [0, 1].
    """

    score: Score
    rationale: str | None = None
    metadata: Metadata = Field(default_factory=dict)
    per_turn_grades: list[PerTurnGrade] | None = None
    judging: Judging | None = None


class RewardOutput(Record):
    """What one sample is worth. `metadata` holds only what cannot be derived from the grades."""

    score: Score
    metadata: Metadata | None = None
