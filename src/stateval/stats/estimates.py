"""A measured number with its interval: means, rates and percentiles, for samples that may come in clusters.

What is not defined is None, never NaN: the interval of nothing, of one score, of a single cluster.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from stateval.stats.describe import percentile
from stateval.stats.distributions import normal_quantile, student_t_quantile
from stateval.stats.intervals import (
    Interval,
    order_statistic_interval,
    order_statistic_ranks,
    upper_tail,
    wilson_interval,
)
from stateval.stats.points import Points


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, and the interval in which the true one lies with the stated confidence (two-sided, equal tails).

    `n` is the number of samples (of observations for a percentile), `n_clusters` of the groups that are independent
    of each other. `standard_error` is that of the value, robust to clusters; None for percentiles and where there is
    one sample. `effective_n` is how many independent samples a rate or percentile is worth. `method` says which
    interval it is: see docs/statistics.md.
    """

    value: float
    low: float
    high: float
    standard_error: float | None
    confidence: float
    n: int
    n_clusters: int
    method: str
    effective_n: float | None = None


@dataclass(frozen=True, slots=True)
class MeanError:
    """A mean with its standard error (None of one value or one cluster), over `n` values in `n_clusters`."""

    mean: float
    standard_error: float | None
    n: int
    n_clusters: int

    @property
    def clustered(self) -> bool:
        """Whether some cluster has more than one value."""
        return self.n_clusters < self.n


def mean_error(values: Sequence[float], clusters: Sequence[int] | None) -> MeanError | None:
    """The mean of the values and its standard error, robust to any dependence within a cluster; None of no values.

    Without `clusters` each value is its own, and no more memory is taken.
    The variance is G / (G - 1) times the sum over the G clusters of the square of their summed deviations, over n
    squared: Liang and Zeger (1986), with the correction for few clusters of Cameron, Gelbach and Miller (2008). Where
    each value is its own cluster it is s squared over n, exactly.
    """
    n = len(values)
    if not n:
        return None
    centre = math.fsum(values) / n
    if clusters is None:
        squares, g = math.fsum((value - centre) ** 2 for value in values), n
    else:
        totals: dict[int, float] = {}
        for value, cluster in zip(values, clusters, strict=True):
            totals[cluster] = totals.get(cluster, 0.0) + (value - centre)
        squares, g = math.fsum(total * total for total in totals.values()), len(totals)
    return MeanError(centre, math.sqrt(g / (g - 1) * squares) / n if g > 1 else None, n, g)


def estimate_mean(points: Points, confidence: float = 0.95, *, scores: bool = True) -> Estimate | None:
    """The mean over samples: a rate (`estimate_rate`) where every value is 0 or 1, else Student's t.

    `scores` is False for dollars, seconds and tokens, which are no rate even where all are 0.

    With clusters the standard error is robust and t has G - 1 degrees of freedom: Cameron and Miller, "A
    Practitioner's Guide to Cluster-Robust Inference" (2015), section VI; for evaluations, Miller, "Adding Error Bars
    to Evals" (2024). None of no sample, of one score that is not 0 or 1, or of a single cluster.
    """
    return estimate_rate(points, confidence) if scores and points.is_binary else _by_t(points, confidence)


def estimate_rate(points: Points, confidence: float = 0.95) -> Estimate | None:
    """A share of passes by Wilson's interval; each value is 0, 1, or the share of a sample's repeats that passed.

    Independent samples that each passed or not: Wilson with n. Else with the effective sample size, which is what an
    independent sample of the same variance would have (Kish, "Survey Sampling", 1965), and t of G - 1 degrees of
    freedom in place of the normal (Korn and Graubard, 1998; Dean and Pagano, 2015, find Wilson's the best of the kind).
    It is at most the number of trials, and the number of clusters where all are 0 or all are 1 and nothing shows how
    alike a cluster is. None of no samples, or of a single cluster of several; ValueError for a value outside [0, 1].
    """
    if not all(0 <= value <= 1 for value in points.values):
        raise ValueError("a rate is made of values from 0 to 1")
    found = _error_of(points)
    if found is None or (found.clustered and found.n_clusters == 1):
        return None
    if points.is_binary and not found.clustered:
        low, high = wilson_interval(found.mean * found.n, found.n, confidence)
        return _estimate(found, (low, high), confidence, "wilson", float(found.n))
    if found.standard_error is None:
        return None
    effective = _effective_n(found, _most_independent(points.trials))
    method = "cluster wilson" if found.clustered else "effective wilson"
    return _estimate(found, _wilson_by_t(found, effective, confidence), confidence, method, effective)


