"""What a whole run came to: per model the means, each with its n, and where every planned sample went."""

from __future__ import annotations

from pydantic import Field

from stateval.records.record import Record
from stateval.records.result import ErrorCategory
from stateval.records.usage import TimingStats, Usage
from stateval.records.verdict import GateVerdict


class Ledger(Record):
    """Where every planned observation (a sample in a run) went. The parts always add up to `planned`."""

    planned: int = 0
    passed: int = 0
    failed: int = 0
    unscored: int = 0
    errored: dict[ErrorCategory, int] = Field(default_factory=dict)
    timed_out: int = 0
    skipped: int = 0
    not_reached: int = 0

    @property
    def accounted(self) -> int:
        """The sum of the parts."""
        done = self.passed + self.failed + self.unscored + sum(self.errored.values()) + self.timed_out
        return done + self.skipped + self.not_reached


class MetricSummary(Record):
    """One metric over one model's observations.

    `mean_scored` is over the `n_scored` observations that have a score; `mean_counted` over the `n_counted` that
    count, errored ones as 0 (`on_error: fail`). `std_dev` (n - 1), `minimum` and `maximum` are over the scored.
    `n_samples` is the number of samples that the observations are of.

    `standard_error` and the 95 % `interval` are of the mean over the `n_clusters` independent groups of samples, each
    sample's repeats averaged first; the `counted_` ones are of the counted mean, None where that is the same. Where
    samples have unequally many observations with a score, an interval lies around the mean of the samples' means.
    `pass_at_k` and `pass_hat_k` (of the counted) begin with k = 1; None for a k above some sample's trials.
    """

    n_scored: int
    n_counted: int
    mean_scored: float | None = None
    mean_counted: float | None = None
    std_dev: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    n_errors: int = 0
    n_samples: int | None = None
    standard_error: float | None = None
    interval: tuple[float, float] | None = None
    interval_method: str | None = None
    n_clusters: int | None = None
    counted_standard_error: float | None = None
    counted_interval: tuple[float, float] | None = None
    counted_interval_method: str | None = None
    counted_n_clusters: int | None = None
    pass_at_k: list[float | None] | None = None
    pass_hat_k: list[float | None] | None = None


class ErrorSummary(Record):
    total_errors: int
    by_category: dict[str, int] = Field(default_factory=dict)
    by_exception_type: dict[str, int] = Field(default_factory=dict)


class PerRunSummary(Record):
    """One of several runs of one model; `reward` and `per_metric` are means over the scored observations.

    `n_observed` is how many observations the run has; `n_scored` how many of them have a score, by metric, and
    under `reward` where one is composed.
    """

    run: int
    reward: float | None = None
    per_metric: dict[str, float] = Field(default_factory=dict)
    n_observed: int | None = None
    n_scored: dict[str, int] = Field(default_factory=dict)
    usage: Usage = Usage()
    timing: TimingStats | None = None
    n_errors: int = 0
    cost_missing: int = 0


class ModelSummary(Record):
    """One model over one or more runs, in the shape of letta-evals' summary, with `metrics` and `ledgers` added.

    `reward` and `per_metric` are means over the scored observations (over several runs: of the runs' means, with
    their spread in `reward_std` and `per_metric_std`). `n_total` is the number of samples planned per run,
    `n_attempted` the observations without an error in all runs. `cost_missing` counts observations with tokens but
    no known price. `metrics` and `ledgers` have the key `reward` where a reward is composed, and one per metric.
    """

    model: str
    n_total: int
    n_attempted: int
    reward: float | None = None
    reward_std: float | None = None
    per_metric: dict[str, float] = Field(default_factory=dict)
    per_metric_std: dict[str, float] | None = None
    usage: Usage = Usage()
    timing: TimingStats | None = None
    cost_missing: int = 0
    errors: ErrorSummary | None = None
    runs: list[PerRunSummary] | None = None

    metrics: dict[str, MetricSummary] = Field(default_factory=dict)
    ledgers: dict[str, Ledger] = Field(default_factory=dict)


class JudgingSummary(Record):
    """What the judges of one metric took in the call of `run` that wrote the summary: earlier starts are not in it.

    `models` are the judges as the suite names them. `calls` counts answers, failed ones too, of which `cached` were
    known already and cost nothing; `usage` is that of the others, its `cost` None where a price is not known.
    """

    models: list[str]
    calls: int = 0
    cached: int = 0
    usage: Usage = Usage()


class Summary(Record):
    """The whole run. `finished` is False where planned samples were not reached.

    `judging` is by metric, for those that models judge; None where there are none.
    """

    suite: str
    models: list[ModelSummary]
    gates: list[GateVerdict] = Field(default_factory=list)
    finished: bool = True
    stopped_because: str | None = None
    agents_left: int | None = None
    judging: dict[str, JudgingSummary] | None = None
