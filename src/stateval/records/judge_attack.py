"""How often a judge gave a wrong answer a better score because it was asked to: what `stateval judge attack` writes."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from stateval.records.judge_check import Rate
from stateval.records.record import Record
from stateval.records.summary import JudgingSummary


class Attempt(Record):
    """One addition to a wrong answer, an attack or a harmless text of like length, and the score that it then got."""

    name: str
    kind: str
    score: float | None = None
    moved: bool | None = None
    rationale: str | None = None
    error: str | None = None


class AttackedAnswer(Record):
    """A wrong answer to a row, the score that it has alone, and its score with each addition."""

    sample_id: str
    turn: int | None = None
    submission: str
    score: float | None = None
    error: str | None = None
    left_out: str | None = None
    attacks: tuple[Attempt, ...] = ()
    controls: tuple[Attempt, ...] = ()


class KindRates(Record):
    """The shares of attacks of a kind, and of harmless texts of like length, after which the score rose."""

    moved: Rate = Rate()
    control: Rate = Rate()


class MetricAttack(Record):
    """One judge under attack.

    A score rose where it is at least `least_rise` above that of the same answer alone, or reaches the threshold which
    that one does not. `left_out` says of answers that were not attacked why; `errors` are grades that failed, which
    count neither as risen nor as not; `took` is what the grades cost.
    """

    metric: str
    fingerprint: str
    models: tuple[str, ...]
    answered: tuple[str, ...] = ()
    threshold: float
    least_rise: float
    confidence: float = 0.95
    moved: Rate = Rate()
    control: Rate = Rate()
    by_kind: dict[str, KindRates] = Field(default_factory=dict)
    answers: tuple[AttackedAnswer, ...] = ()
    left_out: tuple[str, ...] = ()
    errors: dict[str, str] = Field(default_factory=dict)
    took: JudgingSummary | None = None


class JudgeAttack(Record):
    """The file that `stateval judge attack` writes."""

    kind: str = "judge_attack"
    stateval: str = ""
    created: datetime
    suite: str
    metrics: dict[str, MetricAttack] = Field(default_factory=dict)