def estimate_percentile(
    values: Sequence[float], percent: float, confidence: float = 0.95, clusters: Sequence[int] | None = None
) -> Estimate | None:
    """A percentile (linear between order statistics), with an interval from one order statistic to another.

    With `clusters` (one per value) of more than one value, the ranks are those of the effective sample size, which
    the share of values at or below the percentile has as in `estimate_rate`, spread over all values: Woodruff,
    "Confidence Intervals for Medians and Other Position Measures" (1952). None where there are too few values for a
    two-sided interval, or a single cluster.
    """
    value = percentile(values, percent)
    if value is None:
        return None
    n_clusters = len(values) if clusters is None else len(set(clusters))
    if clusters is None or n_clusters == len(values):
        found = order_statistic_interval(values, percent, confidence)
        return None if found is None else _of_percentile(value, found, confidence, len(values), n_clusters, None)
    return _clustered_percentile(value, values, percent, confidence, clusters)


def _by_t(points: Points, confidence: float) -> Estimate | None:
    found = _error_of(points)
    if found is None or found.standard_error is None:
        return None
    half_width = student_t_quantile(upper_tail(confidence), found.n_clusters - 1) * found.standard_error
    interval = found.mean - half_width, found.mean + half_width
    return _estimate(found, interval, confidence, "cluster t" if found.clustered else "t", None)


def _error_of(points: Points) -> MeanError | None:
    return mean_error(points.values, None if points.is_unclustered else points.clusters)


def _most_independent(trials: Sequence[int]) -> float:
    """How many independent trials a mean of means is worth at most: n times the harmonic mean of the trials."""
    return len(trials) ** 2 / math.fsum(1 / count for count in trials)


def _effective_n(found: MeanError, most: float) -> float:
    """The size of an independent sample of 0 and 1 with the same mean and standard error: s^2 / n is p q / (n - 1)."""
    spread = found.mean * (1 - found.mean)
    if spread <= 0:
        return float(found.n_clusters)
    variance = (found.standard_error or 0.0) ** 2
    return min(most, 1 + spread / variance) if spread < variance * most else most


def _wilson_by_t(found: MeanError, effective: float, confidence: float) -> Interval:
    n = effective * _normal_for_t(found.n_clusters, confidence)
    return wilson_interval(min(found.mean * n, n), n, confidence)


def _normal_for_t(n_clusters: int, confidence: float) -> float:
    """What a sample size is multiplied by, so that a normal quantile does what t of G - 1 degrees would do."""
    tail = upper_tail(confidence)
    return (normal_quantile(tail) / student_t_quantile(tail, n_clusters - 1)) ** 2


def _clustered_percentile(
    value: float, values: Sequence[float], percent: float, confidence: float, clusters: Sequence[int]
) -> Estimate | None:
    below = array("d", (float(one <= value) for one in values))
    found = mean_error(below, clusters)
    if found is None or found.standard_error is None:
        return None
    n, effective = found.n, _effective_n(found, float(found.n))
    whole = math.floor(effective * _normal_for_t(found.n_clusters, confidence))
    ranks = order_statistic_ranks(whole, percent, confidence)
    if ranks is None:
        return None
    ordered = sorted(values)
    interval = ordered[(ranks[0] - 1) * n // whole], ordered[-(-ranks[1] * n // whole) - 1]
    return _of_percentile(value, interval, confidence, n, found.n_clusters, effective)


def _of_percentile(
    value: float, interval: Interval, confidence: float, n: int, n_clusters: int, effective: float | None
) -> Estimate:
    low, high = min(interval[0], value), max(interval[1], value)
    method = "order statistics" if effective is None else "cluster order statistics"
    return Estimate(value, low, high, None, confidence, n, n_clusters, method, effective or float(n))


def _estimate(
    found: MeanError, interval: Interval, confidence: float, method: str, effective: float | None
) -> Estimate:
    low, high = interval
    error, n, g = found.standard_error, found.n, found.n_clusters
    return Estimate(found.mean, low, high, error, confidence, n, g, method, effective)
