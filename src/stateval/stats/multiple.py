"""Several tests at once: p-values that may all be looked at."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """The adjusted p-values, in the same order: below 0.05, the chance of any false one among them is below 5 %.

    From Holm, "A Simple Sequentially Rejective Multiple Test Procedure" (1979): the i-th smallest of m is multiplied
    by m - i + 1, is no smaller than the one before it, and is at most 1. It assumes nothing of how the tests depend on
    each other.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, greatest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        greatest = max(greatest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = greatest
    return adjusted
