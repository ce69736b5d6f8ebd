"""The interval of what a condition measures, and which side of the threshold it lies on."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace

from stateval.gates.measure import PERCENTILES, Errored, PassRule
from stateval.gates.words import Aggregation
from stateval.records.verdict import Outcome
from stateval.stats.comparison import TOLERANCE, Operator, holds
from stateval.stats.estimates import Estimate, estimate_mean, estimate_percentile, estimate_rate
from stateval.stats.planning import samples_to_decide
from stateval.stats.points import Points, observation_points, sample_points
from stateval.stats.repeats import pass_at_k, pass_hat_k
from stateval.stats.table import Selection

_EQUAL = "equal scores"


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be estimated: the weighted sum of metrics, `shares` of 1, each aggregated alike."""

    shares: Mapping[str, float]
    aggregation: Aggregation
    pass_rule: PassRule
    k: int
    confidence: float

    @property
    def scale(self) -> float:
        """What an estimate is multiplied by to be shown."""
        return 100.0 if self.aggregation is Aggregation.ACCURACY else 1.0


def estimate(selection: Selection, question: Question, errored: Errored) -> Estimate | None:
    """The measured number with its interval, from one value per sample; None where there is too little for one.

    Several metrics are weighed within each sample; a sample that lacks one of them counts as `errored` says. Rates
    stay between 0 and 1, also for `accuracy`. Percentiles are of observations, of which those of one sample or
    cluster are not independent. With k repeats, samples with fewer are left out.
    """
    aggregation = question.aggregation
    if not aggregation.is_mean:
        (metric,) = question.shares
        points = observation_points(selection, metric, errored=errored.counted)
        return estimate_percentile(points.values, PERCENTILES[aggregation], question.confidence, points.clusters)
    if len(question.shares) == 1 and aggregation is Aggregation.AVG_SCORE:
        (metric,) = question.shares
        return estimate_score(selection, metric, errored=errored.counted, confidence=question.confidence)
    every = {metric: _points(selection, metric, question, errored) for metric in question.shares}
    points = _weighed(every, question.shares)
    if len(every) == 1 and not aggregation.over_repeats:
        return estimate_rate(points, question.confidence)
    bounded = not any(selection.table.is_resource(metric) for metric in every)
    found = estimate_mean(points, question.confidence)
    return _cautious(found) if found is not None and bounded else found


def estimate_score(
    selection: Selection, metric: str, *, errored: float | None, confidence: float = 0.95
) -> Estimate | None:
    """The mean of one metric with its interval, the same in gates and in reports; None where there is too little.

    Repeats are averaged within their sample first. A metric that is only ever 0 or 1 is a rate, also where a sample
    passed in some of its repeats.

    Args:
        errored: what an observation without a value counts as; None leaves it out.
    """
    points = _score_points(selection, metric, errored)
    if set(selection.values(metric)) <= {0.0, 1.0} and not selection.table.is_resource(metric):
        return estimate_rate(points, confidence)
    found = estimate_mean(points, confidence)
    return found if found is None or selection.table.is_resource(metric) else _cautious(found)


def _score_points(selection: Selection, metric: str, errored: float | None) -> Points:
    """As `sample_points`; of a single run without clusters, where every observation is a sample, in no order."""
    _, clusters, _ = selection.table.columns(metric)
    if len(selection.table.runs) > 1 or any(clusters):
        return sample_points(selection, metric, errored=errored)
    values = selection.values(metric)
    if errored is not None:
        values.extend([errored] * (len(selection) - len(values)))
    numbers = array("Q", range(len(values)))
    return Points(numbers, values, numbers, array("I", [1]) * len(values))


def side(found: Estimate, operator: Operator, threshold: float) -> Outcome:
    """Pass where the whole interval is on the right side of the threshold, fail where it is wholly on the wrong one."""
    ends = {holds(found.low, operator, threshold), holds(found.high, operator, threshold)}
    if len(ends) == 2:
        return Outcome.INCONCLUSIVE
    return Outcome.PASS if ends == {True} else Outcome.FAIL


def more_samples(found: Estimate, threshold: float, n_samples: int) -> int | None:
    """About how many more samples would decide, if what was measured stays; None where no number would."""
    if found.method == _EQUAL:
        return _more_equal_scores(found, threshold)
    needed = samples_to_decide(found, threshold)
    # An estimate of a percentile counts observations, of which each sample may have several.
    return None if needed is None else math.ceil(needed * n_samples / found.n)


def _more_equal_scores(found: Estimate, threshold: float) -> int | None:
    above = found.value > threshold
    room = 1 - threshold / found.value if above else (threshold - found.value) / (1 - found.value)
    if room <= TOLERANCE:
        return None
    needed = math.log((1 - found.confidence) / 2) / math.log(1 - room) if room < 1 else 1
    return max(1, math.ceil(needed) - found.n_clusters)


def _points(selection: Selection, metric: str, question: Question, errored: Errored) -> Points:
    passes = question.pass_rule.passes if question.aggregation.counts_passes else None
    points = sample_points(selection, metric, errored=errored.counted, value_of=passes)
    return _over_repeats(points, question) if question.aggregation.over_repeats else points


def _over_repeats(points: Points, question: Question) -> Points:
    of_sample = pass_at_k if question.aggregation is Aggregation.PASS_AT_K else pass_hat_k
    found = Points()
    for sample, cluster, value, trials in zip(
        points.samples, points.clusters, points.values, points.trials, strict=True
    ):
        chance = of_sample(trials, round(value * trials), question.k)
        if chance is not None:
            found.append(sample, cluster, (chance,))
    return found


def _weighed(every: Mapping[str, Points], shares: Mapping[str, float]) -> Points:
    """One value per sample that has all metrics of some weight: their weighted sum."""
    parts = [(points, shares[metric]) for metric, points in every.items() if shares[metric]]
    (first, share), *rest = parts
    if not rest:
        return first
    sums = {sample: share * value for sample, value in zip(first.samples, first.values, strict=True)}
    counts = dict.fromkeys(sums, 1)
    for points, share in rest:
        for sample, value in zip(points.samples, points.values, strict=True):
            if sample in sums:
                sums[sample] += share * value
                counts[sample] += 1
    found = Points()
    for sample, cluster in zip(first.samples, first.clusters, strict=True):
        if counts[sample] == len(parts):
            found.append(sample, cluster, (_within(sums[sample]),))
    return found


def _within(value: float) -> float:
    """Weights of 0.1, 0.2 and 0.7 do not add up to 1 exactly; a sum that means 0 or 1 is 0 or 1."""
    return float(round(value)) if abs(value - round(value)) < 1e-12 else value


def _cautious(found: Estimate) -> Estimate:
    """Scores that are all alike do not show that no other will come: two equal scores prove nothing.

    Of n independent scores none differed, so with this confidence at most u = 1 - ((1 - confidence) / 2) ** (1 / n)
    of all do (Clopper and Pearson, 1934, for 0 of n); those may be 0 or 1.
    """
    if found.high - found.low > 1e-12 or found.method == "wilson":
        return found
    others = 1 - ((1 - found.confidence) / 2) ** (1 / found.n_clusters)
    low, high = found.value * (1 - others), found.value + others * (1 - found.value)
    return replace(found, low=low, high=high, method=_EQUAL)
