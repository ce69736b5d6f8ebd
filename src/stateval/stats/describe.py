"""Means, spreads and percentiles on the standard library's numbers.

What is not defined is None, never NaN: the mean of nothing, the spread of one value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence


def mean(values: Collection[float]) -> float | None:
    """The arithmetic mean, summed without rounding error (`math.fsum`); None of no values."""
    return math.fsum(values) / len(values) if values else None


def standard_deviation(values: Collection[float]) -> float | None:
    """The sample standard deviation, with n - 1 in the denominator; None of fewer than two values."""
    if len(values) < 2:
        return None
    centre = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def percentile(values: Iterable[float], percent: float) -> float | None:
    """The percentile, linear between order statistics; None of no values.

    This is definition 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996), and numpy's default.

    Args:
        values: in any order.
        percent: from 0 to 100. Raises ValueError outside of it.
    """
    if not 0 <= percent <= 100:
        raise ValueError(f"a percentile lies between 0 and 100, not at {percent}")
    ordered = sorted(values)
    return _between_order_statistics(ordered, percent / 100 * (len(ordered) - 1)) if ordered else None


def median(values: Iterable[float]) -> float | None:
    """The middle value, or the mean of the two middle ones; None of no values."""
    return percentile(values, 50)


def minimum(values: Iterable[float]) -> float | None:
    """The smallest value; None of no values."""
    return min(values, default=None)


def maximum(values: Iterable[float]) -> float | None:
    """The greatest value; None of no values."""
    return max(values, default=None)


def _between_order_statistics(ordered: Sequence[float], position: float) -> float:
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    share = position - below
    return ordered[below] * (1 - share) + ordered[above] * share
