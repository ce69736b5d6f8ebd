"""What a grader says of a submission, and what a sample is worth."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from stateval.records.encoding import plain
from stateval.records.record import Record


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


class GradeResult(Record):
    """One grader's judgement of one submission.

    Raises pydantic's ValidationError (a ValueError) for a score that is not a finite number in [0, 1].
    """

    score: Score
    rationale: str | None = None
    metadata: Metadata = Field(default_factory=dict)
    per_turn_grades: list[PerTurnGrade] | None = None


class RewardOutput(Record):
    """What one sample is worth. `metadata` holds only what cannot be derived from the grades."""

    score: Score
    metadata: Metadata | None = None
