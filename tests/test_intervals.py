"""Intervals of means, rates and percentiles, clusters and repeats, and what is undefined."""

from __future__ import annotations

import math
import random
import tracemalloc
from collections.abc import Callable, Iterable

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from stateval.records.digest import digest_of
from stateval.records.result import ErrorCategory, Observation
from stateval.records.usage import Timing
from stateval.stats.distributions import (
    binomial_cdf,
    normal_cdf,
    normal_quantile,
    student_t_cdf,
    student_t_quantile,
)
from stateval.stats.estimates import Estimate, estimate_mean, estimate_percentile, estimate_rate
from stateval.stats.intervals import order_statistic_interval, order_statistic_ranks, t_interval, wilson_interval
from stateval.stats.points import Points, observation_points, sample_points
from stateval.stats.repeats import repeat_points
from stateval.stats.table import ObservationTable, Selection

SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
"""Student (1908): hours of sleep that one drug gave more than the other, in ten patients."""

CONFIDENCES = st.floats(0.5, 0.999)
SCORES = st.lists(st.floats(0, 1).map(lambda score: round(score, 6)), min_size=2, max_size=30)
PASSES = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=40)

Row = tuple[str, float | None] | tuple[str, float | None, str | None]


def selection_of(rows: Iterable[Row]) -> Selection:
    """(sample, score, cluster) by row; a sample's second row is its second run."""
    runs: dict[str, int] = {}
    table = ObservationTable(["accuracy"])
    for sample, score, *cluster in rows:
        runs[sample] = runs.get(sample, 0) + 1
        table.add(
            Observation(
                sample_id=sample,
                run=runs[sample],
                scores={} if score is None else {"accuracy": score},
                error=ErrorCategory.TARGET if score is None else None,
                timing=Timing(total=1, target=1),
                cluster=cluster[0] if cluster else None,  # type: ignore[arg-type]
            )
        )
    return table.select()


def points_of(rows: Iterable[Row], errored: float | None = None) -> Points:
    return sample_points(selection_of(rows), "accuracy", errored=errored)


def points(values: Iterable[float]) -> Points:
    return points_of([(str(index), value) for index, value in enumerate(values)])


def clustered(values: Iterable[float], size: int) -> Points:
    found = Points()
    for index, value in enumerate(values):
        found.append(index + 1, index // size + 1, [value])
    return found


@pytest.mark.parametrize("probability", [1e-12, 1e-4, 0.025, 0.3, 0.5, 0.7, 0.975, 0.9999])
@pytest.mark.parametrize("degrees", [1, 1.5, 2, 3, 10, 29.3, 1_999, 99_999, 5e6])
def test_student_t_is_scipys(probability: float, degrees: float) -> None:
    quantile = student_t_quantile(probability, degrees)
    # scipy has 8 digits of its own in the far tail: the distribution function is checked there.
    assert quantile == pytest.approx(scipy.stats.t.ppf(probability, degrees), rel=1e-6, abs=1e-9)
    assert student_t_cdf(quantile, degrees) == pytest.approx(probability, rel=1e-6)
    assert student_t_cdf(quantile, degrees) == pytest.approx(scipy.stats.t.cdf(quantile, degrees), rel=1e-6)


@given(st.floats(1e-10, 1 - 1e-10))
def test_normal_quantiles_are_scipys(probability: float) -> None:
    assert normal_quantile(probability) == pytest.approx(scipy.stats.norm.ppf(probability), abs=1e-9)
    assert normal_cdf(normal_quantile(probability)) == pytest.approx(probability, abs=1e-9)


@given(st.integers(1, 5_000).flatmap(lambda n: st.tuples(st.integers(-1, n), st.just(n))), st.floats(0, 1))
def test_binomial_probabilities_are_scipys(case: tuple[int, int], probability: float) -> None:
    successes, trials = case
    expected = scipy.stats.binom.cdf(successes, trials, probability)
    assert binomial_cdf(successes, trials, probability) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, math.nan])
def test_a_quantile_of_no_probability_is_refused(probability: float) -> None:
    for quantile in (normal_quantile, lambda p: student_t_quantile(p, 3)):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            quantile(probability)
    with pytest.raises(ValueError, match="confidence lies strictly"):
        wilson_interval(1, 2, 1 - probability)


def test_40_of_50_is_between_67_and_89_percent() -> None:
    low, high = wilson_interval(40, 50, 0.95)
    assert (round(low, 4), round(high, 4)) == (0.6696, 0.8876)


