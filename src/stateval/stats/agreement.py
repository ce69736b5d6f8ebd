"""A judge beside people: how often they agree, beyond chance, and what the judge's errors do to a rate.

What is not defined (a rate of nothing, a kappa where everybody always says the same) is None with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stateval.records.judge_check import Agreement, Rate
from stateval.stats.distributions import normal_quantile
from stateval.stats.intervals import upper_tail, wilson_interval

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Table:
    """How many answers a judge and people passed, the judge alone, people alone, and neither."""

    both: int
    judge_alone: int
    people_alone: int
    neither: int

    @classmethod
    def of(cls, judge: Sequence[float], people: Sequence[float], threshold: float) -> Table:
        """The table of two scores an answer, each passed at `threshold` or above (within 1e-9)."""
        pairs = [
            (one >= threshold - _TOLERANCE, other >= threshold - _TOLERANCE)
            for one, other in zip(judge, people, strict=True)
        ]
        return cls(*(pairs.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))))

    @property
    def n(self) -> int:
        """All answers."""
        return self.both + self.judge_alone + self.people_alone + self.neither

    @property
    def agreed(self) -> int:
        """Those on which judge and people agree."""
        return self.both + self.neither

    @property
    def people(self) -> int:
        """Those that people passed."""
        return self.both + self.people_alone

    @property
    def judge(self) -> int:
        """Those that the judge passed."""
        return self.both + self.judge_alone


def agreement(
    judge: Sequence[float],
    people: Sequence[float],
    threshold: float,
    *,
    confidence: float = 0.95,
    reported: tuple[int, int] | None = None,
) -> Agreement:
    """All that is said of a judge whose scores (from 0 to 1) stand beside people's scores of the same answers.

    `reported` is (passed, n) of all answers that the judge has graded in a run, of which the labelled ones are a
    sample; its rate is then corrected for the judge's errors. Without it the labelled answers are all there are, and
    the corrected rate is that of people.
    """
    table = Table.of(judge, people, threshold)
    differences = [one - other for one, other in zip(judge, people, strict=True)]
    prevalence = rate(table.people, table.n, confidence)
    passed, n = reported or (table.judge, table.n)
    return Agreement(
        n=table.n,
        true_positives=table.both,
        false_positives=table.judge_alone,
        false_negatives=table.people_alone,
        true_negatives=table.neither,
        accuracy=rate(table.agreed, table.n, confidence),
        kappa=cohen_kappa(table, confidence),
        sensitivity=rate(table.both, table.people, confidence, "people passed no answer"),
        specificity=rate(table.neither, table.n - table.people, confidence, "people passed every answer"),
        prevalence=prevalence,
        reported=rate(passed, n, confidence),
        corrected=prevalence if reported is None else corrected_rate(passed, n, table, confidence),
        mean_difference=math.fsum(differences) / table.n if table.n else None,
        mean_absolute_difference=math.fsum(map(abs, differences)) / table.n if table.n else None,
    )


def rate(count: int, n: int, confidence: float = 0.95, reason: str = "there is no answer") -> Rate:
    """A share with Wilson's interval; without a value, and with the reason, where it is one of nothing."""
    if n == 0:
        return Rate(n=0, reason=reason)
    low, high = wilson_interval(count, n, confidence)
    return Rate(value=count / n, low=low, high=high, n=n)


def cohen_kappa(table: Table, confidence: float = 0.95) -> Rate:
    """Agreement beyond chance: 1 is perfect, 0 what two who guess by their own rates would have.

    Cohen, "A Coefficient of Agreement for Nominal Scales" (1960). The interval is that of the large-sample standard
    error of Fleiss, Cohen and Everitt (1969), of the table with one answer more in each cell: without, it covers the
    true kappa too seldom below some 200 answers (89 - 92 % of the time at 50), and has no width where all agree. With
    one more, as Agresti and Coull (1998) do it for a share, it covered 95 - 98 % in simulations of 20 to 200 answers.
    """
    kappa = _kappa(table)
    if kappa is None:
        reason = "judge and people gave every answer the same verdict, so chance explains all of it"
        return Rate(n=table.n, reason=reason if table.n else "there is no answer")
    fuller = Table(table.both + 1, table.judge_alone + 1, table.people_alone + 1, table.neither + 1)
    centre = _kappa(fuller) or 0.0
    half_width = normal_quantile(upper_tail(confidence)) * _error_of_kappa(fuller, centre)
    low, high = max(-1.0, centre - half_width), min(1.0, centre + half_width)
    return Rate(value=kappa, low=min(low, kappa), high=max(high, kappa), n=table.n)


