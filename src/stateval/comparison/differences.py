"""The difference of one metric between two runs, sample by sample."""

from __future__ import annotations

from stateval.comparison.compared import Change, Interval, MetricComparison, ScoredDifference
from stateval.comparison.measured import MeasuredRun
from stateval.stats.comparison import TOLERANCE
from stateval.stats.describe import mean
from stateval.stats.estimates import Estimate
from stateval.stats.paired import Paired, difference_test, pair, paired_difference
from stateval.stats.points import Points, sample_points


def compare_metric(one: MeasuredRun, other: MeasuredRun, metric: str, confidence: float) -> MetricComparison:
    """The metric's paired difference over the samples that count in both runs, with its interval and p-value.

    Errored observations of a score count as 0, unless both suites leave them out; unknown latency, cost and tokens
    are left out. Raises KeyError for a metric that one of the tables lacks.
    """
    is_resource = one.table.is_resource(metric)
    errored_as = None if is_resource or (one.leaves_errors_out and other.leaves_errors_out) else 0.0
    before, now = one.points(metric, errored_as), other.points(metric, errored_as)
    paired = pair(before, now, scores=not is_resource)
    estimate, test = paired_difference(paired, confidence), difference_test(paired)
    summaries = one.summary(metric), other.summary(metric)
    change = _change(estimate, less_is_better=is_resource)
    significant = test is not None and test.p_value <= 1 - confidence + TOLERANCE
    agree = change is Change.UNKNOWN or significant == (change is not Change.UNCLEAR)
    has_errors = any(summary.n_errors for summary in summaries)
    return MetricComparison(
        metric=metric,
        change=change if agree else Change.UNCLEAR,
        disagree=not agree,
        n=paired.n,
        n_clusters=paired.n_clusters,
        one_mean=_mean_of(before, paired),
        other_mean=_mean_of(now, paired),
        difference=mean(paired.differences),
        interval=_interval(estimate),
        interval_method=estimate.method if estimate else None,
        p_value=test.p_value if test else None,
        p_method=test.method if test else None,
        lost=paired.lost,
        gained=paired.gained,
        less_is_better=is_resource,
        errored_as=errored_as,
        scored=_scored(one, other, metric, confidence) if has_errors and errored_as is not None else None,
        one=summaries[0],
        other=summaries[1],
    )


def _change(estimate: Estimate | None, *, less_is_better: bool) -> Change:
    if estimate is None:
        return Change.UNKNOWN
    least = 0.0 if less_is_better else TOLERANCE  # scores are sums of rounded numbers; a cost may be a billionth
    if estimate.low > least:
        return Change.WORSE if less_is_better else Change.BETTER
    if estimate.high < -least:
        return Change.BETTER if less_is_better else Change.WORSE
    return Change.UNCLEAR


def _scored(one: MeasuredRun, other: MeasuredRun, metric: str, confidence: float) -> ScoredDifference:
    paired = pair(*(sample_points(run.selection, metric, errored=None) for run in (one, other)))
    interval = _interval(paired_difference(paired, confidence))
    return ScoredDifference(n=paired.n, difference=mean(paired.differences), interval=interval)


def _mean_of(points: Points, paired: Paired) -> float | None:
    """The mean over the shared samples; both are in ascending order."""
    if points.n == paired.n:
        return mean(points.values)
    values, place = [], 0
    for sample in paired.samples:
        while points.samples[place] != sample:
            place += 1
        values.append(points.values[place])
    return mean(values)


def _interval(estimate: Estimate | None) -> Interval | None:
    return None if estimate is None else (estimate.low, estimate.high)
