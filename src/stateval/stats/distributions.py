"""The few distributions that intervals and tests need, on the standard library's numbers.

Checked against scipy in the tests. The regularized incomplete beta function carries both Student's t and the binomial.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_STANDARD_NORMAL = NormalDist()
_SMALLEST = 1e-300
_PRECISION = 1e-15
_MOST_STEPS = 100_000
_NEARLY_NORMAL = 1e6
_LAST_STEP = 1e-8  # Newton's method squares the error, so the next step would be lost in rounding.


def normal_quantile(probability: float) -> float:
    """The value below which a standard normal variable lies with this probability, strictly between 0 and 1."""
    _check(probability)
    return _STANDARD_NORMAL.inv_cdf(probability)


def normal_cdf(value: float) -> float:
    """The probability that a standard normal variable is at most `value`."""
    return _STANDARD_NORMAL.cdf(value)


def student_t_cdf(value: float, degrees: float) -> float:
    """The probability that Student's t with so many degrees of freedom (above 0) is at most `value`."""
    tail = _student_t_tail(abs(value), degrees)
    return 1 - tail if value > 0 else tail


@lru_cache(maxsize=1024)
def student_t_quantile(probability: float, degrees: float) -> float:
    """The value below which Student's t lies with this probability, strictly between 0 and 1.

    By Newton's method from the normal quantile, which lies between 0 and the answer; from there each step stays on
    the same side, because the distribution function bends only one way. Above a million degrees of freedom by the
    first term of its expansion (Abramowitz and Stegun 26.7.5), which is then exact to 12 digits.
    """
    _check(probability)
    tail = min(probability, 1 - probability)
    value = -normal_quantile(tail)
    if degrees > _NEARLY_NORMAL:
        value += (value**3 + value) / (4 * degrees)
    else:
        value = _solved(value, tail, degrees)
    return value if probability > tail else -value


def binomial_cdf(successes: int, trials: int, probability: float) -> float:
    """The probability of at most so many successes in independent trials that each succeed with `probability`."""
    if successes < 0:
        return 0.0
    if successes >= trials or probability <= 0:
        return 1.0
    return _incomplete_beta(trials - successes, successes + 1, 1 - probability)


def _check(probability: float) -> None:
    if not 0 < probability < 1:
        raise ValueError(f"a probability lies strictly between 0 and 1, not at {probability}")


def _solved(value: float, tail: float, degrees: float) -> float:
    for _ in range(_MOST_STEPS):
        step = (_student_t_tail(value, degrees) - tail) / _student_t_density(value, degrees)
        value += step
        if abs(step) <= _LAST_STEP * max(1.0, value):
            break
    return value


def _student_t_tail(value: float, degrees: float) -> float:
    """The probability above a value that is not negative."""
    if degrees <= 0:
        raise ValueError(f"degrees of freedom are above 0, not {degrees}")
    return 0.5 * _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + value * value))


def _student_t_density(value: float, degrees: float) -> float:
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    return math.exp(scale - (degrees + 1) / 2 * math.log1p(value * value / degrees))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function: DLMF 8.17.22, on the side where it converges fast (8.17.4)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    factor = math.exp(logarithm)
    if x < (a + 1) / (a + b + 2):
        return factor * _beta_fraction(a, b, x) / a
    return 1 - factor * _beta_fraction(b, a, 1 - x) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction, by Lentz's method as modified by Thompson and Barnett (1986)."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _MOST_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for part in (even, odd):
            c, d = _not_zero(1 + part / c), 1 / _not_zero(1 + part * d)
            fraction *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return fraction


def _not_zero(value: float) -> float:
    return value if abs(value) > _SMALLEST else _SMALLEST
