"""How well a judge agrees with people: what `stateval judge check` writes and a gate reads."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from stateval.records.record import Record
from stateval.records.summary import JudgingSummary


class Rate(Record):
    """A number with its interval. `value` is None where it is not defined, and `reason` says why."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    reason: str | None = None


class Agreement(Record):
    """A judge beside people on `n` answers: passed means a score of at least the threshold, for both.

    `prevalence` is the share that people passed, `reported` the share that the judge passed, `corrected` the latter
    corrected for the judge's errors (Rogan and Gladen 1978). `mean_difference` is the mean of judge minus people on the
    scale from 0 to 1.
    """

    n: int
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    accuracy: Rate
    kappa: Rate
    sensitivity: Rate
    specificity: Rate
    prevalence: Rate
    reported: Rate
    corrected: Rate
    mean_difference: float | None = None
    mean_absolute_difference: float | None = None


class MetricCheck(Record):
    """One judge of a suite beside people. `fingerprint` is `Judging.fingerprint` of the grader that was checked.

    `flip_rate` is the share of answers whose verdict is not the same in all `repeats`; `order_swap_rate` the share
    whose verdict changes when what the judge is shown comes in the opposite order. `n_errors` labelled answers got no
    grade and are in no table; `errors` says why, by answer. `notes` are for people, `took` is what the grades cost.
    """

    metric: str
    fingerprint: str
    models: tuple[str, ...]
    answered: tuple[str, ...] = ()
    threshold: float
    confidence: float = 0.95
    repeats: int = 1
    overall: Agreement | None = None
    criteria: dict[str, Agreement] = Field(default_factory=dict)
    flip_rate: Rate = Rate()
    order_swap_rate: Rate = Rate()
    n_errors: int = 0
    errors: dict[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    took: JudgingSummary | None = None


class JudgeCheck(Record):
    """The file that `gate: {judge_check: FILE}` reads. `labels` names the file of labels and holds its SHA-256."""

    kind: str = "judge_check"
    stateval: str = ""
    created: datetime
    suite: str
    labels: dict[str, str] = Field(default_factory=dict)
    metrics: dict[str, MetricCheck] = Field(default_factory=dict)
