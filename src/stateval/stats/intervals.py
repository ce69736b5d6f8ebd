"""Two-sided confidence intervals of a share, a mean and a percentile of independent values.

What is not defined is None. A confidence is a number strictly between 0 and 1; 0.95 leaves 2.5 % on either side.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from stateval.stats.describe import mean, standard_deviation
from stateval.stats.distributions import binomial_cdf, normal_quantile, student_t_quantile

Interval = tuple[float, float]

_ROUNDING = 1e-12


def upper_tail(confidence: float) -> float:
    """The probability that a two-sided interval of this confidence has below its upper end: 0.975 of 0.95."""
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies strictly between 0 and 1, not at {confidence}")
    return 0.5 + confidence / 2


def wilson_interval(passed: float, n: float, confidence: float = 0.95) -> Interval:
    """The score interval of a share, always within [0, 1]. `n` (above 0) may be an effective sample size.

    From Wilson, "Probable Inference, the Law of Succession, and Statistical Inference" (1927).

    >>> low, high = wilson_interval(40, 50)
    >>> f"{low:.2f} {high:.2f}"
    '0.67 0.89'
    """
    if n <= 0 or not 0 <= passed <= n:
        raise ValueError(f"{passed} passed of {n} is impossible")
    z = normal_quantile(upper_tail(confidence))
    share, weight = passed / n, z * z / n
    centre = (share + weight / 2) / (1 + weight)
    half_width = math.sqrt(weight * (share * (1 - share) + weight / 4)) / (1 + weight)
    low = 0.0 if passed == 0 else min(share, max(0.0, centre - half_width))
    high = 1.0 if passed == n else max(share, min(1.0, centre + half_width))
    return low, high


def t_interval(values: Collection[float], confidence: float = 0.95) -> Interval | None:
    """The interval of a mean: mean +- t(n - 1) * s / sqrt(n); None of fewer than two values.

    From Student, "The Probable Error of a Mean" (1908). Equal values give an interval of no width.
    """
    centre, spread = mean(values), standard_deviation(values)
    tail = upper_tail(confidence)
    if centre is None or spread is None:
        return None
    half_width = student_t_quantile(tail, len(values) - 1) * spread / math.sqrt(len(values))
    return centre - half_width, centre + half_width


def order_statistic_interval(values: Iterable[float], percent: float, confidence: float = 0.95) -> Interval | None:
    """The interval of a percentile, from one of the values to another; it assumes nothing about their distribution.

    How many of n values lie below the true percentile is binomial, which says which two to take: Conover, "Practical
    Nonparametric Statistics", section 3.2; Hahn and Meeker, "Statistical Intervals", section 5.2. The least interval
    that leaves at most half of the rest on either side, so its confidence is at least the asked one. None where even
    the extreme values are not far enough out: a median at 95 % wants 6 values, a 95th percentile 72.
    """
    ordered = sorted(values)
    ranks = order_statistic_ranks(len(ordered), percent, confidence)
    return None if ranks is None else (ordered[ranks[0] - 1], ordered[ranks[1] - 1])


def order_statistic_ranks(n: int, percent: float, confidence: float = 0.95) -> tuple[int, int] | None:
    """The ranks (from 1) of the two values that bound a percentile of `n`; None where `n` is too small."""
    if not 0 <= percent <= 100:
        raise ValueError(f"a percentile lies between 0 and 100, not at {percent}")
    tail = upper_tail(confidence)
    low = _first_count(n, percent / 100, (1 - tail) * (1 + _ROUNDING))
    high = _first_count(n, percent / 100, tail * (1 - _ROUNDING)) + 1
    return (low, high) if low >= 1 and high <= n else None


def _first_count(n: int, share: float, probability: float) -> int:
    """The least count (at most n) that a binomial variable is at or below with at least this probability."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if binomial_cdf(middle, n, share) >= probability:
            high = middle
        else:
            low = middle + 1
    return low