@given(
    st.integers(1, 3_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), CONFIDENCES, st.floats(0, 0.0009)
)
def test_wilson_is_scipys_within_0_and_1_and_widens_with_confidence(
    case: tuple[int, int], confidence: float, more: float
) -> None:
    passed, n = case
    low, high = wilson_interval(passed, n, confidence)
    expected = scipy.stats.binomtest(passed, n).proportion_ci(confidence, method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= low <= passed / n <= high <= 1
    wider = wilson_interval(passed, n, confidence + more)
    assert wider[0] <= low + 1e-12 and high <= wider[1] + 1e-12


def test_wilson_ends_are_exact_where_all_or_none_passed() -> None:
    assert wilson_interval(0, 7)[0] == 0.0
    assert wilson_interval(7, 7)[1] == 1.0
    with pytest.raises(ValueError, match="impossible"):
        wilson_interval(8, 7)


@pytest.mark.parametrize("n", [10, 50, 200])
def test_wilson_covers_what_it_says_on_average(n: int) -> None:
    rates = numpy.linspace(0.02, 0.98, 97)
    ends = [wilson_interval(passed, n) for passed in range(n + 1)]
    coverage = [
        sum(scipy.stats.binom.pmf(k, n, rate) for k, (low, high) in enumerate(ends) if low <= rate <= high)
        for rate in rates
    ]
    assert numpy.mean(coverage) == pytest.approx(0.95, abs=0.01)


def test_students_own_numbers() -> None:
    assert t_interval(SLEEP, 0.95) == pytest.approx((0.7001142, 2.4598858), abs=1e-7)


@given(SCORES, CONFIDENCES)
def test_the_t_interval_is_scipys(values: list[float], confidence: float) -> None:
    found = t_interval(values, confidence)
    assert found is not None
    error = numpy.std(values, ddof=1) / math.sqrt(len(values))
    half_width = scipy.stats.t.ppf(0.5 + confidence / 2, len(values) - 1) * error
    assert found == pytest.approx((numpy.mean(values) - half_width, numpy.mean(values) + half_width), abs=1e-9)


@pytest.mark.parametrize(
    ("n", "percent", "ranks"),
    [
        pytest.param(5, 50, None, id="five-do-not-bound-a-median"),
        pytest.param(6, 50, (1, 6), id="six-do"),
        pytest.param(10, 50, (2, 9), id="ten"),
        pytest.param(20, 50, (6, 15), id="twenty"),
        pytest.param(100, 50, (40, 61), id="a-hundred"),
        pytest.param(71, 95, None, id="fault-56-too-few-for-p95"),
        pytest.param(72, 95, (64, 72), id="just-enough-for-p95"),
        pytest.param(100, 0, None, id="a-minimum-has-no-interval"),
        pytest.param(100, 100, None, id="a-maximum-has-no-interval"),
        pytest.param(0, 50, None, id="nothing"),
    ],
)
def test_published_ranks_of_order_statistics(n: int, percent: float, ranks: tuple[int, int] | None) -> None:
    assert order_statistic_ranks(n, percent, 0.95) == ranks
    expected = None if ranks is None else (float(ranks[0]), float(ranks[1]))
    assert order_statistic_interval(map(float, range(n, 0, -1)), percent, 0.95) == expected


@given(st.integers(1, 400), st.floats(1, 99), st.floats(0.8, 0.999))
def test_order_statistics_leave_no_more_than_half_of_the_rest_on_either_side(
    n: int, percent: float, confidence: float
) -> None:
    ranks, rest = order_statistic_ranks(n, percent, confidence), (1 - confidence) / 2
    below = scipy.stats.binom(n, percent / 100)
    if ranks is None:
        assert below.cdf(0) > rest - 1e-9 or below.cdf(n - 1) < 1 - rest + 1e-9
    else:
        low, high = ranks
        assert below.cdf(low - 1) <= rest + 1e-9 and below.cdf(high - 1) >= 1 - rest - 1e-9
        assert below.cdf(low) >= rest - 1e-9, "a nearer rank would do"
        assert below.cdf(high - 2) <= 1 - rest + 1e-9, "a nearer rank would do"


def test_a_mean_of_0_and_1_is_wilsons_and_of_scores_is_students() -> None:
    rate = estimate_mean(points([1.0] * 40 + [0.0] * 10))
    assert rate is not None
    assert (rate.value, rate.method, rate.n, rate.n_clusters) == (0.8, "wilson", 50, 50)
    assert (rate.low, rate.high) == wilson_interval(40, 50)
    assert rate.standard_error == pytest.approx(scipy.stats.sem([1.0] * 40 + [0.0] * 10))
    scores = [0.1 * hours for hours in SLEEP]
    mean = estimate_mean(points(scores))
    assert mean is not None
    assert (mean.method, mean.n) == ("t", 10)
    assert (mean.low, mean.high) == pytest.approx((0.07001142, 0.24598858), abs=1e-7)


def cluster_error(values: list[float], size: int) -> float:
    groups = numpy.array(values).reshape(-1, size)
    sums = (groups - groups.mean()).sum(axis=1)
    return float(math.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / len(values))


@pytest.mark.parametrize(("n_clusters", "size"), [(2, 2), (3, 5), (8, 2), (40, 4)])
def test_a_clustered_mean_has_the_robust_error_and_t_of_the_clusters(n_clusters: int, size: int) -> None:
    source = random.Random(n_clusters)
    values = [source.random() for _ in range(n_clusters * size)]
    found = estimate_mean(clustered(values, size), 0.9)
    assert found is not None
    error = cluster_error(values, size)
    assert (found.method, found.n, found.n_clusters) == ("cluster t", n_clusters * size, n_clusters)
    assert found.standard_error == pytest.approx(error)
    half_width = scipy.stats.t.ppf(0.95, n_clusters - 1) * error
    assert (found.low, found.high) == pytest.approx((found.value - half_width, found.value + half_width))


def test_clusters_that_are_all_alike_count_once_each() -> None:
    alike = estimate_mean(clustered([1.0] * 25 + [0.0] * 25, 5))
    assert alike is not None
    assert (alike.method, alike.n, alike.n_clusters) == ("cluster wilson", 50, 10)
    assert alike.effective_n == pytest.approx(10)
    ratio = scipy.stats.norm.ppf(0.975) / scipy.stats.t.ppf(0.975, 9)
    assert (alike.low, alike.high) == pytest.approx(wilson_interval(5 * ratio**2, 10 * ratio**2))
    every = estimate_mean(clustered([1.0] * 50, 5))
    assert every is not None and every.effective_n == 10 and every.high == 1.0


def test_clusters_that_are_not_alike_are_worth_no_more_than_their_samples() -> None:
    mixed = estimate_mean(clustered([1.0, 0.0] * 25, 2))
    assert mixed is not None
    assert mixed.effective_n == pytest.approx(50)
    plain = wilson_interval(25, 50)
    assert mixed.low <= plain[0] and plain[1] <= mixed.high


def test_a_cluster_that_is_named_like_a_sample_is_another() -> None:
    assert points_of([("a", 1.0), ("b", 0.5, "a")]).n_clusters == 2
    assert points_of([("a", 1.0, "b"), ("b", 0.5, "b")]).n_clusters == 1


def coverage(draw: Callable[[], Points], truth: float, times: int) -> float:
    found = [estimate_mean(draw(), 0.95) for _ in range(times)]
    return sum(one is not None and one.low <= truth <= one.high for one in found) / times


def test_intervals_of_clustered_rates_and_means_cover_what_they_say() -> None:
    source = random.Random(20)

    def family() -> list[float]:
        rate = source.choice([0.3, 0.6, 0.9])
        return [float(source.random() < rate) for _ in range(4)]

    def passes() -> Points:
        return clustered((value for _ in range(20) for value in family()), 4)

    def scores() -> Points:
        return clustered((0.5 * value + 0.25 for _ in range(20) for value in family()), 4)

    assert 0.925 <= coverage(passes, 0.6, 800) <= 0.975
    assert 0.925 <= coverage(scores, 0.55, 800) <= 0.975


def test_repeats_are_averaged_within_the_sample_first_fault_62() -> None:
    once = estimate_mean(points_of((task, 1.0) for task in "abcd"))
    thrice = estimate_mean(points_of((task, 1.0) for _ in range(3) for task in "abcd"))
    assert once == thrice
    assert thrice is not None
    assert (thrice.n, thrice.low) == (4, pytest.approx(wilson_interval(4, 4)[0]))


@given(SCORES | PASSES, st.integers(2, 4), CONFIDENCES)
def test_repeating_the_same_observations_does_not_narrow_an_interval_fault_62(
    values: list[float], times: int, confidence: float
) -> None:
    rows: list[Row] = [(str(index), value) for index, value in enumerate(values)]
    once, repeated = (estimate_mean(points_of(rows * n), confidence) for n in (1, times))
    assert (once is None) == (repeated is None)
    if once is not None and repeated is not None:
        assert (repeated.low, repeated.high) == pytest.approx((once.low, once.high), abs=1e-12)


def test_repeats_that_differ_are_worth_at_most_their_number() -> None:
    rows: list[Row] = [(str(index), float(run)) for index in range(10) for run in (0, 1)]
    found = estimate_rate(points_of(rows))
    assert found is not None
    assert (found.method, found.value, found.n) == ("effective wilson", 0.5, 10)
    assert found.effective_n == pytest.approx(20)
    assert 0 < found.low < 0.5 < found.high < 1


def test_a_rate_is_made_of_shares() -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        estimate_rate(points([0.5, 1.5]))


def test_errored_samples_count_as_what_is_said_or_are_left_out() -> None:
    rows: list[Row] = [("a", 1.0), ("a", None), ("b", None), ("c", 0.0)]
    out, worst = points_of(rows), points_of(rows, errored=0.0)
    assert sorted(out.values) == [0.0, 1.0] and sorted(out.trials) == [1, 1]
    assert sorted(worst.values) == [0.0, 0.0, 0.5] and sorted(worst.trials) == [1, 1, 2]


def test_a_pass_rule_is_applied_before_repeats_are_averaged() -> None:
    selection = selection_of([("a", 0.9), ("a", 0.7), ("a", None), ("b", 0.9)])
    found = sample_points(selection, "accuracy", errored=0.0, value_of=lambda value: float(value >= 0.8))
    assert dict(zip(found.samples, found.values, strict=True)) == {
        digest_of("a"): pytest.approx(1 / 3),
        digest_of("b"): 1,
    }
    with pytest.raises(KeyError):
        sample_points(selection, "nosuch", errored=None)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(estimate_mean(points([])), id="fault-59-nothing"),
        pytest.param(estimate_mean(points([0.5])), id="fault-59-one-score"),
        pytest.param(estimate_mean(clustered([0.1, 0.7, 0.9], 3)), id="fault-59-one-cluster-of-scores"),
        pytest.param(estimate_mean(clustered([1.0, 0.0, 1.0], 3)), id="fault-59-one-cluster-of-passes"),
        pytest.param(estimate_mean(clustered([1.0, 1.0, 1.0], 3)), id="fault-59-one-cluster-all-passed"),
        pytest.param(estimate_percentile([], 50), id="fault-59-percentile-of-nothing"),
        pytest.param(estimate_percentile([1.0] * 5, 50), id="fault-59-percentile-of-five"),
        pytest.param(estimate_percentile([1.0, 2.0] * 40, 50, clusters=[7] * 80), id="fault-59-percentile-one-cluster"),
    ],
)
def test_what_is_undefined_is_none(found: Estimate | None) -> None:
    assert found is None


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        pytest.param([1.0], 0.2065, 1.0, id="fault-59-one-pass"),
        pytest.param([0.7] * 9, 0.7, 0.7, id="fault-59-all-equal"),
        pytest.param([1.0] * 9, 0.7009, 1.0, id="fault-59-all-passed"),
        pytest.param([0.0] * 9, 0.0, 0.2991, id="fault-59-none-passed"),
    ],
)
def test_what_is_defined_has_an_interval(values: list[float], low: float, high: float) -> None:
    found = estimate_mean(points(values))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert found.standard_error is None if len(values) == 1 else found.standard_error == pytest.approx(0, abs=1e-15)


