"""Two runs of the same samples: the difference per sample, its interval, and one-sided bounds.

A sample that is hard is hard in both runs; pairing takes that out (Miller, "Adding Error Bars to Evals", 2024). A
difference is always other - one.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from stateval.stats.comparison import TOLERANCE
from stateval.stats.describe import percentile
from stateval.stats.distributions import binomial_cdf, normal_cdf, student_t_cdf, student_t_quantile
from stateval.stats.estimates import Estimate, MeanError, mean_error
from stateval.stats.intervals import Interval, upper_tail
from stateval.stats.points import Points, own_cluster, unclustered

FEWEST_BOOTSTRAP_CLUSTERS = 8
"""With fewer the bootstrap is too narrow: of 5 skewed differences 87 - 93 % coverage was measured, of 3 about 75 %."""

MOST_BOOTSTRAP_CLUSTERS = 2_000
"""With more clusters the interval is the closed form, which the bootstrap then only repeats with noise."""

RESAMPLES = 2_000
"""Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), ask for at least 1,000."""

SEED = 20_240_501
"""Any fixed number: the same data give the same interval."""

_ROUNDING = 1e-12
"""Means of the same repeats in another order differ by no more."""


@dataclass(slots=True)
class Paired:
    """The differences of the samples that both runs have, in ascending order of the samples' digests.

    `gained` counts the samples that went from 0 to 1, `lost` those from 1 to 0; None where some value is neither.
    `n_only_one` and `n_only_other` samples have no partner and are in no number.
    """

    samples: array[int] = field(default_factory=lambda: array("Q"))
    differences: array[float] = field(default_factory=lambda: array("d"))
    clusters: array[int] = field(default_factory=lambda: array("Q"))
    n_only_one: int = 0
    n_only_other: int = 0
    gained: int | None = None
    lost: int | None = None
    _unclustered: bool | None = field(default=None, init=False, repr=False, compare=False)
    _error: MeanError | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def n(self) -> int:
        """The number of samples that both have."""
        return len(self.differences)

    @property
    def n_clusters(self) -> int:
        """The number of clusters that they come from; equal to `n` where no two samples share one."""
        return self.n if self.is_unclustered else len(set(self.clusters))

    @property
    def is_unclustered(self) -> bool:
        """Whether no two samples share a cluster; looked at once, so nothing is added to the pairs afterwards."""
        if self._unclustered is None:
            self._unclustered = unclustered(self.samples, self.clusters)
        return self._unclustered

    @property
    def is_binary(self) -> bool:
        """Whether every value of both runs is 0 or 1."""
        return self.gained is not None


@dataclass(frozen=True, slots=True)
class DifferenceTest:
    """How likely a difference at least as great is where there is none; two-sided. `method` says which test it is."""

    p_value: float
    method: str


def pair(one: Points, other: Points, *, scores: bool = True) -> Paired:
    """Joins two runs by sample. Where only one of them knows a sample's cluster, that cluster counts.

    `scores` is False for dollars, seconds and tokens, which nobody passes or fails even where all are 0 or 1.
    """
    if one.samples == other.samples and one.clusters == other.clusters:
        return _of_the_same_samples(one, other, scores)
    paired, binary, gained, lost = Paired(), scores, 0, 0
    for i, j in _shared(one.samples, other.samples):
        before, after = one.values[i], other.values[j]
        paired.samples.append(one.samples[i])
        paired.differences.append(_difference(before, after))
        own = own_cluster(one.samples[i])
        paired.clusters.append(one.clusters[i] if one.clusters[i] != own else other.clusters[j])
        binary = binary and before in (0.0, 1.0) and after in (0.0, 1.0)
        gained += after > before
        lost += after < before
    paired.n_only_one, paired.n_only_other = one.n - paired.n, other.n - paired.n
    paired.gained, paired.lost = (gained, lost) if binary else (None, None)
    return paired


def paired_difference(paired: Paired, confidence: float = 0.95, seed: int = SEED) -> Estimate | None:
    """The mean difference with its two-sided interval; None of no pairs, of one, or of a single cluster.

    From `FEWEST_BOOTSTRAP_CLUSTERS` to `MOST_BOOTSTRAP_CLUSTERS` clusters: the bootstrap that draws whole clusters,
    with percentiles that are further out the fewer they are (Hesterberg, "What Teachers Should Know About the
    Bootstrap", 2015, the expanded percentile interval: plain ones are as narrow as a normal interval with n for
    n - 1). Outside of that: Student's t with the cluster-robust standard error. Where every cluster has the same mean
    difference neither says anything, and `_of_equal_differences` does.
    """
    found = _error_of(paired)
    if found is None or found.standard_error is None:
        return None
    interval, method = _two_sided(paired, found, confidence, seed)
    low, high = min(interval[0], found.mean), max(interval[1], found.mean)
    error = found.standard_error
    return Estimate(found.mean, low, high, error, confidence, found.n, found.n_clusters, method)


def lower_bound(paired: Paired, confidence: float = 0.95) -> float | None:
    """What the mean difference is above, with this confidence; None where `paired_difference` is None.

    One-sided: the whole error is on one side. Always Student's t with the cluster-robust standard error. Between two
    equal runs of 20 to 300 samples a bound at 95 % is above 0 in 2.9 - 5.6 % of cases; of the bootstraps the plain
    percentiles are there in up to 7.6 %, BCa up to 12 %, studentized up to 11 %. At 10 samples of which nearly all
    pass it is 0.8 %: few differences can only take few values. docs/statistics.md has the table.
    """
    bounds = _one_sided(paired, confidence)
    return None if bounds is None else bounds[0]


def upper_bound(paired: Paired, confidence: float = 0.95) -> float | None:
    """What the mean difference is below, with this confidence: see `lower_bound`."""
    bounds = _one_sided(paired, confidence)
    return None if bounds is None else bounds[1]


def difference_test(paired: Paired) -> DifferenceTest | None:
    """The test for 0 and 1, and for other numbers; None where `paired_difference` is None.

    0 and 1: McNemar's exact test. With clusters, or where all clusters differ by the same: the exact sign test over
    clusters, which is McNemar's with a cluster's net gain or loss in place of a sample's. Else: Student's t with
    the cluster-robust standard error.
    """
    found = _error_of(paired)
    if found is None or found.standard_error is None:
        return None
    if paired.gained is not None and paired.lost is not None and not found.clustered:
        return DifferenceTest(mcnemar_exact(paired.lost, paired.gained), "mcnemar exact")
    if paired.is_binary or _no_spread(paired, found):
        return DifferenceTest(
            mcnemar_exact(*_net_signs(paired)), "cluster sign test" if found.clustered else "sign test"
        )
    statistic = abs(found.mean) / found.standard_error
    p_value = 2 * student_t_cdf(-statistic, found.n_clusters - 1)
    return DifferenceTest(p_value, "cluster t" if found.clustered else "t")


def mcnemar_exact(lost: int, gained: int) -> float:
    """The two-sided p-value of so many discordant pairs: twice the smaller binomial tail at 1/2, at most 1.

    From McNemar, "Note on the Sampling Error of the Difference Between Correlated Proportions" (1947); exact form.

    >>> round(mcnemar_exact(4, 0), 9)
    0.125
    """
    if lost < 0 or gained < 0:
        raise ValueError(f"{lost} lost and {gained} gained is impossible")
    return min(1.0, 2 * binomial_cdf(min(lost, gained), lost + gained, 0.5))


def _of_the_same_samples(one: Points, other: Points, scores: bool) -> Paired:
    """The same for runs that have all samples in common, a column at a time."""
    differences = array("d", map(_difference, one.values, other.values))
    gained = lost = None
    if scores and one.is_binary and other.is_binary:
        gained, lost = differences.count(1.0), differences.count(-1.0)
    return Paired(one.samples[:], differences, one.clusters[:], gained=gained, lost=lost)


def _difference(before: float, after: float) -> float:
    return 0.0 if math.isclose(before, after, rel_tol=_ROUNDING) else after - before


def _shared(one: array[int], other: array[int]) -> Iterator[tuple[int, int]]:
    """The places of equal numbers in two ascending arrays without repeats."""
    i = j = 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            yield i, j
            i, j = i + 1, j + 1
        elif one[i] < other[j]:
            i += 1
        else:
            j += 1


def _error_of(paired: Paired) -> MeanError | None:
    """Worked out once: an interval and a test stand on the same one."""
    if paired._error is None:
        paired._error = mean_error(paired.differences, None if paired.is_unclustered else paired.clusters)
    return paired._error


def _two_sided(paired: Paired, found: MeanError, confidence: float, seed: int) -> tuple[Interval, str]:
    if _no_spread(paired, found):
        return _of_equal_differences(paired, found, upper_tail(confidence)), "equal differences"
    if not FEWEST_BOOTSTRAP_CLUSTERS <= found.n_clusters <= MOST_BOOTSTRAP_CLUSTERS:
        low, high = _by_t(found, upper_tail(confidence))
        interval = (max(-1.0, low), min(1.0, high)) if paired.is_binary else (low, high)
        return interval, "cluster t" if found.clustered else "t"
    return _by_bootstrap(paired, found, confidence, seed), "cluster bootstrap" if found.clustered else "bootstrap"


def _by_bootstrap(paired: Paired, found: MeanError, confidence: float, seed: int) -> Interval:
    means = _resampled_means(paired, seed)
    quantile = student_t_quantile(upper_tail(confidence), found.n_clusters - 1)
    tail = 100 * normal_cdf(-math.sqrt(found.n_clusters / (found.n_clusters - 1)) * quantile)
    low, high = percentile(means, tail), percentile(means, 100 - tail)
    return low or 0.0, high or 0.0


def _one_sided(paired: Paired, confidence: float) -> Interval | None:
    found = _error_of(paired)
    if found is None or found.standard_error is None:
        return None
    if _no_spread(paired, found):
        return _of_equal_differences(paired, found, confidence)
    return _by_t(found, confidence)


def _no_spread(paired: Paired, found: MeanError) -> bool:
    """Whether all clusters have the same mean difference, but for rounding."""
    greatest = max(map(abs, paired.differences))
    return (found.standard_error or 0.0) <= TOLERANCE * greatest


def _of_equal_differences(paired: Paired, found: MeanError, probability: float) -> Interval:
    """Bounds where G clusters all differ by the same d, each with this probability.

    As for a share of G in G (Clopper and Pearson, 1934): at least the share q = (1 - probability)^(1/G) of all
    clusters is like these. The rest may differ by as much the other way, so the far end is d (2 q - 1): it
    excludes 0 exactly where the sign test does. If nothing differs, the rest may differ by 1 where values are 0 or 1,
    so the ends are +-(1 - q); other values have no known scale, and both ends are 0.
    """
    alike = (1 - probability) ** (1 / found.n_clusters)
    if found.mean == 0:
        unseen = 1 - alike if paired.is_binary else 0.0
        return 0.0 - unseen, unseen
    far = found.mean * (2 * alike - 1)
    return min(far, found.mean), max(far, found.mean)


def _by_t(found: MeanError, probability: float) -> Interval:
    half_width = student_t_quantile(probability, found.n_clusters - 1) * (found.standard_error or 0.0)
    return found.mean - half_width, found.mean + half_width


def _resampled_means(paired: Paired, seed: int) -> array[float]:
    """The mean difference of `RESAMPLES` draws of as many whole clusters as there are, with replacement."""
    clusters: dict[int, complex] = {}
    for difference, cluster in zip(paired.differences, paired.clusters, strict=True):
        clusters[cluster] = clusters.get(cluster, 0j) + complex(difference, 1)
    random, size = Random(seed), len(clusters)
    if size == paired.n:
        differences = list(paired.differences)
        return array("d", (sum(random.choices(differences, k=size)) / size for _ in range(RESAMPLES)))
    # One complex number a cluster, so that its sum of differences and its count are drawn and added up together.
    pairs = list(clusters.values())
    drawn = (sum(random.choices(pairs, k=size)) for _ in range(RESAMPLES))
    return array("d", (total.real / total.imag for total in drawn))


def _net_signs(paired: Paired) -> tuple[int, int]:
    """How many clusters lost, and how many gained, on the whole."""
    nets: dict[int, float] = {}
    for difference, cluster in zip(paired.differences, paired.clusters, strict=True):
        nets[cluster] = nets.get(cluster, 0.0) + difference
    least = TOLERANCE * max(map(abs, paired.differences))
    return sum(net < -least for net in nets.values()), sum(net > least for net in nets.values())
