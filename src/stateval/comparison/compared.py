"""What comes of comparing runs, as plain data. A difference is always other - one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pydantic import Field

from stateval.comparison.comparability import Comparability
from stateval.records.record import Record
from stateval.records.summary import Ledger, MetricSummary

Interval = tuple[float, float]


class Change(StrEnum):
    """What became of a metric: decided where the interval of its difference and its p-value agree."""

    BETTER = "better"
    WORSE = "worse"
    UNCLEAR = "no clear difference"
    UNKNOWN = "cannot be said"


class ScoredDifference(Record):
    """The difference over the samples that have a score in both runs, errors left out."""

    n: int
    difference: float | None = None
    interval: Interval | None = None


class MetricComparison(Record):
    """One metric over the `n` samples that count in both runs, repeats averaged within the sample first.

    `one` and `other` are the runs' own numbers, over all their observations; `one_mean` and `other_mean` are over the
    shared samples, as the difference is. Errored observations count as `errored_as` (None: they are left out, as the
    unknown values of latency, cost and tokens are, of which less is better); where there are any, `scored` is the
    difference without them. `lost` samples went from 1 to 0, `gained` from 0 to 1; None where values lie between.
    `p_adjusted` is Holm's, where several runs or models are compared. `disagree`: the interval excludes 0 and the
    p-value is above 1 - confidence, or the other way round; then there is no clear difference.
    """

    metric: str
    change: Change
    n: int
    n_clusters: int
    one_mean: float | None = None
    other_mean: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    interval_method: str | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    p_method: str | None = None
    disagree: bool = False
    lost: int | None = None
    gained: int | None = None
    less_is_better: bool = False
    errored_as: float | None = None
    scored: ScoredDifference | None = None
    one: MetricSummary
    other: MetricSummary


@dataclass(frozen=True, slots=True)
class ChangedSample:
    """One sample in both runs: the mean of its repeats, errored ones as 0, and whether any of them errored."""

    id: str
    one: float
    other: float
    one_errored: bool = False
    other_errored: bool = False


class Changes(Record):
    """Samples that fail: the mean of their repeats, errored ones as 0, is below the threshold.

    The lists hold the greatest changes first and may be cut short; the counts are of all samples.
    """

    metric: str
    threshold: float
    n_newly_failing: int
    n_newly_passing: int
    n_still_failing: int
    n_still_passing: int
    newly_failing: list[ChangedSample] = Field(default_factory=list)
    newly_passing: list[ChangedSample] = Field(default_factory=list)
    still_failing: list[ChangedSample] = Field(default_factory=list)


class ComparedRun(Record):
    """One model of one run: `observations` of `planned` are there, over `samples` samples; a ledger per metric."""

    path: str
    suite: str
    model: str
    planned: int
    observations: int
    samples: int
    finished: bool
    ledgers: dict[str, Ledger] = Field(default_factory=dict)


class ModelComparison(Record):
    """Two models, or one model of two runs. `only_in_one` and `only_in_other` are ids, and may be cut short."""

    one: ComparedRun
    other: ComparedRun
    n_shared: int
    n_only_in_one: int
    n_only_in_other: int
    metrics: list[MetricComparison]
    changes: list[Changes]
    comparability: Comparability
    notes: list[str] = Field(default_factory=list)
    only_in_one: list[str] = Field(default_factory=list)
    only_in_other: list[str] = Field(default_factory=list)

    def deciding(self, *, chosen: bool) -> list[MetricComparison]:
        """What a regression is looked for in: the chosen metrics, the reward, or the graders without one."""
        if chosen:
            return self.metrics
        listed = {changes.metric for changes in self.changes}
        return [metric for metric in self.metrics if metric.metric in listed]


class Comparison(Record):
    """All of it. `marks` say what must be known before any number is looked at, and come first everywhere."""

    marks: list[str]
    confidence: float
    models: list[ModelComparison]

    @property
    def n_newly_failing(self) -> int:
        """How many samples fail that passed before, over all models and metrics."""
        return sum(changes.n_newly_failing for model in self.models for changes in model.changes)

    def regressions(self, *, chosen: bool) -> list[MetricComparison]:
        """The metrics that are worse, by their interval and by their p-value.

        Args:
            chosen: whether the metrics were chosen by name, and so all decide; else the reward does, or the graders
                where there is none.
        """
        return [m for model in self.models for m in model.deciding(chosen=chosen) if m.change is Change.WORSE]

    def undecided(self, *, chosen: bool) -> list[MetricComparison]:
        """Those of the same metrics that have no interval."""
        return [m for model in self.models for m in model.deciding(chosen=chosen) if m.change is Change.UNKNOWN]
