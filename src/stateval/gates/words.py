"""The words and numbers that gates are made of, and which of them do not go together."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from stateval.stats.comparison import Operator


class Aggregation(StrEnum):
    """How the values of a metric become one number.

    `accuracy` is the percentage of observations that pass (score >= `pass_threshold`), `pass_rate` the same from 0
    to 1. `pass_at_k` and `pass_hat_k` are the chances that one, or all, of k tries pass; k is the number of runs.
    """

    AVG_SCORE = "avg_score"
    ACCURACY = "accuracy"
    PASS_RATE = "pass_rate"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"
    P50 = "p50"
    P95 = "p95"
    P99 = "p99"
    PASS_HAT_K = "pass_hat_k"
    PASS_AT_K = "pass_at_k"

    @property
    def over_repeats(self) -> bool:
        """Whether it is defined by the repeats of each sample."""
        return self in {Aggregation.PASS_AT_K, Aggregation.PASS_HAT_K}

    @property
    def counts_passes(self) -> bool:
        """Whether it looks only at which observations pass."""
        return self.over_repeats or self in {Aggregation.ACCURACY, Aggregation.PASS_RATE}

    @property
    def is_mean(self) -> bool:
        """Whether it is a mean over samples, so that several metrics can be weighed within each sample."""
        return self is Aggregation.AVG_SCORE or self.counts_passes


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


def _no_percentage(value: Any) -> Any:
    if isinstance(value, int | float) and 50 < value < 100:
        raise ValueError(f"is written as a share: {value / 100:g}, not {value:g}")
    return value


Number = Annotated[float, BeforeValidator(_no_boolean), Field(allow_inf_nan=False)]
Confidence = Annotated[
    float, BeforeValidator(_no_percentage), BeforeValidator(_no_boolean), Field(gt=0.5, lt=1, allow_inf_nan=False)
]
Samples = Annotated[int, BeforeValidator(_no_boolean), Field(ge=1)]
Kappa = Annotated[float, BeforeValidator(_no_boolean), Field(ge=-1, le=1, allow_inf_nan=False)]
Share = Annotated[float, BeforeValidator(_no_boolean), Field(ge=0, le=1, allow_inf_nan=False)]

USUAL_ERROR_RATE = 0.1
"""The greatest share of errors that a verdict with `confidence` stands."""


class GateModel(BaseModel):
    """What all gates have in common: they are frozen, and know no other words than their own."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def no_interval(aggregation: Aggregation | None, operator: Operator | None) -> str | None:
    """Why a condition of this kind cannot have `confidence`; None where it can."""
    if operator is Operator.EQ:
        return "`eq` asks for one exact value, and no interval decides that; use gte and lte in two conditions"
    if aggregation in {Aggregation.MIN, Aggregation.MAX}:
        return f"`{aggregation}` has no interval: another sample can change it at any time; use `p95` or `pass_rate`"
    return None


def no_weighted_interval(aggregation: Aggregation | None, operator: Operator | None) -> str | None:
    """The same of a weighted average."""
    why = no_interval(aggregation, operator)
    if why is None and aggregation is not None and not aggregation.is_mean:
        return f"a weighted sum of `{aggregation}` has no interval; use `avg_score`, or one condition a metric"
    return why