ROWS = st.lists(
    st.tuples(
        st.sampled_from("abcdefgh"),
        st.none() | st.sampled_from([0.0, 1.0]) | st.floats(0, 1),
        st.none() | st.sampled_from("xyz"),
    ),
    max_size=25,
)


@given(ROWS, st.none() | st.just(0.0), CONFIDENCES, st.randoms(use_true_random=False))
def test_every_interval_is_finite_holds_its_value_and_does_not_depend_on_the_order(
    rows: list[Row], errored: float | None, confidence: float, source: random.Random
) -> None:
    # A sample has one cluster, whatever its run: that of its first row.
    cluster = {sample: name for sample, _, name in reversed(rows)}  # type: ignore[misc]
    rows = [(sample, score, cluster[sample]) for sample, score, *_ in rows]
    shuffled = source.sample(rows, len(rows))
    for estimate in (estimate_mean, estimate_rate):
        found, again = (estimate(points_of(some, errored), confidence) for some in (rows, shuffled))
        assert (found is None) == (again is None)
        if found is None or again is None:
            continue
        numbers = (found.value, found.low, found.high, found.standard_error or 0.0)
        assert all(map(math.isfinite, numbers))
        assert found.low <= found.value <= found.high
        assert numbers == pytest.approx((again.value, again.low, again.high, again.standard_error or 0.0), abs=1e-9)
        assert 1 <= found.n_clusters <= found.n


