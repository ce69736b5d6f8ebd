"""pass@k and pass^k: what k tries of one sample come to, estimated from n trials of which c passed."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

from stateval.stats.points import Points, grouped
from stateval.stats.table import Selection


def pass_at_k(trials: int, passed: int, k: int) -> float | None:
    """The chance that at least one of k tries passes: 1 - C(n - c, k) / C(n, k).

    Unbiased; from Chen et al., "Evaluating Large Language Models Trained on Code" (2021). None where k is greater
    than the number of trials.
    """
    _check(trials, passed, k)
    return 1 - comb(trials - passed, k) / comb(trials, k) if k <= trials else None


def pass_hat_k(trials: int, passed: int, k: int) -> float | None:
    """The chance that all of k tries pass: C(c, k) / C(n, k).

    From Yao et al., "tau-bench" (2024). None where k is greater than the number of trials.
    """
    _check(trials, passed, k)
    return comb(passed, k) / comb(trials, k) if k <= trials else None


def repeat_points(
    selection: Selection, metric: str, k: int, *, passes: Callable[[float], bool], errored: bool | None, hat: bool
) -> Points | None:
    """pass@k of each sample (pass^k with `hat`), for `estimate_mean`: the metric is the mean over samples.

    Each sample is estimated from its own number of trials. None where there is no sample, or one with fewer than k
    trials, which would have to be left out silently.

    Args:
        passes: whether an observation with this value passes.
        errored: whether one without a value passes; None leaves it out, and a sample that has no other too.
    """
    points, estimate = Points(), pass_hat_k if hat else pass_at_k
    worst = None if errored is None else float(errored)
    for sample, cluster, values in grouped(
        selection, metric, errored=worst, value_of=lambda value: float(passes(value))
    ):
        value = estimate(len(values), round(sum(values)), k)
        if value is None:
            return None
        points.append(sample, cluster, (value,))
    return points if points.n else None


def _check(trials: int, passed: int, k: int) -> None:
    if not 0 <= passed <= trials or k < 1:
        raise ValueError(f"{passed} passes in {trials} trials with k = {k} is impossible")
