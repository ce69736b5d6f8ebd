"""pass@k and pass^k: what k tries of one sample come to, estimated from n trials of which c passed."""

from __future__ import annotations

from math import comb


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


def _check(trials: int, passed: int, k: int) -> None:
    if not 0 <= passed <= trials or k < 1:
        raise ValueError(f"{passed} passes in {trials} trials with k = {k} is impossible")
