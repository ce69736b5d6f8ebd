"""Whether a comparison could fail at all: a loss that no data of so few samples can show does not pass either."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace

from stateval.stats.comparison import TOLERANCE
from stateval.stats.describe import mean
from stateval.stats.distributions import student_t_quantile
from stateval.stats.paired import lower_bound, pair, upper_bound
from stateval.stats.points import Points

_MOST = 2**30


def out_of_reach(earlier: Points, today: Points, *, rises: bool, allowed: float, confidence: float) -> str | None:
    """Why not even the worst scores today would show a loss above `allowed`; None where they would.

    None also where such a loss is impossible: the earlier run, as a whole, cannot lose more than is allowed.

    Args:
        rises: whether less is better, so that the worst score is 1 and not 0.
    """
    worst = 1.0 if rises else 0.0
    most = abs((mean(earlier.values) or 0.0) - worst)
    collapsed = replace(today, values=array("d", [worst]) * today.n)
    paired = pair(earlier, collapsed)
    bound = lower_bound(paired, confidence) if rises else upper_bound(paired, confidence)
    loss = None if bound is None else bound if rises else 0.0 - bound
    if most <= allowed + TOLERANCE or loss is None or loss > allowed + TOLERANCE:
        return None
    return (
        f"the {paired.n} samples in both runs could not show it: even if all of them scored {worst:g} today, no "
        f"{'rise' if rises else 'drop'} above {allowed:.12g} would be shown; that takes about "
        f"{samples_to_show(earlier, worst, allowed, confidence)}"
    )


def samples_to_show(earlier: Points, worst: float, allowed: float, confidence: float) -> int:
    """About how many samples like those of the earlier run would show that all became `worst`.

    By the bounds of `stats.paired`: of equal losses d, d (2 q - 1) > allowed with q = (1 - confidence)^(1/n); else
    Student's t. Clusters are as large as they are there. The loss must be above `allowed`.
    """
    losses = [abs(value - worst) for value in earlier.values]
    average = math.fsum(losses) / len(losses)
    spread = math.sqrt(math.fsum((loss - average) ** 2 for loss in losses) / len(losses))
    a_cluster = earlier.n / earlier.n_clusters
    if spread <= TOLERANCE:
        return math.ceil(a_cluster * pairs_of_equal_losses(average, allowed, confidence))

    def shows(n: int) -> bool:
        half_width = student_t_quantile(confidence, n - 1) * spread / math.sqrt(n - 1)
        return average - half_width > allowed + TOLERANCE

    low, high = 1, 2
    while not shows(high) and high < _MOST:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return math.ceil(a_cluster * high)


def pairs_of_equal_losses(loss: float, allowed: float, confidence: float) -> int:
    """The fewest independent pairs that all lose `loss` and so show more than `allowed`, which is less."""
    exact = math.log(1 - confidence) / math.log((1 + allowed / loss) / 2)
    return max(2, math.floor(exact + TOLERANCE) + 1)
