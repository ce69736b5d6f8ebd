"""What a gate decided, as a tree that shows why."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from stateval.records.record import Record


class Outcome(StrEnum):
    """Kleene's three values, for gates."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class GateVerdict(Record):
    """One node: a condition on one metric, or a combination of its `children`.

    `condition` is the rule in words; `measured` the value it looked at, over `n` observations of `n_samples`
    samples (repeats are not independent); `n_errored` have no score and were counted as `counted` says. `reason` says
    why a node is not decided by its number alone.

    With `confidence` there is an `interval` of it, by `method`, from `n_clusters` independent units, and where it
    does not decide `samples_needed` says about how many more would. Of a comparison with the run in `baseline`,
    `measured` is the drop over the `n` samples of both runs and `bound` its one-sided lower bound; `n_only_here` and
    `n_only_baseline` count the samples of one run alone, and `marks` say what makes the runs hard to compare. Where it
    stands on a judge that was measured beside people, `judge_check` is the file and `judge_kappa` their agreement.
    """

    condition: str
    outcome: Outcome
    name: str | None = None
    model: str | None = None
    metric: str | None = None
    aggregation: str | None = None
    measured: float | None = None
    operator: str | None = None
    threshold: float | None = None
    confidence: float | None = None
    interval: tuple[float, float] | None = None
    method: str | None = None
    samples_needed: int | None = None
    n: int | None = None
    n_samples: int | None = None
    n_clusters: int | None = None
    n_errored: int | None = None
    counted: str | None = None
    baseline: str | None = None
    bound: float | None = None
    n_only_here: int | None = None
    n_only_baseline: int | None = None
    marks: list[str] | None = None
    judge_check: str | None = None
    judge_kappa: float | None = None
    runs_passed: int | None = None
    runs_total: int | None = None
    on_fail: str | None = None
    reason: str | None = None
    children: list[GateVerdict] = Field(default_factory=list)
