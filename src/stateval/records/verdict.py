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
    interval: tuple[float, float] | None = None
    n: int | None = None
    n_samples: int | None = None
    n_errored: int | None = None
    counted: str | None = None
    runs_passed: int | None = None
    runs_total: int | None = None
    on_fail: str | None = None
    reason: str | None = None
    children: list[GateVerdict] = Field(default_factory=list)