@given(SCORES, CONFIDENCES, st.floats(0, 0.0009))
def test_an_interval_widens_with_confidence(values: list[float], confidence: float, more: float) -> None:
    narrow, wide = (estimate_mean(points(values), level) for level in (confidence, confidence + more))
    assert narrow is not None and wide is not None
    assert wide.low <= narrow.low + 1e-9 and narrow.high <= wide.high + 1e-9


@given(SCORES, st.floats(-5, 5), st.floats(0.1, 10))
def test_a_t_interval_moves_and_stretches_with_its_values(values: list[float], shift: float, scale: float) -> None:
    plain, moved = t_interval(values), t_interval([shift + scale * value for value in values])
    assert plain is not None
    assert moved == pytest.approx((shift + scale * plain[0], shift + scale * plain[1]), abs=1e-9)


@given(st.lists(st.floats(0, 100), min_size=6, max_size=60), st.floats(30, 70))
def test_a_percentile_lies_in_its_interval_which_ends_at_values(values: list[float], percent: float) -> None:
    found = estimate_percentile(values, percent, 0.9)
    if found is not None:
        assert found.low <= found.value <= found.high
        assert {found.low, found.high} <= {*values, found.value}
        assert (found.standard_error, found.method, found.n) == (None, "order statistics", len(values))


