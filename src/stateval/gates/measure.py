"""One number for one metric: which observations count, as what, and how they are aggregated."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stateval.gates.words import Aggregation
from stateval.records.result import ErrorCategory
from stateval.stats.comparison import Operator, holds
from stateval.stats.describe import maximum, mean, minimum, percentile
from stateval.stats.repeats import pass_at_k, pass_hat_k
from stateval.stats.table import Selection

PERCENTILES = {Aggregation.MEDIAN: 50, Aggregation.P50: 50, Aggregation.P95: 95, Aggregation.P99: 99}


@dataclass(frozen=True, slots=True)
class PassRule:
    """When a single observation passes."""

    operator: Operator = Operator.GTE
    threshold: float = 1.0

    def passes(self, score: float) -> bool:
        """Whether an observation with this score passes."""
        return holds(score, self.operator, self.threshold)


@dataclass(frozen=True, slots=True)
class Errored:
    """What becomes of observations without a value: left out, or counted as the worst."""

    exclude: bool
    small_is_good: bool

    @property
    def score(self) -> float:
        """The worst score in the direction of the gate's operator."""
        return 1.0 if self.small_is_good else 0.0

    @property
    def counted(self) -> float | None:
        """What an observation without a value counts as; None where it is left out."""
        return None if self.exclude else self.score

    @property
    def otherwise(self) -> Errored:
        """The other of the two ways."""
        return replace(self, exclude=not self.exclude)

    def in_words(self, count: int, aggregation: Aggregation) -> str | None:
        """What was done with so many of them; None where there are none."""
        if not count:
            return None
        if self.exclude:
            return f"{count} errored left out"
        if aggregation.counts_passes:
            return f"{count} errored counted as {'passed' if self.small_is_good else 'not passed'}"
        return f"{count} errored counted as {self.score:g}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A metric's number over `n` observations of `n_samples` samples, or the reason why there is none.

    `n_errored` have no value because of an error, or no grade; a resource that is merely not known is no error.
    `counted` says as what they were counted. `error_rate` is the share of errored observations among all, for a
    resource also those whose conversation failed after it had been used.
    """

    value: float | None
    n: int
    n_samples: int
    n_errored: int
    error_rate: float = 0.0
    counted: str | None = None
    reason: str | None = None


def measure(
    selection: Selection, metric: str, aggregation: Aggregation, *, pass_rule: PassRule, errored: Errored, k: int
) -> Measurement:
    """The aggregated value of one metric.

    A resource (seconds, dollars, tokens) has no worst value: one that is not known makes the number unknown, unless
    errors are left out and it belongs to one.
    """
    values = selection.values(metric)
    n_errored = _n_errored(selection, metric, values)
    reason = _why_unknown(selection, metric, values, errored)
    value = None
    if reason is None:
        value = _aggregated(selection, metric, values, aggregation, pass_rule, errored, k)
        reason = None if value is not None else f"some sample has fewer than k = {k} trials"
    return Measurement(
        value=value,
        n=len(values) if errored.exclude else len(selection),
        n_samples=_n_samples(selection, metric, values, errored),
        n_errored=n_errored,
        error_rate=error_rate(selection, metric),
        counted=None if reason else errored.in_words(n_errored, aggregation),
        reason=reason,
    )


def error_rate(selection: Selection, metric: str) -> float:
    """The share of observations that are errored for this metric; 0 of none.

    A resource may be known of a conversation that failed; the error is the observation's all the same.
    """
    if not len(selection):
        return 0.0
    if not selection.table.is_resource(metric):
        return selection.n_errored(metric) / len(selection)
    failed = (c.error is ErrorCategory.TARGET or (c.value is None and c.error) for c in selection.cells(metric))
    return sum(map(bool, failed)) / len(selection)


def _n_errored(selection: Selection, metric: str, values: Sequence[float]) -> int:
    if selection.table.is_resource(metric) and len(values) < len(selection):
        return sum(cell.value is None and cell.error is not None for cell in selection.cells(metric))
    return len(selection) - len(values)


def _n_samples(selection: Selection, metric: str, values: Sequence[float], errored: Errored) -> int:
    """How many samples the number is about."""
    if not errored.exclude or len(values) == len(selection):
        return selection.n_samples
    return len({cell.sample for cell in selection.cells(metric) if cell.value is not None})


def _why_unknown(selection: Selection, metric: str, values: Sequence[float], errored: Errored) -> str | None:
    if not len(selection):
        return "no sample has the tags of `where`" if len(selection.table) else "no sample was run"
    if selection.table.is_resource(metric) and len(values) < len(selection):
        unknown = sum(
            cell.value is None and not (errored.exclude and cell.error is not None) for cell in selection.cells(metric)
        )
        if unknown:
            return f"{metric} is not known for {unknown} of {len(selection)} observations"
    return None if values else f"0 of {len(selection)} observations have a value of {metric}"


def _aggregated(
    selection: Selection,
    metric: str,
    values: array[float],
    aggregation: Aggregation,
    pass_rule: PassRule,
    errored: Errored,
    k: int,
) -> float | None:
    if aggregation.over_repeats:
        return _over_repeats(selection, metric, aggregation, pass_rule, errored, k)
    n_counted_errors = 0 if errored.exclude else len(selection) - len(values)
    if aggregation.counts_passes:
        passed = sum(map(pass_rule.passes, values)) + (n_counted_errors if errored.small_is_good else 0)
        total = len(values) + n_counted_errors
        return 100 * passed / total if aggregation is Aggregation.ACCURACY else passed / total
    counted = values + array("d", [errored.score]) * n_counted_errors
    match aggregation:
        case Aggregation.AVG_SCORE:
            return mean(counted)
        case Aggregation.MIN:
            return minimum(counted)
        case Aggregation.MAX:
            return maximum(counted)
    return percentile(counted, PERCENTILES[aggregation])


def _over_repeats(
    selection: Selection, metric: str, aggregation: Aggregation, pass_rule: PassRule, errored: Errored, k: int
) -> float | None:
    """The mean over samples, each with its own number of trials; None where one has fewer than k."""
    trials: Counter[int] = Counter()
    passed: Counter[int] = Counter()
    for cell in selection.cells(metric):
        left_out = cell.value is None and errored.exclude
        trials[cell.sample] += not left_out
        passed[cell.sample] += not left_out and (
            errored.small_is_good if cell.value is None else pass_rule.passes(cell.value)
        )
    estimate = pass_at_k if aggregation is Aggregation.PASS_AT_K else pass_hat_k
    estimates = [estimate(trials[sample], passed[sample], k) for sample in trials]
    known = [value for value in estimates if value is not None]
    return mean(known) if len(known) == len(estimates) else None
