"""How many samples a question takes. All of it assumes that what was measured, and its spread, stay as they are."""

from __future__ import annotations

import math
from collections.abc import Callable

from stateval.stats.comparison import TOLERANCE
from stateval.stats.distributions import normal_quantile, student_t_quantile
from stateval.stats.estimates import Estimate
from stateval.stats.intervals import Interval, order_statistic_ranks, upper_tail, wilson_interval

_MOST_SAMPLES = 1_000_000_000


def samples_to_decide(estimate: Estimate, threshold: float) -> int | None:
    """How many more samples would bring the whole interval to one side of the threshold, at the same confidence.

    The interval is computed anew for more samples of the same mean, spread, and (where there are clusters) size of
    cluster; ends at order statistics draw nearer with the square root of n. 0 where it is decided already. None where
    no number would do: the measured value is the threshold.
    """
    if estimate.low > threshold + TOLERANCE or estimate.high < threshold - TOLERANCE:
        return 0
    if abs(estimate.value - threshold) <= TOLERANCE:
        return None

    def decided(n: int) -> bool:
        low, high = _interval_of(estimate, n)
        return low > threshold + TOLERANCE or high < threshold - TOLERANCE

    found = _least(estimate.n + 1, decided)
    return None if found is None else found - estimate.n


def samples_for_half_width(half_width: float, rate: float = 0.5, confidence: float = 0.95) -> int | None:
    """How many independent samples bound a rate to within +- `half_width` by Wilson's interval.

    0.5 is the rate that takes the most. None where no number would do: the half-width is not above 0.
    """

    def narrow(n: int) -> bool:
        low, high = wilson_interval(rate * n, n, confidence)
        return high - low <= 2 * half_width

    return _least(1, narrow)


def samples_to_detect(difference: float, spread: float, *, confidence: float = 0.95, power: float = 0.8) -> int | None:
    """How many pairs show a true mean difference as other than 0 with this probability (`power`), two-sided.

    ((z(confidence) + z(power)) * spread / difference)^2, from Miller, "Adding Error Bars to Evals" (2024).
    `spread` is the standard deviation of the differences: see `spread_of_discordant`. None of a difference of 0.
    """
    if difference == 0:
        return None
    z = normal_quantile(upper_tail(confidence)) + normal_quantile(power)
    return math.ceil((z * spread / difference) ** 2 - TOLERANCE)


def spread_of_discordant(difference: float, discordant: float) -> float:
    """The standard deviation of paired 0/1 differences of which the share `discordant` is not 0: Connor (1987)."""
    if not abs(difference) <= discordant <= 1:
        raise ValueError(f"a difference of {difference} with {discordant} of the pairs discordant is impossible")
    return math.sqrt(discordant - difference * difference)


def samples_for_percentile(percent: float, confidence: float = 0.95) -> int | None:
    """The fewest independent values that bound a percentile on both sides: 6 for a median at 95 %, 72 for a p95.

    None of 0 and 100, which no sample bounds.
    """
    return _least(1, lambda n: order_statistic_ranks(n, percent, confidence) is not None) if 0 < percent < 100 else None


def _least(start: int, enough: Callable[[int], bool]) -> int | None:
    """The least number from `start` on that is enough, and every greater one is; None above a thousand million."""
    low, high = start - 1, start
    while not enough(high):
        if high > _MOST_SAMPLES:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _interval_of(estimate: Estimate, n: int) -> Interval:
    """The interval that the estimate would have with `n` samples."""
    growth = n / estimate.n
    match estimate.method:
        case "wilson" | "cluster wilson" | "effective wilson":
            return _wilson(estimate, growth)
        case "order statistics" | "cluster order statistics":
            below, above = estimate.value - estimate.low, estimate.high - estimate.value
            return estimate.value - below / math.sqrt(growth), estimate.value + above / math.sqrt(growth)
        case "equal differences":
            return _equal_differences(estimate, growth)
    half_width = _t(estimate, growth) * (estimate.standard_error or 0.0) / math.sqrt(growth)
    return estimate.value - half_width, estimate.value + half_width


def _wilson(estimate: Estimate, growth: float) -> Interval:
    n = (estimate.effective_n or estimate.n) * growth
    if estimate.method != "wilson":
        n *= (normal_quantile(upper_tail(estimate.confidence)) / _t(estimate, growth)) ** 2
    return wilson_interval(min(estimate.value * n, n), n, estimate.confidence)


def _t(estimate: Estimate, growth: float) -> float:
    return student_t_quantile(upper_tail(estimate.confidence), estimate.n_clusters * growth - 1)


def _equal_differences(estimate: Estimate, growth: float) -> Interval:
    alike = (1 - upper_tail(estimate.confidence)) ** (1 / (estimate.n_clusters * growth))
    if estimate.value == 0:
        unseen = 1 - alike if estimate.high > 0 else 0.0
        return 0.0 - unseen, unseen
    far = estimate.value * (2 * alike - 1)
    return min(far, estimate.value), max(far, estimate.value)