def test_repeats_do_not_narrow_the_interval_of_a_percentile_fault_62() -> None:
    source = random.Random(3)
    rows: list[Row] = [(str(index), source.random()) for index in range(60)]
    once = estimate_percentile([score for _, score, *_ in rows], 50)  # type: ignore[misc]
    repeated = observation_points(selection_of(rows * 4), "accuracy", errored=None)
    found = estimate_percentile(repeated.values, 50, clusters=repeated.clusters)
    assert once is not None and found is not None
    assert (repeated.n, found.n_clusters, found.method) == (240, 60, "cluster order statistics")
    assert found.effective_n == pytest.approx(60, rel=0.05)
    assert found.low <= once.low and once.high <= found.high
    assert found.value == pytest.approx(once.value, abs=0.05)


def test_a_clustered_percentile_covers_what_it_says() -> None:
    source, hits = random.Random(4), 0
    for _ in range(500):
        centres = [source.gauss(0, 1) for _ in range(25)]
        values = [centre + source.gauss(0, 1) for centre in centres for _ in range(4)]
        found = estimate_percentile(values, 50, 0.95, [index // 4 for index in range(100)])
        hits += found is not None and found.low <= 0 <= found.high
    assert 0.92 <= hits / 500 <= 0.985


def test_pass_at_k_and_pass_hat_k_have_a_mean_over_samples() -> None:
    trials = {"a": [1, 1, 0, 0, 0], "b": [1, 1, 1, 1, 1], "c": [0, 0, 0, 0, 0]}
    selection = selection_of((sample, float(score)) for sample, scores in trials.items() for score in scores)

    def found(hat: bool, k: int = 2) -> Points | None:
        return repeat_points(selection, "accuracy", k, passes=lambda score: score >= 1, errored=None, hat=hat)

    any_of_two, all_of_two = found(hat=False), found(hat=True)
    assert any_of_two is not None and all_of_two is not None
    assert sorted(any_of_two.values) == pytest.approx([0.0, 0.7, 1.0])
    assert sorted(all_of_two.values) == pytest.approx([0.0, 0.1, 1.0])
    estimate = estimate_mean(all_of_two)
    assert estimate is not None
    assert (estimate.value, estimate.n, estimate.method) == (pytest.approx(1.1 / 3), 3, "t")


@pytest.mark.parametrize("hat", [pytest.param(False, id="fault-58-any"), pytest.param(True, id="fault-58-all")])
def test_one_sample_with_fewer_trials_than_k_makes_the_metric_undefined(hat: bool) -> None:
    rows: list[Row] = [("a", 1.0), ("a", 0.0), ("b", 1.0), ("b", None)]

    def found(rows: list[Row], errored: bool | None) -> Points | None:
        return repeat_points(selection_of(rows), "accuracy", 2, passes=bool, errored=errored, hat=hat)

    assert found(rows, None) is None
    assert found([], None) is None
    counted = found(rows, False)
    assert counted is not None and list(counted.values) == [0.0 if hat else 1.0] * 2


def test_points_take_few_bytes() -> None:
    selection = selection_of((str(index), 1.0) for index in range(10_000))
    tracemalloc.start()
    kept = sample_points(selection, "accuracy", errored=None)
    current, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert current / kept.n < 28 + 16 + 4  # the points, and the order of rows that the table keeps
    assert peak / kept.n < 80