def _kappa(table: Table) -> float | None:
    if table.n == 0 or (by_chance := _agreed_by_chance(table)) > 1 - _TOLERANCE:
        return None
    return (table.agreed / table.n - by_chance) / (1 - by_chance)


def _agreed_by_chance(table: Table) -> float:
    judge, people = table.judge / table.n, table.people / table.n
    return judge * people + (1 - judge) * (1 - people)


def _error_of_kappa(table: Table, kappa: float) -> float:
    n, by_chance = table.n, _agreed_by_chance(table)
    judge, people = table.judge / n, table.people / n
    sides = ((judge, people), (1 - judge, 1 - people))
    agreed = (table.both / n, table.neither / n)
    apart = ((table.judge_alone / n, people + 1 - judge), (table.people_alone / n, 1 - people + judge))
    variance = (
        sum(share * (1 - (one + other) * (1 - kappa)) ** 2 for share, (one, other) in zip(agreed, sides, strict=True))
        + (1 - kappa) ** 2 * sum(share * margin**2 for share, margin in apart)
        - (kappa - by_chance * (1 - kappa)) ** 2
    )
    return math.sqrt(max(0.0, variance) / n) / (1 - by_chance)


def corrected_rate(passed: int, n: int, table: Table, confidence: float = 0.95) -> Rate:
    """The rate that people would have found, from the rate that the judge reported and the judge's errors.

    The estimate is that of Rogan and Gladen, "Estimating Prevalence from the Results of a Screening Test" (1978), the
    interval that of Lang and Reiczigel, "Confidence limits for prevalence of disease adjusted for estimated sensitivity
    and specificity" (2014). It takes the errors in the labelled answers for those in all of them, so these must be a
    random sample of all. Not defined where the judge passes bad answers as readily as good ones.
    """
    negatives = table.n - table.people
    if n == 0 or not table.people or not negatives:
        return Rate(n=n, reason="it takes labelled answers that people passed and some that they did not")
    sensitivity, specificity = table.both / table.people, table.neither / negatives
    if sensitivity + specificity - 1 <= _TOLERANCE:
        return Rate(n=n, reason="the judge passes what people fail at least as readily as what they pass")
    low, high = _adjusted_interval((passed, n), (table.both, table.people), (table.neither, negatives), confidence)
    value = _share((passed / n + specificity - 1) / (sensitivity + specificity - 1))
    return Rate(value=value, low=min(low, value), high=max(high, value), n=n)


def _adjusted_interval(
    reported: tuple[int, int], positives: tuple[int, int], negatives: tuple[int, int], confidence: float
) -> tuple[float, float]:
    """Lang and Reiczigel's interval: all three shares are drawn towards one half before the delta method."""
    z = normal_quantile(upper_tail(confidence))
    n, n_positive, n_negative = reported[1] + z * z, positives[1] + 2, negatives[1] + 2
    share = (reported[0] + z * z / 2) / n
    sensitivity, specificity = (positives[0] + 1) / n_positive, (negatives[0] + 1) / n_negative
    youden = sensitivity + specificity - 1
    if youden <= _TOLERANCE:
        return 0.0, 1.0
    centre = (share + specificity - 1) / youden
    of_sensitivity = sensitivity * (1 - sensitivity) / n_positive
    of_specificity = specificity * (1 - specificity) / n_negative
    shift = 2 * z * z * (centre * of_sensitivity - (1 - centre) * of_specificity)
    variance = share * (1 - share) / n + of_sensitivity * centre**2 + of_specificity * (1 - centre) ** 2
    half_width = z * math.sqrt(variance) / youden
    return _share(centre + shift - half_width), _share(centre + shift + half_width)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
